"""The rankings of a text's tokens that are compared: by the map, and by what else says that a token matters."""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from heedmap.experiments.agreement import MEASURES
from heedmap.experiments.erased import slopes
from heedmap.experiments.evidence import Evidence
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
"""Names in tables, and in words. The read-out's is the gradient by the weights (`erased.slopes`)."""
READ_OUT = ("read_out", "read_out_attention")  # of `slopes`
SHUFFLES = 5  # random rankings


def scores_of(evidence: Evidence, traces: Iterable[Trace] = ()) -> dict[int, dict[str, Scores]]:
    """Return per text the scores of its tokens by ranking; those of the read-out for the texts of `traces`.

    A ranking is left out where a score is undefined, or the text was not sampled for it.
    """
    lists = {"attention": ranked_heats(evidence)}
    lists |= {name: evidence.table(name)["importance"].to_pylist() for name in MEASURES[1:]}
    found: dict[int, dict[str, Scores]] = {}
    for row, text in enumerate(evidence.texts):
        found[row] = {"position": -np.arange(len(text), dtype=np.float64)}
        for name, values in lists.items():
            if values[row] is not None:
                _add(found[row], name, np.array(values[row], dtype=np.float64))
    for trace in traces:
        add_read_out(evidence, trace, found)
    return found


def ranked_heats(evidence: Evidence) -> list[Scores]:
    """Return each text's heat map for rankings: weights that differ by rounding alone are equal."""
    heats: list[Scores] = []
    for weights in evidence.table("instances")["attention"].to_pylist():
        heat = torch.tensor(weights, dtype=torch.float64)
        heats.append(levelled(heat, torch.ones_like(heat, dtype=torch.bool)).numpy())
    return heats


def read_outs(model: Model, trace: Trace) -> dict[int, dict[str, Scores]]:
    """Return the scores of the read-out, signed towards the answer, of a trace's texts, by row and name."""
    named_slopes = dict(zip(READ_OUT, slopes(model, trace), strict=True))
    return {
        row: {name: x[i][trace.mask[i]].numpy(force=True) for name, x in named_slopes.items()}
        for i, row in enumerate(trace.rows.tolist())
    }


def add_read_out(evidence: Evidence, trace: Trace, found: dict[int, dict[str, Scores]]) -> None:
    """Add the rankings of the read-out for the texts of a trace."""
    for row, scores in read_outs(evidence.model, trace).items():
        for name, values in scores.items():
            _add(found[row], name, values)


def _add(scores: dict[str, Scores], name: str, values: Scores) -> None:
    if np.isfinite(values).all():
        scores[name] = values


def shuffles_of(evidence: Evidence, name: str, row: int, size: int) -> list[Scores]:
    """Return random scores of a text's tokens, from its own generator of an experiment."""
    rng = np.random.default_rng([evidence.settings.seed, *name.encode(), row])
    return [rng.random(size) for _ in range(SHUFFLES)]
