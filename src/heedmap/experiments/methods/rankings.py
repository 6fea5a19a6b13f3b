"""The rankings of a text's tokens that are compared: by the map, and by what else says that a token matters."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import slopes
from heedmap.experiments.methods.importance_measures import MEASURES
from heedmap.files.tables import rows_of
from heedmap.measures import levelled
from heedmap.models.trace import Model, Trace

Scores = NDArray[np.float64]

RANKINGS = {
    "attention": "the map",
    "gradient": "gradient",
    "leave_one_out": "leave-one-out",
    "integrated_gradients": "integrated gradients",
    "read_out": "read-out",
    "read_out_attention": "read-out × attention",
    "position": "first words first",
}
"""Names in tables, and in words. The read-out's is the gradient by the weights (see `slopes`)."""
READ_OUT = ("read_out", "read_out_attention")  # of `slopes`
SHUFFLES = 5  # random rankings


def scores_of(
    context: AuditContext,
    traces: Iterable[Trace] = (),
    rows: NDArray[np.int64] | None = None,
) -> dict[int, dict[str, Scores]]:
    """Return per text the scores of its tokens by ranking; those of the read-out for the texts of `traces`.

    `rows` are the texts, in ascending order; None for all. A ranking is left out where a score is undefined, or
    the text was not sampled for it.
    """
    asked = np.arange(len(context.texts)) if rows is None else rows
    lists: dict[str, Sequence[object]] = {"attention": [*ranked_heats(context, asked).values()]}
    for name in MEASURES[1:]:
        importance = context.table(name).select(["importance"])
        lists[name] = rows_of(importance, asked)["importance"].to_pylist()
    scores_by_row: dict[int, dict[str, Scores]] = {}
    for i, row in enumerate(asked.tolist()):
        positions = np.arange(len(context.texts[row]), dtype=np.float64)
        scores_by_row[row] = {"position": -positions}
        for name, values in lists.items():
            if values[i] is not None:
                _add(scores_by_row[row], name, np.array(values[i], dtype=np.float64))
    for trace in traces:
        add_read_out(context, trace, scores_by_row)
    return scores_by_row


def ranked_heats(context: AuditContext, rows: NDArray[np.int64] | None = None) -> dict[int, Scores]:
    """Return the heat maps of `rows`, in ascending order, for rankings, or of all texts where that is None.

    Weights that differ by rounding alone are equal.
    """
    asked = np.arange(len(context.texts)) if rows is None else rows
    attention = rows_of(context.table("instances").select(["attention"]), asked)["attention"]
    heats: dict[int, Scores] = {}
    for row, weights in zip(asked.tolist(), attention.to_pylist(), strict=True):
        heat = torch.tensor(weights, dtype=torch.float64)
        heats[row] = levelled(heat, torch.ones_like(heat, dtype=torch.bool)).numpy()
    return heats


def read_outs(model: Model, trace: Trace) -> dict[int, dict[str, Scores]]:
    """Return the scores of the read-out, signed towards the answer, of a trace's texts, by row and name."""
    named_slopes = dict(zip(READ_OUT, slopes(model, trace), strict=True))
    return {
        row: {name: x[i][trace.mask[i]].numpy(force=True) for name, x in named_slopes.items()}
        for i, row in enumerate(trace.rows.tolist())
    }


def add_read_out(
    context: AuditContext, trace: Trace, scores_by_row: dict[int, dict[str, Scores]]
) -> None:
    """Add the rankings of the read-out for the texts of a trace."""
    for row, scores in read_outs(context.model, trace).items():
        for name, token_scores in scores.items():
            _add(scores_by_row[row], name, token_scores)


def _add(scores: dict[str, Scores], name: str, values: Scores) -> None:
    if np.isfinite(values).all():
        scores[name] = values


def shuffles_of(context: AuditContext, name: str, row: int, size: int) -> list[Scores]:
    """Return random scores of a text's tokens, from its own generator of an experiment."""
    rng = context.text_generator(name, row)
    return [rng.random(size) for _ in range(SHUFFLES)]
