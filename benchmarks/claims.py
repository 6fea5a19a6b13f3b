"""How often are Drozdyuk et al.'s claims judged rightly, by the number of seeds? Simulated models, known truth.

    python -m benchmarks.claims                     # the table of docs/results/drozdyuk.md, about five minutes
    python -m benchmarks.claims --repeats 100

The dense model loses 7 points on average, the sparse one `ratio` times as much. How much a training comes to
rely on its attention is log-normal (σ = .5, dense and sparse independent), each test scatters by 30 % around
it, and accuracies are of 2000 texts. `ranges` is the rule before intervals: survives if, in every test, the
seeds of the two models do not overlap, and the sparse mean is twice the dense.
"""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from heedmap.papers.drozdyuk.claims import TESTS, claims
from heedmap.papers.drozdyuk.published import intervention_of

DROP, RELIANCE, SCATTER, TEXTS = 0.07, 0.5, 0.3, 2000
SEEDS = (2, 3, 5, 10, 20, 40)
# The true ratio, and what the dense model loses.
TRUTHS = {
    "ratio 3": (3.0, DROP),
    "ratio 2": (2.0, DROP),
    "ratio 1": (1.0, DROP),
    "attention not used": (1.0, 0.0),
}

Row = dict[str, Any]


def simulated(rng: np.random.Generator, seeds: int, ratio: float, dense: float) -> list[Row]:
    """Return the rows of both models with a drop per seed and intervention."""
    rows = []
    for activation, drop in (("softmax", dense), ("entmax15", ratio * dense)):
        reliance = drop * np.exp(RELIANCE * rng.standard_normal(seeds) - RELIANCE**2 / 2)
        tests = [intervention_of(test, activation) for test in TESTS]
        for seed in range(seeds):
            for name in (*tests, "uniform", "matched:softmax", "matched:entmax15"):
                true = reliance[seed] * (1 + SCATTER * rng.standard_normal())
                # Only changed predictions move the accuracy, each by one text, to either side.
                noise = math.sqrt((abs(true) + 0.02) / TEXTS)
                rows.append(_row(activation, seed, name, true + noise * rng.standard_normal()))
            for name, lost in (("majority", 0.3), ("adversarial", 0.02), ("opposite", 0.5),
                               ("adversarial_weights", 0.04), ("opposite_random_k", 0.0)):  # fmt: skip
                rows.append(_row(activation, seed, name, lost))
    return rows


def _row(activation: str, seed: int, intervention: str, drop: float) -> Row:
    return {
        "activation": activation, "seed": seed, "intervention": intervention, "layers": "all", "drop": drop,
        "weights_tvd": 0.5, "opposite_accuracy": 0.5, "flipped": 0.5, "key_distance": 2.0,
    }  # fmt: skip


def by_ranges(rows: Sequence[Row]) -> str:
    """Return the verdict on the first claim by the ranges of the seeds."""
    held = failed = 0
    for test in TESTS:
        soft, sparse = (
            np.array(
                [
                    row["drop"]
                    for row in rows
                    if (row["activation"], row["intervention"]) == (a, intervention_of(test, a))
                ]
            )
            for a in ("softmax", "entmax15")
        )
        noise = max(0.01, 2 * math.sqrt(0.1 / (TEXTS * len(soft))))
        difference = sparse.mean() - soft.mean()
        if difference > noise and sparse.mean() >= 2 * soft.mean() and sparse.min() > soft.max():
            held += 1
        elif (
            max(soft.mean(), sparse.mean()) <= noise
            or difference <= 0
            or sparse.max() < 2 * soft.mean()
        ):
            failed += 1
    return "survives" if held == len(TESTS) else "does not" if failed >= 2 else "undecided"


def by_intervals(rows: Sequence[Row]) -> str:
    """Return the verdict on the first claim as the reproduction gives it."""
    return claims(rows)[0].verdict


def shares(truth: str, seeds: int, repeats: int) -> dict[tuple[str, str], float]:
    """Return the share of each verdict by rule: {(rule, verdict): share}."""
    ratio, dense = TRUTHS[truth]
    rng = np.random.default_rng([seeds, list(TRUTHS).index(truth)])
    found = [simulated(rng, seeds, ratio, dense) for _ in range(repeats)]
    rules = {"ranges": by_ranges, "intervals": by_intervals}
    verdicts = {name: [rule(rows) for rows in found] for name, rule in rules.items()}
    return {
        (name, verdict): verdicts[name].count(verdict) / repeats
        for name in rules
        for verdict in ("survives", "does not")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=500)
    repeats = parser.parse_args().repeats
    print("| truth | seeds | survives, ranges | intervals | does not, ranges | intervals |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for truth in TRUTHS:
        for seeds in SEEDS:
            found = shares(truth, seeds, repeats)
            cells = [
                f"{found[rule, verdict]:.3f}"
                for verdict in ("survives", "does not")
                for rule in ("ranges", "intervals")
            ]
            print(f"| {truth} | {seeds} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
