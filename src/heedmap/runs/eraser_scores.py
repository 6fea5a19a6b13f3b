"""Score a file of predictions with rationales against what people marked, by ERASER's measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.data.documents import Document
from heedmap.data.eraser_predictions import LOSSES, Prediction
from heedmap.importance.rationale_agreement import (
    average_precision,
    average_precision_by_chance,
    chosen,
    iou_f1,
    iou_f1_at_most,
    token_f1,
    token_f1_at_best,
    token_f1_by_chance,
)

SHUFFLES = 5
UNMARKED = "people marked all words or none"


@dataclass(frozen=True)
class Score:
    """The mean of a measure over `n` texts, and what chance and the best rationale reach on them, if known."""

    name: str
    value: float
    chance: float | None
    best: float | None
    n: int


def score(
    predictions: Sequence[Prediction], documents: Mapping[str, Document]
) -> tuple[list[Score], dict[str, int]]:
    """Return a score per measure that the predictions allow, and the texts left out of those of agreement.

    A text's `best` IOU F1 is a bound. Chance is that of as many random words, of IOU F1 the mean of five draws.
    """
    values_of: dict[str, list[tuple[float, float | None, float | None]]] = {}
    unmarked = 0
    for index, prediction in enumerate(predictions):
        marked = documents[prediction.key].marked
        if not marked.any() or marked.all():
            unmarked += 1
        else:
            if prediction.soft is not None:
                auprc = average_precision(marked, prediction.soft)
                values_of.setdefault("AUPRC", []).append(
                    (auprc, average_precision_by_chance(marked), 1.0)
                )
            if prediction.hard is not None:
                count = int(prediction.hard.sum())
                values_of.setdefault("token F1", []).append(
                    (
                        token_f1(marked, prediction.hard),
                        token_f1_by_chance(marked, count),
                        token_f1_at_best(marked, count),
                    )
                )
                rng = np.random.default_rng([index, *b"eraser"])
                random = [chosen(rng.random(len(marked)), count) for _ in range(SHUFFLES)]
                chance = float(np.mean([iou_f1(marked, mask) for mask in random]))
                values_of.setdefault("IOU F1", []).append(
                    (iou_f1(marked, prediction.hard), chance, iou_f1_at_most(marked, count))
                )
        for place, name in enumerate(LOSSES):
            if prediction.losses is not None:
                values_of.setdefault(f"{name} of the rationale", []).append(
                    (prediction.losses[place], None, None)
                )
            if prediction.bins is not None:
                aopc = float(prediction.bins[place].mean())
                values_of.setdefault(f"{name} (AOPC)", []).append((aopc, None, None))
    scores = [Score(name, *_means(values), len(values)) for name, values in values_of.items()]
    return scores, {UNMARKED: unmarked} if unmarked else {}


def _means(
    values: list[tuple[float, float | None, float | None]],
) -> tuple[float, float | None, float | None]:
    value, chance, best = zip(*values, strict=True)
    return (
        float(np.mean(value)),
        None if chance[0] is None else float(np.mean(chance)),
        None if best[0] is None else float(np.mean(best)),
    )
