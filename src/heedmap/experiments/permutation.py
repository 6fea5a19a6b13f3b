"""Does it matter which token gets which weight? (Jain & Wallace 2019, experiment 2a)"""

import pyarrow as pa

from heedmap.counterfactual.permute import permuted_logits
from heedmap.data.batches import scatter_rows
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.readout import linear
from heedmap.measures import change_in_prediction
from heedmap.tables import table


def permutation(evidence: Evidence) -> pa.Table:
    """Each text's weights dealt out anew at random, P times, all else held fixed.

    `median_tvd` is the paper's: the median over permutations of the total variation distance from the
    prediction. `flipped` is the share of permutations under which another class is predicted.
    """
    rng = evidence.generator("permutation")
    medians, flipped = [], []
    for trace in evidence.traces:
        weights, relevance, bias = linear(trace)
        logits = permuted_logits(
            weights, trace.mask, relevance, bias, evidence.settings.permutations, rng
        ).to(bias.device)
        before = trace.logits.unsqueeze(1).expand_as(logits)
        # quantile, not median: of an even number of values torch's median is the lower one.
        medians.append(change_in_prediction(before, logits).quantile(0.5, dim=1))
        flipped.append((logits.argmax(-1) != trace.predicted.unsqueeze(1)).double().mean(1))
    rows = [trace.rows for trace in evidence.traces]
    instances = evidence.table("instances")
    return table(
        {
            "row": range(len(evidence.split)),
            "predicted": instances["predicted"],
            "n_tokens": instances["n_tokens"],
            "max_attention": instances["max_attention"],
            "median_tvd": scatter_rows(rows, medians),
            "flipped": scatter_rows(rows, flipped),
        }
    )
