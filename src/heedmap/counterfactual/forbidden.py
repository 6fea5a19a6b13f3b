"""Find the least attention to impermissible tokens with the same prediction (after Pruthi et al. 2020).

How much of a deception needs another model, and how much only other weights: the states are held fixed.
"""

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog


def least_mass(
    relevance: Float[np.ndarray, "T C"],
    weights: Float[np.ndarray, " T"],
    marked: Float[np.ndarray, " T"],
) -> float:
    """Return the least Σ_t a_t m_t of all weightings a of a text with the same logit differences.

    Of two classes, with r_t the difference of the logits of token t alone and z = Σ_t α_t r_t: 0 if z lies
    between the least and the largest r of the permissible tokens, else the way from there to z as a part of the
    way to the farthest impermissible r. More classes are a linear program (HiGHS). NaN for a text without
    impermissible tokens; 1 for one of nothing else.

    Args:
        relevance: the read-out R, without the bias, which no weighting changes.
        weights: the model's own, whose prediction is to be kept.
        marked: 1 for impermissible tokens, else 0.
    """
    bad = marked > 0
    if not bad.any():
        return float("nan")
    if bad.all():
        return 1.0
    differences = relevance[:, 1:] - relevance[:, :1]
    target = weights @ differences
    if differences.shape[1] == 1:
        r, z = differences[:, 0], float(target[0])
        good = r[~bad]
        if good.min() <= z <= good.max():
            return 0.0
        nearest, farthest = (
            (good.max(), r[bad].max()) if z > good.max() else (good.min(), r[bad].min())
        )
        return float(np.clip((z - nearest) / (farthest - nearest), 0.0, 1.0))
    scale = np.maximum(np.abs(differences).max(0), 1e-12)
    # The rows are scaled to about 1: the solver's tolerances are absolute.
    equal = np.vstack([np.ones(len(marked)), (differences / scale).T])
    solution = linprog(bad.astype(float), A_eq=equal, b_eq=[1.0, *(target / scale)], bounds=(0, 1))
    current_mass = float(weights @ bad)
    # Where the solver gives up, the model's own weights are feasible and bound the answer.
    return current_mass if solution.fun is None else float(np.clip(solution.fun, 0.0, current_mass))
