"""The numbers of Snell et al.'s account of a classifier's attention, beside theirs, and the slides' claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from heedmap.experiments.seed_intervals import mean_interval
from heedmap.papers.kit.result import Claim, Result, Table, unlike, with_unlike
from heedmap.papers.snell.attraction import CHOICES, Compared
from heedmap.papers.snell.classification_figures import figures, toy
from heedmap.papers.snell.published import AGREEMENT, NOTEBOOK, XI
from heedmap.papers.snell.settings import ClassificationSettings
from heedmap.report.wording import plural
from heedmap.training.dynamics import TEXTS

LEVEL = 0.95
COLUMNS = {
    "seed": "of the model that is compared",
    "quantity": "the maps that are compared, or what is measured; shares, but for BLEU (at most 100)",
    "choice": "how checkpoints are chosen (paper, dev, last), or the point of a curve",
    "step": "of the training",
    "value": "the number",
    "chance": "what random maps would have",
    "error": "standard error over texts",
    "tau": "Kendall's tau-b of all words",
}
NAMES = {
    "uniform": "attention in the twin's relevance, A(α, β^uf)",
    "influence": "influence in the twin's relevance, A(Δ, β^uf)",
    "bag": "bag of embeddings in the twin's relevance, A(β^px, β^uf)",
    "logistic": "logistic regression in the twin's relevance, A(β^lr, β^uf)",
    "other": "attention in the relevance of another seed, A(α, β')",
    "dictionary": "co-occurrence in the twin's relevance",
    "seeds": "attention in the attention of another seed, A(α, α')",
}


@dataclass(frozen=True)
class Classification(Compared):
    """What was read off classifiers."""

    settings: ClassificationSettings

    @property
    def dataset(self) -> str:
        """The name in the catalogue."""
        return self.settings.data.dataset or ""

    @property
    def classes(self) -> Sequence[str]:
        """The corpus's classes."""
        return self.settings.classes

    @property
    def accuracies(self) -> dict[str, tuple[list[float], float]]:
        """Those of the checkpoint that is best on dev; of the twins the last one."""
        curve = "accuracy, uniform"
        twins = [
            next(r["value"] for r in reversed(self.rows) if (r["quantity"], r["seed"]) == (curve, seed))
            for seed in range(len(self.values("best", "dev")))
        ]  # fmt: skip
        published = XI.get(self.dataset, {}).get("best", math.nan)
        return {"models": (self.values("best", "dev"), published), "twins": (twins, math.nan)}


def result(found: Classification) -> Result:
    """Make the result that all files of this part show."""
    differs = differences(found)
    table = agreement_table(found)
    return Result(
        title=f"Snell et al.: where attention comes from, {found.name}",
        notes=[*found.notes, unlike(differs)],
        summary=table,
        sections=[
            table,
            xi_table(found),
            rise_table(found),
            *(found.learned.judged(claim, *found.accuracies) for claim in _claims(found)),
        ],
        figures=[
            *(with_unlike(one, differs, found.learned.failed) for one in figures(found)),
            toy(),
        ],
        rows=pd.DataFrame(found.rows),
        latex=table,
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
    )


def differences(found: Classification) -> list[str]:
    """List in words how a reproduction differs from the paper's settings."""
    settings, published = found.settings, ClassificationSettings.model_fields
    words = {
        "hidden_size": "units in each direction",
        "embedding_size": "numbers in a word vector",
        "batch_size": "texts in a batch",
        "learning_rate": "as learning rate",
        "steps": "steps",
    }
    changed = [
        f"{getattr(settings, name):g} {text} instead of {published[name].default:g}"
        for name, text in words.items()
        if getattr(settings, name) != published[name].default
    ]
    return [
        *changed,
        f"{plural(settings.seeds, 'model')} and {plural(settings.seeds, 'twin')} instead of 6 and 1",
        f"at most {TEXTS} texts are compared",
        "the attention scores states by tanh instead of ReLU",
        "AMSGrad, the positives of two classes weighted",
        "the marks of a text's ends are not compared",
    ]


def combined(found: Compared, quantity: str, choice: str) -> tuple[float, float, float]:
    """Return the mean over seeds, and its 95 % interval over seeds and texts.

    Student's, k − 1 degrees of freedom, with the variance of the seeds' mean and that of a mean over texts.
    """
    values = np.array(found.values(quantity, choice))
    errors = np.array(found.values(quantity, choice, "error"))
    variance = float(np.var(values, ddof=1)) / len(values) + float(np.nanmean(errors)) ** 2
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * math.sqrt(variance)
    mean = float(values.mean())
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def _interval(mean: float, low: float, high: float, digits: int = 3) -> str:
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def seed_mean(values: Sequence[float], digits: int = 3, *, share: bool = False) -> str:
    """Return a mean and its interval over seeds, of those that have the number; of a share cut at 0 and 1."""
    known = [one for one in values if not math.isnan(one)]
    if not known:
        return "–"
    low, high = mean_interval(known)
    if share:
        low, high = max(0.0, low), min(1.0, high)
    text = f"{np.mean(known):.{digits}f}"
    if not math.isnan(low):
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text if len(known) == len(values) else f"{text}, {len(known)} of {len(values)}"


def _published(table: dict[str, dict[str, float]], found: Compared, name: str) -> str:
    value = table.get(found.dataset, {}).get(name)
    return "–" if value is None else f"{value:.3f}"


