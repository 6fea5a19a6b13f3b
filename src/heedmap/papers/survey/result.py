"""Tables, claims and figures of the survey's open questions, from the models that are finished."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.seeds import over_seeds
from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table
from heedmap.papers.survey.claims import correlation_claim, need_claims
from heedmap.papers.survey.figures import figures
from heedmap.papers.survey.needs import Need, needs, sequence_name
from heedmap.papers.survey.numbers import (
    SHARE,
    Numbers,
    RankCorrelation,
    SequenceModel,
    TextModel,
    rank_correlation,
)
from heedmap.papers.survey.settings import SurveySettings

NEED_HOW = """Accuracy on the test texts (of sequences: of the next sub-word, given the right ones \
before it), mean and 95 % interval over seeds. Lost: points, learned less uniform of the same \
seeds; at test only: the trained model under uniform weights, its interval over texts, of \
sequences over seeds. Chance: the commonest answer."""
STABLE_HOW = """JSD: mean divergence of other seeds' maps from the model's, nats; chance: that of \
shuffled weights on the same texts. Relative: one over the other, 1 = as far as chance, 0 = the \
same map. Lost: as in the first table."""
LIKE_HOW = """Mean cosine of two words' vectors in a text, and conicity, the mean cosine with \
their mean, with 95 % intervals over texts; chance: states of any texts, as many. Flips: share of \
the texts whose decision changes when the most attended word's weight is erased; chance: a random \
other word's."""
FOOLED_HOW = """Adversary: mean JSD / ln 2 of the farthest weights with the same prediction, with \
a 95 % interval over texts; exact for two classes and single texts, else what was found (≥). At \
most: the farthest weights of the same texts, whatever they predict. Chance: shuffled weights, \
whatever they predict."""
FACTOR_HOW = """Of models that have learned. Size, classes and length over models: Spearman's ρ \
with JSD / ln 2. Length over texts: mean of the models' ρ. Encoder and normaliser: mean difference \
in JSD / ln 2 of models alike but for it, with Student's interval. 0 = no effect, chance and \
all."""
RHO_HOW = """Spearman's ρ over models that have learned, 0 by chance, with Fisher's 95 % interval; \
models of one data set are not independent, so that it is too narrow rather than too wide."""
COLUMNS = {
    "model": "data set, encoder, normaliser and size; or sequences",
    "task": "kind of task",
    "learned": "whether the training has learned; empty where it cannot be told",
    "accuracy": "share of the test texts, or target sub-words, that are right",
    "chance": "share of the commonest answer",
    "cost": "accuracy lost by training with uniform weights, mean over seeds",
    "cost_at_test": "accuracy lost by uniform weights at test only",
    "instability": "JSD of other seeds' maps over that of shuffled weights",
    "cosine": "mean cosine of the states of a text",
    "conicity": "mean cosine of the states of a text with their mean",
    "flip_top": "share of the decisions that erasing the most attended word changes",
    "freedom": "adversary's JSD / ln 2, mean over the texts searched",
    "length": "mean number of tokens of a text",
}


