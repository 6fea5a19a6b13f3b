"""Which models are easy to fool, by size, length, classes, encoder and normaliser?"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from heedmap.experiments.seed_intervals import bounded_interval
from heedmap.papers.kit.result import Table
from heedmap.papers.survey.formats import with_interval
from heedmap.papers.survey.numbers import (
    SHARE,
    Numbers,
    TextModel,
)
from heedmap.papers.survey.survey import Survey, freedom

FOOLED_HOW = """Adversary: mean JSD / ln 2 of the farthest weights with the same prediction, with \
a 95 % interval over texts; exact for two classes and single texts, else what was found (≥). At \
most: the farthest weights of the same texts, whatever they predict. Chance: shuffled weights, \
whatever they predict."""
FACTOR_HOW = """Of models that have learned. Size, classes and length over models: Spearman's ρ \
with JSD / ln 2, as in the table of rank correlations. Length over texts: the models' ρ. Encoder, \
normaliser and size: differences in JSD / ln 2 of models alike but for it. Of these the mean \
of the data sets' means is shown, with Student's interval over data sets. 0 = no effect, chance \
and all."""


def fooling_table(survey: Survey) -> Table:
    """Return how far each model's adversary goes, beside the farthest weights and shuffled ones."""

    def adversary(model: TextModel) -> str:
        found = with_interval(freedom(model), *model.interval(model.freedom, SHARE))
        return found if model.is_exact else f"≥ {found}"

    return Table.of(
        "Which models are easy to fool?",
        survey.texts,
        {
            "model": survey.named,
            "classes": lambda model: str(model.classes),
            "words a text": lambda model: f"{model.mean('n_tokens'):.1f}",
            "adversary": adversary,
            "at most": lambda model: with_interval(share_of_ln2(model, "farthest")),
            "chance": lambda model: with_interval(share_of_ln2(model, "shuffled")),
            "texts": lambda model: str(int(np.isfinite(model.freedom).sum())),
        },
        FOOLED_HOW,
    )


def share_of_ln2(model: TextModel, name: str) -> float:
    """Return the mean of a divergence over ln 2, of the texts that were searched."""
    values = model.column(name)[np.isfinite(model.freedom)] / math.log(2)
    return float(np.mean(values)) if len(values) else math.nan


def factor_table(survey: Survey) -> Table:
    """Return how what a model is goes together with how far its adversary goes."""
    models = survey.counted(survey.texts)
    lines = []
    for name, x in (
        ("size, over models", lambda m: float(m["size"])),
        ("classes, over models", lambda m: float(m.classes)),
        ("length, over models", lambda m: m.mean("n_tokens")),
    ):
        rho = survey.correlation(survey.texts, x, freedom)
        number = with_interval(rho.value, rho.low, rho.high)
        lines.append([name, "ρ", number, f"{rho.models} models", str(rho.data_sets)])
    within = [(model["data"], length_correlation(model)) for model in models]
    lines.append(["length, over texts of a model", "mean ρ", *_over_data(within, "models")])
    for factor in ("encoder", "normaliser", "size"):
        for change, differences in paired_differences(models, factor).items():
            numbers = _over_data(differences, "pairs of models")
            lines.append([f"{factor}: {change}", "difference", *numbers])
    heads = ["by", "number", "JSD / ln 2", "rests on", "data sets"]
    return Table("What makes a model easy to fool?", heads, lines, FACTOR_HOW, labels=2)


def _over_data(values: Sequence[tuple[str, float]], kind: str) -> list[str]:
    """Return the mean of the data sets' means with its interval, and how many values and data sets it has."""
    by_data: dict[str, list[float]] = {}
    for data, value in values:
        if math.isfinite(value):
            by_data.setdefault(data, []).append(value)
    means = [float(np.mean(of_data)) for of_data in by_data.values()]
    number = with_interval(float(np.mean(means)) if means else math.nan, *bounded_interval(means))
    return [number, f"{sum(map(len, by_data.values()))} {kind}", str(len(means))]


def length_correlation(model: TextModel) -> float:
    """Return Spearman's ρ of length and JSD / ln 2 over the texts of a model; NaN where it has none."""
    defined = np.isfinite(model.freedom)
    length: Numbers = model.column("n_tokens")[defined]
    values: Numbers = model.freedom[defined]
    if len(values) < 2 or np.ptp(length) == 0 or np.ptp(values) == 0:
        return math.nan
    return float(stats.spearmanr(length, values).statistic)


def paired_differences(
    models: Sequence[TextModel], factor: str
) -> dict[str, list[tuple[str, float]]]:
    """Return the differences in JSD / ln 2 of models that differ in one factor alone, with their data set.

    They are sorted by the change.
    """
    keys = ("data", "encoder", "normaliser", "size")
    differences: dict[str, list[tuple[str, float]]] = {}
    for i, first in enumerate(models):
        for second in models[i + 1 :]:
            if [key for key in keys if first[key] != second[key]] == [factor]:
                change = f"{second[factor]} less {first[factor]}"
                differences.setdefault(change, []).append(
                    (first["data"], freedom(second) - freedom(first))
                )
    return differences
