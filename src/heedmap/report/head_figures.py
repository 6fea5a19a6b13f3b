"""Figures of the heads: where their mass goes, how sharp they are, how free their weights are."""

import math

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.head_mixture import FITTED
from heedmap.experiments.rounding import number
from heedmap.report import head_maps
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, plot, specification
from heedmap.report.head_maps import MORE, Panel
from heedmap.report.layer_figures import sampled
from heedmap.report.wording import column

NOTICEABLE = 0.02  # share of a head's mass; a kind of token below it in all heads is not drawn
PLAIN = ("words", "punctuation")
CLARK = "Clark et al. (2019)"
BRUNNER = "Brunner et al. (2019)"


def heads(audit: AuditResult) -> list[Figure]:
    """Return the figures of the table `heads`."""
    if "heads" not in audit.tables or not audit.tables["heads"].num_rows:
        return []
    return [*_mass(audit), *_freedom(audit), *_entropy(audit), *_effective(audit)]


def mixed(audit: AuditResult) -> list[Figure]:
    """Draw each head's weight in the mix that is fitted to leave-one-out, and to shuffled leave-one-out."""
    if "head_mixture" not in audit.tables:
        return []
    table = audit.tables["head_mixture"].to_pandas()
    table = table[(table["view"] == FITTED) & table["head"].notna()]
    layer, head = (table[name].to_numpy(float) for name in ("layer", "head"))
    panels = [
        Panel(title, head_maps.means(layer, head, table[name].to_numpy(float)))
        for title, name in (
            ("leave-one-out", "mixed"),
            ("shuffled leave-one-out", "mixed_shuffled"),
        )
    ]
    top = max([*panels[0].cells.values(), *panels[1].cells.values()], default=0.0)
    if not top > 0:
        return []
    top = math.ceil(top * 10) / 10
    return [
        Figure(
            key="heads-mixed",
            title="Which heads, mixed, come nearest to leave-one-out?",
            n=sampled(audit, table["row"].nunique()) + ", half of which it is fitted to",
            caption=(
                "The weight of each head's row in the mix of heads that is nearest to leave-one-out (least "
                "squares, no weight below 0, scaled to sum to 1): a row per layer, a column per head. Right: "
                "the same where leave-one-out is shuffled within each text, mean of several shuffles. What "
                "the mix is worth on the other half of the texts is on the card."
            ),
            spec=head_maps.chart(panels, top, 2, "weight"),
            keys=_scale(top),
        )
    ]


def _cells(audit: AuditResult, name: str) -> dict[tuple[int, int | None], float]:
    if name not in audit.tables["heads"].column_names:
        return {}
    layer, head = column(audit.tables, "heads", "layer"), column(audit.tables, "heads", "head")
    return head_maps.means(layer, head, column(audit.tables, "heads", name))


def _n(audit: AuditResult) -> str:
    return sampled(audit, len(np.unique(column(audit.tables, "heads", "row"))))


def _scale(top: float) -> list[Key]:
    return [Key(number(top), MORE), Key(number(top / 2), MORE + "80")]


def _mass(audit: AuditResult) -> list[Figure]:
    names = [n for n in audit.tables["heads"].column_names if n.startswith("share_")]
    panels, absent = [], []
    for name in names:
        kind = name.removeprefix("share_")
        cells = _cells(audit, name)
        largest = max((v for v in cells.values() if math.isfinite(v)), default=math.nan)
        if largest >= NOTICEABLE or (kind in PLAIN and math.isfinite(largest)):
            mean = np.nanmean(list(cells.values()))
            panels.append(Panel(f"{kind}, {mean:.0%}", cells))
        else:
            absent.append(kind)
    if not panels:
        return []
    return [
        Figure(
            key="heads-mass",
            title="What do the heads look at?",
            n=_n(audit),
            caption=(
                "The share of a head's attention that falls on each kind of token, mean over all "
                f"rows and texts (as {CLARK}): a row per layer, a column per head; no fill is "
                "none of it; above, the mean of all heads. What falls on special tokens is not in a "
                "heat map of words."
                + (
                    f" Kinds that no head gives {NOTICEABLE:.0%} are left out: {', '.join(absent)}."
                    if absent
                    else ""
                )
            ),
            spec=head_maps.chart(panels, 1.0, 2, "share of the mass"),
            keys=_scale(1.0),
        )
    ]


