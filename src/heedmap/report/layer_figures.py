"""Figures of a model with layers: which of its heat maps rank words as other measures do."""

import math
from dataclasses import dataclass

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import BOUNDS, AuditResult
from heedmap.experiments.intervals import of_mean
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.rounding import number
from heedmap.report import head_maps
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification
from heedmap.report.head_maps import LESS, MARK, MORE, Panel
from heedmap.report.wording import column
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import TransformerSettings

PER_HEAD = {
    "row": "row",
    "received": "received",
    "gradient": "gradient × attention",
    "effective": "effective",
}
VIEWS = {
    "row": "row",
    "received": "received",
    "rollout": "rollout",
    "flow": "flow",
    "gradient": "gradient × attention",
    "effective": "effective",
}
REFERENCES = {"leave_one_out": "leave-one-out", "gradient": "the gradient"}
ALL_HEADS = -1  # in place of a null


@dataclass(frozen=True)
class _Scan:
    """The table as arrays: one entry per text and map."""

    row: NDArray[np.int64]
    view: NDArray[np.str_]
    layer: NDArray[np.int64]
    head: NDArray[np.int64]
    tau: NDArray[np.float64]

    @classmethod
    def of(cls, audit: AuditResult, reference: str) -> "_Scan":
        table = audit.tables["scan"]
        return cls(
            row=table["row"].to_numpy(),
            view=np.array(table["view"].to_pylist(), dtype=np.str_),
            layer=table["layer"].to_numpy(),
            head=table["head"].fill_null(ALL_HEADS).to_numpy(),
            tau=column(audit.tables, "scan", f"tau_{reference}"),
        )


def scans(audit: AuditResult) -> list[Figure]:
    """Draw every map's agreement, layer by layer: with leave-one-out, then with the gradient."""
    if "scan" not in audit.tables:
        return []
    figures = []
    for reference in REFERENCES:
        scan = _Scan.of(audit, reference)
        if np.isfinite(scan.tau).any():
            figures += [*_by_head(audit, scan, reference), *_by_layer(audit, scan, reference)]
    return figures


def _by_head(audit: AuditResult, scan: _Scan, reference: str) -> list[Figure]:
    on_trial = _on_trial(audit, scan)
    panels, fewest = [], []
    for view, title in PER_HEAD.items():
        of_view = scan.view == view
        head = np.where(scan.head == ALL_HEADS, np.nan, scan.head)[of_view]
        cells = head_maps.means(scan.layer[of_view], head, scan.tau[of_view])
        if any(math.isfinite(value) for value in cells.values()):
            marked = on_trial[1:] if on_trial is not None and on_trial[0] == view else None
            panels.append(Panel(title, cells, marked))
            fewest.append(_least(scan, of_view))
    if not panels:
        return []
    top = _top([value for panel in panels for value in panel.cells.values()])
    name = REFERENCES[reference]
    keys = [
        Key(f"τ {number(top)}", MORE),
        Key(f"τ {number(top / 2)}", MORE + "80"),
        Key(f"τ {number(-top / 2)}", LESS + "80"),
        Key(f"τ {number(-top)}", LESS),
    ]
    if any(panel.marked for panel in panels):
        keys.append(Key("the heat map on trial", MARK, "solid"))
    return [
        Figure(
            key=f"scan-{reference.replace('_', '-')}",
            title=f"Which layer and head rank the words as {name} does?",
            n=_texts(audit, scan) + _behind(scan, fewest),
            caption=(
                f"Mean Kendall τ of every heat map that the model could show with {name}: a row per "
                "layer, a column per head, the mean over heads set apart; row is what the classifier "
                "reads, received the mean of all rows. No fill is τ 0, no relation. Texts without "
                "a τ (one word, or equal weights) are left out cell by cell. Of many maps the best "
                "is so partly by luck: the card chooses it on one half of the texts and measures "
                "it on the other. Not in the papers."
            ),
            spec=head_maps.chart(panels, top, 2, "mean τ"),
            keys=keys,
        )
    ]


