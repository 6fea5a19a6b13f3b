"""Published beside ours: the tables of a reproduction, its figures, and links to the models' reports."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd

from heedmap.data.catalog import CATALOG
from heedmap.papers.jain_wallace.figures import figures
from heedmap.papers.jain_wallace.inside import Inside
from heedmap.papers.jain_wallace.learned import JUDGED, class_counts, learned, score_of
from heedmap.papers.jain_wallace.lines import Line, lines
from heedmap.papers.jain_wallace.measures import DISTANCES, TAUS
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import COMPARED, PERFORMANCE, SOURCE
from heedmap.papers.kit.learned import Learned, Score
from heedmap.papers.kit.result import MARK, Result, Table, unfinished, unlike

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


def result(found: Sequence[DatasetNumbers]) -> Result:
    """Make the result that all files of a reproduction show, from the numbers alone."""
    numbers = lines(found)
    inside = Inside.of(numbers)
    every = Learned({**learned(found).models, **_variants_learned(found).models})
    sections = [
        _sizes(found), _performance(numbers), *inside.tables(), _correlation(numbers), _distances(numbers),
        *_variants(found),
    ]  # fmt: skip
    return Result(
        title=TITLE,
        notes=[note for note in (*map(_note, found), inside.sentence()) if note],
        summary=_summary(numbers),
        sections=sections,
        figures=figures(found),
        rows=pd.DataFrame(numbers, columns=[f.name for f in fields(Line)]),
        latex=_compared(numbers),
        columns=COLUMNS,
        not_learned=every.sentence(),
        reports=[(CATALOG[one.dataset].title, _reports(one)) for one in found],
    )


def _reports(found: DatasetNumbers) -> list[tuple[str, str]]:
    """Return name and path of each finished model's report."""
    cells = dict.fromkeys(one.cell for one in found.numbers)
    return [
        (f"{cell.encoder} {cell.score}, seed {cell.seed}", f"{cell.folder(Path())}/report.html")
        for cell in cells
    ]


def _summary(found: Iterable[Line]) -> Table:
    """Make the table of accuracy and the two correlations over all classes."""
    body = []
    for model, numbers in _by_model(found):
        row = [model[0], _marked(f"{model[1]} {model[2]}", numbers)]
        for quantity in ("accuracy", *COMPARED):
            one = numbers.get((quantity, "Overall"))
            row += [_number(one.published) or "–", _range(one) or "–"] if one else ["–", "–"]
        body.append(row)
    heads = ["data", "model"]
    heads += [f"{of}, {whose}" for of in ("accuracy", "tau gradient", "tau LOO") for whose in WHOSE]
    return Table("Jain & Wallace (2019), published and ours", heads, body, labels=2)


def _compared(found: Iterable[Line]) -> Table:
    """Make the table of all correlations."""
    rows = [
        [
            CATALOG[one.dataset].title,
            _mark(f"{one.encoder} {one.score}", one),
            one.quantity.removeprefix("attention~").replace("_", "-"),
            one.predicted,
            _published(one),
            _ours(one),
            one.inside,
        ]
        for one in found
        if one.quantity in COMPARED
    ]
    heads = ["data", "model", "measure", "class", "published", "ours", "inside"]
    title = "Kendall tau-b of attention with two measures of importance, published and ours"
    return Table(title, heads, rows, HOW_TO_READ, labels=4)


def _mark(text: str, one: Line) -> str:
    return f"{text} {MARK}" if one.not_learned else text


def _marked(text: str, numbers: Mapping[tuple[str, str], Line]) -> str:
    return _mark(text, next(iter(numbers.values())))


def _label(model: tuple[str, str, str], numbers: Mapping[tuple[str, str], Line]) -> list[str]:
    """Return the first cells of a model's line, with the mark if it has not learned."""
    return [*model[:2], _marked(model[2], numbers)]


def _by_model(
    found: Iterable[Line],
) -> Iterable[tuple[tuple[str, str, str], dict[tuple[str, str], Line]]]:
    models: dict[tuple[str, str, str], dict[tuple[str, str], Line]] = {}
    for one in found:
        models.setdefault(one.model, {})[one.quantity, one.predicted] = one
    return models.items()


def _note(one: DatasetNumbers) -> str:
    """Say what was read and left out of a data set, and how many taus are undefined."""
    seeds = ", ".join(str(seed) for seed in sorted({n.cell.seed for n in one.numbers}))
    cut = "; ".join(f"{why}: {count}" for why, count in one.left_out.items()) or "nothing"
    undefined = sum(
        n.undefined for n in one.numbers if n.predicted == "Overall" and n.quantity in TAUS
    )
    sentences = [
        f"{CATALOG[one.dataset].title}: by the {one.rules}'s rules, seeds {seeds}.",
        unlike(one.made),
        f"Left out: {cut}.",
        f"Undefined taus (one token, or a measure that is the same for all): {undefined}.",
        unfinished(len(one.missing)),
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


def _performance(found: Iterable[Line]) -> Table:
    body = []
    for model, numbers in _by_model(found):
        row = _label(model, numbers)
        for quantity in PERFORMANCE:
            one = numbers.get((quantity, "Overall"))
            row += [_number(one.published), _range(one)] if one else ["", ""]
        body.append(row)
    names = ("accuracy", "F1", "ROC AUC")
    heads = [*MODEL, *(f"{of}, {whose}" for of in names for whose in WHOSE)]
    return Table("Performance on the test split", heads, body, labels=LABELS)


def _correlation(found: Iterable[Line]) -> Table:
    body = []
    for model, numbers in _by_model(found):
        for predicted in [which for quantity, which in numbers if quantity == COMPARED[0]]:
            row = [*_label(model, numbers), predicted]
            for quantity in TAUS:
                one = numbers.get((quantity, predicted))
                theirs, ours = (_published(one), _ours(one)) if one else ("", "")
                row += [theirs, ours, one.inside if one else ""] if quantity in COMPARED else [ours]
            body.append(row)
    measures = ("gradient", "leave-one-out")
    heads = [f"{of}, {which}" for of in measures for which in (*WHOSE, "inside")]
    heads = [*MODEL, "class", *heads, "gradient–LOO, ours"]
    title = "Kendall tau-b of attention with two measures of importance"
    return Table(title, heads, body, HOW_TO_READ, labels=4)


def _distances(found: Iterable[Line]) -> Table:
    body = []
    for model, numbers in _by_model(found):
        shown = [numbers.get((quantity, "Overall")) for quantity in DISTANCES]
        body.append(
            [*_label(model, numbers), *("" if one is None else _range(one) for one in shown)]
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


def _range(one: Line) -> str:
    if not math.isfinite(one.ours):
        return ""
    spread = f" [{one.ours_min:.3f}, {one.ours_max:.3f}]" if one.seeds > 1 else ""
    return f"{one.ours:.3f}{spread}"


def _published(one: Line) -> str:
    if not one.source:
        return ""
    return f"{one.published:.2f}±{one.published_std:.2f} ({one.published_significant:.2f})"


def _ours(one: Line) -> str:
    if not math.isfinite(one.ours):
        return ""
    spread = f" [{one.ours_min:.2f}, {one.ours_max:.2f}]" if one.seeds > 1 else ""
    return f"{one.ours:.2f}{spread} ±{one.ours_std:.2f} ({one.ours_significant:.2f})"
