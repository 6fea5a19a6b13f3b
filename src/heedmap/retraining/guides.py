"""The weights that a model is guided by: one number per token, that sum to 1 in each text."""

import numpy as np
from numpy.typing import NDArray

from heedmap.data.batches import Ragged
from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import slopes
from heedmap.experiments.registry import registered
from heedmap.experiments.variants import Guide
from heedmap.models.trace import Model
from heedmap.settings import AuditSettings


def guide_weights(guide: Guide, model: Model, split: Split) -> Ragged:
    """Return a guide's weights of all texts of a split.

    The importances are scaled to sum to 1: the gradient's size, leave-one-out, and the size of the read-out,
    which is the slope of the predicted class's log-odds by each weight. Where one is 0 or undefined for all
    tokens of a text, its weights are uniform.
    """
    if guide == "uniform":
        return Ragged([np.ones(len(text)) / max(1, len(text)) for text in split.texts])
    evidence = AuditContext(model, split, AuditSettings(), registered())
    if guide == "base":
        lists = evidence.table("instances")["attention"].to_pylist()
        return Ragged(lists)
    if guide == "read_out":
        return Ragged([_scaled(values) for values in _read_out(evidence)])
    lists = evidence.table(guide)["importance"].to_pylist()
    return Ragged([_scaled(np.array(values, dtype=np.float64)) for values in lists])


def _read_out(evidence: AuditContext) -> list[NDArray[np.float64]]:
    slope_of: dict[int, NDArray[np.float64]] = {}
    for trace in evidence.traces:
        slope = slopes(evidence.model, trace)[0]
        for i, row in enumerate(trace.rows.tolist()):
            slope_of[row] = slope[i][trace.mask[i]].double().numpy(force=True)
    return [slope_of[row] for row in range(len(slope_of))]


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.abs(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
    total = sizes.sum()
    return sizes / total if total > 0 else np.full(len(sizes), 1 / max(1, len(sizes)))
