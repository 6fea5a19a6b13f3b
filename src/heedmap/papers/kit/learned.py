"""Which models have learned their task: the rule by which every paper marks its tables.

A training has learned if its score on the test texts

* is certainly above what one answer to every text gets: beyond the 95 % limit of a guesser on as many texts;
* and, where a score is published, at least half of the way from there to it.

Where neither can be told (no published score, and the texts are not known), nothing is marked. A number of a
model that has not learned is shown, with a mark, and not counted in what is concluded; unless whether it learns
is what is asked, as of a model that reads with weights that are given to it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from heedmap.papers.kit.result import MARK, Claim
from heedmap.report.wording import plural

NORMAL = 1.96  # of a two-sided 95 % interval
HALF = 0.5  # of the way from one answer to every text to the published score
RULE = (
    "A training has learned if its score on the test texts is certainly (95 %) above what one answer to every "
    "text gets and, where a score is published, at least half of the way from there to it."
)


@dataclass(frozen=True)
class Score:
    """A training's score; `chance` is that of one answer to every text, `noise` its deviation over texts."""

    name: str
    value: float
    chance: float
    noise: float = math.nan
    published: float = math.nan

    @property
    def learned(self) -> bool | None:
        """Whether the training has learned by this score; None where it cannot be told."""
        above = self.value - self.chance
        has_noise, compared = math.isfinite(self.noise), self.published > self.chance
        if not math.isfinite(above) or not (has_noise or compared):
            return None
        if has_noise and above <= NORMAL * self.noise:
            return False
        return not compared or above >= HALF * (self.published - self.chance)


def accuracy(value: float, commonest: float, n: int, published: float = math.nan) -> Score:
    """Return an accuracy beside the commonest class's, m, with the variance m (1 − m) / n over n texts."""
    noise = math.sqrt(commonest * (1 - commonest) / n) if n else math.nan
    return Score("accuracy", value, commonest, noise, published)


def roc_auc(value: float, classes: Sequence[int], published: float = math.nan) -> Score:
    """Return a ROC AUC beside 1/2, with the null variance of Mann and Whitney's U, (n + 1) / 12 n₀n₁."""
    negatives, positives = classes
    noise = math.sqrt((negatives + positives + 1) / (12 * negatives * positives))
    return Score("ROC AUC", value, 0.5, noise, published)


def has_learned(scores: Iterable[Score]) -> bool | None:
    """Return whether a training has learned by all of its scores that tell; None where none does."""
    verdicts = [score.learned for score in scores if score.learned is not None]
    return all(verdicts) if verdicts else None


Trainings = Mapping[object, Sequence[Score]]
"""The scores of each training of a model, by its seed."""


@dataclass(frozen=True)
class Learned:
    """The models of a reproduction by what the result calls them; the `counted` ones count in any case."""

    models: Mapping[str, Trainings]
    counted: frozenset[str] = frozenset()

    @cached_property
    def failed(self) -> dict[str, list[object]]:
        """The models of which a training has not learned, and the seeds of those."""
        failed_seeds = {
            model: [seed for seed, scores in trainings.items() if has_learned(scores) is False]
            for model, trainings in self.models.items()
        }
        return {model: seeds for model, seeds in failed_seeds.items() if seeds}

    @cached_property
    def uncounted(self) -> dict[str, list[object]]:
        """Those of them that are not counted."""
        return {model: seeds for model, seeds in self.failed.items() if model not in self.counted}

    def of(self, model: str, seed: object) -> bool | None:
        """Return whether a training has learned; None where it cannot be told."""
        return has_learned(self.models.get(model, {}).get(seed, ()))

    def marked(self, text: str, *models: str) -> str:
        """Return a text, with the mark if one of the models is among those that have not learned."""
        return f"{text} {MARK}" if any(model in self.failed for model in models) else text

    def sentence(self) -> str:
        """Return which models have not learned, by what scores, and the rule; empty if there are none."""
        kinds = {
            "Not learned, and not counted": [*self.uncounted],
            "Not learned, and counted, for whether they learn is what is asked": [
                model for model in self.failed if model in self.counted
            ],
        }
        told = [
            f"{words}: {'; '.join(map(self._told, models))}."
            for words, models in kinds.items()
            if models
        ]
        return " ".join([MARK, *told, RULE]) if told else ""

    def _told(self, model: str) -> str:
        trainings, seeds = self.models[model], self.failed[model]
        short = [s for seed in seeds for s in trainings[seed] if s.learned is False]
        parts = []
        for name in dict.fromkeys(score.name for score in short):
            named = [score for score in short if score.name == name]
            ends = dict.fromkeys(f"{end(x.value for x in named):.3f}" for end in (min, max))
            published = (
                "" if math.isnan(named[0].published) else f", published {named[0].published:.3f}"
            )
            chance = f"{named[0].chance:.3f}"
            parts.append(f"{name} {' to '.join(ends)}, one answer {chance}{published}")
        count = f"{len(seeds)} of {plural(len(trainings), 'training')}"
        return f"{model} ({count}: {'; '.join(parts)})"

    def judged(self, claim: Claim, *models: str) -> Claim:
        """Return a claim; none of its numbers counts if one of these models has not learned."""
        without = [model for model in models if model in self.uncounted]
        if not without:
            return claim
        numbers = [not_counted(line, f": {', '.join(without)}") for line in claim.numbers]
        return replace(claim, verdict="undecided", numbers=tuple(numbers), decisive=None)


def not_counted(line: str, task: str = "") -> str:
    """Return a line about models that have not learned (their `task`), marked as one that decides nothing.

    >>> not_counted("softmax: 0.3")
    'softmax: 0.3; not learned, not counted †'
    """
    return f"{line}; not learned{task}, not counted {MARK}"
