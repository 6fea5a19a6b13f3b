"""The paper's claims, judged on the trained models at hand by intervals over their test texts.

Each claim is a number per text of each model, the mean over its seeds; Student's 95 % interval of its mean
decides, divided among the models (Bonferroni). *Survives*: the interval is on the claim's side for every model;
*does not*: it is on the other side for one; *undecided* else. So the verdict is about these models, and says
so. The numbers of each seed are beside it: another training may differ more than other texts do. A model that
has not learned is shown and not counted: it can neither refute a claim nor let it survive.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy import stats

from heedmap.experiments import intervals
from heedmap.experiments.results import attained
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.papers.kit.claims import NEITHER, Check, Side, judged
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.result import Claim, Estimate, bracketed, over_texts, signed
from heedmap.papers.serrano_smith.numbers import WORDS, Numbers, Trial, of_model
from heedmap.papers.serrano_smith.published import HIGHER, RANKED, RANKINGS
from heedmap.papers.serrano_smith.settings import MODELS

LEVEL = 0.95
Measure = Callable[[Trial], Numbers]
WIDEST = (-1.0, 1.0)  # of a difference of shares


def learned(trials: Sequence[Trial]) -> Learned:
    """Return which models have learned; no accuracy of theirs is published."""
    return Learned({
        model: {
            trial.seed: [accuracy(trial.accuracy, trial.majority, len(trial.size))]
            for trial in of_model(trials, model)
        }
        for model in MODELS
    })  # fmt: skip


def claims(trials: Sequence[Trial]) -> list[Claim]:
    """Judge the paper's claims; none without a finished model."""
    if not trials:
        return []
    claims = [
        _of_models(
            "Removing the most attended item changes the decision more often than removing another one does.",
            trials, lambda t: (t.column("flip_top") - t.column("flip_random"))[t.asked], "of the texts",
            found=HIGHER,
        ),
        _of_models(
            "Yet in most texts removing the most attended item changes nothing.",
            trials, lambda t: 0.5 - t.column("flip_top")[t.asked], "share of texts below a half",
            bounds=(-0.5, 0.5),
        ),
    ]  # fmt: skip
    for worse, better in pairwise(RANKINGS):
        claims.append(
            _of_models(
                f"{WORDS[better].capitalize()} is a better ranking than {WORDS[worse]}: the decision changes "
                "after fewer items.",
                trials,
                lambda t, w=worse, b=better: t.efficiency(b) - t.efficiency(w),  # type: ignore[misc]
                "difference of k_min / k",
                found=RANKED if better != "attention" else HIGHER,
            )
        )
    if comparison := _without_encoder(trials):
        claims.append(comparison)
    return claims


def _of_models(
    text: str,
    trials: Sequence[Trial],
    measure: Measure,
    unit: str,
    found: str = "",
    bounds: tuple[float, float] = WIDEST,
) -> Claim:
    """Judge a claim that is made of every model by itself."""
    models = [model for model in MODELS if of_model(trials, model)]
    level = 1 - (1 - LEVEL) / len(models)
    checks = [
        _above_zero(
            model, [measure(trial) for trial in of_model(trials, model)], level, unit, bounds
        )
        for model in models
    ]
    return judged(text, checks, learned(trials), basis=_basis(trials), found=found)


def _basis(trials: Sequence[Trial]) -> str:
    return over_texts(len({trial.seed for trial in trials}))


def _above_zero(
    model: str,
    seeds: Sequence[Numbers],
    level: float,
    unit: str,
    bounds: tuple[float, float],
) -> Check:
    """Check that the mean of a number per text is above 0."""
    values = over_seeds(seeds)
    if len(values) < 2:
        return Check(f"{model}: too few texts that erasure changes", NEITHER, [model])
    low, high = _interval(values, level, bounds)
    mean = float(values.mean())
    spread = ", ".join(signed(float(seed[np.isfinite(seed)].mean())) for seed in seeds)
    line = f"{model}: {signed(mean)} {bracketed(low, high)} {unit} (by seed {spread})"
    return Check(line, Side(low > 0, high < 0), [model], Estimate(model, mean, low, high))


def _interval(values: Numbers, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return Student's interval of a mean; of values that are all equal, or one of two, the exact one.

    A share is of such values: Student's would have no width at 0 of n, however small n is.
    """
    if len(np.unique(values.round(12))) > 2:
        return mean_interval(values.tolist(), level)
    return intervals.of_mean(values, bounds=bounds, tail=(1 - level) / 2)


def over_seeds(seeds: Sequence[Numbers]) -> Numbers:
    """Return a number per text that has one in any seed; their mean is the mean of the seeds' means.

    A text's number is the mean of the means, plus what it adds to them: its distance from a seed's mean, as
    often as that seed has fewer texts. (The mean over the seeds that have one would count a text that a
    single seed changes as much as one that all do.) Their variance is that of the mean of means, texts drawn.
    """
    stacked = np.stack(seeds)
    defined = np.isfinite(stacked)
    seeds_with_numbers = defined.any(1)
    if not seeds_with_numbers.any():
        return np.zeros(0)
    stacked, defined = stacked[seeds_with_numbers], defined[seeds_with_numbers]
    counts = defined.sum(1, keepdims=True)
    means = np.where(defined, stacked, 0.0).sum(1, keepdims=True) / counts
    has_number = defined.any(0)
    parts = np.where(defined, stacked - means, 0.0) * (has_number.sum() / counts)
    return np.asarray(means.mean() + parts.mean(0)[has_number])


def relative(trial: Trial) -> Numbers:
    """Where attention is between a random ranking (0) and the smallest set (1) on each text, at least −1.

    NaN where any order is the best, and where no set flips.
    """
    chance = trial.efficiency("random")
    attention = attained(trial.efficiency("attention"), chance, np.ones_like(chance))
    return np.where(chance < 1, attention, np.nan)


def _without_encoder(trials: Sequence[Trial]) -> Claim | None:
    """Compare models without an encoder with those that have one, hierarchical and flat apart."""
    pairs = [
        (f"{kind}-none", f"{kind}-{encoder}")
        for kind in ("han", "flan")
        for encoder in ("rnn", "cnn")
        if of_model(trials, f"{kind}-none") and of_model(trials, f"{kind}-{encoder}")
    ]
    if not pairs:
        return None
    return judged(
        "Attention does relatively better where nothing is encoded: it is nearer to the smallest set, "
        "measured from a random ranking.",
        [_difference(trials, pair, len(pairs)) for pair in pairs],
        learned(trials),
        basis=_basis(trials),
    )


def _difference(trials: Sequence[Trial], pair: tuple[str, str], times: int) -> Check:
    """Compare two means by Welch's interval: the models change different texts."""
    without, encoded = (
        over_seeds([relative(trial) for trial in of_model(trials, model)]) for model in pair
    )
    name = " against ".join(pair)
    if min(len(without), len(encoded)) < 2:
        return Check(f"{name}: too few texts that erasure changes", NEITHER, pair)
    low, high = intervals.NONE
    if max(np.ptp(without), np.ptp(encoded)) > intervals.ROUNDING:
        test = stats.ttest_ind(without, encoded, equal_var=False)
        interval = test.confidence_interval(1 - (1 - LEVEL) / times)
        low, high = float(interval.low), float(interval.high)
    line = (
        f"{name}: {without.mean():.3f} against {encoded.mean():.3f}, difference "
        f"{signed(without.mean() - encoded.mean())} {bracketed(low, high)}"
    )
    number = Estimate(name, float(without.mean() - encoded.mean()), low, high)
    return Check(line, Side(low > 0, high < 0), pair, number)