def _entropy(audit: AuditResult) -> list[Figure]:
    cells = _cells(audit, "entropy")
    entropies = [v for v in cells.values() if math.isfinite(v)]
    if not entropies:
        return []
    top = math.ceil(max(entropies) * 2) / 2 or 0.5
    uniform = float(np.log(column(audit.tables, "heads", "positions")).mean())
    return [
        Figure(
            key="heads-entropy",
            title="How sharp is each head?",
            n=_n(audit),
            caption=(
                "Mean entropy of a head's rows in nats: 0 (no fill) is one position only. "
                f"Attention spread evenly over these texts would have {number(uniform)}."
            ),
            spec=head_maps.chart([Panel("entropy", cells)], top, 1, "mean entropy"),
            keys=[Key(f"{key.label} nats", key.colour) for key in _scale(top)],
        )
    ]


def _effective(audit: AuditResult) -> list[Figure]:
    cells = _cells(audit, "effective_share")
    if not any(math.isfinite(v) for v in cells.values()):
        return []
    share = column(audit.tables, "heads", "effective_share")
    return [
        Figure(
            key="heads-effective",
            title="How much of a head's weights reaches its output?",
            n=_n(audit),
            caption=(
                "‖effective attention‖ / ‖attention‖ of the row on trial, mean over texts: what is "
                "left of the weights when the part that the values turn into nothing is taken away "
                f"({BRUNNER}). Full colour is all of it; {number(float(np.nanmin(share)))} is the "
                "least of any head in any text."
            ),
            spec=head_maps.chart([Panel("effective share", cells)], 1.0, 1, "effective share"),
            keys=_scale(1.0),
        )
    ]


def _freedom(audit: AuditResult) -> list[Figure]:
    if "free_on_simplex" not in audit.tables["heads"].column_names:
        return []
    length = column(audit.tables, "heads", "positions")
    free = column(audit.tables, "heads", "free_on_simplex")
    rank = column(audit.tables, "heads", "rank")
    defined = np.isfinite(free) & np.isfinite(rank)
    if not defined.any():
        return []
    length, free, rank = length[defined], free[defined], rank[defined]
    full = int(rank.max())
    shortest, longest = int(length.min()), int(length.max())
    over = length > full
    points, counts = np.unique(np.stack([length, free], axis=1), axis=0, return_counts=True)
    data = [
        {"positions": x, "free": y, "heads": n}
        for (x, y), n in zip(points.tolist(), counts.tolist(), strict=True)
    ]
    x = alt.X(
        "positions:Q",
        title="positions of the text, special tokens included",
        scale=alt.Scale(domain=[max(0, shortest - 1), longest + 1], nice=False),
    )
    y = alt.Y("free:Q", title="free dimensions")
    ends = sorted({shortest, min(max(full, shortest), longest), longest})
    expected = plot([{"positions": e, "free": max(0, e - full)} for e in ends])
    dots = (
        plot(data)
        .mark_circle(color=PALETTE[0], opacity=1, fillOpacity=0.65)
        .encode(
            x=x,
            y=y,
            size=alt.Size("heads:Q", legend=None, scale=alt.Scale(range=[12, 220])),
            tooltip=["positions:Q", "free:Q", alt.Tooltip("heads:Q", title="text-head pairs")],
        )
    )
    line = expected.mark_line(strokeDash=[6, 4], strokeWidth=1.5, color=QUIET).encode(x=x, y=y)
    return [
        Figure(
            key="heads-freedom",
            title="From what length on are a head's weights free?",
            n=f"{_n(audit)}, {int(defined.sum())} pairs of a text and a head",
            caption=(
                "In how many directions a row of weights can be moved, still summing to 1, without "
                f"changing what the head puts out ({BRUNNER}); larger dots are more pairs. The "
                f"dashed line is positions − {full}, the largest rank that a head reaches here; "
                "rows that sum to 1 have one direction less. "
                + (
                    f"{_percent(over)} of the pairs are of texts longer than that; "
                    f"{_percent(free > 0)} have room."
                    if over.any()
                    else "No text here is longer than that."
                )
            ),
            spec=specification(alt.layer(line, dots), 240),
            keys=[
                Key("texts and heads", PALETTE[0]),
                Key(f"positions − {full}", QUIET, "dashed"),
            ],
        )
    ]


def _percent(part: NDArray[np.bool_]) -> str:
    return f"{part.mean():.0%}"
