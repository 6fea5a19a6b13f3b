"""The paper's tables and figures for the trained models, beside what is exact, and its claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedmap.experiments.results import mean
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Result, Table, unfinished, unlike, with_unlike
from heedmap.papers.serrano_smith.claims import claims, learned, relative
from heedmap.papers.serrano_smith.numbers import (
    FLIPS,
    RANKINGS,
    SCORES,
    WORDS,
    Numbers,
    Trial,
    of_model,
    quartiles,
)
from heedmap.papers.serrano_smith.settings import MODELS, RECIPES, SerranoSmithSettings
from heedmap.report.charts import PALETTE, Figure, Key, rows, specification
from heedmap.report.grid_figures import bars

BINS = 10  # of the difference in weight
FEWEST = 5  # texts of a bin with quartiles
FIRST = {"top": "attention", "gradient": "gradient", "product": "gradient × attention"}
HEADS = {"both": "both", "top": "only it", "random": "only the random one", "neither": "neither"}
FLIP_HOW = """Per cent of the texts of more than one item whose decision changes when one item's weight is \
erased and the others' are scaled up: that of the item that each score puts first, and of one drawn among the \
others. p: McNemar's exact test, of seed 0."""
RANK_HOW = """Of the texts whose decision some set of items changes while one is left, the same for all \
rankings. k_min / k: the size of the smallest such set over the number of items that the ranking takes, 0 \
where it never comes. Erased: median share of the items at the change (never: in more than half it does not \
come); and, the paper's way, of the texts that this ranking changes, with all items erased at last. Mass: \
median attention on them. In brackets: the least and the largest of the seeds."""
_FIRST = {
    "top": "most attended",
    "gradient": "largest gradient",
    "product": "largest product of both",
}
COLUMNS = {
    "model": "the model",
    "seed": "of its training",
    "learned": "whether the training has learned; empty where it cannot be told",
    "accuracy": "share of the test texts that are right",
    "majority": "share of the commonest class",
    "texts": "test texts",
    **{
        f"flip_{score}_{name}": f"share of the texts of more than one item: erasing the {words} item, or a "
        f"random one, changes the decision: {HEADS[name]}"
        for score, words in _FIRST.items()
        for name in FLIPS
    },
    **{
        f"mcnemar_{score}": f"p of the {words} item against a random one"
        for score, words in _FIRST.items()
    },
    "certified": "share of the texts that no set of items changes while one is left",
    "only_all": "share of the texts that only all items change",
    **{f"efficiency_{name}": f"mean k_min / k, {words}" for name, words in WORDS.items()},
    **{
        f"erased_{part}_{name}": f"share of the items erased at the change, {end}, {words}; inf: never"
        for name, words in WORDS.items()
        for part, end in (
            ("low", "lower quartile"),
            ("median", "median"),
            ("high", "upper quartile"),
        )
    },
}
SURE_HOW = """Certified: no set of items changes the decision while one is left. Only all of them: of these \
texts those where the bias alone gives another answer, which the paper counts as changed by every ranking, \
with 100 %. Beaten: gradient and gradient × attention need fewer items than attention, which shows without \
the smallest set that attention's is not minimal."""


@dataclass(frozen=True)
class Reproduction:
    """All models' texts so far, and what was read."""

    name: str
    settings: SerranoSmithSettings
    trials: list[Trial]
    notes: list[str]
    folder: Path

    @property
    def models(self) -> list[str]:
        """The models of which a seed is finished, in order."""
        return [model for model in MODELS if of_model(self.trials, model)]

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned."""
        return learned(self.trials)

    @property
    def missing(self) -> int:
        """The number of cells that are still to be run."""
        return self.settings.seeds * len(self.settings.models) - len(self.trials)


def result(found: Reproduction) -> Result:
    """Make the result that all files of a reproduction show."""
    tables = [_accuracies(found), _flip_table(found), _rankings(found), _certified(found)]
    differs = unlike(differences(found))
    return Result(
        title=f"Serrano & Smith on {found.name}",
        notes=[note for note in (*found.notes, differs, unfinished(found.missing)) if note],
        summary=tables[2],
        sections=[*tables, *claims(found.trials)],
        figures=figures(found),
        rows=pd.DataFrame([_row(trial, found.learned) for trial in found.trials]),
        latex=tables[2],
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
    )


def differences(found: Reproduction) -> list[str]:
    """List in words how a reproduction differs from the paper's own."""
    recipe = RECIPES.get(found.name)
    data = "a data set that is not in the paper" if recipe is None else recipe.not_theirs
    theirs = SerranoSmithSettings.model_fields
    options = {} if recipe is None else recipe.options
    changed = [
        f"{name.replace('_', ' ')} {value} instead of {given}"
        for name in ("epochs", "learning_rate", "batch_size", "embedding_size", "hidden_size")
        if (value := getattr(found.settings, name))
        != (given := options.get(name, theirs[name].default))
    ]
    sample = found.settings.data.train_texts
    return [
        *([data] if data else []),
        "sentences split by rules instead of a parser",
        *([f"{sample} training texts"] if sample else []),
        *changed,
    ]


