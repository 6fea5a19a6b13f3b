"""Importance of every token by other means, one table a measure: the list `importance` of each text."""

import numpy as np
import pyarrow as pa
from torch import Tensor

from heedmap.experiments.evidence import TOKENS, Evidence
from heedmap.importance.gradients import gradient_times_input
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction
from heedmap.tables import ragged, table


def gradient(evidence: Evidence) -> pa.Table:
    """|gradient × input| with the attention held fixed."""
    pairs = zip(evidence.batches, evidence.traces, strict=True)
    values = [gradient_times_input(evidence.model, batch, trace) for batch, trace in pairs]
    return _importance(evidence, values)


def leave_one_out(evidence: Evidence) -> pa.Table:
    """Total variation distance between the prediction and the one without the token.

    The only token of a text cannot be left out: its importance is NaN.
    """
    values = []
    for batch, trace in zip(evidence.batches, evidence.traces, strict=True):
        texts = [evidence.split.tokens[i] for i in trace.rows.tolist()]
        without = logits_without_each(evidence.model, batch, texts)
        before = trace.logits.unsqueeze(1).expand_as(without)
        values.append(change_in_prediction(before, without))
    return _importance(evidence, values)


def integrated(evidence: Evidence) -> pa.Table:
    """|integrated gradients| of a seeded sample of the texts; null for the others.

    `completeness_error` is in log-odds (see `heedmap.importance.integrated_gradients`).
    """
    total = len(evidence.split)
    count = min(total, evidence.settings.integrated_gradients_instances)
    chosen = np.sort(evidence.generator("integrated_gradients").permutation(total)[:count])
    lists: list[object] = [None] * total
    errors: list[float | None] = [None] * total
    steps = evidence.settings.integrated_gradients_steps
    # Captum holds all steps of a batch at once.
    for batch in evidence.batches_of(chosen, tokens=max(1, TOKENS // steps)):
        trace = evidence.model.trace(batch)
        values, error = integrated_gradients(evidence.model, batch, trace, steps)
        for i, row in enumerate(batch.rows.tolist()):
            lists[row] = values[i][batch.mask[i]].double().numpy(force=True)
            errors[row] = float(error[i])
    return table(
        {
            "row": range(total),
            "importance": pa.array(lists, pa.list_(pa.float64())),
            "completeness_error": pa.array(errors, pa.float64()),
        }
    )


def _importance(evidence: Evidence, values: list[Tensor]) -> pa.Table:
    traces = evidence.traces
    lists = ragged(
        [trace.rows for trace in traces],
        [value.double() for value in values],
        [trace.mask for trace in traces],
    )
    return table({"row": range(len(evidence.split)), "importance": lists})