def agreement_table(found: Compared) -> Table:
    """Return A, its chance and τ of every pair of maps."""
    lines = []
    for name, words in NAMES.items():
        if not found.values(name, "dev"):
            continue
        chance = found.values(name, "dev", "chance")
        lines.append(
            [
                words,
                *(_interval(*combined(found, name, choice)) for choice in CHOICES),
                f"{np.mean(chance):.3f}",
                seed_mean(found.values(name, "dev", "tau")),
                _published(AGREEMENT, found, name),
            ]
        )
    return Table(
        found.learned.marked(
            "Does the twin's relevance foretell the attention?", *found.accuracies
        ),
        ["first map in second map", "paper's choice", "by dev", "last", "chance", "τ", "published"],
        lines,
        "A: how often the word that the first map puts first is among the top 5 % of the second (one word of "
        "texts up to 20 words). The twin is trained with uniform attention; relevance is what a word's state "
        "adds to the label. The paper chooses checkpoints by the accuracy, and then by the agreement itself, "
        "on the texts that are compared, which flatters; dev: both by accuracy on the dev split. Means and "
        "95 % intervals over seeds and texts. Chance and Kendall's τ: by dev. Published: "
        f"{NOTEBOOK}, the paper's choice.",
    )


def xi_table(found: Compared) -> Table:
    """Return how far the other seeds have come when their attention reaches each level."""
    lines = []
    for name, words in NAMES.items():
        if name == "seeds" or not found.values(name, "dev"):
            continue
        for choice in ("paper", "dev"):
            lines.append(
                [
                    words,
                    "paper's choice" if choice == "paper" else "by dev",
                    seed_mean(found.values(f"xi {name}", choice)),
                    seed_mean(found.values(f"xi {name}", choice, "step"), 0),
                    seed_mean(found.values(f"xi {name}, interpolated", choice)),
                    seed_mean(found.values(f"xi {name}, interpolated", choice, "step"), 0),
                    _published(XI, found, name) if choice == "paper" else "–",
                ]
            )
    best = [
        [
            "the models' own best, ξ*",
            "paper's choice" if choice == "paper" else "by dev",
            seed_mean(found.values("best", choice)),
            seed_mean(found.values("best", choice, "step"), 0),
            "–", "–",
            _published(XI, found, "best") if choice == "paper" else "–",
        ]
        for choice in ("paper", "dev")
    ]  # fmt: skip
    return Table(
        found.learned.marked(
            "How far has attention come when it is that well foretold? ξ", *found.accuracies
        ),
        ["level", "checkpoints", "ξ, accuracy", "step", "interpolated", "its step", "published"],
        [*lines, *best],
        "The first checkpoint at which the attention of the other seeds agrees with A's better than the level "
        "does, their accuracy there, and both on the straight line between this checkpoint and the one before. "
        "The curves need not be monotone (see the figure). A number of fewer seeds says of how many: in the "
        "others the level is never exceeded. Low beside ξ* says that attention has hardly formed.",
        labels=2,
    )


def rise_table(found: Compared) -> Table:
    """Return when keywords rise, by each map."""
    lines = []
    for measure, words in (("rank", "among the top 5 %"), ("size", "excess over the text's mean")):
        for name in ("relevance", "attention", "relevance, uniform"):
            half = f"half {measure} {name}"
            lines.append(
                [
                    name.replace("relevance, uniform", "relevance in the twin"),
                    words,
                    seed_mean(found.values(half, "keyword", "step"), 0),
                    seed_mean(found.values(half, "keyword")),
                ]
            )
    return Table(
        found.learned.marked("What rises first for a text's keyword?", *found.accuracies),
        ["quantity", "measured by", "step of half its rise", "last value"],
        lines,
        "The keyword is the word that speaks most for the label by itself: in a logistic regression on bags of "
        "words, or by co-occurrence with the target word. Neither knows the maps.",
        labels=2,
    )


def _claims(found: Compared) -> list[Claim]:
    return [
        above_chance("The twin's relevance foretells the attention.", found, "uniform"),
        above_chance("The twin's relevance foretells the influence.", found, "influence"),
        rises_first(found),
    ]


def above_chance(text: str, found: Compared, quantity: str) -> Claim:
    """Survives if agreement and τ are above what chance gives, with checkpoints chosen on dev."""
    mean, low, high = combined(found, quantity, "dev")
    chance = float(np.mean(found.values(quantity, "dev", "chance")))
    taus = found.values(quantity, "dev", "tau")
    ceiling = float(np.mean(found.values("seeds", "dev")))
    at_least, at_most = mean_interval(taus)
    verdict = "undecided"
    if low > chance and at_least > 0:
        verdict = "survives"
    elif high < chance or at_most < 0:
        verdict = "does not"
    return Claim(
        text,
        verdict,
        (
            f"A = {_interval(mean, low, high)}, chance {chance:.3f}, another seed's attention {ceiling:.3f}",
            f"Kendall's τ = {seed_mean(taus)}, chance 0",
        ),
    )


def rises_first(found: Compared) -> Claim:
    """Survives if the keyword's relevance has made half of its rise before its attention has, by rank."""
    numbers, intervals = [], {}
    for measure, words in (("rank", "by rank"), ("size", "by size")):
        first, then = (
            np.array(found.values(f"half {measure} {name}", "keyword", "step"))
            for name in ("relevance", "attention")
        )
        later = (then - first)[~np.isnan(then - first)]
        intervals[measure] = mean_interval(later.tolist())
        numbers.append(f"{words}: the attention is {seed_mean(later.tolist(), 0)} steps later")
    low, high = intervals["rank"]
    verdict = "survives" if low > 0 else "does not" if high < 0 else "undecided"
    return Claim(
        "Keywords gain relevance first, and then attract attention.",
        verdict,
        (
            *numbers,
            "half of the rise to the last checkpoint; the verdict is by rank, which has an upper end",
        ),
    )
