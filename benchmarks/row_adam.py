"""Training steps of a large embedding: Adam by rows against dense Adam, which ends at the same bits.

    python -m benchmarks.row_adam --json row_adam.json

One thread; seconds of the processor, the least of --repeat turns. An epoch is 216 steps of 32 texts of 22
words, as often as in a language (Zipf), through an embedding of 300 numbers per word and one linear layer; the
rows that waited are brought up to date at its end. `agree`: weights and moments are the same bits.
"""

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedmap.training.row_adam import RowAdam

WORDS = (5_000, 14_000, 20_000, 30_000, 80_000)
WIDTH, TEXTS, LENGTH, STEPS = 300, 32, 22, 216


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor) -> float:
    """Train; return milliseconds per step."""
    start = time.process_time()
    for batch in ids:
        optimizer.zero_grad()
        model(batch).square().sum().backward()
        optimizer.step()
    optimizer.state_dict()
    return (time.process_time() - start) / len(ids) * 1000


def compared(words: int, repeat: int) -> dict[str, Any]:
    """Return the times of both, and whether they end at the same bits."""
    torch.manual_seed(0)
    start = nn.Sequential(nn.Embedding(words, WIDTH, padding_idx=0), nn.Linear(WIDTH, 1))
    chances = 1 / torch.arange(1, words + 1, dtype=torch.float64)
    ids = torch.multinomial(chances, STEPS * TEXTS * LENGTH, replacement=True)
    ids = ids.view(STEPS, TEXTS, LENGTH)
    times: dict[str, list[float]] = {"dense": [], "rows": []}
    for _ in range(repeat):
        results = []
        for kind, seconds in times.items():
            model = copy.deepcopy(start)
            groups = [{"params": list(model.parameters()), "weight_decay": 1e-5}]
            optimizer: torch.optim.Adam
            if kind == "dense":
                optimizer = torch.optim.Adam(groups, lr=1e-3, amsgrad=True, fused=True)
            else:
                optimizer = RowAdam(groups, [model[0]], lr=1e-3, amsgrad=True)  # type: ignore[list-item]
            seconds.append(epoch(model, optimizer, ids))
            moments = optimizer.state_dict()["state"][0]
            results.append([*model.state_dict().values(), *moments.values()])
    agree = all(torch.equal(left, right) for left, right in zip(*results, strict=True))
    dense, rows = (min(values) for values in times.values())
    return {
        "words": words,
        "ours_ms": rows,
        "dense_ms": dense,
        "ratio": dense / rows,
        "agree": agree,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for words in WORDS:
        rows.append(compared(words, options.repeat))
        print(" ".join(f"{k} {v:.4g}" for k, v in rows[-1].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
