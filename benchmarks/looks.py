"""How often is an answer that became certain early another than that of all texts?

    python -m benchmarks.looks [--audits 80]

Draws texts of two classes, in a share of which the map holds, and looks at their answer as an audit with a
budget does, until it is certain. Counts how often it is then that of all 300 texts. Takes about half a second
of one core per simulated audit.
"""

import argparse
from itertools import product

import numpy as np

from heedmap.experiments.certainty import possible_answers
from heedmap.experiments.drawing import looks
from heedmap.experiments.rule import Column, Thresholds, answer, map_numbers

TOTAL = 300
HOLDING = (
    0.05,
    0.12,
    0.3,
    0.5,
    0.72,
    0.77,
    0.84,
    0.92,
    0.99,
)  # share of texts in which the map holds
RARER = (0.5, 0.15)  # share of the texts of one of the classes


def drawn_texts(rng: np.random.Generator, holding: float, rarer: float) -> dict[str, Column]:
    """Draw the numbers of texts that the rule reads (`rule.texts_of`)."""
    lead = 0.5 * rng.beta(8, 2, TOTAL)
    holds = rng.random(TOTAL) < holding
    gone = lead * np.where(holds, rng.beta(8, 1.5, TOTAL), rng.beta(1.5, 6, TOTAL))
    alone = 0.5 + lead * np.where(holds, rng.beta(6, 2, TOTAL), rng.beta(1.5, 4, TOTAL))
    alone_random = 0.5 + lead * rng.beta(2, 6, TOTAL)
    return {
        "predicted": (rng.random(TOTAL) < rarer).astype(np.float64),
        "probability": 0.5 + lead,
        "guessing": np.full(TOTAL, 0.5),
        "gone_map": gone,
        "gone_random": lead * rng.beta(2, 8, TOTAL),
        "gone_best": np.maximum(gone, lead * rng.beta(7, 2, TOTAL)),
        "alone_map": alone,
        "alone_random": alone_random,
        "among_map": alone,
        "among_random": alone_random,
        "unseen": 0.5 + lead * rng.beta(1, 9, TOTAL),
        "highlighted": np.where(rng.random(TOTAL) < 0.05, 0.0, 2.0),
        "mean_tvd": 0.2 * rng.gamma(1, 1, TOTAL),
    }


def simulated(seed: int, holding: float, rarer: float) -> tuple[bool, int]:
    """Return whether the first certain answer is that of all texts, and after how many it came."""
    texts = drawn_texts(np.random.default_rng(seed), holding, rarer)
    of_all = answer(map_numbers(texts), Thresholds())
    for size in looks(TOTAL):
        first = {name: column[:size] for name, column in texts.items()}
        possible = possible_answers(first, np.arange(size), TOTAL, Thresholds(), seed)
        if len(possible) == 1:
            return next(iter(possible)) == of_all, size
    raise AssertionError("after all texts one answer is possible")


def main() -> None:
    """Print a line per kind of texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=80, help="of each kind of texts")
    audits = parser.parse_args().audits
    for holding, rarer in product(HOLDING, RARER):
        right, sizes = zip(
            *(simulated(seed, holding, rarer) for seed in range(audits)), strict=True
        )
        print(
            f"the map holds in {holding:.0%}, a class of {rarer:.0%}: {sum(right)} of {audits} as all texts, "
            f"median {np.median(sizes):.0f} texts read",
            flush=True,
        )


if __name__ == "__main__":
    main()
