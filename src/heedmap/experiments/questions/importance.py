"""How important is each token by other means? One table per measure, a list `importance` per text."""

import time
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.data.texts import beginning
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe, typical_rows
from heedmap.experiments.methods.importance_measures import COMPLETENESS_TOLERANCE
from heedmap.experiments.notes import ties
from heedmap.experiments.registry import Experiment, HeatMap, Row
from heedmap.experiments.scales import scale_of
from heedmap.experiments.text_tables import SampledColumn, text_table
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import PathReading, integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction, drop_in_probability, resolution, tied_changes
from heedmap.models.layered import Layered
from heedmap.models.trace import Trace
from heedmap.terminal.progress import portion

GRADIENT_SHARE = 4  # a pass that keeps its graph needs about this many times the memory
REFINEMENTS = 3  # at most 8 times the steps
REFINED = (
    2  # times the passes that texts of 125 words, or a BERT-style classifier of SST, take with them
)
PROBED = 256  # tokens per text when leave-one-out and integrated gradients are timed
PROBED_TEXTS = 2  # when integrated gradients are timed
TIMED_POSITIONS = 1024  # of the steps of a transformer that are timed then


GRADIENT = Columns(
    "One row per text.",
    {
        **shared("row"),
        "importance": (
            "list per token, from 0",
            "|gradient × input| of the predicted class's log-odds "
            "or probability (`gradient_of`), through the attention or with it held fixed (`gradient_path`)",
        ),
    },
)


def gradient(context: AuditContext) -> pa.Table:
    """Return the gradient's size per token; the settings name its target and path."""
    settings = context.settings
    importances = _Importances()
    for batch in context.batches_of(range(len(context.split)), shares=GRADIENT_SHARE):
        trace = context.model.trace(batch)
        values = gradient_importance(
            context.model,
            batch,
            trace,
            path=settings.gradient_path,
            quantity=settings.gradient_of,
        )
        importances.add(batch, values)
    return text_table(context, {"importance": importances.column()})


LEAVE_ONE_OUT = Columns(
    "One row per text. NaN for the only token of a text, which cannot be left out.",
    {
        **shared("row"),
        "importance": (
            "list per token, 0 to 1",
            "total variation distance of the predictions with and without the token; 0 below the rounding of "
            "the logits, equal where it differs by less. Of a model that gives a number: |difference| of the "
            "outputs, in their unit",
        ),
        "signed": (
            "list per token, −1 to 1",
            "what the predicted class's probability loses without the token: above 0 where the token speaks "
            "for the prediction. Of a model that gives a number: what the output loses, in its unit",
        ),
    },
)


def leave_one_out(context: AuditContext) -> pa.Table:
    """Return the total variation distance between the predictions with and without each token.

    `signed` is the probability of the predicted class before minus after: positive where the token speaks for
    the prediction. A change below the rounding of the logits (`measures.resolution`) is 0, and changes that
    differ by less are equal: such tokens tie. The only token of a text cannot be left out: its importance
    is NaN.
    """
    return _without_each(context, context.passes())


def leave_one_out_of(context: AuditContext, rows: NDArray[np.int64]) -> pa.Table:
    """Return `leave_one_out` of some texts; null for the others."""
    batches = context.batches_of(rows)
    return _without_each(context, ((batch, context.model.trace(batch)) for batch in batches))


def _without_each(context: AuditContext, passes: Iterable[tuple[Batch, Trace]]) -> pa.Table:
    importances, signed = (_Importances() for _ in range(2))
    for batch, trace in passes:
        texts = [context.texts[i] for i in trace.rows.tolist()]
        without = logits_without_each(context.model, batch, texts, context.settings.leave_one_out)
        precision = context.model.precision
        importances.add(batch, change_without(trace.logits, without, precision))
        signed.add(batch, signed_change_without(trace.logits, without, precision))
    return text_table(context, {"importance": importances.column(), "signed": signed.column()})


def change_without(
    logits: Float[Tensor, "B C"], without: Float[Tensor, "B T C"], precision: torch.dtype
) -> Float[Tensor, "B T"]:
    """Return leave-one-out from the logits; below their rounding it is 0, and differences are ties."""
    change = change_in_prediction(logits.unsqueeze(1).expand_as(without), without)
    return tied_changes(
        change, change.isfinite(), resolution(logits, without, precision).unsqueeze(1)
    )


def signed_change_without(
    logits: Float[Tensor, "B C"], without: Float[Tensor, "B T C"], precision: torch.dtype
) -> Float[Tensor, "B T"]:
    """Return what the predicted class loses without each token; ties are those of `change_without`."""
    answer = logits.argmax(-1, keepdim=True).expand(without.shape[:-1])
    change = drop_in_probability(logits.unsqueeze(1).expand_as(without), without, answer)
    return tied_changes(
        change, change.isfinite(), resolution(logits, without, precision).unsqueeze(1)
    )


INTEGRATED = Columns(
    "One row per text. Null for texts that are not sampled.",
    {
        **shared("row"),
        "importance": (
            "list per token, from 0",
            "|integrated gradients| of the predicted class's log-odds, from zero vectors at the tokens to the "
            "text",
        ),
        "completeness_error": (
            "log-odds, from 0",
            "by how much the gradients miss the difference that they should add up to; of a model that gives a "
            "number in its unit",
        ),
        "steps": (
            "count",
            f"steps of the sum: doubled while the error is above {COMPLETENESS_TOLERANCE:g}, up to "
            f"{REFINEMENTS} times",
        ),
    },
)


