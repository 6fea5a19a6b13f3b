"""By which score the kit judges whether a model of the grid, ours or theirs, has learned."""

import math
from collections.abc import Iterable, Mapping, Sequence

from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import NONE, published
from heedmap.papers.kit.learned import Learned, Score, accuracy, roc_auc

Model = tuple[str, str, str]
"""Data set, encoder and score: the models of all seeds."""
JUDGED = ("roc_auc", "accuracy")
UNKNOWN = dict.fromkeys(JUDGED, math.nan)


def score_of(
    scores: Mapping[str, float], classes: Sequence[int], theirs: Mapping[str, float] = UNKNOWN
) -> Score:
    """Return the score by which a model on test texts with these labels is judged.

    Of two classes the ROC AUC: accuracy would not do, since the paper's code weights the rare class (its LSTM
    on ADR has .86 where the majority has .88, at an AUC of .90). Else the accuracy.

    Args:
        scores: `roc_auc` or `accuracy`, NaN or missing where not known.
        classes: how many texts have each label.
        theirs: the published scores.
    """
    auc, right = (scores.get(name, math.nan) for name in JUDGED)
    if math.isfinite(auc) and len(classes) == 2 and min(classes) > 0:
        return roc_auc(auc, classes, theirs["roc_auc"])
    n = sum(classes)
    return accuracy(right, max(classes) / n if n else math.nan, n, theirs["accuracy"])


def learned(results: Iterable[DatasetNumbers]) -> Learned:
    """Return which models of the grid have learned, by `name_of` of each."""
    scores_by_model: dict[str, dict[object, list[Score]]] = {}
    for result in results:
        seeds: dict[tuple[Model, int], dict[str, float]] = {}
        for number in result.numbers:
            if number.predicted == "Overall":
                model = (number.cell.dataset, number.cell.encoder, number.cell.score)
                seeds.setdefault((model, number.cell.seed), {})[number.quantity] = number.value
        for (model, seed), scores in seeds.items():
            one_score = score_of(scores, class_counts(result), _theirs(model))
            scores_by_model.setdefault(name_of(model), {})[seed] = [one_score]
    return Learned(scores_by_model)


def theirs_failed(result: DatasetNumbers) -> set[Model]:
    """Return the models of which the published one has not learned."""
    size = next((size for size in result.sizes if size.split == "test"), None)
    classes = () if size is None else size.published or size.classes
    models = {
        (number.cell.dataset, number.cell.encoder, number.cell.score) for number in result.numbers
    }
    return {model for model in models if score_of(_theirs(model), classes).learned is False}


def name_of(model: Model) -> str:
    """Return what the notes call a model."""
    return " ".join(model)


def _theirs(model: Model) -> dict[str, float]:
    return {name: published().get((*model, name, "Overall"), NONE).value for name in JUDGED}


def class_counts(result: DatasetNumbers) -> Sequence[int]:
    """Return how many texts of the test split have each label; nothing where that is not known."""
    return next((size.classes for size in result.sizes if size.split == "test"), ())