@dataclass(frozen=True)
class Survey(CellReproduction[SurveySettings]):
    """The models that are finished."""

    @cached_property
    def texts(self) -> list[TextModel]:
        """The models of texts."""
        return [row for row in self.rows if isinstance(row, TextModel)]

    @cached_property
    def sequences(self) -> list[SequenceModel]:
        """The trainings on sequences."""
        return [row for row in self.rows if isinstance(row, SequenceModel)]

    @cached_property
    def retrained(self) -> list[TextModel]:
        """The models that were trained again."""
        return [model for model in self.texts if model["retrained"]]

    @cached_property
    def needs(self) -> list[Need]:
        """The models that were trained with uniform weights too."""
        return needs(self.texts, self.sequences)

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned with their attention; a twin without it need not."""
        models: dict[str, dict[object, list[Score]]] = {}
        for model in self.texts:
            n = len(model.table)
            shares = [float(model.is_right.mean())]
            if model["retrained"]:
                shares += model.accuracies("learned")
            models[model.name] = {
                seed: [accuracy(share, model.commonest, n)] for seed, share in enumerate(shares)
            }
        for sequence in self.sequences:
            if sequence.attention == "learned":
                score = accuracy(sequence.accuracy, sequence.chance, sequence.positions)
                models.setdefault(sequence_name(sequence.data), {})[sequence.seed] = [score]
        return Learned(models)

    def counted(self, models: Sequence[TextModel]) -> list[TextModel]:
        """Return those that have learned."""
        return [model for model in models if model.name not in self.learned.failed]

    @property
    def missing(self) -> int:
        """How many models are still to be run."""
        # Not from `paper`, which imports this module.
        settings = self.settings
        has_softmax = "softmax" in settings.normalisers
        kinds = len(settings.normalisers) - has_softmax + has_softmax * len(settings.sizes)
        sequences = 2 * settings.seeds * (3 if settings.pairs else 2)
        return kinds * len(settings.names) * len(settings.encoders) + sequences - len(self.rows)

    def correlation(
        self,
        models: Sequence[TextModel],
        x: Callable[[TextModel], float],
        y: Callable[[TextModel], float],
    ) -> RankCorrelation:
        """Return the rank correlation of two numbers over the models that have learned."""
        counted = self.counted(models)
        return rank_correlation([x(model) for model in counted], [y(model) for model in counted])


def cost(model: TextModel) -> float:
    """Return the accuracy that training with uniform weights loses, mean over seeds."""
    return float(np.mean(model.costs))


def freedom(model: TextModel) -> float:
    """Return the adversary's mean JSD / ln 2."""
    values = model.freedom[np.isfinite(model.freedom)]
    return float(values.mean()) if len(values) else math.nan


def result(survey: Survey) -> Result:
    """Make the result that all files show."""
    stable = survey.correlation(survey.retrained, cost, lambda model: model.instability)
    alike = survey.correlation(
        survey.texts, lambda m: m.mean("cosine_states"), lambda m: m.mean("flip_top")
    )
    sections: list[Table | Claim] = [
        _needs(survey),
        *need_claims(survey.needs, survey.learned),
        _stability(survey),
        correlation_claim(
            "Attention is less stable where it matters less: the more uniform weights cost, the nearer are the "
            "maps of other seeds, relative to shuffled weights",
            "accuracy lost and relative JSD of seeds",
            stable,
            -1,
        ),
        _likeness(survey),
        correlation_claim(
            "The more alike the states of a text, the less often erasing the most attended word changes the "
            "decision",
            "cosine of states and flips",
            alike,
            -1,
        ),
        _correlations(survey),
        _fooled(survey),
        _factors(survey),
    ]
    return survey.make_result(
        "The survey's open questions",
        sections,
        figures=figures(survey.retrained),
        rows=pd.DataFrame(_csv_rows(survey), columns=[*COLUMNS]),
        columns=COLUMNS,
    )


def _points(value: float, low: float, high: float) -> str:
    return _number(100 * value, 100 * low, 100 * high, 1)