def integrated(context: AuditContext) -> pa.Table:
    """Return |integrated gradients| for a seeded sample of the texts; null for the others.

    `completeness_error` is in log-odds (see `heedmap.importance.integrated_gradients`), or in the unit of the
    output. Where it is above COMPLETENESS_TOLERANCE log-odds, or standard deviations of the outputs, the
    steps are doubled, REFINEMENTS times at most; `steps` are those of the result.
    """
    total, settings = len(context.split), context.settings
    sample = context.sample("integrated_gradients", settings.integrated_gradients_instances)
    importances = _Importances()
    errors = np.full(total, np.nan)
    steps_taken = np.zeros(total, dtype=np.int64)
    tolerance = COMPLETENESS_TOLERANCE
    if "classes" not in context.model.capabilities:
        tolerance *= scale_of(context.table("instances"), context.model.classes).size
    readings: dict[int, PathReading] = {}
    for doublings in range(REFINEMENTS + 1):
        steps = settings.integrated_gradients_steps << doublings
        with portion(2.0 ** -min(doublings + 1, REFINEMENTS)):
            for batch in context.batches_of(sample, shares=GRADIENT_SHARE * steps):
                trace = context.model.trace(batch)
                values, error = integrated_gradients(
                    context.model, batch, trace, steps, readings=readings
                )
                importances.add(batch, values)
                rows = batch.rows.tolist()
                errors[rows], steps_taken[rows] = error.double().numpy(force=True), steps
        # Only texts that still miss too much go on, with twice the steps.
        sample = sample[errors[sample] > tolerance]
        readings = {row: readings[row] for row in sample.tolist() if row in readings}
        if not len(sample):
            break
    missing = steps_taken == 0
    return text_table(
        context,
        {
            "importance": importances.column(),
            "completeness_error": pa.array(errors, pa.float64(), mask=missing),
            "steps": pa.array(steps_taken, pa.int64(), mask=missing),
        },
    )


class _Importances:
    """Collect values per token from batches into one list per text; null where there are none."""

    def __init__(self) -> None:
        self.lists: dict[int, object] = {}

    def add(self, batch: Batch, values: Tensor) -> None:
        for row, value, mask in zip(batch.rows.tolist(), values, batch.mask, strict=True):
            self.lists[row] = value[mask].double().numpy(force=True)

    def column(self) -> SampledColumn:
        """Return the lists as a column."""
        return SampledColumn(self.lists, pa.list_(pa.float64()))


def _gradient_cost(probe: CostProbe) -> float:
    return probe.reading(BACKWARD)


def _integrated_cost(probe: CostProbe) -> float:
    share = probe.sampled(probe.context.settings.integrated_gradients_instances)
    return REFINED * share * integrated_seconds(probe)


def integrated_seconds(probe: CostProbe) -> float:
    """Return the seconds of integrated gradients of all texts, without more steps, timed on a few texts.

    A transformer's are timed with fewer steps where the texts are long: each step is a pass of its own.
    """
    context, model = probe.context, probe.context.model
    steps = timed_steps = context.settings.integrated_gradients_steps
    rows = typical_rows(context.lengths)[:PROBED_TEXTS]
    texts = [beginning(context.texts[i], PROBED) for i in rows]
    batch = model.batch(texts, rows.tolist())
    if isinstance(model, Layered):
        timed_steps = max(2, min(steps, TIMED_POSITIONS // batch.mask.numel() - 1))
    trace = model.trace(batch)
    integrated_gradients(model, batch, trace, 1)  # the first one is slower than the others
    start = time.perf_counter()
    integrated_gradients(model, batch, trace, timed_steps)
    seconds = (time.perf_counter() - start) * (steps + 1) / (timed_steps + 1)
    return seconds * float(context.lengths.sum()) / float(model.lengths(texts).sum())


def leave_one_out_seconds(probe: CostProbe) -> float:
    """Return seconds: one pass per word, or for our own models, which have shortcuts, timed on some texts."""
    context, model = probe.context, probe.context.model
    words = np.array([len(text) for text in context.texts])  # or sentences: what is left out
    if isinstance(model, Layered):
        return float((words * context.lengths).sum()) * probe.second
    typical = typical_rows(words)
    timed_rows = typical[: max(1, PROBED // int(words[typical[0]])) ** 2]
    texts = [beginning(context.texts[i], PROBED) for i in timed_rows]
    batch = model.batch(texts, timed_rows.tolist())
    start = time.perf_counter()
    logits_without_each(model, batch, texts, context.settings.leave_one_out)
    squares = float((words.astype(float) ** 2).sum()) / sum(len(text) ** 2 for text in texts)
    return (time.perf_counter() - start) * squares


def _importances(name: str, words: str) -> Callable[[Row], list[HeatMap]]:
    def heat_maps(row: Row) -> list[HeatMap]:
        weights, signed = row[name]["importance"], row[name].get("signed")
        against = None if signed is None else [change < 0 for change in signed]
        return [] if weights is None else [HeatMap(words, "importance", weights, against=against)]

    return heat_maps


GRADIENT_EXPERIMENT = Experiment(
    "gradient",
    gradient,
    columns=GRADIENT,
    needs=("gradients",),
    place=20,
    cost=_gradient_cost,
    heat_maps=_importances("gradient", "gradient"),
    in_chunks=True,
)
LEAVE_ONE_OUT_EXPERIMENT = Experiment(
    "leave_one_out",
    leave_one_out,
    columns=LEAVE_ONE_OUT,
    needs=("reading",),
    place=30,
    cost=leave_one_out_seconds,
    heat_maps=_importances("leave_one_out", "leave-one-out"),
    notes=ties,
    in_chunks=True,
)
INTEGRATED_GRADIENTS_EXPERIMENT = Experiment(
    "integrated_gradients",
    integrated,
    columns=INTEGRATED,
    needs=("gradients",),
    place=40,
    cost=_integrated_cost,
    heat_maps=_importances("integrated_gradients", "integrated gradients"),
    before_chunks=True,
)