def _by_layer(audit: AuditResult, scan: _Scan, reference: str) -> list[Figure]:
    seed = (audit.settings.audit or AuditSettings()).seed
    texts = text_numbers(audit.tables["instances"])
    data, keys, notes, counts = [], [], [], []
    layers = sorted(set(scan.layer.tolist()))
    views = [v for v in VIEWS if (scan.view == v).any()]
    for i, view in enumerate(views):
        largest_n = 0
        for layer in layers:
            of_map = (scan.view == view) & (scan.layer == layer) & (scan.head == ALL_HEADS)
            defined = of_map & np.isfinite(scan.tau)
            taus = scan.tau[defined]
            if not len(taus):
                continue
            low, high = of_mean(taus, texts[scan.row[defined]], seed, BOUNDS["tau"])
            mean = float(taus.mean())
            # Views are drawn side by side within a layer, so that no interval hides another.
            place = layer + 0.09 * (i - (len(views) - 1) / 2)
            ends = {"low": low, "high": high} if math.isfinite(low) else {"low": mean, "high": mean}
            data.append(
                {"series": VIEWS[view], "layer": layer, "x": place, "mean": mean, "n": len(taus)}
                | ends
            )
            largest_n = max(largest_n, len(taus))
            counts.append(len(taus))
        if largest_n:
            keys.append(Key(VIEWS[view], PALETTE[i]))
        else:
            notes.append(f"{VIEWS[view]} has no τ in any text")
    if not data:
        return []
    x = alt.X(
        "x:Q",
        title="layer",
        scale=alt.Scale(domain=[layers[0] - 0.5, layers[-1] + 0.5], nice=False),
        # The page's low tick count would thin even explicit values.
        axis=alt.Axis(
            values=layers[:: 1 if len(layers) <= 12 else 2],
            tickCount=len(layers),
            format="d",
            grid=False,
        ),
    )
    base = plot(data).encode(
        x=x,
        color=colour([VIEWS[view] for view in views]),
        tooltip=["series:N", "layer:Q", "mean:Q", "low:Q", "high:Q", "n:Q"],
    )
    y = alt.Y("mean:Q", title="mean τ")
    layered: list[alt.Chart] = [
        base.mark_line(strokeWidth=1, opacity=0.6).encode(y=y),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="mean τ"), y2="high:Q"),
        base.mark_circle(size=36, opacity=1).encode(y=y),
    ]
    sampled = np.unique(scan.row)
    yardstick = column(audit.tables, "agreement", "tau_gradient_leave_one_out")[sampled]
    if np.isfinite(yardstick).any():
        level = float(np.nanmean(yardstick))
        line = plot([{"at": level, "what": "gradient and leave-one-out"}])
        layered.insert(
            0,
            line.mark_rule(strokeDash=[6, 4], strokeWidth=1.5, color=QUIET).encode(
                y="at:Q", tooltip=["what:N", "at:Q"]
            ),
        )
        keys.append(
            Key(f"gradient and leave-one-out, same texts ({number(level)})", QUIET, "dashed")
        )
    name = REFERENCES[reference]
    return [
        Figure(
            key=f"layers-{reference.replace('_', '-')}",
            title=f"In which layer does the heat map agree with {name}?",
            n=_texts(audit, scan) + _behind(scan, counts),
            caption=(
                f"Mean Kendall τ with {name} of each layer's heat map, mean over heads, with its "
                "95 % interval over texts. Rollout and flow run from the input up to the layer. "
                "The dashed line is what two measures without attention reach with each other. "
                "Texts without a τ are left out; flow is not computed for long texts."
            ),
            spec=specification(alt.layer(*layered), 260),
            keys=keys,
            notes=notes,
        )
    ]


def _on_trial(audit: AuditResult, scan: _Scan) -> tuple[str, int, int | None] | None:
    """Return view, layer and head of the map on trial; None for models without layers."""
    model = audit.settings.model
    if not isinstance(model, TransformerSettings):
        return None
    return model.view, *model.on_trial(1 + int(scan.layer.max()), 1 + int(scan.head.max()))


def _texts(audit: AuditResult, scan: _Scan) -> str:
    return sampled(audit, len(np.unique(scan.row)))


def _behind(scan: _Scan, counts: list[int]) -> str:
    """Return an addition to n if some means are over fewer texts than were sampled."""
    fewest = min(counts)
    return f", at least {fewest} in each mean" if fewest < len(np.unique(scan.row)) else ""


def sampled(audit: AuditResult, count: int) -> str:
    """Return a phrase like `n = 300 texts, a seeded sample of 2000`."""
    total = audit.tables["instances"].num_rows
    return f"n = {count:,} texts" + (f", a seeded sample of {total:,}" if count < total else "")


def _least(scan: _Scan, part: NDArray[np.bool_]) -> int:
    """Return the smallest number of texts with a τ over the maps of a part of the scan."""
    keys = np.stack([scan.layer, scan.head], axis=1)[part]
    places, which = np.unique(keys, axis=0, return_inverse=True)
    defined = np.isfinite(scan.tau[part]).astype(float)
    return int(np.bincount(which.ravel(), defined, minlength=len(places)).min())


def _top(values: list[float]) -> float:
    """Return the largest absolute value, rounded up to a tenth, as the end of a scale."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    return max(math.ceil(largest * 10 - 1e-9), 1) / 10
