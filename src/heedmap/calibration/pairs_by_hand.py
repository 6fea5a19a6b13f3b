"""Planted transformers of pairs: a BERT of three layers whose every weight is set by hand (`hand_layers`).

It reads [CLS] text [SEP] query [SEP]. The first layer tells every position which kind of cue the query asks
for, and passes a word's values to the next word; the second takes the evidence of the asked cues to every
state, where it is spread; the third is on trial: the [CLS] row attends to the words of the text by their
scores, given the kind, and collects their values.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.bert_by_hand import MARKS, bert_by_hand
from heedmap.calibration.hand_layers import (
    STRONG,
    AttentionMaps,
    States,
    only_the_last,
    reading_maps,
)
from heedmap.calibration.planted_pairs import KINDS, asking, is_of_query, kind_of
from heedmap.calibration.plants import Plant, is_cue
from heedmap.data.vocabulary import SPECIAL, Vocabulary

POSITIONS = 56


class _Layout(States):
    """The states of pairs.

    Of scores, and of whether a cue spreads its evidence, there is one number for the first kind, and what is
    to add to it for the second.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, 3 * KINDS + 5, POSITIONS)
        self.score, self.following, self.spreads = (
            slice(4 * count + i * KINDS, 4 * count + (i + 1) * KINDS) for i in range(3)
        )
        self.one, self.is_cls, self.asks, self.asks_second, self.second = range(
            self.spreads.stop, self.place.start
        )


def pair_transformer_by_hand(
    plant: Plant,
    vocabulary: Vocabulary,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    over_both: bool = False,
) -> Any:
    """Make the model of transformers.

    Args:
        plant: has the number of classes.
        vocabulary: the words of texts and queries.
        values: of words by their ways (see `heedmap.calibration.by_hand.WAYS`), (V, 3, C).
        scores: of words by the kind that is asked for, to themselves and to the next one, (kinds, V, 2).
        over_both: whether words of the query are attended to by their scores, too, and not left out.
    """
    layout = _Layout(plant.classes)
    # Both heads of the last layer attend by the scores of the asked kind.
    of_first, of_second = range(layout.score.start, layout.score.stop)
    return bert_by_hand(
        layout,
        _words(plant, layout, vocabulary, values, scores, over_both),
        [
            _asking_maps(layout),
            _spreading_maps(layout),
            reading_maps(layout, {layout.one: of_first, layout.second: of_second}),
        ],
    )


def _words(
    plant: Plant,
    layout: _Layout,
    vocabulary: Vocabulary,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    over_both: bool,
) -> Float[Tensor, "V D"]:
    numbers = torch.zeros(len(vocabulary), layout.size)
    for way, columns in enumerate((layout.own, layout.spread, layout.moved)):
        numbers[:, columns] = torch.from_numpy(values[:, way]).float()
    for k, columns in enumerate((layout.score, layout.following)):
        numbers[:, columns] = _first_and_more(scores[:, :, k])
    spreads = np.zeros((KINDS, len(vocabulary)))
    for number, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word) and values[number, 1].any():
            spreads[kind_of(plant, word), number] = 1.0
        if is_of_query(word) and not over_both:
            numbers[number, layout.score] = torch.tensor([-STRONG, 0.0])
        if word in (asking(0), asking(1)):
            numbers[number, layout.asks] = 1.0
            numbers[number, layout.asks_second] = float(word == asking(1))
    numbers[:, layout.spreads] = _first_and_more(spreads)
    numbers[: len(SPECIAL)] = 0.0
    numbers[: len(SPECIAL), layout.score] = torch.tensor([-STRONG, 0.0])
    numbers[MARKS.index("[CLS]"), layout.is_cls] = 1.0
    numbers[:, layout.one] = 1.0
    return numbers


def _first_and_more(by_kind: NDArray[np.float64]) -> Float[Tensor, "V K"]:
    """Return the numbers of the first kind, and what is to add to them for the second: from (kinds, V)."""
    of_first, of_second = torch.from_numpy(by_kind).float()
    return torch.stack([of_first, of_second - of_first], dim=1)


def _asking_maps(layout: _Layout) -> AttentionMaps:
    """Head 0: which kind the query asks for. Head 1: what the word before moves."""
    size, count, root = layout.size, layout.count, layout.size**0.5
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    out = torch.zeros(size, 2 * size)
    query[0, layout.one], key[0, layout.asks] = STRONG * root, 1.0
    value[0, layout.asks_second], out[layout.second, 0] = 1.0, 1.0
    query[size : size + POSITIONS, layout.place] = torch.eye(POSITIONS) * STRONG * root
    key[size : size + POSITIONS, layout.place] = only_the_last(POSITIONS)
    value[size : size + count, layout.moved] = torch.eye(count)
    out[layout.own, size : size + count] = torch.eye(count)
    scores = slice(size + count, size + count + KINDS)
    value[scores, layout.following] = torch.eye(KINDS)
    out[layout.score, scores] = torch.eye(KINDS)
    return AttentionMaps(query, key, value, out)


def _spreading_maps(layout: _Layout) -> AttentionMaps:
    """Head 0: the mean of what the asked cues spread, or else that of [CLS], which is nothing."""
    size, count, root = layout.size, layout.count, layout.size**0.5
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    out = torch.zeros(size, 2 * size)
    query[[0, 1], [layout.one, layout.second]] = STRONG * root
    key[:KINDS, layout.spreads] = torch.eye(KINDS)
    key[0, layout.is_cls] = 0.5
    value[:count, layout.spread] = torch.eye(count)
    out[layout.own, :count] = torch.eye(count)
    return AttentionMaps(query, key, value, out)