def _name(found: Reproduction, model: str) -> str:
    """Return a model's name, with the mark if a training has not learned."""
    return found.learned.marked(model, model)


def _mean(trials: Sequence[Trial], measure: Callable[[Trial], float]) -> list[float]:
    return [measure(trial) for trial in trials]


def _shown(values: Sequence[float], digits: int = 1, factor: float = 100) -> str:
    """Return a mean over seeds, and the smallest and largest if there are several."""
    some = [factor * value for value in values if not np.isnan(value)]
    if not some:
        return "–"
    text = f"{np.mean(some):.{digits}f}"
    return text if len(some) == 1 else f"{text} ({min(some):.{digits}f}–{max(some):.{digits}f})"


def _accuracies(found: Reproduction) -> Table:
    lines = []
    for model in found.models:
        trials = of_model(found.trials, model)
        lines.append([
            _name(found, model),
            _shown(_mean(trials, lambda t: t.accuracy)),
            _shown(_mean(trials[:1], lambda t: t.majority)),
            f"{len(trials[0].size)}",
            f"{int((~trials[0].asked).sum())}",
            f"{trials[0].size.mean():.1f}",
        ])  # fmt: skip
    heads = [
        "model",
        "accuracy %",
        "commonest class %",
        "test texts",
        "of one item",
        "items a text",
    ]
    how = "Items are sentences for hierarchical models (HAN), words for flat ones (FLAN)."
    return Table("The models", heads, lines, how)


def _flip_table(found: Reproduction) -> Table:
    lines = []
    for model in found.models:
        trials = of_model(found.trials, model)
        for score, words in FIRST.items():
            shares = [trial.flip_table(score)[0] for trial in trials]
            p = trials[0].flip_table(score)[1]
            cells = [_shown([share[name] for share in shares]) for name in FLIPS]
            lines.append([_name(found, model), words, *cells, f"{p:.1g}"])
    heads = ["model", "first by", *HEADS.values(), "p"]
    return Table(
        "Does erasing the first item change the decision?", heads, lines, FLIP_HOW, labels=2
    )


def _rankings(found: Reproduction) -> Table:
    lines = []
    for model in found.models:
        trials = of_model(found.trials, model)
        for ranking in RANKINGS:
            erased = [quartiles(trial.fractions(ranking))[1] for trial in trials]
            theirs = [_their_median(trial, ranking) for trial in trials]
            lines.append([
                _name(found, model),
                WORDS[ranking],
                _shown([mean(trial.efficiency(ranking)) for trial in trials], 3, 1),
                "never" if np.isinf(erased).any() else _shown(erased),
                _shown(theirs),
                _shown([_median(trial.removed(ranking)) for trial in trials]),
            ])  # fmt: skip
        least = [quartiles(trial.fractions("exact"))[1] for trial in trials]
        lines.append([_name(found, model), WORDS["exact"], "1", _shown(least), _shown(least), "–"])
    heads = ["model", "ranking", "k_min / k", "erased %", "erased %, paper's way", "mass %"]
    title = f"How many items must go until the decision changes ({found.name})"
    return Table(title, heads, lines, RANK_HOW, labels=2)


def _median(values: Numbers) -> float:
    return float(np.median(values)) if len(values) else np.nan


def _their_median(trial: Trial, ranking: str) -> float:
    """Return the median share erased, of the texts that this ranking changes at last (the others left out)."""
    counts = trial.paper_counts(ranking)
    some = counts > 0
    return _median(counts[some] / trial.size[some])


def _certified(found: Reproduction) -> Table:
    lines = []
    for model in found.models:
        trials = of_model(found.trials, model)
        lines.append([
            _name(found, model),
            _shown([t.certified for t in trials]),
            _shown([t.only_all for t in trials]),
            *(_shown([_beaten(t, name) for t in trials]) for name in ("gradient", "product")),
            _shown([mean(relative(t)) for t in trials]),
            _shown([mean((t.differences < 0).astype(float)) for t in trials]),
        ])  # fmt: skip
    heads = [
        "model", "certified %", "only all of them %", "beaten by gradient %",
        "beaten by gradient × attention %", "attention, random 0, smallest 100", "ΔJS < 0 %",
    ]  # fmt: skip
    return Table("What is certain", heads, lines, SURE_HOW)


def _beaten(trial: Trial, ranking: str) -> float:
    """Return the share of the texts that both change in which a ranking needs fewer items than attention."""
    own, other = trial.counts("attention"), trial.counts(ranking)
    both = (own > 0) & (other > 0)
    return float((other < own)[both].mean()) if both.any() else np.nan


def _row(trial: Trial, judged: Learned) -> dict[str, object]:
    """Return a model's numbers for CSV."""
    row: dict[str, object] = {"model": trial.cell.model, "seed": trial.cell.seed}
    row["learned"] = judged.of(trial.cell.model, trial.cell.seed)
    row |= {"accuracy": trial.accuracy, "majority": trial.majority, "texts": len(trial.size)}
    for score in SCORES:
        shares, p = trial.flip_table(score)
        row |= {f"flip_{score}_{name}": share for name, share in shares.items()}
        row[f"mcnemar_{score}"] = p
    row["certified"] = trial.certified
    row["only_all"] = trial.only_all
    for ranking in (*RANKINGS, "exact"):
        values = trial.efficiency(ranking)
        row[f"efficiency_{ranking}"] = mean(values)
        boxes = zip(("low", "median", "high"), quartiles(trial.fractions(ranking)), strict=True)
        row |= {f"erased_{name}_{ranking}": value for name, value in boxes}
    return row


