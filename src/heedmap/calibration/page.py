"""The page of a calibration: tables of rates, ROC curves and dose-response, in Markdown with SVG figures."""

import math
from collections.abc import Callable, Iterable, Sequence

import altair as alt
import numpy as np
import vl_convert

from heedmap.calibration.choice import is_right, kind_of
from heedmap.calibration.measure import Measured
from heedmap.experiments.rates import Rate, Rates
from heedmap.report.charts import Drawing

FIGURES = "calibration"


def page(rates: Rates, measured: Sequence[Measured]) -> tuple[str, dict[str, str]]:
    """Return the page and its figures by file name."""
    admitted = [m for m in measured if m.admitted]
    keys = list(rates.questions)
    lines = [
        "# How often a reading is wrong",
        "",
        f"Written by `heedmap calibrate` (rules {rates.rules}; planted on {rates.name}). There are",
        f"{len(admitted)} planted models whose answer is known; {len(measured) - len(admitted)} more were not",
        "admitted: they did not learn to rest on the deciding words. Edges were chosen on plants of even",
        "seeds, and all rates and AUCs are of odd ones; the tables by kind and the figures show all. Shares",
        "have Wilson intervals, AUCs Newcombe's (95 %).",
        "",
        *_families(measured),
        "",
        "## The bottom line",
        "",
        "A wrong map is one that is right for half of the texts or fewer.",
        "",
        *_table(
            ("plants", "says yes", "says no"),
            [(group, str(said["yes"]), str(said["no"])) for group, said in rates.verdicts.items()],
        ),
        "",
        "## What each question can tell",
        "",
        "The AUC is of right maps against those that are right of no text; a question tells if its interval",
        "lies above 0.6. Edges are shares of the attainable; one that is wrong more than one time in twenty,",
        "or not certainly more often right than wrong, is not used (never).",
        "",
        *_table(
            (
                "question", "AUC", "tells", "for, from", "of wrong maps", "of right maps", "against, up to",
                "of wrong maps", "of right maps",
            ),
            [
                (
                    f"`{key}`",
                    f"{q.auc:.2f} [{q.auc_low:.2f}, {q.auc_high:.2f}]",
                    "yes" if q.tells else "no",
                    _edge(q.for_edge),
                    _said(q.for_edge, q.false_for),
                    _said(q.for_edge, q.power),
                    _edge(q.against_edge),
                    _said(q.against_edge, q.caught),
                    _said(q.against_edge, q.false_against),
                )
                for key, q in rates.questions.items()
            ],
        ),
        "",
        f"![ROC curves]({FIGURES}/roc.svg)",
        "",
        "## By kind",
        "",
        "Median share of the attainable, and the range of the middle 80 % of the plants.",
        "",
        *_by(keys, admitted, kind_of),
        "",
        f"![dose and response]({FIGURES}/dose.svg)",
        "",
        "## Right maps, by what may make it hard",
        "",
        *_by(keys, [m for m in admitted if is_right(m)], lambda m: m.plant.family),
        "",
        *_by(keys, [m for m in admitted if is_right(m)], lambda m: f"{m.plant.length} other words"),
        "",
        *_by(keys, [m for m in admitted if is_right(m)], _confidence),
        "",
    ]  # fmt: skip
    return "\n".join(lines), {"roc.svg": _roc(keys, admitted), "dose.svg": _dose(keys, admitted)}


def _families(measured: Sequence[Measured]) -> list[str]:
    """Return how many plants of each family were made and admitted."""
    rows = []
    for family in dict.fromkeys(m.plant.family for m in measured):
        of_family = [m for m in measured if m.plant.family == family]
        admitted = [m for m in of_family if m.admitted]
        right = sum(is_right(m) for m in admitted)
        rows.append((family, str(len(of_family)), str(len(admitted)), str(right)))
    return _table(("family", "made", "admitted", "of these right"), rows)


def _confidence(m: Measured) -> str:
    edges = (0.8, 0.95)
    if m.confidence < edges[0]:
        return f"confidence below {edges[0]}"
    return (
        f"confidence {edges[0]} to {edges[1]}"
        if m.confidence < edges[1]
        else f"confidence above {edges[1]}"
    )


def _edge(edge: float | None) -> str:
    return "never" if edge is None else f"{edge:.2f}"


def _said(edge: float | None, rate: Rate) -> str:
    return "–" if edge is None else str(rate)


def _by(
    keys: Sequence[str], measured: Sequence[Measured], group: Callable[[Measured], str]
) -> list[str]:
    names = list(dict.fromkeys(group(m) for m in measured))
    rows = []
    for name in names if names and not names[0][0].isdigit() else sorted(names, key=_leading):
        of_group = [m for m in measured if group(m) == name]
        rows.append((name, str(len(of_group)), *(_middle(key, of_group) for key in keys)))
    return _table(("plants", "n", *(f"`{key}`" for key in keys)), rows)


def _leading(name: str) -> int:
    return int(name.split(maxsplit=1)[0])


def _middle(key: str, measured: Sequence[Measured]) -> str:
    values = shares(key, measured)
    if not values:
        return "–"
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
    return f"{median:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")


def shares(key: str, measured: Iterable[Measured]) -> list[float]:
    """Return a question's shares of the attainable, where it has any."""
    values = [m.numbers[key].share for m in measured if key in m.numbers]
    return [value for value in values if math.isfinite(value)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def _roc(keys: Sequence[str], measured: Sequence[Measured]) -> str:
    points = []
    for key in keys:
        right = np.array(shares(key, (m for m in measured if is_right(m))))
        wrong = np.array(shares(key, (m for m in measured if m.plant.share == 0)))
        if not len(right) or not len(wrong):
            continue
        for edge in [math.inf, *sorted({*right, *wrong}, reverse=True)]:
            points.append(
                {
                    "question": key,
                    "of wrong maps": float((wrong >= edge).mean()),
                    "of right maps": float((right >= edge).mean()),
                }
            )
    curve = (
        alt.Chart()
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("of wrong maps:Q", title="share of the wrong maps"),
            y=alt.Y("of right maps:Q", title="of the right ones"),
            order="of wrong maps:Q",
        )
    )
    return _panels(curve, points, keys)


def _dose(keys: Sequence[str], measured: Sequence[Measured]) -> str:
    points = []
    for key in keys:
        for dose in sorted({m.plant.share for m in measured}):
            values = shares(key, (m for m in measured if m.plant.share == dose))
            if values:
                low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
                points.append(
                    {
                        "question": key,
                        "share of texts": dose,
                        "median": median,
                        "low": low,
                        "high": high,
                    }
                )
    base = alt.Chart().encode(x=alt.X("share of texts:Q", title="texts in which it is right"))
    line = base.mark_line(point=True).encode(y=alt.Y("median:Q", title="share of the attainable"))
    area = base.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q")
    return _panels(alt.layer(area, line), points, keys)


def _panels(chart: Drawing, points: Sequence[dict[str, object]], keys: Sequence[str]) -> str:
    """Draw one panel per question."""
    panels = chart.properties(width=150, height=120, data=alt.InlineData(values=points)).facet(
        facet=alt.Facet("question:N", sort=list(keys), title=None), columns=4
    )
    return str(vl_convert.vegalite_to_svg(panels.to_dict()))
