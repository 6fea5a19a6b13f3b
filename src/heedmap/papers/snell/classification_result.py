"""The numbers of Snell et al.'s account of a classifier's attention, beside theirs, and the slides' claims."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.seeds import seed_mean
from heedmap.papers.kit.claims import apart, least, verdict
from heedmap.papers.kit.result import Claim, Estimate, Result, Table, changed_settings, outside
from heedmap.papers.snell.attraction import Compared
from heedmap.papers.snell.classification_figures import RISE, figures, toy
from heedmap.papers.snell.published import AGREEMENT, NOTEBOOK, SLIDES, XI
from heedmap.papers.snell.settings import ClassificationSettings
from heedmap.report.wording import plural
from heedmap.training.dynamics import TEXTS

LEVEL = 0.95
WORDS = {
    "hidden_size": "{} units in each direction",
    "embedding_size": "{} numbers in a word vector",
    "batch_size": "{} texts in a batch",
    "learning_rate": "{} as learning rate",
    "steps": "{} steps",
}
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
class Classification(Compared[ClassificationSettings]):
    """What was read off classifiers."""

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

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's settings."""
        seeds = self.settings.seeds
        return [
            *changed_settings(self.settings, WORDS),
            f"{plural(seeds, 'model')} and {plural(seeds, 'twin')} instead of 6 and 1",
            f"at most {TEXTS} texts are compared",
            "the attention scores states by tanh instead of ReLU",
            "AMSGrad, the positives of two classes weighted",
            "the marks of a text's ends are not compared",
        ]


def result(classification: Classification) -> Result:
    """Make the result that all files of this part show."""
    title = f"Snell et al.: where attention comes from, {classification.name}"
    return account(classification, title)


def account(compared: Compared[Any], title: str, tables: Sequence[Table] = ()) -> Result:
    """Make the result of a part from the tables that both have, and those of its own."""
    claims = [
        above_chance("The twin's relevance foretells the attention.", compared, "uniform"),
        above_chance("The twin's relevance foretells the influence.", compared, "influence"),
        rises_first(compared),
    ]
    without_toy = compared.make_result(
        title,
        [
            agreement_table(compared),
            xi_table(compared),
            rise_table(compared),
            *tables,
            *(compared.learned.judged(claim, *compared.accuracies) for claim in claims),
        ],
        figures=figures(compared),
        rows=pd.DataFrame(compared.rows),
        columns=COLUMNS,
    )
    return replace(without_toy, figures=[*without_toy.figures, toy()])


def combined(compared: Compared[Any], quantity: str, choice: str) -> tuple[float, float, float]:
    """Return the mean over seeds, and its 95 % interval over seeds and texts.

    Student's, k − 1 degrees of freedom, with the variance of the seeds' mean and that of a mean over texts.
    """
    values = np.array(compared.values(quantity, choice))
    errors = np.array(compared.values(quantity, choice, "error"))
    variance = float(np.var(values, ddof=1)) / len(values) + float(np.nanmean(errors)) ** 2
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * math.sqrt(variance)
    mean = float(values.mean())
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def _interval(mean: float, low: float, high: float, digits: int = 3) -> str:
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _published(table: dict[str, dict[str, float]], compared: Compared[Any], name: str) -> str:
    value = table.get(compared.dataset, {}).get(name)
    return "–" if value is None else f"{value:.3f}"


def agreement_table(compared: Compared[Any]) -> Table:
    """Return A, its chance and τ of every pair of maps."""

    def chosen_by(choice: str) -> Callable[[str], str]:
        return lambda pair: _interval(*combined(compared, pair, choice))

    return Table.of(
        compared.learned.marked(
            "Does the twin's relevance foretell the attention?", *compared.accuracies
        ),
        [pair for pair in NAMES if compared.values(pair, "dev")],
        {
            "first map in second map": lambda pair: NAMES[pair],
            "paper's choice": chosen_by("paper"),
            "by dev": chosen_by("dev"),
            "last": chosen_by("last"),
            "chance": lambda pair: f"{np.mean(compared.values(pair, 'dev', 'chance')):.3f}",
            "τ": lambda pair: seed_mean(compared.values(pair, "dev", "tau")),
            "published": lambda pair: _published(AGREEMENT, compared, pair),
        },
        "A: how often the word that the first map puts first is among the top 5 % of the second (one word of "
        "texts up to 20 words). The twin is trained with uniform attention; relevance is what a word's state "
        "adds to the label. The paper chooses checkpoints by the accuracy, and then by the agreement itself, "
        "on the texts that are compared, which flatters; dev: both by accuracy on the dev split. Means and "
        "95 % intervals over seeds and texts. Chance and Kendall's τ: by dev. Published: "
        f"{NOTEBOOK}, the paper's choice. "
        + outside(
            (NAMES[pair], value, combined(compared, pair, "paper")[1:])
            for pair, value in AGREEMENT.get(compared.dataset, {}).items()
            if compared.values(pair, "paper")
        ),
    )


