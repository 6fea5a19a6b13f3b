"""Make transformers of planted pairs, by hand (`pairs_by_hand`) or trained, and check them as other pairs are.

A trained one is the small BERT of `trained_transformer`, whose [CLS] row of the last layer is taught the
plant's weights of the text's words, given the kind of cue that the query asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.calibration.bert_by_hand import MARKS
from heedmap.calibration.by_hand import WAYS, Way, cue_effects
from heedmap.calibration.construction import Check, checked
from heedmap.calibration.families import PlantedModel
from heedmap.calibration.pairs_by_hand import pair_transformer_by_hand
from heedmap.calibration.planted_pairs import (
    KINDS,
    Attention,
    Drawings,
    asked_in,
    asking,
    is_of_query,
    kind_of,
    write_pairs,
)
from heedmap.calibration.plants import Plant, cues_of, is_cue, spaced
from heedmap.calibration.trained import DEV, with_some_lacking
from heedmap.calibration.trained_transformer import Lesson, Lower, teach, untrained_bert
from heedmap.calibration.transformer import set_margin, tokenizer_of
from heedmap.data.corpus import Corpus, Split
from heedmap.data.texts import Pair, Text
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings
from heedmap.training.objective import seeded

BY_HAND, BERT = "pair transformer by hand", "pair bert"
TRAIN = 2000  # pairs to learn from
SEPARATOR = MARKS.index("[SEP]")


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the plants of a family have in common.

    Attributes:
        attention: where the weights are.
        checks: what must hold on held-out pairs.
        asks: whether the query asks, and `share`: see `write_pairs`.
        way: how the evidence of cues that draw no attention reaches the answer, if the model is set by hand.
        lower: what the first layer's attention is taught, if it is trained.
        over_both: whether the map is over the words of both texts, and not of the first given the query.
    """

    attention: Attention
    checks: Sequence[Check]
    asks: bool = True
    share: float = 0.5
    way: Way = "spread"
    lower: Lower = "free"
    over_both: bool = False

    def write(self, plant: Plant, count: int, part: str) -> Split:
        """Write the pairs of a part."""
        return write_pairs(self.asks, self.share, plant, count, part)

    def held_out(self, plant: Plant) -> tuple[Split, Split]:
        """Return the pairs to check a model on, and those of the audit."""
        return self.write(plant, DEV, "dev"), self.write(plant, plant.texts, "test")


class PlantedPairReader(TransformerClassifier):
    """A transformer that reads planted pairs, with the map over the first text or over both."""

    def __init__(self, model: Any, plant: Plant, vocabulary: Vocabulary, over_both: bool) -> None:
        classes = [str(c) for c in range(plant.classes)]
        settings = TransformerSettings(source="planted")
        super().__init__(model, tokenizer_of(vocabulary), settings, classes)
        self.over_both = over_both

    def shown(self, split: Split) -> Split:
        """Return pairs with the spaces before their words, and the query's words behind the text's."""
        split = spaced(split)
        if not self.over_both:
            return split
        pairs = zip(split.tokens, split.queries or [], strict=True)
        tokens = [[*text, *query] for text, query in pairs]
        lengths = np.array([len(text) for text in split.tokens], dtype=np.int64)
        rationale = [
            np.append(marks, np.zeros(len(words) - len(marks), dtype=bool))
            for words, marks in zip(tokens, split.rationale or [], strict=True)
        ]
        return replace(split, tokens=tokens, rationale=rationale, queries=None, seconds=lengths)


