"""Published beside ours: the tables of a reproduction, its figures, and links to the models' reports."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd

from heedmap.papers.jain_wallace.claims import claims
from heedmap.papers.jain_wallace.figures import figures
from heedmap.papers.jain_wallace.inside import Inside
from heedmap.papers.jain_wallace.learned import JUDGED, class_counts, learned, score_of
from heedmap.papers.jain_wallace.lines import Line, lines
from heedmap.papers.jain_wallace.locations import title_of
from heedmap.papers.jain_wallace.measures import DISTANCES, TAUS
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import COMPARED, PERFORMANCE, SOURCE
from heedmap.papers.kit.learned import Learned, Score
from heedmap.papers.kit.result import MARK, Claim, Result, Table, unfinished, unlike

TITLE = "Jain & Wallace (2019), run again"
MODEL = ["data", "encoder", "score"]
LABELS = len(MODEL)
WHOSE = ("published", "ours")
HOW_TO_READ = f"""Mean ± standard deviation over texts (share with p ≤ .05), by predicted class; ours: means
over the seeds, of the first, where there are several, the least and the largest in brackets. "Inside": the
published mean is where another seed of ours would be in 95 of 100 cases (t interval); else why it is not
counted. Published: {SOURCE}; nan is theirs."""
ALONE = """Means over texts of more than one token, then over the seeds [least, largest]. TVD: how far the
prediction moves when the weights are shuffled (median of 100 permutations) or uniform. JSD: how far weights can
be from the model's own at a prediction within ε (TVD): .01 for single texts, .05 for pairs, always .05 by the
code's rules. Of single texts of two classes it is the optimum, of more classes or pairs the best that is found;
the paper's search is averaged over the texts where it finds any."""
VARIANTS = """All with the encoder lstm, and additive scores where attention is learned. Agreement: texts that
get the same class as from "attention". JSD: from the log-odds weights. TVD and flipped: of the prediction of
"attention" when words are replaced by those with the most extreme log-odds of the other class. Uniform: texts
without a word that has log-odds, where their weights are uniform; replaced whole: texts with no more words than
are replaced; of these two the least and the largest number over the seeds, of the rest means [least, largest].
Where no words are replaced, none speaks for one of the classes."""
COLUMNS = {
    "dataset": "data set",
    "encoder": "encoder of the model",
    "score": "attention score of the model",
    "quantity": "what is measured: accuracy, F1 and ROC AUC as shares, correlations as Kendall's tau-b, TVD "
    "(at most 1) and JSD (nats)",
    "predicted": "texts of which predicted class, by number; Overall: all",
    "published": "published mean",
    "published_std": "its standard deviation over texts",
    "published_significant": "published share of the texts with p ≤ .05",
    "ours": "mean over texts, then over seeds",
    "ours_min": "least seed",
    "ours_max": "largest seed",
    "ours_std": "standard deviation over texts, mean over seeds",
    "ours_significant": "share of the texts with p ≤ .05, mean over seeds",
    "seeds": "trainings",
    "n": "texts with a value, of all seeds",
    "undefined": "texts without a value, of all seeds",
    "inside": "whether the published mean is between next_low and next_high; else why it is not counted",
    "source": "of the published number",
    "next_low": "from here another seed would be (95 % t interval over seeds)",
    "next_high": "up to here",
    "not_learned": "trainings that have not learned",
}


def result(datasets: Sequence[DatasetNumbers]) -> Result:
    """Make the result that all files of a reproduction show, from the numbers alone."""
    all_lines = lines(datasets)
    counts = Inside.of(all_lines)
    all_learned = Learned({**learned(datasets).models, **_variants_learned(datasets).models})
    sections: list[Table | Claim] = [
        _sizes(datasets), _performance(all_lines), *counts.tables(), _correlation(all_lines),
        _distances(all_lines), *_variants(datasets), *claims(datasets, all_lines),
    ]  # fmt: skip
    return Result(
        title=TITLE,
        notes=[note for note in (*map(_note, datasets), counts.sentence()) if note],
        summary=_summary(all_lines),
        sections=sections,
        figures=figures(datasets),
        rows=pd.DataFrame(all_lines, columns=[f.name for f in fields(Line)]),
        latex=_compared(all_lines),
        columns=COLUMNS,
        not_learned=all_learned.sentence(),
        reports=[
            (title_of(dataset_numbers.dataset), _reports(dataset_numbers))
            for dataset_numbers in datasets
        ],
    )