def _number(value: float, low: float = math.nan, high: float = math.nan, digits: int = 2) -> str:
    """Return a number and its interval; a dash for none."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:z.{digits}f}"
    if math.isfinite(low):
        text += f" [{low:z.{digits}f}, {high:z.{digits}f}]"
    return text.replace("-", "−")


def _over_texts(
    model: TextModel, name: str, bounds: tuple[float, float], factor: float = 1.0, digits: int = 2
) -> str:
    values = model.column(name)
    ends = model.interval(values, bounds)
    return _number(factor * model.mean(name), factor * ends[0], factor * ends[1], digits)


def _needs(survey: Survey) -> Table:
    return Table.of(
        "For which tasks is attention needed, and what does uniform attention cost?",
        survey.needs,
        {
            "task": lambda need: need.task,
            "model": lambda need: survey.learned.marked(need.name, need.name),
            "learned": lambda need: over_seeds(need.learned),
            "trained uniform": lambda need: over_seeds(need.uniform),
            "lost": lambda need: _points(need.cost, *mean_interval(need.costs)),
            "lost at test only": lambda need: _points(*need.at_test),
            "chance": lambda need: f"{need.chance:.3f}",
            "trainings": lambda need: f"{len(need.learned)} each",
            "instances": lambda need: need.instances,
        },
        NEED_HOW,
        labels=2,
    )


def _name_of(survey: Survey) -> Callable[[TextModel], str]:
    return lambda model: survey.learned.marked(model.name, model.name)


def _stability(survey: Survey) -> Table:
    return Table.of(
        "Is attention less stable where it matters less?",
        survey.retrained,
        {
            "model": _name_of(survey),
            "lost": lambda model: _points(cost(model), *mean_interval(model.costs)),
            "JSD of seeds": lambda model: _over_texts(model, "seed_jsd", SHARE, digits=3),
            "chance": lambda model: f"{model.mean('seed_jsd_chance'):.3f}",
            "relative": lambda model: _number(model.instability),
            "seeds": lambda model: str(len(model.costs)),
            "texts": lambda model: str(int(np.isfinite(model.column("seed_jsd")).sum())),
        },
        STABLE_HOW,
    )


def _likeness(survey: Survey) -> Table:
    signed = (-1.0, 1.0)
    return Table.of(
        "How alike are the states of a text, and does that predict what erasing the top word does?",
        survey.texts,
        {
            "model": _name_of(survey),
            "states": lambda model: _over_texts(model, "cosine_states", signed),
            "chance": lambda model: _number(model.mean("cosine_states_chance")),
            "embeddings": lambda model: _number(model.mean("cosine_embeddings")),
            "conicity": lambda model: _number(model.mean("conicity_states")),
            "conicity, chance": lambda model: _number(model.mean("conicity_states_chance")),
            "top word flips %": lambda model: _over_texts(model, "flip_top", SHARE, 100, 1),
            "random word flips %": lambda model: _number(100 * model.mean("flip_random"), digits=1),
            "texts": lambda model: str(int(np.isfinite(model.column("cosine_states")).sum())),
        },
        LIKE_HOW,
    )


def _correlations(survey: Survey) -> Table:
    pairs: Mapping[
        str, tuple[Sequence[TextModel], Callable[[TextModel], float], Callable[[TextModel], float]]
    ]
    pairs = {
        "accuracy lost, relative JSD of seeds": (survey.retrained, cost, lambda m: m.instability),
        "accuracy lost, JSD of seeds": (survey.retrained, cost, lambda m: m.mean("seed_jsd")),
        "cosine of states, top word flips": (
            survey.texts, lambda m: m.mean("cosine_states"), lambda m: m.mean("flip_top"),
        ),
        "cosine above chance, top word flips": (
            survey.texts,
            lambda m: m.mean("cosine_states") - m.mean("cosine_states_chance"),
            lambda m: m.mean("flip_top"),
        ),
        "conicity of states, top word flips": (
            survey.texts, lambda m: m.mean("conicity_states"), lambda m: m.mean("flip_top"),
        ),
        "cosine of embeddings, top word flips": (
            survey.texts, lambda m: m.mean("cosine_embeddings"), lambda m: m.mean("flip_top"),
        ),
    }  # fmt: skip
    lines = []
    for name, (models, x, y) in pairs.items():
        rho = survey.correlation(models, x, y)
        data = len({model["data"] for model in survey.counted(models)})
        lines.append([name, _number(rho.value, rho.low, rho.high), str(rho.models), str(data)])
    heads = ["numbers", "ρ", "models", "data sets"]
    return Table("Rank correlations over models", heads, lines, RHO_HOW)


def _fooled(survey: Survey) -> Table:
    def adversary(model: TextModel) -> str:
        found = _number(freedom(model), *model.interval(model.freedom, SHARE))
        return found if model.is_exact else f"≥ {found}"

    return Table.of(
        "Which models are easy to fool?",
        survey.texts,
        {
            "model": _name_of(survey),
            "classes": lambda model: str(model.classes),
            "words a text": lambda model: f"{model.mean('n_tokens'):.1f}",
            "adversary": adversary,
            "at most": lambda model: _number(_share_of_ln2(model, "farthest")),
            "chance": lambda model: _number(_share_of_ln2(model, "shuffled")),
            "texts": lambda model: str(int(np.isfinite(model.freedom).sum())),
        },
        FOOLED_HOW,
    )


def _share_of_ln2(model: TextModel, name: str) -> float:
    """Return the mean of a divergence over ln 2, of the texts that were searched."""
    values = model.column(name)[np.isfinite(model.freedom)] / math.log(2)
    return float(np.mean(values)) if len(values) else math.nan


def _factors(survey: Survey) -> Table:
    models = survey.counted(survey.texts)
    lines = []
    for name, x in (
        ("size, over models", lambda m: float(m["size"])),
        ("classes, over models", lambda m: float(m.classes)),
        ("length, over models", lambda m: m.mean("n_tokens")),
    ):
        rho = rank_correlation([x(model) for model in models], [freedom(m) for m in models])
        lines.append([name, "ρ", _number(rho.value, rho.low, rho.high), f"{rho.models} models"])
    within = [rho for rho in (length_correlation(model) for model in models) if math.isfinite(rho)]
    mean_rho = float(np.mean(within)) if within else math.nan
    lines.append(
        [
            "length, over texts of a model",
            "mean ρ",
            _number(mean_rho, *mean_interval(within)),
            f"{len(within)} models",
        ]
    )
    for factor in ("encoder", "normaliser", "size"):
        for change, differences in paired_differences(models, factor).items():
            value = float(np.mean(differences))
            number = _number(value, *mean_interval(differences))
            lines.append(
                [f"{factor}: {change}", "difference", number, f"{len(differences)} pairs of models"]
            )
    heads = ["by", "number", "JSD / ln 2", "rests on"]
    return Table("What makes a model easy to fool?", heads, lines, FACTOR_HOW, labels=2)


def length_correlation(model: TextModel) -> float:
    """Return Spearman's ρ of length and JSD / ln 2 over the texts of a model; NaN where it has none."""
    defined = np.isfinite(model.freedom)
    length: Numbers = model.column("n_tokens")[defined]
    values: Numbers = model.freedom[defined]
    if len(values) < 2 or np.ptp(length) == 0 or np.ptp(values) == 0:
        return math.nan
    return float(stats.spearmanr(length, values).statistic)


