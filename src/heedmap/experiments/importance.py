"""Importance of every token by other means, one table a measure: the list `importance` of each text."""

import pyarrow as pa
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.experiments.evidence import Evidence
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction, resolution
from heedmap.tables import table

GRADIENT_SHARE = 4  # a pass that keeps its graph holds about this many times a plain one


def gradient(evidence: Evidence) -> pa.Table:
    """The gradient's size at every token, in the form, of the target and on the path that the settings name."""
    settings = evidence.settings
    found = _Importances(len(evidence.split))
    for batch in evidence.batches_of(range(len(evidence.split)), shares=GRADIENT_SHARE):
        trace = evidence.model.trace(batch)
        values = gradient_importance(
            evidence.model,
            batch,
            trace,
            path=settings.gradient_path,
            of=settings.gradient_of,
            form=settings.gradient_form,
        )
        found.add(batch, values)
    return found.table()


def leave_one_out(evidence: Evidence) -> pa.Table:
    """Total variation distance between the prediction and the one without the token.

    What is below the rounding of the logits (`measures.resolution`) is 0: such tokens tie, they have no
    order. The only token of a text cannot be left out: its importance is NaN.
    """
    found = _Importances(len(evidence.split))
    for batch, trace in evidence.passes():
        texts = [evidence.texts[i] for i in trace.rows.tolist()]
        without = logits_without_each(evidence.model, batch, texts, evidence.settings.leave_one_out)
        before = trace.logits.unsqueeze(1).expand_as(without)
        change = change_in_prediction(before, without)
        noise = resolution(trace.logits, without, evidence.model.precision).unsqueeze(1)
        found.add(batch, change.masked_fill(change <= noise, 0.0))
    return found.table()


def integrated(evidence: Evidence) -> pa.Table:
    """|integrated gradients| of a seeded sample of the texts; null for the others.

    `completeness_error` is in log-odds (see `heedmap.importance.integrated_gradients`).
    """
    total, settings = len(evidence.split), evidence.settings
    chosen = evidence.sample("integrated_gradients", settings.integrated_gradients_instances)
    found = _Importances(total)
    errors: list[float | None] = [None] * total
    steps = settings.integrated_gradients_steps
    # Captum holds all steps of a batch at once.
    for batch in evidence.batches_of(chosen, shares=GRADIENT_SHARE * steps):
        trace = evidence.model.trace(batch)
        values, error = integrated_gradients(evidence.model, batch, trace, steps)
        found.add(batch, values)
        for row, off in zip(batch.rows.tolist(), error.tolist(), strict=True):
            errors[row] = off
    return found.table(completeness_error=pa.array(errors, pa.float64()))


class _Importances:
    """Values a token, batch by batch, to one list an instance; null where none came."""

    def __init__(self, total: int) -> None:
        self.lists: list[object] = [None] * total

    def add(self, batch: Batch, values: Tensor) -> None:
        for row, value, mask in zip(batch.rows.tolist(), values, batch.mask, strict=True):
            self.lists[row] = value[mask].double().numpy(force=True)

    def table(self, **more: object) -> pa.Table:
        importance = pa.array(self.lists, pa.list_(pa.float64()))
        return table({"row": range(len(self.lists)), "importance": importance, **more})