def _reports(numbers: DatasetNumbers) -> list[tuple[str, str]]:
    """Return name and path of each finished model's report."""
    cells = dict.fromkeys(number.cell for number in numbers.numbers)
    return [
        (f"{cell.encoder} {cell.score}, seed {cell.seed}", f"{cell.folder(Path())}/report.html")
        for cell in cells
    ]


def _summary(all_lines: Iterable[Line]) -> Table:
    """Make the table of accuracy and the two correlations over all classes."""
    body = []
    for model, model_lines in _by_model(all_lines):
        row = [model[0], _marked(f"{model[1]} {model[2]}", model_lines)]
        for quantity in ("accuracy", *COMPARED):
            line = model_lines.get((quantity, "Overall"))
            row += [_number(line.published) or "–", _range(line) or "–"] if line else ["–", "–"]
        body.append(row)
    heads = ["data", "model"]
    heads += [
        f"{name}, {whose}" for name in ("accuracy", "tau gradient", "tau LOO") for whose in WHOSE
    ]
    return Table("Jain & Wallace (2019), published and ours", heads, body, labels=2)


def _compared(all_lines: Iterable[Line]) -> Table:
    """Make the table of all correlations."""
    rows = [
        [
            title_of(line.dataset),
            _mark(f"{line.encoder} {line.score}", line),
            line.quantity.removeprefix("attention~").replace("_", "-"),
            line.predicted,
            _published(line),
            _ours(line),
            line.inside,
        ]
        for line in all_lines
        if line.quantity in COMPARED
    ]
    heads = ["data", "model", "measure", "class", "published", "ours", "inside"]
    title = "Kendall tau-b of attention with two measures of importance, published and ours"
    return Table(title, heads, rows, HOW_TO_READ, labels=4)


def _mark(text: str, line: Line) -> str:
    return f"{text} {MARK}" if line.not_learned else text


def _marked(text: str, numbers: Mapping[tuple[str, str], Line]) -> str:
    return _mark(text, next(iter(numbers.values())))


def _label(model: tuple[str, str, str], numbers: Mapping[tuple[str, str], Line]) -> list[str]:
    """Return the first cells of a model's line, with the mark if it has not learned."""
    return [*model[:2], _marked(model[2], numbers)]


def _by_model(
    all_lines: Iterable[Line],
) -> Iterable[tuple[tuple[str, str, str], dict[tuple[str, str], Line]]]:
    models: dict[tuple[str, str, str], dict[tuple[str, str], Line]] = {}
    for line in all_lines:
        models.setdefault(line.model, {})[line.quantity, line.predicted] = line
    return models.items()


