"""Replace the most attended words by words of the other class: does the prediction follow?

Unlike in the released code, which may replace padding and marks of a text of fewer words than five, only a
text's own words are replaced. As a control, the same words are put in random places.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import scatter_rows
from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.experiments.context import AuditContext
from heedmap.measures import change_in_prediction
from heedmap.models.trace import Model
from heedmap.settings.audit import AuditSettings
from heedmap.training.log_odds import LogOdds

WORDS = 5


def substitution(
    model: Model, split: Split, odds: LogOdds, *, count: int = WORDS, seed: int = 0
) -> list[dict[str, Any]]:
    """Put the `count` words with the most extreme log-odds of the class that is not predicted into each text.

    Returns two rows, for the places of the `count` highest weights and for as many random ones: the mean
    total variation distance from the prediction, and the share of texts whose predicted class changes.
    `all_replaced` counts the texts of at most `count` words, where both rows replace the same places; a
    shorter text gets the first substitutes.

    Raises:
        InputError: not two classes, or no word that speaks for one of them.
    """
    if len(model.classes) != 2:
        raise InputError(f"substitution needs two classes, got {len(model.classes)}")
    substitutes = [odds.extreme(1, count), odds.extreme(0, count)]  # by predicted class
    originals = _read(model, split)
    predicted = originals.logits.argmax(1).tolist()
    rng = AuditContext(model, split, AuditSettings(seed=seed), {}).generator("substitution")
    attended = [np.argsort(-heat, kind="stable") for heat in originals.heatmap]
    places = {
        f"{count} most attended replaced": attended,
        f"{count} at random replaced": [rng.permutation(len(heat)) for heat in originals.heatmap],
    }
    rows = []
    for name, orders in places.items():
        changed = [
            _put(text, order, substitutes[predicted_class])
            for text, order, predicted_class in zip(split.tokens, orders, predicted, strict=True)
        ]
        logits_after = _read(model, replace(split, tokens=changed)).logits
        flipped = logits_after.argmax(1) != originals.logits.argmax(1)
        rows.append(
            {
                "variant": name,
                "tvd": float(change_in_prediction(originals.logits, logits_after).mean()),
                "flipped": float(flipped.double().mean()),
                "all_replaced": sum(
                    len(text) <= len(substitutes[predicted_class])
                    for text, predicted_class in zip(split.tokens, predicted, strict=True)
                ),
            }
        )
    return rows


class _Read(NamedTuple):
    logits: Float[Tensor, "B C"]
    heatmap: list[NDArray[np.float32]]


def _read(model: Model, split: Split) -> _Read:
    rows, logits, heat = [], [], {}
    for trace in AuditContext(model, split, AuditSettings(), {}).traces:
        rows.append(trace.rows.cpu())
        logits.append(trace.logits.cpu())
        for row, mask, values in zip(trace.rows.tolist(), trace.mask, trace.heatmap, strict=True):
            heat[row] = values[mask].numpy(force=True)
    return _Read(scatter_rows(rows, logits), [heat[row] for row in range(len(split))])


def _put(text: Sequence[str], order: NDArray[np.int64], words: Sequence[str]) -> list[str]:
    """Put the first word in the first place of the order, and so on, as far as both go."""
    changed = list(text)
    for place, word in zip(order.tolist(), words, strict=False):
        changed[place] = word
    return changed
