"""The paper's tables and figures for the trained models, beside what is exact, and its claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedmap.experiments.results import mean
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Result, Table, changed_settings
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
from heedmap.report.charts import PALETTE, Figure, Key, plot, specification
from heedmap.report.grid_figures import bars

SETTINGS = {
    name: f"{name.replace('_', ' ')} {{}}"
    for name in ("epochs", "learning_rate", "batch_size", "embedding_size", "hidden_size")
}
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
class SerranoSmith(CellReproduction[SerranoSmithSettings]):
    """All models' texts so far: `rows` has a `Trial` per model and seed."""

    @property
    def models(self) -> list[str]:
        """The models of which a seed is finished, in order."""
        return [model for model in MODELS if of_model(self.rows, model)]

    def trials(self, model: str) -> list[Trial]:
        """Return the trials of a model, one per seed."""
        return of_model(self.rows, model)

    def name_of(self, model: str) -> str:
        """Return a model's name, with the mark if a training has not learned."""
        return self.learned.marked(model, model)

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned."""
        return learned(self.rows)

    @property
    def missing(self) -> int:
        """The number of cells that are still to be run."""
        return self.settings.seeds * len(self.settings.models) - len(self.rows)

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's own."""
        recipe = RECIPES.get(self.name)
        data = "a data set that is not in the paper" if recipe is None else recipe.not_theirs
        published = {
            name: option.default for name, option in SerranoSmithSettings.model_fields.items()
        }
        options = {} if recipe is None else recipe.options
        sample = self.settings.data.train_texts
        return [
            *([data] if data else []),
            "sentences split by rules instead of a parser",
            *([f"{sample} training texts"] if sample else []),
            *changed_settings(self.settings, SETTINGS, {**published, **options}),
        ]


def result(serrano_smith: SerranoSmith) -> Result:
    """Make the result that all files of a reproduction show."""
    rankings = _rankings(serrano_smith)
    return serrano_smith.make_result(
        f"Serrano & Smith on {serrano_smith.name}",
        [
            _accuracies(serrano_smith),
            _flip_table(serrano_smith),
            rankings,
            _certified(serrano_smith),
            *claims(serrano_smith.rows),
        ],
        summary=rankings,
        figures=figures(serrano_smith),
        rows=pd.DataFrame([_row(trial, serrano_smith.learned) for trial in serrano_smith.rows]),
        columns=COLUMNS,
    )


def _shown(values: Sequence[float], digits: int = 1, factor: float = 100) -> str:
    """Return a mean over seeds, and the smallest and largest if there are several."""
    numbers = [factor * value for value in values if not np.isnan(value)]
    if not numbers:
        return "–"
    text = f"{np.mean(numbers):.{digits}f}"
    if len(numbers) == 1:
        return text
    return f"{text} ({min(numbers):.{digits}f}–{max(numbers):.{digits}f})"


def _accuracies(serrano_smith: SerranoSmith) -> Table:
    trials = {model: serrano_smith.trials(model) for model in serrano_smith.models}
    return Table.of(
        "The models",
        trials,
        {
            "model": serrano_smith.name_of,
            "accuracy %": lambda model: _shown([trial.accuracy for trial in trials[model]]),
            "commonest class %": lambda model: _shown([trials[model][0].majority]),
            "test texts": lambda model: str(len(trials[model][0].size)),
            "of one item": lambda model: str(int((~trials[model][0].asked).sum())),
            "items a text": lambda model: f"{trials[model][0].size.mean():.1f}",
        },
        "Items are sentences for hierarchical models (HAN), words for flat ones (FLAN).",
    )


def _flip_table(serrano_smith: SerranoSmith) -> Table:
    lines = []
    for model in serrano_smith.models:
        for score, words in FIRST.items():
            shares, p_values = zip(
                *(trial.flip_table(score) for trial in serrano_smith.trials(model)), strict=True
            )
            cells = [_shown([share[name] for share in shares]) for name in FLIPS]
            lines.append([serrano_smith.name_of(model), words, *cells, f"{p_values[0]:.1g}"])
    heads = ["model", "first by", *HEADS.values(), "p"]
    return Table(
        "Does erasing the first item change the decision?", heads, lines, FLIP_HOW, labels=2
    )


def _rankings(serrano_smith: SerranoSmith) -> Table:
    lines = []
    for model in serrano_smith.models:
        trials = serrano_smith.trials(model)
        for ranking in RANKINGS:
            erased = [quartiles(trial.fractions(ranking))[1] for trial in trials]
            lines.append([
                serrano_smith.name_of(model),
                WORDS[ranking],
                _shown([mean(trial.efficiency(ranking)) for trial in trials], 3, 1),
                "never" if np.isinf(erased).any() else _shown(erased),
                _shown([_their_median(trial, ranking) for trial in trials]),
                _shown([_median(trial.removed(ranking)) for trial in trials]),
            ])  # fmt: skip
        smallest = _shown([quartiles(trial.fractions("exact"))[1] for trial in trials])
        lines.append([serrano_smith.name_of(model), WORDS["exact"], "1", smallest, smallest, "–"])
    heads = ["model", "ranking", "k_min / k", "erased %", "erased %, paper's way", "mass %"]
    title = f"How many items must go until the decision changes ({serrano_smith.name})"
    return Table(title, heads, lines, RANK_HOW, labels=2)