def make_by_hand(family: Pairs, plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    """Make a plant by hand."""
    dev, test = family.held_out(plant)
    vocabulary = vocabulary_of(plant, dev, test)
    scores = family.attention.scores(plant, vocabulary)
    values = values_for(plant, family, vocabulary, scores, dev)
    bert = pair_transformer_by_hand(plant, vocabulary, values, scores, family.over_both)
    return finished(family, plant, bert, vocabulary, dev, test)


def train(family: Pairs, plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    """Train a plant."""
    training = family.write(plant, TRAIN, "train")
    dev, test = family.held_out(plant)
    vocabulary = vocabulary_of(plant, training, dev, test)
    drawings = Drawings(family.attention.scores(plant, vocabulary), vocabulary)
    with seeded(plant.seed):
        bert = untrained_bert(plant, vocabulary)
    outputs = [layer.attention.output.dense for layer in bert.bert.encoder.layer]
    lesson = Lesson(Scored(drawings, vocabulary, family.over_both), family.lower)
    training = with_some_lacking(plant, training)
    teach(ReadsPairs(bert), outputs, plant, partial(encode_pair, vocabulary), training, dev, lesson)
    return finished(family, plant, bert, vocabulary, dev, test)


def vocabulary_of(plant: Plant, *splits: Split) -> Vocabulary:
    """Return the words of some pairs, all cues and all words that ask."""
    words = {
        w for split in splits for text in (*split.tokens, *(split.queries or ())) for w in text
    }
    return Vocabulary(sorted(words | {asking(kind) for kind in range(KINDS)} | {*cues_of(plant)}))


def finished(
    family: Pairs, plant: Plant, bert: Any, vocabulary: Vocabulary, dev: Split, test: Split
) -> PlantedModel:
    """Put a model on trial, give it the plant's margin, and check it."""
    model = PlantedPairReader(bert, plant, vocabulary, family.over_both)
    audited = model.shown(test)
    set_margin(model, audited, plant.margin)
    return checked(family.checks, plant, model, dev, audited)


# By hand.


def values_for(
    plant: Plant,
    family: Pairs,
    vocabulary: Vocabulary,
    scores: NDArray[np.float64],
    split: Split,
) -> NDArray[np.float64]:
    """Return the values by which words have their effects, (V, 3, C).

    A cue that draws the attention where it is asked for is read from its own state, or from that of the next
    word if this one has the attention. What is not spread is divided by the usual weight of the state that it
    is read from.
    """
    effects, attention = cue_effects(plant, vocabulary), family.attention
    usual = usual_weights(plant, attention, vocabulary, scores, split)
    values = np.zeros((len(vocabulary), len(WAYS), plant.classes))
    for number, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_of_query(word) and not family.over_both:
            continue
        way_of_word: Way = "own"
        if is_cue(word):
            draws = attention.draws(plant, word, kind_of(plant, word))
            way_of_word = family.way if not draws else "moved" if attention.to_next else "own"
        # The asked cues' mean is spread, and there are as many as decide.
        divisor = 1 / plant.deciding if way_of_word == "spread" else usual[number]
        values[number, WAYS.index(way_of_word)] = effects[number] / divisor
    return values


def usual_weights(
    plant: Plant,
    attention: Attention,
    vocabulary: Vocabulary,
    scores: NDArray[np.float64],
    split: Split,
) -> NDArray[np.float64]:
    """Return the mean weight of each word, of cues where they are asked for: (V,); 1 of one that is nowhere.

    If the words behind cues have the attention, it is a cue's next word that counts.
    """
    drawings, queries = Drawings(scores, vocabulary), split.queries or []
    total, seen = np.zeros(len(vocabulary)), np.zeros(len(vocabulary))
    for words, query in zip(split.tokens, queries, strict=True):
        ids = vocabulary.encode(words)[1:-1]
        kind = asked_in(query)
        query_ids = torch.from_numpy(vocabulary.encode(query))[None]
        weights = drawings.of_words(torch.from_numpy(ids)[None], query_ids).softmax(-1)[0].numpy()
        behind = np.append(weights[1:], 0.0)
        for number, word, weight, next_weight in zip(ids, words, weights, behind, strict=True):
            if not is_cue(word) or kind_of(plant, word) == kind:
                total[number] += next_weight if is_cue(word) and attention.to_next else weight
                seen[number] += 1
    return np.where(total > 0, total / np.maximum(seen, 1), 1.0)


# Trained.


def encode_pair(vocabulary: Vocabulary, pair: Text) -> NDArray[np.int64]:
    """Return the numbers of a pair's positions: [CLS] text [SEP] query [SEP]."""
    assert isinstance(pair, Pair)
    return np.concatenate([vocabulary.encode(pair.tokens), vocabulary.encode(pair.query)[1:]])


class ReadsPairs(nn.Module):
    """A model of pairs that is given the numbers of positions, and finds the side of each."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Int[Tensor, "B N"], **options: Any) -> Any:
        """Return the logits (B, C), and what the options ask for."""
        is_separator = input_ids == SEPARATOR
        types = (is_separator.cumsum(1) - is_separator.long()).clamp(max=1)
        return self.model(input_ids=input_ids, token_type_ids=types, **options)


class Scored(nn.Module):
    """Scores of the positions of pairs by their numbers: −∞ on words of the query, if no map is over them."""

    is_left_out: Tensor

    def __init__(self, drawings: Drawings, vocabulary: Vocabulary, over_both: bool) -> None:
        super().__init__()
        self.drawings = drawings
        left_out = [is_of_query(word) and not over_both for word in vocabulary.words]
        self.register_buffer("is_left_out", torch.tensor([False] * len(SPECIAL) + left_out))

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """Return the scores."""
        return self.drawings.of_words(ids, ids).masked_fill(self.is_left_out[ids], -torch.inf)
