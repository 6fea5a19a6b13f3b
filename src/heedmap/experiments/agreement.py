"""Do attention and the other measures rank the tokens alike? (Jain & Wallace 2019, experiment 1)"""

from itertools import combinations

import numpy as np
import pyarrow as pa

from heedmap.experiments.evidence import Evidence
from heedmap.kendall import kendall_tau
from heedmap.tables import padded, table

MEASURES = ("attention", "gradient", "leave_one_out", "integrated_gradients")
PAIRS = tuple(combinations(MEASURES, 2))
ELEMENTS = 1 << 22  # of a block of pairwise comparisons: 32 MB


def agreement(evidence: Evidence) -> pa.Table:
    """Kendall's tau-b of every pair of measures over the text's tokens, with its two-sided p.

    NaN where it is undefined: a text of one token, a constant measure, or integrated gradients of a text
    that was not sampled for them.
    """
    instances = evidence.table("instances")
    lists = [instances["attention"], *(evidence.table(m)["importance"] for m in MEASURES[1:])]
    taus = np.full((len(evidence.split), len(PAIRS)), np.nan)
    ps = taus.copy()
    first, second = np.array([[MEASURES.index(a), MEASURES.index(b)] for a, b in PAIRS]).T
    for rows, values, mask in padded(lists, ELEMENTS):
        result = kendall_tau(values, mask)
        taus[rows] = result.tau.numpy()[:, first, second]
        ps[rows] = result.p.numpy()[:, first, second]
    columns: dict[str, object] = {"row": range(len(taus)), "predicted": instances["predicted"]}
    for i, (a, b) in enumerate(PAIRS):
        columns[f"tau_{a}_{b}"] = taus[:, i]
        columns[f"p_{a}_{b}"] = ps[:, i]
    return table(columns)
