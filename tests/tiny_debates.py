"""Debates that take seconds: texts of a telling word each, and settings of every part."""

import numpy as np
import pandas as pd

TINY = {
    "audit": {"epochs": 1, "instances": 20},
    "retrain": {"epochs": 1, "instances": 20, "seeds": 2, "penalties": (1.0,)},
    "jain-wallace": {"seeds": 1, "epochs": 1, "instances": 20},
    "serrano-smith": {
        "seeds": 1, "models": ("han-none", "flan-none"), "epochs": 1, "least_count": 1,
        "vector_epochs": 1, "embedding_size": 8, "hidden_size": 8, "patience": 1,
    },
    "wiegreffe-pinter": {
        "seeds": 2, "epochs": 1, "lambdas": (0.5,), "adversary_epochs": 1, "test_instances": 20,
    },
    "vashishth": {"seeds": 2, "epochs": 1, "hidden_size": 8, "embedding_size": 8},
    "pruthi": {"seeds": 2, "epochs": 1, "models": ("embedding",), "penalties": (1.0,)},
    "snell": {"hidden_size": 6, "embedding_size": 8, "steps": 12, "seeds": 2, "proxy_epochs": 1},
    "drozdyuk": {
        "seeds": 2, "activations": ("softmax", "entmax15"), "size": 8, "heads": 2, "layers": 1,
        "feed_forward": 8, "epochs": 1, "adversary_epochs": 1, "adversary_hidden": 8,
    },
}  # fmt: skip


def frame(size=150, classes=2, seed=0):
    """Texts of some short sentences, with a word per class that gives it away."""
    rng = np.random.default_rng(seed)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    telling = ["awful", "lovely", "strange"]
    texts = []
    for i in range(size):
        filler = " ".join(rng.choice(words, rng.integers(3, 6)))
        texts.append(f"{telling[i % classes]} {filler}. It {rng.choice(words)} ended.")
    return pd.DataFrame({"text": texts, "label": [f"c{i % classes}" for i in range(size)]})
