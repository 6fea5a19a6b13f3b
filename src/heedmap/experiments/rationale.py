"""Do the measures find the tokens that are known to decide the label?"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from heedmap.experiments.agreement import MEASURES
from heedmap.experiments.evidence import Evidence
from heedmap.tables import table


def rationale(evidence: Evidence) -> pa.Table:
    """ROC AUC of each measure as a score for "this token is in the gold rationale", text by text.

    0.5 is chance, 1 is every rationale token above every other one; ties count half. `hit_*` says
    whether the token ranked first is in the rationale (the share of ties at the top that are). NaN where
    the rationale holds all tokens or none, or the measure is missing.
    """
    instances = evidence.table("instances")
    gold = [np.array(mask, dtype=bool) for mask in instances["rationale"].to_pylist()]
    columns: dict[str, object] = {
        "row": range(len(gold)),
        "predicted": instances["predicted"],
        "rationale_share": [float(mask.mean()) for mask in gold],
    }
    for measure in MEASURES:
        source = (
            instances["attention"]
            if measure == "attention"
            else evidence.table(measure)["importance"]
        )
        scores = [None if v is None else np.array(v) for v in source.to_pylist()]
        pairs = list(zip(gold, scores, strict=True))
        columns[f"auc_{measure}"] = [_auc(mask, score) for mask, score in pairs]
        columns[f"hit_{measure}"] = [_hit(mask, score) for mask, score in pairs]
    return table(columns)


def _auc(gold: NDArray[np.bool_], scores: NDArray[np.float64] | None) -> float:
    """Mann-Whitney U / (n₊ n₋)."""
    inside, outside = int(gold.sum()), int((~gold).sum())
    if scores is None or not inside or not outside or np.isnan(scores).any():
        return float("nan")
    return float((rankdata(scores)[gold].sum() - inside * (inside + 1) / 2) / (inside * outside))


def _hit(gold: NDArray[np.bool_], scores: NDArray[np.float64] | None) -> float:
    if scores is None or np.isnan(scores).any() or not gold.any() or gold.all():
        return float("nan")
    return float(gold[scores == scores.max()].mean())
