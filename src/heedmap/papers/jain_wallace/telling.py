"""A reproduction told: Markdown, LaTeX, and a short table for the terminal."""

import math
from collections.abc import Iterable, Sequence

from heedmap.data.named import NAMED
from heedmap.papers.escapes import latex_text, markdown_text
from heedmap.papers.jain_wallace.measures import DISTANCES, TAUS
from heedmap.papers.jain_wallace.published import COMPARED, PERFORMANCE, SOURCE
from heedmap.papers.jain_wallace.results import Result
from heedmap.papers.jain_wallace.tables import Line, lines
from heedmap.terminal import printable

Grid = tuple[list[str], list[list[str]]]
TITLE = "Jain & Wallace (2019), run again"
MODEL = ["data", "encoder", "score"]
HOW_TO_READ = f"""Mean ± standard deviation over texts (share with p ≤ .05), by predicted class; ours: means
over the seeds, of the first, where there are several, the least and the largest in brackets. "Inside": ours
is within one published standard deviation of the published mean. Published: {SOURCE}; nan is theirs."""
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


def summary(results: Iterable[Result]) -> Grid:
    """Accuracy and the two correlations over all classes."""
    body = []
    for model, found in _by_model(lines(results)):
        row = [model[0], f"{model[1]} {model[2]}"]
        for quantity in ("accuracy", *COMPARED):
            one = found.get((quantity, "Overall"))
            row += [_number(one.published) or "–", _range(one) or "–"] if one else ["–", "–"]
        body.append(row)
    return ["data", "model", "accuracy", "ours", "tau gradient", "ours", "tau LOO", "ours"], body


def sections(results: Sequence[Result]) -> list[tuple[str, Grid, str]]:
    """Title, table and how to read it, one a section of result.md and of the page."""
    found = lines(results)
    return [
        ("Data", _sizes(results), ""),
        ("Performance on the test split", _performance(found), ""),
        (
            "Kendall tau-b of attention with two measures of importance",
            _correlation(found),
            HOW_TO_READ,
        ),
        ("What the paper shows without numbers", _distances(found), ALONE),
        *(
            [("Baselines and variants of attention", _variants(results), VARIANTS)]
            if any(one.baselines for one in results)
            else []
        ),
    ]


def markdown(results: Sequence[Result]) -> str:
    """result.md."""
    parts = [f"# {TITLE}", *map(markdown_text, notes(results))]
    for title, table, how in sections(results):
        parts += [f"## {title}", _table(table), *([how] if how else [])]
    return "\n\n".join(parts) + "\n"


def latex(results: Sequence[Result]) -> str:
    """result.tex: all correlations in a table for the booktabs package; the notes are comments."""
    heads = ["data", "model", "measure", "class", "published", "ours", "inside"]
    rows = [
        [
            NAMED[one.dataset].title,
            f"{one.encoder} {one.score}",
            one.quantity.removeprefix("attention~").replace("_", "-"),
            one.predicted,
            _published(one),
            _ours(one),
            one.inside,
        ]
        for one in lines(results)
        if one.quantity in COMPARED
    ]
    body = [" & ".join(map(latex_text, row)) + r" \\" for row in [heads, *rows]]
    return "\n".join(
        [
            *(f"% {printable(note)}" for note in notes(results)),
            r"\begin{tabular}{" + "l" * len(heads) + "}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _by_model(
    found: Iterable[Line],
) -> Iterable[tuple[tuple[str, str, str], dict[tuple[str, str], Line]]]:
    models: dict[tuple[str, str, str], dict[tuple[str, str], Line]] = {}
    for one in found:
        models.setdefault(one.model, {})[one.quantity, one.predicted] = one
    return models.items()


def notes(results: Sequence[Result]) -> list[str]:
    """What was read and left out of each data set, and how many taus are undefined."""
    told = []
    for one in results:
        seeds = ", ".join(str(seed) for seed in sorted({n.cell.seed for n in one.numbers}))
        gone = "; ".join(f"{why}: {count}" for why, count in one.left_out.items()) or "nothing"
        undefined = sum(
            n.undefined for n in one.numbers if n.predicted == "Overall" and n.quantity in TAUS
        )
        text = (
            f"{NAMED[one.dataset].title}: by the {one.rules}'s rules, seeds {seeds}. "
            + (f"Unlike the paper: {'; '.join(one.made)}. " if one.made else "")
            + f"Left out: {gone}. "
            f"Undefined taus (one token, or a measure that is the same for all): {undefined}."
        )
        if one.missing:
            text += f" Not finished: {len(one.missing)} models are still to be run."
        told.append(text)
    return told


def _sizes(results: Iterable[Result]) -> Grid:
    body = [
        [
            size.dataset,
            size.split,
            str(size.texts),
            "/".join(map(str, size.classes)),
            f"{size.tokens:.1f}",
            "/".join(map(str, size.published or ())),
            size.told,
        ]
        for result in results
        for size in result.sizes
    ]
    return ["data", "split", "texts", "by class", "mean tokens", "published", "ours is"], body


def _performance(found: Iterable[Line]) -> Grid:
    body = []
    for model, numbers in _by_model(found):
        row = list(model)
        for quantity in PERFORMANCE:
            one = numbers.get((quantity, "Overall"))
            row += [_number(one.published), _range(one)] if one else ["", ""]
        body.append(row)
    return [*MODEL, "accuracy", "ours", "F1", "ours", "ROC AUC", "ours"], body


def _correlation(found: Iterable[Line]) -> Grid:
    body = []
    for model, numbers in _by_model(found):
        for predicted in [which for quantity, which in numbers if quantity == COMPARED[0]]:
            row = [*model, predicted]
            for quantity in TAUS:
                one = numbers.get((quantity, predicted))
                theirs, ours = (_published(one), _ours(one)) if one else ("", "")
                row += [theirs, ours, one.inside if one else ""] if quantity in COMPARED else [ours]
            body.append(row)
    measures = ["gradient", "ours", "inside", "leave-one-out", "ours", "inside"]
    return [*MODEL, "class", *measures, "gradient–LOO, ours"], body


def _distances(found: Iterable[Line]) -> Grid:
    body = []
    for model, numbers in _by_model(found):
        shown = [numbers.get((quantity, "Overall")) for quantity in DISTANCES]
        body.append([*model, *("" if one is None else _range(one) for one in shown)])
    return [*MODEL, *DISTANCES], body


def _variants(results: Iterable[Result]) -> Grid:
    columns = ("accuracy", "f1", "roc_auc", "agreement", "jsd", "tvd", "flipped")
    counts = ("uniform_texts", "all_replaced")
    body = []
    for result in results:
        for variant in dict.fromkeys(row["variant"] for row in result.baselines):
            rows = [row for row in result.baselines if row["variant"] == variant]
            line = [result.dataset, variant, str(len(rows))]
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
    return ["data", "variant", "seeds", *heads], body


def _table(content: Grid) -> str:
    heads, body = content
    rule = ["---" if i < len(MODEL) else "---:" for i in range(len(heads))]
    cells = (list(map(markdown_text, row)) for row in body)
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *cells))


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
