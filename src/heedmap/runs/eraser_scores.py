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
    found: dict[str, list[tuple[float, float | None, float | None]]] = {}
    unmarked = 0
    for number, one in enumerate(predictions):
        marked = documents[one.key].marked
        if not marked.any() or marked.all():
            unmarked += 1
        else:
            if one.soft is not None:
                auprc = average_precision(marked, one.soft)
                found.setdefault("AUPRC", []).append(
                    (auprc, average_precision_by_chance(marked), 1.0)
                )
            if one.hard is not None:
                count = int(one.hard.sum())
                found.setdefault("token F1", []).append(
                    (
                        token_f1(marked, one.hard),
                        token_f1_by_chance(marked, count),
                        token_f1_at_best(marked, count),
                    )
                )
                rng = np.random.default_rng([number, *b"eraser"])
                random = [chosen(rng.random(len(marked)), count) for _ in range(SHUFFLES)]
                chance = float(np.mean([iou_f1(marked, mask) for mask in random]))
                found.setdefault("IOU F1", []).append(
                    (iou_f1(marked, one.hard), chance, iou_f1_at_most(marked, count))
                )
        for place, name in enumerate(LOSSES):
            if one.losses is not None:
                found.setdefault(f"{name} of the rationale", []).append(
                    (one.losses[place], None, None)
                )
            if one.bins is not None:
                aopc = float(one.bins[place].mean())
                found.setdefault(f"{name} (AOPC)", []).append((aopc, None, None))
    scores = [Score(name, *_means(values), len(values)) for name, values in found.items()]
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
