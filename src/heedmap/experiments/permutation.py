"""Does it matter which token gets which weight? (Jain & Wallace 2019, experiment 2a)"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.counterfactual.permute import permuted_logits
from heedmap.counterfactual.rows import permuted, uniform
from heedmap.data.batches import scatter_rows
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.readout import is_linear, linear
from heedmap.measures import change_in_prediction
from heedmap.models.trace import Model, Trace
from heedmap.tables import table


def permutation(evidence: Evidence) -> pa.Table:
    """Each text's weights dealt out anew at random, P times, all else held fixed.

    Of several rows each is permuted by itself, within its support. `median_tvd` is the paper's: the median
    over permutations of the total variation distance from the prediction. `flipped` is the share of
    permutations under which another class is predicted. `uniform_tvd` and `uniform_flipped`: the same for
    weights spread evenly over each row's support, at test only.
    """
    rng = evidence.generator("permutation")
    rows, columns = [], []
    for trace in evidence.traces:
        logits = _permuted(evidence.model, trace, evidence.settings.permutations, rng)
        even = evidence.model.predict(
            trace, uniform(trace.attention, trace.support).unsqueeze(0)
        ).transpose(0, 1)
        rows.append(trace.rows)
        # quantile, not median: of an even number of values torch's median is the lower one.
        columns.append(
            torch.stack(
                [
                    _change(trace, logits).quantile(0.5, dim=1),
                    _flips(trace, logits).mean(1),
                    _change(trace, even)[:, 0],
                    _flips(trace, even)[:, 0],
                ],
                dim=1,
            )
        )
    instances = evidence.table("instances")
    values = scatter_rows(rows, columns).unbind(1)
    names = ("median_tvd", "flipped", "uniform_tvd", "uniform_flipped")
    return table(
        {
            "row": range(len(evidence.split)),
            "predicted": instances["predicted"],
            "n_tokens": instances["n_tokens"],
            "max_attention": instances["max_attention"],
            **dict(zip(names, values, strict=True)),
        }
    )


def _permuted(
    model: Model, trace: Trace, times: int, rng: np.random.Generator
) -> Float[Tensor, "B P C"]:
    if is_linear(trace):
        weights, relevance, bias = linear(trace)
        logits = permuted_logits(weights, trace.mask, relevance, bias, times, rng)
        return logits.to(bias.device)
    blocks: Iterator[Tensor] = permuted(trace.attention, trace.support, times, rng)
    return torch.cat([model.predict(trace, block) for block in blocks]).transpose(0, 1)


def _change(trace: Trace, logits: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    return change_in_prediction(trace.logits.unsqueeze(1).expand_as(logits), logits)


def _flips(trace: Trace, logits: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    return (logits.argmax(-1) != trace.predicted.unsqueeze(1)).double()
