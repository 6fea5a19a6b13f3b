"""Did a model learn anything? It is compared with one that gives every text the same answer."""

import math
from collections.abc import Mapping, Sequence

from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import NONE, published

NORMAL = 1.96  # of a two-sided 95 % interval

Model = tuple[str, str, str]
"""Data set, encoder and score: the models of all seeds."""


def has_learned(scores: Mapping[str, float], classes: Sequence[int]) -> bool | None:
    """Return whether a model is better than the majority class on test texts with these labels.

    Better: its 95 % interval over the texts does not reach what the same answer to every text gets. Of two
    classes that is a ROC AUC of 1/2, with the null variance of Mann and Whitney's U, (n + 1) / 12 n₀n₁:
    accuracy would not do, since the paper's code weights the rare class (its LSTM on ADR has .86 where the
    majority has .88, at an AUC of .90). Of more, it is the accuracy m of the most frequent label, with the
    null variance m (1 − m) / n (Wilson's interval).

    Args:
        scores: `roc_auc` or `accuracy`, NaN or missing where not known.
        classes: how many texts have each label.

    Returns:
        None where neither score, or no label, is known.
    """
    n = sum(classes)
    auc, accuracy = (scores.get(name, math.nan) for name in ("roc_auc", "accuracy"))
    if math.isfinite(auc) and len(classes) == 2 and min(classes) > 0:
        return auc - 0.5 > NORMAL * math.sqrt((n + 1) / (12 * classes[0] * classes[1]))
    if math.isfinite(accuracy) and n:
        majority = max(classes) / n
        return accuracy - majority > NORMAL * math.sqrt(majority * (1 - majority) / n)
    return None


def not_learned(result: DatasetNumbers) -> dict[Model, str]:
    """Return the models that cannot be compared, and why: one of our seeds, or theirs, did not learn."""
    size = next((size for size in result.sizes if size.split == "test"), None)
    if size is None:
        return {}
    seeds: dict[Model, dict[int, dict[str, float]]] = {}
    for one in result.numbers:
        model = (one.cell.dataset, one.cell.encoder, one.cell.score)
        if one.predicted == "Overall":
            seeds.setdefault(model, {}).setdefault(one.cell.seed, {})[one.quantity] = one.value
    found = {}
    for model, scores in seeds.items():
        theirs = {
            name: published().get((*model, name, "Overall"), NONE).value
            for name in ("roc_auc", "accuracy")
        }
        if any(has_learned(one, size.classes) is False for one in scores.values()):
            found[model] = "not learned"
        elif has_learned(theirs, size.published or size.classes) is False:
            found[model] = "theirs not learned"
    return found
