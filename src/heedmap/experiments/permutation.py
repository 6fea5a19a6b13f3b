"""Does it matter which token gets which weight? (Jain & Wallace 2019, experiment 2a)"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.counterfactual.permute import orders, permuted_logits
from heedmap.counterfactual.rows import permuted, uniform
from heedmap.data.batches import scatter_rows
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.readout import is_linear, linear
from heedmap.measures import change_in_prediction
from heedmap.models.trace import Trace
from heedmap.tables import table


def permutation(evidence: Evidence) -> pa.Table:
    """Each text's weights dealt out anew at random, P times, all else held fixed.

    Of several rows each is permuted by itself, within its support. Of a text that has no more than P
    orders in all, every one counts once (`permute.orders`): for 100, texts of up to four tokens where
    one row is on trial. `median_tvd` is the paper's: the median
    over permutations of the total variation distance from the prediction. `flipped` is the share of
    permutations under which another class is predicted. `uniform_tvd` and `uniform_flipped`: the same for
    weights spread evenly over each row's support, at test only.
    """
    rng = evidence.generator("permutation")
    rows, columns = [], []
    for trace in evidence.traces:
        logits = _permuted(evidence, trace, rng)
        even = evidence.model.predict(
            trace, uniform(trace.attention, trace.support).unsqueeze(0)
        ).transpose(0, 1)
        rows.append(trace.rows)
        columns.append(
            torch.stack(
                [
                    *_median_and_flips(evidence, trace, logits),
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


def _median_and_flips(
    evidence: Evidence, trace: Trace, logits: Float[Tensor, "B P C"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Over the orders that count: the first ones, where there are fewer than were asked for."""
    times = evidence.settings.permutations
    counts = [min(count, times) for count in orders(trace.support.sum(-1))]
    change, flips = _change(trace, logits), _flips(trace, logits)
    median, flipped = change.new_empty(len(counts)), flips.new_empty(len(counts))
    for count in set(counts):
        rows = [i for i, found in enumerate(counts) if found == count]
        # quantile, not median: of an even number of values torch's median is the lower one.
        median[rows] = change[rows, :count].quantile(0.5, dim=1)
        flipped[rows] = flips[rows, :count].mean(1)
    return median, flipped


def _permuted(evidence: Evidence, trace: Trace, rng: np.random.Generator) -> Float[Tensor, "B P C"]:
    times = evidence.settings.permutations
    if is_linear(trace):
        weights, relevance, bias = linear(trace)
        logits = permuted_logits(weights, trace.mask, relevance, bias, times, rng)
        return logits.to(bias.device)
    rngs = evidence.generators("permutation", trace.rows)
    blocks: Iterator[Tensor] = permuted(trace.attention, trace.support, times, rngs)
    return torch.cat([evidence.model.predict(trace, block) for block in blocks]).transpose(0, 1)


def _change(trace: Trace, logits: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    return change_in_prediction(trace.logits.unsqueeze(1).expand_as(logits), logits)


def _flips(trace: Trace, logits: Float[Tensor, "B S C"]) -> Float[Tensor, "B S"]:
    return (logits.argmax(-1) != trace.predicted.unsqueeze(1)).double()
