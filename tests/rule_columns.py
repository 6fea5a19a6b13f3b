"""Numbers of made texts that the rule of the bottom line reads."""

import numpy as np


def columns_of(rng, n, holding, weights=0.2):
    """Numbers of texts of two classes, in a share `holding` of which the map holds."""
    lead = 0.5 * rng.beta(8, 2, n)
    holds = rng.random(n) < holding
    gone = lead * np.where(holds, rng.beta(8, 1.5, n), rng.beta(1.5, 6, n))
    alone = 0.5 + lead * np.where(holds, rng.beta(6, 2, n), rng.beta(1.5, 4, n))
    return {
        "predicted": rng.integers(0, 2, n).astype(float),
        "probability": 0.5 + lead,
        "guessing": np.full(n, 0.5),
        "gone_map": gone,
        "gone_random": lead * rng.beta(2, 8, n),
        "gone_best": np.where(gone < lead / 2, lead * rng.beta(7, 2, n), np.nan),
        "alone_map": alone,
        "alone_random": 0.5 + lead * rng.beta(2, 6, n),
        "among_map": alone,
        "among_random": np.full(n, np.nan),
        "unseen": 0.5 + lead * rng.beta(1, 9, n),
        "highlighted": (rng.random(n) > 0.05) * 2.0,
        "mean_tvd": weights * rng.gamma(1, 1, n),
    }