def xi_table(compared: Compared[Any]) -> Table:
    """Return how far the other seeds have come when their attention reaches each level."""
    choices = {"paper": "paper's choice", "dev": "by dev"}

    def line(level: str, quantity: str, choice: str, published: str) -> list[str]:
        """Return the means of a quantity and of its step; and the published number, of the paper's choice."""
        numbers = [
            seed_mean(compared.values(name, choice, column), digits)
            for name in (quantity, f"{quantity}, interpolated")
            for column, digits in (("value", 3), ("step", 0))
        ]
        theirs = _published(XI, compared, published) if choice == "paper" else "–"
        return [level, choices[choice], *numbers, theirs]

    pairs = [pair for pair in NAMES if pair != "seeds" and compared.values(pair, "dev")]
    return Table(
        compared.learned.marked(
            "How far has attention come when it is that well foretold? ξ", *compared.accuracies
        ),
        ["level", "checkpoints", "ξ, accuracy", "step", "interpolated", "its step", "published"],
        [
            *(
                line(NAMES[pair], f"xi {pair}", choice, pair)
                for pair in pairs
                for choice in choices
            ),
            *(line("the models' own best, ξ*", "best", choice, "best") for choice in choices),
        ],
        "The first checkpoint at which the attention of the other seeds agrees with A's better than the level "
        "does, their accuracy there, and both on the straight line between this checkpoint and the one before. "
        "The curves need not be monotone (see the figure). A number of fewer seeds says of how many: in the "
        "others the level is never exceeded. Low beside ξ* says that attention has hardly formed. "
        + outside(
            (f"ξ, {NAMES[pair]}" if pair in NAMES else "ξ*", value, mean_interval(values))
            for pair, value in XI.get(compared.dataset, {}).items()
            if (values := compared.values("best" if pair == "best" else f"xi {pair}", "paper"))
        ),
        labels=2,
    )


def rise_table(compared: Compared[Any]) -> Table:
    """Return when keywords rise, by each map."""
    measures = {"rank": "among the top 5 %", "size": "excess over the text's mean"}
    rises = {
        f"half {measure} {quantity}": (RISE[quantity], words)
        for measure, words in measures.items()
        for quantity in RISE
    }
    return Table.of(
        compared.learned.marked("What rises first for a text's keyword?", *compared.accuracies),
        rises,
        {
            "quantity": lambda rise: rises[rise][0],
            "measured by": lambda rise: rises[rise][1],
            "step of half its rise": lambda rise: seed_mean(
                compared.values(rise, "keyword", "step"), 0
            ),
            "last value": lambda rise: seed_mean(compared.values(rise, "keyword")),
        },
        "The keyword is the word that speaks most for the label by itself: in a logistic regression on bags of "
        "words, or by co-occurrence with the target word. Neither knows the maps.",
        labels=2,
    )


def above_chance(text: str, compared: Compared[Any], quantity: str) -> Claim:
    """Survives if agreement and τ are above what chance gives, with checkpoints chosen on dev."""
    mean, low, high = combined(compared, quantity, "dev")
    chance = float(np.mean(compared.values(quantity, "dev", "chance")))
    taus = compared.values(quantity, "dev", "tau")
    ceiling = float(np.mean(compared.values("seeds", "dev")))
    tau_low, tau_high = mean_interval(taus)
    numbers = [
        Estimate("A", mean, low, high, chance),
        Estimate("τ", float(np.mean(taus)), max(-1.0, tau_low), min(1.0, tau_high)),
    ]
    return Claim(
        text,
        verdict([apart((low, high), chance), apart(mean_interval(taus))]),
        (
            f"A = {_interval(mean, low, high)}, chance {chance:.3f}, another seed's attention {ceiling:.3f}",
            f"Kendall's τ = {seed_mean(taus)}, chance 0",
        ),
        found=_reported(quantity),
        decisive=least(numbers),
    )


def _reported(quantity: str) -> str:
    """Say on which of their data sets the authors report an agreement above chance."""
    above = [name for name, table in AGREEMENT.items() if table[quantity] > table["chance"]]
    return f"Above chance on {', '.join(above)} ({NOTEBOOK}, the paper's choice of checkpoints)."


def rises_first(compared: Compared[Any]) -> Claim:
    """Survives if the keyword's relevance has made half of its rise before its attention has, by rank."""
    numbers, delays = [], {}
    for measure in ("rank", "size"):
        relevance, attention = (
            np.array(compared.values(f"half {measure} {name}", "keyword", "step"))
            for name in ("relevance", "attention")
        )
        delay = attention - relevance
        delays[measure] = delay[~np.isnan(delay)].tolist()
        numbers.append(
            f"by {measure}: the attention is {seed_mean(delays[measure], 0)} steps later"
        )
    mean = float(np.mean(delays["rank"])) if delays["rank"] else math.nan
    steps = Estimate("steps, by rank", mean, *mean_interval(delays["rank"]))
    return Claim(
        "Keywords gain relevance first, and then attract attention.",
        verdict([apart(mean_interval(delays["rank"]))]),
        (
            *numbers,
            "half of the rise to the last checkpoint; the verdict is by rank, which has an upper end",
        ),
        found=f"So they say ({SLIDES}), without a number.",
        decisive=least([steps]),
    )