def paired_differences(models: Sequence[TextModel], factor: str) -> dict[str, list[float]]:
    """Return the differences in JSD / ln 2 of models that differ in one factor alone, by the change."""
    keys = ("data", "encoder", "normaliser", "size")
    differences: dict[str, list[float]] = {}
    for i, first in enumerate(models):
        for second in models[i + 1 :]:
            if [key for key in keys if first[key] != second[key]] == [factor]:
                change = f"{second[factor]} less {first[factor]}"
                differences.setdefault(change, []).append(freedom(second) - freedom(first))
    return differences


def _csv_rows(survey: Survey) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for model in survey.texts:
        row: dict[str, object] = {
            "model": model.name,
            "task": model.task,
            "learned": model.name not in survey.learned.failed,
            "accuracy": float(model.is_right.mean()),
            "chance": model.commonest,
            "cosine": model.mean("cosine_states"),
            "conicity": model.mean("conicity_states"),
            "flip_top": model.mean("flip_top"),
            "freedom": freedom(model),
            "length": model.mean("n_tokens"),
        }
        if model["retrained"]:
            row |= {
                "cost": cost(model),
                "cost_at_test": float(model.cost_at_test.mean()),
                "instability": model.instability,
            }
        found.append(row)
    texts = {model.name for model in survey.texts}
    for need in survey.needs:
        if need.name not in texts:
            found.append({
                "model": need.name, "task": need.task, "accuracy": float(np.mean(need.learned)),
                "learned": need.name not in survey.learned.failed, "chance": need.chance,
                "cost": need.cost, "cost_at_test": need.at_test[0],
            })  # fmt: skip
    return found
