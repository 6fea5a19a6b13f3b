"""A table of all rankings: how far people marked their words, beside what the model rests on."""

import math

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.data.eraser_predictions import LOSSES
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.flip_sets import RANKINGS as FLIPPED
from heedmap.experiments.methods.rankings import RANKINGS
from heedmap.experiments.questions.plausibility import MEASURES
from heedmap.report.charts import PALETTE, Figure, Key, in_lines, plot, row_names, specification
from heedmap.report.wording import column

AT_RANDOM = "at random"
BEST = "at best"
SHORT = {
    "comprehensiveness": "compr.",
    "sufficiency": "suff.",
    "flips": "flips",
}  # a column is narrow
# Their names in the table of flips, where `gradient` is the read-out's.
IN_FLIPS = {"read_out": "gradient", "read_out_attention": "product"}
NO_PROOF = (
    "which words are the fewest is not known here; the fewest along any of these rankings are taken"
)
Column = dict[str, NDArray[np.float64]]


def rankings(audit: AuditResult) -> list[Figure]:
    """Draw a table: a row per ranking, a column per measure, of plausibility (if any) and of faithfulness.

    All numbers of a column are means over the same texts: those where each ranking has one.
    """
    if "eraser" not in audit.tables:
        return []
    plausible, faithful = _plausible(audit), _faithful(audit)
    cells, counts = [], []
    for group, columns in (("plausible", plausible), ("faithful", faithful)):
        for name, values in columns.items():
            complete = np.all([np.isfinite(v) for v in values.values()], axis=0)
            if not complete.any():
                continue
            counts.append(f"{name} {int(complete.sum())}")
            cells += _cells(
                SHORT.get(name, name),
                group,
                {who: float(v[complete].mean()) for who, v in values.items()},
            )
    if not cells:
        return []
    names = list(dict.fromkeys(str(cell["measure"]) for cell in cells))
    order = [*RANKINGS.values(), AT_RANDOM, BEST]
    base = plot(cells).encode(
        x=alt.X(
            "measure:N",
            sort=names,
            title=None,
            axis=alt.Axis(
                orient="top",
                labelAngle=0,
                labelExpr=in_lines(names, 5),
                labelPadding=14,
                domain=False,
                ticks=False,
            ),
        ),
        y=alt.Y(
            "ranking:N",
            sort=order,
            title=None,
            axis=row_names(order, 13),
        ),
        tooltip=["ranking:N", "measure:N", "value:N"],
    )
    shades = base.mark_rect(stroke="transparent").encode(
        fill=alt.Fill(
            "group:N",
            scale=alt.Scale(domain=["plausible", "faithful"], range=[PALETTE[1], PALETTE[0]]),
            legend=None,
        ),
        fillOpacity=alt.FillOpacity(
            "shade:Q", scale=alt.Scale(domain=[0, 1], range=[0, 0.55]), legend=None
        ),
    )
    numbers = base.mark_text(fontSize=12).encode(text="value:N")
    keys = [Key("faithful: what the model rests on", PALETTE[0])]
    if plausible:
        keys.insert(0, Key("plausible: what people marked", PALETTE[1]))
    return [
        Figure(
            key="plausible-faithful",
            title="Plausible and faithful, side by side"
            if plausible
            else "Faithful: every ranking",
            n="n of " + ", ".join(counts),
            caption=_caption(bool(plausible)),
            spec=specification(alt.layer(shades, numbers), 30 * len(order) + 20),
            keys=keys,
            notes=[] if _exact(audit) else [NO_PROOF],
        )
    ]


def _exact(audit: AuditResult) -> bool:
    return bool(np.isfinite(column(audit.tables, "decision_flips", "count_exact")).any())


def _caption(with_people: bool) -> str:
    people = (
        "AUPRC, token F1 and IOU F1 compare a ranking with the words that people marked, which says nothing "
        "of what the model rests on. "
    )
    return (people if with_people else "") + (
        "Comprehensiveness (compr.) is what the answer loses without a ranking's first words, sufficiency "
        "(suff.) what it loses with them alone (less is better), both read again (DeYoung et al. 2020); flips "
        "are the fewest words whose weights must go for another answer, as a part of those that go along the "
        "ranking (Serrano & Smith 2019). The deeper the shade, the nearer to the column's best, from random "
        "on; – is not measured."
    )


def _plausible(audit: AuditResult) -> dict[str, Column]:
    if "plausibility" not in audit.tables:
        return {}
    columns = {}
    for measure, words in MEASURES.items():
        values = {
            name: column(audit.tables, "plausibility", f"{measure}_{name}")
            for name in (*RANKINGS, "chance")
        }
        values = {RANKINGS.get(name, AT_RANDOM): value for name, value in values.items()}
        if measure == "auprc":
            values[BEST] = np.ones_like(values[AT_RANDOM])
        else:
            values[BEST] = column(audit.tables, "plausibility", f"{measure}_best")
        columns[words] = _defined(values)
    return columns


def _faithful(audit: AuditResult) -> dict[str, Column]:
    columns = {}
    for measure in LOSSES:
        values = {
            words: column(audit.tables, "eraser", f"{measure}_{name}")
            for name, words in RANKINGS.items()
        }
        values[AT_RANDOM] = column(audit.tables, "eraser", f"{measure}_random")
        columns[measure] = _defined(values)
    columns["flips"] = _flips(audit)
    return {name: values for name, values in columns.items() if values}


def _flips(audit: AuditResult) -> Column:
    """Return k_min / k; where k_min is not known, the fewest tokens along any ranking take its place."""
    if "decision_flips" not in audit.tables:
        return {}
    values = {
        words: column(audit.tables, "decision_flips", f"efficiency_{IN_FLIPS.get(name, name)}")
        for name, words in RANKINGS.items()
        if IN_FLIPS.get(name, name) in FLIPPED and name != "gradient"
    }
    values[AT_RANDOM] = column(audit.tables, "decision_flips", "efficiency_random")
    values[BEST] = np.where(np.isfinite(values[AT_RANDOM]), 1.0, np.nan)
    return _defined(values)


def _defined(values: Column) -> Column:
    """Leave out rankings without any number, so that the others have texts in common."""
    return {name: value for name, value in values.items() if np.isfinite(value).any()}


def _cells(name: str, group: str, means: dict[str, float]) -> list[dict[str, object]]:
    """Shade each mean by its way from random to the best of the column; sufficiency is better if less."""
    sign = -1.0 if name == SHORT["sufficiency"] else 1.0
    start = means.get(AT_RANDOM, 0.0)
    best = max(sign * (value - start) for value in means.values())
    cells: list[dict[str, object]] = []
    for who in (*RANKINGS.values(), AT_RANDOM, BEST):
        value = means.get(who, math.nan)
        shade = sign * (value - start) / best if best > 0 and math.isfinite(value) else 0.0
        text = f"{value:z.2f}".replace("-", "−")
        cells.append(
            {
                "measure": name,
                "group": group,
                "ranking": who,
                "value": text if math.isfinite(value) else "–",
                "shade": max(0.0, shade),
            }
        )
    return cells
