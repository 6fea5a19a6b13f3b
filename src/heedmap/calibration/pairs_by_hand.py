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

from heedmap.calibration.hand_layers import (
    NORM,
    STRONG,
    AttentionMaps,
    clear,
    mirrored,
    only_the_last,
)
from heedmap.calibration.planted_pairs import KINDS, asking, is_of_query, kind_of
from heedmap.calibration.plants import Plant, is_cue
from heedmap.calibration.transformer import MARKS, SMALL, set_attention
from heedmap.data.vocabulary import SPECIAL, Vocabulary

LAYERS = 3
POSITIONS = 56


class _Layout:
    """Where the numbers of a position are.

    Of scores, and of whether a cue spreads its evidence, there is one number for the first kind, and what is
    to add to it for the second.
    """

    def __init__(self, count: int) -> None:
        self.own, self.spread, self.moved, self.collected = (
            slice(i * count, (i + 1) * count) for i in range(4)
        )
        self.score, self.following, self.spreads = (
            slice(4 * count + i * KINDS, 4 * count + (i + 1) * KINDS) for i in range(3)
        )
        self.one, self.is_cls, self.asks, self.asks_second, self.second = range(
            4 * count + 3 * KINDS, 4 * count + 3 * KINDS + 5
        )
        self.place = slice(self.second + 1, self.second + 1 + POSITIONS)
        self.size = self.place.stop


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
    from transformers import BertConfig, BertForSequenceClassification

    count = plant.classes
    layout = _Layout(count)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=2 * layout.size,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=1,
        max_position_embeddings=POSITIONS,
        layer_norm_eps=NORM,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
        id2label={c: str(c) for c in range(count)},
    )
    model: Any = BertForSequenceClassification(config)
    with torch.no_grad():
        clear(model)
        words = mirrored(_words(plant, layout, vocabulary, values, scores, over_both))
        model.bert.embeddings.word_embeddings.weight.copy_(words)
        places = torch.zeros(POSITIONS, layout.size)
        places[:, layout.place] = torch.eye(POSITIONS)
        model.bert.embeddings.position_embeddings.weight.copy_(mirrored(places))
        layers = [layer.attention for layer in model.bert.encoder.layer]
        maps = (_asking_maps, _spreading_maps, _reading_maps)
        for attention, make in zip(layers, maps, strict=True):
            set_attention(attention, make(layout, count))
        model.bert.pooler.dense.weight[:count, layout.collected] = SMALL * torch.eye(count)
        model.classifier.weight[:, :count] = torch.eye(count) / SMALL
    return model.eval().requires_grad_(False)


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


def _asking_maps(layout: _Layout, count: int) -> AttentionMaps:
    """Head 0: which kind the query asks for. Head 1: what the word before moves."""
    size, root = layout.size, layout.size**0.5
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


def _spreading_maps(layout: _Layout, count: int) -> AttentionMaps:
    """Head 0: the mean of what the asked cues spread, or else that of [CLS], which is nothing."""
    size, root = layout.size, layout.size**0.5
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    out = torch.zeros(size, 2 * size)
    query[[0, 1], [layout.one, layout.second]] = STRONG * root
    key[:KINDS, layout.spreads] = torch.eye(KINDS)
    key[0, layout.is_cls] = 0.5
    value[:count, layout.spread] = torch.eye(count)
    out[layout.own, :count] = torch.eye(count)
    return AttentionMaps(query, key, value, out)


def _reading_maps(layout: _Layout, count: int) -> AttentionMaps:
    """Both heads attend by the scores of the asked kind; the first collects what has come."""
    size, root = layout.size, layout.size**0.5
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    out = torch.zeros(size, 2 * size)
    for head in (0, size):
        query[[head, head + 1], [layout.one, layout.second]] = root
        key[head : head + KINDS, layout.score] = torch.eye(KINDS)
    value[:count, layout.own] = torch.eye(count)
    out[layout.collected, :count] = torch.eye(count)
    return AttentionMaps(query, key, value, out)
