"""Random tables of texts read in windows."""

import numpy as np
import pyarrow as pa

PAIRS = ("attention_gradient", "attention_leave_one_out", "attention_integrated_gradients")
NAMES = (*PAIRS, "gradient_leave_one_out")


def tables_of(texts, seed=0, maps=("row", "received")):
    """Random tables of windows; `texts` numbers the text of each. Some numbers are undefined."""
    rng = np.random.default_rng(seed)
    texts = np.asarray(texts)
    count = len(texts)
    sizes = np.bincount(texts)
    numbers = [int((texts[:i] == texts[i]).sum()) for i in range(count)]
    keys = [
        f"k{text}" + (f"#{number}" if sizes[text] > 1 else "")
        for text, number in zip(texts, numbers, strict=True)
    ]
    tokens = rng.integers(1, 6, count)
    label = (texts % 2).astype(np.int64)
    p = rng.random(count)

    def some(*gone):
        return np.where(rng.random(count) < 0.2, np.nan, rng.normal(size=count))

    sampled = rng.random(count) < 0.8
    of_window = {"row": range(count), "predicted": (p > 0.5).astype(int)}
    heads = np.array(
        [(i, layer, head) for i in range(count) for layer in (0, 1) for head in (0, 1)]
    )
    scan = [
        (i, view, 1, head)
        for i in range(count)
        if sampled[i]
        for view in maps
        for head in (None, 0)
    ]
    return {
        "instances": pa.table(
            {
                "row": range(count), "key": keys,
                "tokens": [[f"w{t}"] * n for t, n in zip(texts, tokens, strict=True)],
                "n_tokens": tokens, "label": label, "predicted": of_window["predicted"],
                "probabilities": [[1 - x, x] for x in p], "max_attention": rng.random(count),
                "entropy": rng.random(count), "attention": [[1 / n] * n for n in tokens], "text": texts,
            }
        ),
        "integrated_gradients": pa.table(
            {
                "row": range(count),
                "importance": pa.array(
                    [[float(i)] * tokens[i] if sampled[i] else None for i in range(count)],
                    pa.list_(pa.float64()),
                ),
                "completeness_error": np.where(sampled, rng.random(count), np.nan),
            }
        ),
        "agreement": pa.table(
            {**of_window, **{f"tau_{n}": np.tanh(some()) for n in NAMES},
             **{f"p_{n}": rng.random(count) for n in NAMES}}
        ),
        "permutation": pa.table(
            {**of_window, "n_tokens": tokens, "max_attention": rng.random(count),
             **{n: rng.random(count) for n in ("median_tvd", "flipped", "uniform_tvd", "uniform_flipped")}}
        ),
        "scan": pa.table(
            {
                "row": pa.array([i for i, *_ in scan], pa.int64()),
                "view": pa.array([v for _, v, *_ in scan], pa.string()),
                "layer": pa.array([1] * len(scan), pa.int64()),
                "head": pa.array([h for *_, h in scan], pa.int64()),
                "tau_leave_one_out": rng.normal(size=len(scan)),
            }
        ),
        "heads": pa.table(
            {
                "row": heads[:, 0], "positions": (tokens + 2)[heads[:, 0]], "layer": heads[:, 1],
                "head": heads[:, 2], "row_on_words": rng.random(len(heads)),
                "rank": rng.integers(1, 9, len(heads)).astype(float),
            }
        ),
    }  # fmt: skip
