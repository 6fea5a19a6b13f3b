"""How often do the 95 % intervals hold what they should? The percentile bootstrap beside those in use.

    python -m benchmarks.coverage

Draws samples of texts from populations whose mean, median, share or ratio is known, and counts the intervals
that hold it. Takes about 10 minutes on one core.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments import intervals

Values = NDArray[np.float64]
SIZES = (20, 100, 1000)


@dataclass(frozen=True)
class Population:
    """Texts whose number is known.

    Attributes:
        name: as in the table.
        truth: what the interval is of.
        draw: n distinct texts, a column each for numerator and denominator where it is a ratio.
        interval: that in use; `clusters` numbers the texts.
        statistic: of the values, along an axis, for the percentile bootstrap.
        times: occurrences per text.
    """

    name: str
    truth: float
    draw: Callable[[Generator, int], Values]
    interval: Callable[..., intervals.Interval]
    statistic: Callable[..., Values] = np.mean
    times: int = 1


def _unit(values: Values, clusters: NDArray[np.int64]) -> intervals.Interval:
    return intervals.of_mean(values, clusters, bounds=(0.0, 1.0))


def _tau(values: Values, clusters: NDArray[np.int64]) -> intervals.Interval:
    return intervals.of_mean(values, clusters, bounds=(-1.0, 1.0))


def _ratio(values: Values, clusters: NDArray[np.int64]) -> intervals.Interval:
    return intervals.of_ratio(values[:, 0], values[:, 1], clusters)


def _of_sums(values: Values, axis: int = 0) -> Values:
    above, below = np.moveaxis(values, -1, 0)
    return np.asarray(above.sum(axis) / below.sum(axis))


def _share(p: float) -> Callable[[Generator, int], Values]:
    return lambda rng, n: (rng.random(n) < p).astype(np.float64)


def _auc(at_one: float) -> Callable[[Generator, int], Values]:
    """As on the embedded reviews: most texts at 1, the rest between .5 and 1."""
    return lambda rng, n: np.where(rng.random(n) < at_one, 1.0, rng.uniform(0.5, 1, n))


def _tau_b(rng: Generator, n: int) -> Values:
    """Ten words have 45 pairs: tau has 46 values."""
    return np.asarray(stats.binom.rvs(45, rng.beta(4, 2, n), random_state=rng) / 45 * 2 - 1)


def _attainable(rng: Generator, n: int) -> Values:
    """Excess over a baseline and what was attainable: on average .4 of it, more on long texts."""
    attainable = rng.beta(2, 2, n)
    return np.stack([(0.2 + 0.4 * attainable) * attainable + rng.normal(0, 0.1, n), attainable], 1)


POPULATIONS = (
    Population("mean, normal", 0.5, lambda rng, n: rng.normal(0.5, 0.1, n), _unit),
    Population("mean, exponential", 0.1, lambda rng, n: rng.exponential(0.1, n), _unit),
    Population("mean, tau of ten words", 1 / 3, _tau_b, _tau),
    Population("mean, freedom (beta 4, .5)", 4 / 4.5, lambda rng, n: rng.beta(4, 0.5, n), _unit),
    Population("mean, AUC, half at 1", 0.875, _auc(0.5), _unit),
    Population("mean, AUC, 75 % at 1", 0.9375, _auc(0.75), _unit),
    Population("mean, AUC, 93 % at 1", 0.9825, _auc(0.93), _unit),
    Population("median, normal", 0, Generator.standard_normal, intervals.of_median, np.median),
    Population(
        "median, TVD (beta .5, 4)",
        float(stats.beta.median(0.5, 4)),
        lambda rng, n: rng.beta(0.5, 4, n),
        intervals.of_median,
        np.median,
    ),
    Population("share .5", 0.5, _share(0.5), intervals.of_share),
    Population("share .9", 0.9, _share(0.9), intervals.of_share),
    Population("share .98", 0.98, _share(0.98), intervals.of_share),
    Population("share .997", 0.997, _share(0.997), intervals.of_share),
    Population("ratio of sums", 0.2 + 0.4 * 0.6, _attainable, _ratio, _of_sums),
)


def repeated(population: Population, times: int) -> Population:
    """Return the same texts, each occurring as often."""
    return Population(
        f"{population.name}, each text {times} times",
        population.truth,
        population.draw,
        population.interval,
        population.statistic,
        times,
    )


def percentile(
    values: Values, statistic: Callable[..., Values], rng: Generator
) -> tuple[float, float]:
    """The interval of earlier versions."""
    drawn = np.concatenate(
        [
            statistic(values[rng.integers(0, len(values), (100, len(values)))], axis=1)
            for _ in range(10)
        ]
    )
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def coverage(population: Population, n: int, repeats: int, seed: int = 0) -> tuple[float, float]:
    """Return the share of samples whose interval holds the truth: percentile bootstrap, and in use."""
    rng = np.random.default_rng([seed, n])
    clusters = np.repeat(np.arange(n), population.times)
    held = np.zeros(2)
    for _ in range(repeats):
        values = population.draw(rng, n)[clusters]
        both = percentile(values, population.statistic, rng), population.interval(values, clusters)
        held += [low <= population.truth <= high for low, high in both]
    before, now = held / repeats
    return float(before), float(now)


def main() -> None:
    """Print the table of docs/verdict.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--repeats", type=int, default=2000, help="samples per number; of n = 1000 a quarter"
    )
    repeats = parser.parse_args().repeats
    share = next(one for one in POPULATIONS if one.name == "share .5")
    tau = next(one for one in POPULATIONS if "tau" in one.name)
    rows = [(one, SIZES) for one in POPULATIONS]
    rows += [(repeated(one, 50), (12,)) for one in (share, tau)]
    print("| number | " + " | ".join(f"n = {n}" for n in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    for one, sizes in rows:
        cells = []
        for n in sizes:
            before, now = coverage(one, n, repeats if n < 1000 else repeats // 4)
            cells.append(f"{before:.3f} → {now:.3f}")
        name = one.name if sizes == SIZES else f"{one.name} (n = {sizes[0]})"
        cells += [""] * (len(SIZES) - len(cells))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