def _median(values: Numbers) -> float:
    return float(np.median(values)) if len(values) else np.nan


def _their_median(trial: Trial, ranking: str) -> float:
    """Return the median share erased, of the texts that this ranking changes at last (the others left out)."""
    counts = trial.paper_counts(ranking)
    changed = counts > 0
    return _median(counts[changed] / trial.size[changed])


def _certified(serrano_smith: SerranoSmith) -> Table:
    def per_seed(measure: Callable[[Trial], float]) -> Callable[[str], str]:
        return lambda model: _shown([measure(trial) for trial in serrano_smith.trials(model)])

    return Table.of(
        "What is certain",
        serrano_smith.models,
        {
            "model": serrano_smith.name_of,
            "certified %": per_seed(lambda trial: trial.certified),
            "only all of them %": per_seed(lambda trial: trial.only_all),
            "beaten by gradient %": per_seed(lambda trial: _beaten(trial, "gradient")),
            "beaten by gradient × attention %": per_seed(lambda trial: _beaten(trial, "product")),
            "attention, random 0, smallest 100": per_seed(lambda trial: mean(relative(trial))),
            "ΔJS < 0 %": per_seed(lambda trial: mean((trial.differences < 0).astype(float))),
        },
        SURE_HOW,
    )


def _beaten(trial: Trial, ranking: str) -> float:
    """Return the share of the texts that both change in which a ranking needs fewer items than attention."""
    attention, ranked = trial.counts("attention"), trial.counts(ranking)
    flipped = (attention > 0) & (ranked > 0)
    return float((ranked < attention)[flipped].mean()) if flipped.any() else np.nan


def _row(trial: Trial, judged: Learned) -> dict[str, object]:
    """Return a model's numbers for CSV."""
    row: dict[str, object] = {"model": trial.model, "seed": trial.seed}
    row["learned"] = judged.of(trial.model, trial.seed)
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


def figures(serrano_smith: SerranoSmith) -> list[Figure]:
    """Draw efficiency, the share erased as boxes, and ΔJS against Δα: each where there is anything to draw."""
    runs = [
        {
            "dataset": model,
            "series": WORDS[ranking],
            "seed": trial.seed,
            "value": mean(trial.efficiency(ranking)),
        }
        for model in serrano_smith.models
        for ranking in RANKINGS
        for trial in serrano_smith.trials(model)
    ]
    is_defined = any(isinstance(run["value"], float) and np.isfinite(run["value"]) for run in runs)
    efficiency = [bars(
        runs, key="efficiency", title=f"How near is each ranking to the smallest set? ({serrano_smith.name})",
        measure="k_min / k", none="never the decision", caption="1 is a ranking that could not be better.",
        unit="value",
    )] if is_defined else []  # fmt: skip
    return [*efficiency, *_boxes(serrano_smith), *_scatter(serrano_smith)]


def _counted(serrano_smith: SerranoSmith, which: Callable[[Trial], NDArray[np.bool_]]) -> str:
    """Return how many texts of a model there are, or the least and the most of all models."""
    counts = {int(which(serrano_smith.trials(model)[0]).sum()) for model in serrano_smith.models}
    return f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}"


def _boxes(serrano_smith: SerranoSmith) -> list[Figure]:
    data = []
    for model in serrano_smith.models:
        trial = serrano_smith.trials(model)[0]
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
    base = plot(data).encode(
        y=alt.Y("model:N", sort=serrano_smith.models, title=None),
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
        title=f"How much must go until the decision changes? ({serrano_smith.name})",
        n=f"{_counted(serrano_smith, lambda t: t.flippable)} test texts whose decision some set changes, "
        "of seed 0",
        caption="Boxes join the quartiles over texts, the tick is the median; a text that a ranking never "
        "changes counts as 100 %.",
        spec=specification(chart, len(serrano_smith.models) * (11 * len(names) + 12)),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(names)],
    )]  # fmt: skip


def _scatter(serrano_smith: SerranoSmith) -> list[Figure]:
    """Draw the quartiles of ΔJS in bins of Δα, of all texts: nothing is drawn again or left out."""
    data = []
    for i, model in enumerate(serrano_smith.models):
        trial = serrano_smith.trials(model)[0]
        weight = (trial.column("weight_top") - trial.column("weight_random"))[trial.asked]
        bins = np.minimum((weight * BINS).astype(int), BINS - 1)
        for b in range(BINS):
            values = trial.differences[bins == b]
            if len(values) >= FEWEST:
                low, middle, high = quartiles(values)
                data.append({
                    "weight": (b + 0.5 + (i - 2.5) / 12) / BINS, "series": model,
                    "low": low, "median": middle, "high": high,
                })  # fmt: skip
    if not data:
        return []
    scale = alt.Scale(domain=serrano_smith.models, range=list(PALETTE[: len(serrano_smith.models)]))
    base = plot(data).encode(
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
        title=f"Does a larger weight matter more? ({serrano_smith.name})",
        n=f"{_counted(serrano_smith, lambda t: t.asked)} test texts of more than one item, of seed 0",
        caption="The median and the quartiles of the difference, in tenths of the difference in weight that "
        f"hold at least {FEWEST} texts. Below 0 the random item mattered more.",
        spec=specification(chart, 260),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(serrano_smith.models)],
    )]  # fmt: skip
