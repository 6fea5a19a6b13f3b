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

from heedmap.experiments.results import attained
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.result import MARK, Claim, over_texts, signed
from heedmap.papers.serrano_smith.numbers import WORDS, Numbers, Trial, of_model
from heedmap.papers.serrano_smith.published import RANKINGS
from heedmap.papers.serrano_smith.settings import MODELS

LEVEL = 0.95
Measure = Callable[[Trial], Numbers]


def learned(trials: Sequence[Trial]) -> Learned:
    """Return which models have learned; no accuracy of theirs is published."""
    return Learned({
        model: {
            one.cell.seed: [accuracy(one.accuracy, one.majority, len(one.size))]
            for one in of_model(trials, model)
        }
        for model in MODELS
    })  # fmt: skip


def claims(trials: Sequence[Trial]) -> list[Claim]:
    """Judge the paper's claims; none without a finished model."""
    if not trials:
        return []
    models = [model for model in MODELS if of_model(trials, model)]
    found = [
        _claim(
            "Removing the most attended item changes the decision more often than removing another one does.",
            trials, models, lambda t: (t.column("flip_top") - t.column("flip_random"))[t.asked],
            "of the texts",
        ),
        _claim(
            "Yet in most texts removing the most attended item changes nothing.",
            trials, models, lambda t: 0.5 - t.column("flip_top")[t.asked],
            "share of texts below a half",
        ),
    ]  # fmt: skip
    for worse, better in pairwise(RANKINGS):
        found.append(
            _claim(
                f"{WORDS[better].capitalize()} is a better ranking than {WORDS[worse]}: the decision changes "
                "after fewer items.",
                trials,
                models,
                lambda t, w=worse, b=better: t.efficiency(b) - t.efficiency(w),  # type: ignore[misc]
                "difference of k_min / k",
            )
        )
    if comparison := _without_encoder(trials):
        found.append(comparison)
    return found


def _claim(
    text: str, trials: Sequence[Trial], models: Sequence[str], measure: Measure, unit: str
) -> Claim:
    lines, sides, failed = [], [], learned(trials).failed
    level = 1 - (1 - LEVEL) / len(models)
    for model in models:
        each = [measure(trial) for trial in of_model(trials, model)]
        line, side = _judged(model, each, level, unit)
        lines.append(_counted(line, model in failed))
        sides.append(0 if model in failed else side)
    return Claim(text, _verdict(sides), tuple(lines), over_texts(_seeds(trials)))


def _counted(line: str, failed: bool) -> str:
    return f"{line}; not learned, not counted {MARK}" if failed else line


def _seeds(trials: Sequence[Trial]) -> int:
    return len({trial.cell.seed for trial in trials})


def _judged(name: str, seeds: Sequence[Numbers], level: float, unit: str) -> tuple[str, int]:
    """Return a line, and 1, −1 or 0: the interval is above 0, below, or neither."""
    values = over_seeds(seeds)
    if len(values) < 2:
        return f"{name}: too few texts that erasure changes", 0
    low, high = mean_interval(values.tolist(), level)
    mean = float(values.mean())
    spread = ", ".join(signed(float(seed[np.isfinite(seed)].mean())) for seed in seeds)
    line = f"{name}: {signed(mean)} [{signed(low)}, {signed(high)}] {unit} (by seed {spread})"
    return line, int(low > 0) - int(high < 0)


def over_seeds(seeds: Sequence[Numbers]) -> Numbers:
    """Return a number per text that has one in any seed; their mean is the mean of the seeds' means.

    A text's number is the mean of the means, plus what it adds to them: its distance from a seed's mean, as
    often as that seed has fewer texts. (The mean over the seeds that have one would count a text that a
    single seed changes as much as one that all do.) Their variance is that of the mean of means, texts drawn.
    """
    stacked = np.stack(seeds)
    defined = np.isfinite(stacked)
    used = defined.sum(1) > 0
    if not used.any():
        return np.zeros(0)
    stacked, defined = stacked[used], defined[used]
    counts = defined.sum(1, keepdims=True)
    means = np.where(defined, stacked, 0.0).sum(1, keepdims=True) / counts
    some = defined.any(0)
    parts = np.where(defined, stacked - means, 0.0) * (some.sum() / counts)
    return np.asarray(means.mean() + parts.mean(0)[some])


def _verdict(sides: Sequence[int]) -> str:
    if all(side > 0 for side in sides):
        return "survives"
    return "does not" if any(side < 0 for side in sides) else "undecided"


def relative(trial: Trial) -> Numbers:
    """Where attention is between a random ranking (0) and the smallest set (1) on each text, at least −1.

    NaN where any order is the best, and where no set flips.
    """
    chance = trial.efficiency("random")
    found = attained(trial.efficiency("attention"), chance, np.ones_like(chance))
    return np.where(chance < 1, found, np.nan)


def _without_encoder(trials: Sequence[Trial]) -> Claim | None:
    """Compare models without an encoder with those that have one, hierarchical and flat apart."""
    lines, sides, failed = [], [], learned(trials).failed
    pairs = [
        (kind, other)
        for kind in ("han", "flan")
        for other in ("rnn", "cnn")
        if of_model(trials, f"{kind}-none") and of_model(trials, f"{kind}-{other}")
    ]
    for kind, other in pairs:
        without, with_it = (
            over_seeds([relative(trial) for trial in of_model(trials, f"{kind}-{end}")])
            for end in ("none", other)
        )
        line, side = _difference(
            f"{kind}-none against {kind}-{other}", without, with_it, len(pairs)
        )
        without_learning = any(f"{kind}-{end}" in failed for end in ("none", other))
        lines.append(_counted(line, without_learning))
        sides.append(0 if without_learning else side)
    if not pairs:
        return None
    text = (
        "Attention does relatively better where nothing is encoded: it is nearer to the smallest set, "
        "measured from a random ranking."
    )
    return Claim(text, _verdict(sides), tuple(lines), over_texts(_seeds(trials)))


def _difference(name: str, first: Numbers, second: Numbers, times: int) -> tuple[str, int]:
    """Compare two means by Welch's interval: the models change different texts."""
    if min(len(first), len(second)) < 2:
        return f"{name}: too few texts that erasure changes", 0
    interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval(
        1 - (1 - LEVEL) / times
    )
    low, high = float(interval.low), float(interval.high)
    line = (
        f"{name}: {first.mean():.3f} against {second.mean():.3f}, difference "
        f"{signed(first.mean() - second.mean())} [{signed(low)}, {signed(high)}]"
    )
    return line, int(low > 0) - int(high < 0)