def figures(found: Reproduction) -> list[Figure]:
    """Draw efficiency, the share erased as boxes, and ΔJS against Δα: each where there is anything to draw."""
    runs = [
        {
            "dataset": model,
            "series": WORDS[ranking],
            "seed": trial.cell.seed,
            "value": mean(trial.efficiency(ranking)),
        }
        for model in found.models
        for ranking in RANKINGS
        for trial in of_model(found.trials, model)
    ]
    known = any(isinstance(run["value"], float) and np.isfinite(run["value"]) for run in runs)
    efficiency = [bars(
        runs, key="efficiency", title=f"How near is each ranking to the smallest set? ({found.name})",
        measure="k_min / k", none="never the decision", caption="1 is a ranking that could not be better.",
        unit="value",
    )] if known else []  # fmt: skip
    return [
        with_unlike(one, differences(found), found.learned.failed)
        for one in (*efficiency, *_boxes(found), *_scatter(found))
    ]


def _counted(found: Reproduction, which: Callable[[Trial], NDArray[np.bool_]]) -> str:
    """Return how many texts of a model there are, or the least and the most of all models."""
    counts = {int(which(of_model(found.trials, model)[0]).sum()) for model in found.models}
    return f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}"


def _boxes(found: Reproduction) -> list[Figure]:
    data = []
    for model in found.models:
        trial = of_model(found.trials, model)[0]
        if not trial.flippable.any():
            continue
        for ranking in (*RANKINGS, "exact"):
            low, middle, high = (min(q, 1.0) for q in quartiles(trial.fractions(ranking)))
            data.append({
                "model": model, "series": WORDS[ranking], "low": low, "median": middle, "high": high,
            })  # fmt: skip
    if not data:
        return []
    names = [WORDS[ranking] for ranking in (*RANKINGS, "exact")]
    scale = alt.Scale(domain=names, range=list(PALETTE[: len(names)]))
    base = alt.Chart(rows(data)).encode(
        y=alt.Y("model:N", sort=found.models, title=None),
        yOffset=alt.YOffset("series:N", sort=names),
        color=alt.Color("series:N", scale=scale, legend=None),
    )
    x = alt.X("low:Q", title="share of the items erased at the change", axis=alt.Axis(format="%"))
    box = base.mark_bar(height=8).encode(x=x, x2="high:Q")
    middle = base.mark_tick(thickness=3, height=11).encode(
        x="median:Q", color=alt.value("currentColor")
    )
    chart = alt.layer(box, middle)
    return [Figure(
        key="erased",
        title=f"How much must go until the decision changes? ({found.name})",
        n=f"{_counted(found, lambda t: t.flippable)} test texts whose decision some set changes, of seed 0",
        caption="Boxes join the quartiles over texts, the tick is the median; a text that a ranking never "
        "changes counts as 100 %.",
        spec=specification(chart, len(found.models) * (11 * len(names) + 12)),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(names)],
    )]  # fmt: skip


def _scatter(found: Reproduction) -> list[Figure]:
    """Draw the quartiles of ΔJS in bins of Δα, of all texts: nothing is drawn again or left out."""
    data = []
    for i, model in enumerate(found.models):
        trial = of_model(found.trials, model)[0]
        weight = (trial.column("weight_top") - trial.column("weight_random"))[trial.asked]
        of = np.minimum((weight * BINS).astype(int), BINS - 1)
        for b in range(BINS):
            values = trial.differences[of == b]
            if len(values) >= FEWEST:
                low, middle, high = quartiles(values)
                data.append({
                    "weight": (b + 0.5 + (i - 2.5) / 12) / BINS, "series": model,
                    "low": low, "median": middle, "high": high,
                })  # fmt: skip
    if not data:
        return []
    scale = alt.Scale(domain=found.models, range=list(PALETTE[: len(found.models)]))
    base = alt.Chart(rows(data)).encode(
        x=alt.X("weight:Q", title="most attended item's weight − the random one's"),
        color=alt.Color("series:N", scale=scale, legend=None),
    )
    y = alt.Y("low:Q", title="JSD when erased − the random one's (nats)")
    chart = alt.layer(
        base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q"),
        base.mark_circle(size=45, opacity=1).encode(y="median:Q"),
    )
    return [Figure(
        key="differences",
        title=f"Does a larger weight matter more? ({found.name})",
        n=f"{_counted(found, lambda t: t.asked)} test texts of more than one item, of seed 0",
        caption="The median and the quartiles of the difference, in tenths of the difference in weight that "
        f"hold at least {FEWEST} texts. Below 0 the random item mattered more.",
        spec=specification(chart, 260),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(found.models)],
    )]  # fmt: skip