def _note(numbers: DatasetNumbers) -> str:
    """Say what was read and left out of a data set, and how many taus are undefined."""
    seeds = ", ".join(str(seed) for seed in sorted({n.cell.seed for n in numbers.numbers}))
    cut = "; ".join(f"{reason}: {count}" for reason, count in numbers.left_out.items()) or "nothing"
    undefined = sum(
        n.undefined for n in numbers.numbers if n.predicted == "Overall" and n.quantity in TAUS
    )
    sentences = [
        f"{title_of(numbers.dataset)}: by the {numbers.rules}'s rules, seeds {seeds}.",
        unlike(numbers.made),
        f"Left out: {cut}.",
        f"Undefined taus (one token, or a measure that is the same for all): {undefined}.",
        unfinished(len(numbers.missing)),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _sizes(results: Iterable[DatasetNumbers]) -> Table:
    body = [
        [
            size.dataset,
            size.split,
            str(size.texts),
            "/".join(map(str, size.classes)),
            f"{size.tokens:.1f}",
            "/".join(map(str, size.published or ())),
            size.comparison,
        ]
        for result in results
        for size in result.sizes
    ]
    heads = ["data", "split", "texts", "by class", "mean tokens", "published", "ours is"]
    return Table("Data", heads, body, labels=2)


def _performance(all_lines: Iterable[Line]) -> Table:
    body = []
    for model, model_lines in _by_model(all_lines):
        row = _label(model, model_lines)
        for quantity in PERFORMANCE:
            line = model_lines.get((quantity, "Overall"))
            row += [_number(line.published), _range(line)] if line else ["", ""]
        body.append(row)
    names = ("accuracy", "F1", "ROC AUC")
    heads = [*MODEL, *(f"{name}, {whose}" for name in names for whose in WHOSE)]
    return Table("Performance on the test split", heads, body, labels=LABELS)


def _correlation(all_lines: Iterable[Line]) -> Table:
    body = []
    for model, model_lines in _by_model(all_lines):
        for predicted in [which for quantity, which in model_lines if quantity == COMPARED[0]]:
            row = [*_label(model, model_lines), predicted]
            for quantity in TAUS:
                line = model_lines.get((quantity, predicted))
                theirs, ours = (_published(line), _ours(line)) if line else ("", "")
                row += (
                    [theirs, ours, line.inside if line else ""] if quantity in COMPARED else [ours]
                )
            body.append(row)
    measures = ("gradient", "leave-one-out")
    heads = [f"{name}, {which}" for name in measures for which in (*WHOSE, "inside")]
    heads = [*MODEL, "class", *heads, "gradient–LOO, ours"]
    title = "Kendall tau-b of attention with two measures of importance"
    return Table(title, heads, body, HOW_TO_READ, labels=4)


def _distances(all_lines: Iterable[Line]) -> Table:
    body = []
    for model, model_lines in _by_model(all_lines):
        cells = [model_lines.get((quantity, "Overall")) for quantity in DISTANCES]
        body.append(
            [*_label(model, model_lines), *("" if line is None else _range(line) for line in cells)]
        )
    title = "What the paper shows without numbers"
    return Table(title, [*MODEL, *DISTANCES], body, ALONE, LABELS)


def _variants(results: Sequence[DatasetNumbers]) -> list[Table]:
    """Make one table, none where no variants were run."""
    columns = ("accuracy", "f1", "roc_auc", "agreement", "jsd", "tvd", "flipped")
    counts = ("uniform_texts", "all_replaced")
    learned_variants = _variants_learned(results)
    body = []
    for result in results:
        for variant in dict.fromkeys(row["variant"] for row in result.baselines):
            rows = [row for row in result.baselines if row["variant"] == variant]
            name = learned_variants.marked(variant, f"{result.dataset} {variant}")
            line = [result.dataset, name, str(len(rows))]
            for column in columns:
                values = [row[column] for row in rows if row[column] is not None]
                spread = f" [{min(values):.3f}, {max(values):.3f}]" if len(values) > 1 else ""
                line.append(f"{sum(values) / len(values):.3f}{spread}" if values else "")
            for column in counts:
                values = [row[column] for row in rows if row[column] is not None]
                line.append(
                    "–".join(map(str, sorted({min(values), max(values)}))) if values else ""
                )
            body.append(line)
    heads = ["accuracy", "F1", "ROC AUC", "agreement", "JSD", "TVD", "flipped"]
    heads += ["uniform", "replaced whole"]
    heads = ["data", "variant", "seeds", *heads]
    title = "Baselines and variants of attention"
    return [Table(title, heads, body, VARIANTS, labels=2)] if body else []


def _variants_learned(results: Sequence[DatasetNumbers]) -> Learned:
    """Return which of the variants have learned; no score of theirs is published."""
    models: dict[str, dict[object, list[Score]]] = {}
    for result in results:
        for row in result.baselines:
            scores = {name: math.nan if row[name] is None else row[name] for name in JUDGED}
            seeds = models.setdefault(f"{result.dataset} {row['variant']}", {})
            seeds[row["seed"]] = [score_of(scores, class_counts(result))]
    return Learned(models)


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else ""


def _range(line: Line) -> str:
    if not math.isfinite(line.ours):
        return ""
    spread = f" [{line.ours_min:.3f}, {line.ours_max:.3f}]" if line.seeds > 1 else ""
    return f"{line.ours:.3f}{spread}"


def _published(line: Line) -> str:
    if not line.source:
        return ""
    return f"{line.published:.2f}±{line.published_std:.2f} ({line.published_significant:.2f})"


def _ours(line: Line) -> str:
    if not math.isfinite(line.ours):
        return ""
    spread = f" [{line.ours_min:.2f}, {line.ours_max:.2f}]" if line.seeds > 1 else ""
    return f"{line.ours:.2f}{spread} ±{line.ours_std:.2f} ({line.ours_significant:.2f})"
