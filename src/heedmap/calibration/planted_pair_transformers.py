"""Make transformers of planted pairs, by hand (`pairs_by_hand`) or trained, and check them as other pairs are.

A trained one is the small BERT of `trained_transformer`, whose [CLS] row of the last layer is taught the
plant's weights of the text's words, given the kind of cue that the query asks for.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.calibration.by_hand import WAYS, Way, cue_effects
from heedmap.calibration.construction import Check, as_read, checked
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
from heedmap.calibration.plants import Plant, cues_of, is_cue
from heedmap.calibration.trained import DEV
from heedmap.calibration.trained_transformer import Lesson, Lower, teach, untrained_bert
from heedmap.calibration.transformer import MARKS, set_margin, tokenizer_of
from heedmap.data.corpus import Corpus, Split
from heedmap.data.texts import Pair, Text
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings import TransformerSettings
from heedmap.training.objective import seeded

BY_HAND, BERT = "pair transformer by hand", "pair bert"
TRAIN = 2000  # pairs to learn from
SEPARATOR = MARKS.index("[SEP]")

Model = Callable[[Plant, Vocabulary, Split], TransformerClassifier]


def make_by_hand(
    attention: Attention,
    way: Way,
    asks: bool,
    share: float,
    checks: Sequence[Check],
    plant: Plant,
    corpus: Corpus | None = None,
) -> PlantedModel:
    """Make a plant by hand.

    Args:
        attention: where the weights are.
        way: how the evidence of cues that draw no attention reaches the answer.
        asks: see `write_pairs`.
        share: see `write_pairs`.
        checks: what must hold on held-out pairs.
        plant: the settings.
        corpus: of none.
    """
    dev, test = (write_pairs(asks, share, plant, n, p) for n, p in parts(plant))
    vocabulary = vocabulary_of(plant, dev, test)
    scores = attention.scores(plant, vocabulary)
    values = values_for(plant, attention, way, vocabulary, scores, dev)
    model = pair_transformer_by_hand(plant, vocabulary, values, scores)
    return finished(checks, plant, model, dev, test)


def train(
    attention: Attention,
    lower: Lower,
    asks: bool,
    share: float,
    checks: Sequence[Check],
    plant: Plant,
    corpus: Corpus | None = None,
) -> PlantedModel:
    """Train a plant. `lower` is what the first layer's attention is taught; the rest is as `make_by_hand`."""
    training = write_pairs(asks, share, plant, TRAIN, "train")
    dev, test = (write_pairs(asks, share, plant, n, p) for n, p in parts(plant))
    vocabulary = vocabulary_of(plant, training, dev, test)
    drawings = Drawings(attention.scores(plant, vocabulary), vocabulary)
    with seeded(plant.seed):
        bert = untrained_bert(plant, vocabulary)
    outputs = [layer.attention.output.dense for layer in bert.bert.encoder.layer]
    lesson = Lesson(OnText(drawings, vocabulary), lower)
    teach(ReadsPairs(bert), outputs, plant, partial(encode_pair, vocabulary), training, dev, lesson)
    classes = [str(c) for c in range(plant.classes)]
    settings = TransformerSettings(source="planted")
    model = TransformerClassifier(bert, tokenizer_of(vocabulary), settings, classes)
    return finished(checks, plant, model, dev, test)


def parts(plant: Plant) -> tuple[tuple[int, str], ...]:
    """Return how many pairs are to be checked on, and how many are of the audit, with their names."""
    return (DEV, "dev"), (plant.texts, "test")


def vocabulary_of(plant: Plant, *splits: Split) -> Vocabulary:
    """Return the words of some pairs, all cues and all words that ask."""
    words = {
        w for split in splits for text in (*split.tokens, *(split.queries or ())) for w in text
    }
    return Vocabulary(sorted(words | {asking(kind) for kind in range(KINDS)} | {*cues_of(plant)}))


def finished(
    checks: Sequence[Check], plant: Plant, model: TransformerClassifier, dev: Split, test: Split
) -> PlantedModel:
    """Give a model the plant's margin, and check it."""
    shown = as_read(model, test)
    set_margin(model, shown, plant.margin)
    return checked(checks, plant, model, dev, shown)


# By hand.


def values_for(
    plant: Plant,
    attention: Attention,
    way: Way,
    vocabulary: Vocabulary,
    scores: NDArray[np.float64],
    split: Split,
) -> NDArray[np.float64]:
    """Return the values by which words have their effects, (V, 3, C).

    A cue that draws the attention where it is asked for is read from its own state, or from that of the next
    word if this one has the attention. What is not spread is divided by the usual weight of the state that it
    is read from.
    """
    effects = cue_effects(plant, vocabulary)
    usual = usual_weights(plant, attention, vocabulary, scores, split)
    values = np.zeros((len(vocabulary), len(WAYS), plant.classes))
    for number, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_of_query(word):
            continue
        way_of_word: Way = "own"
        if is_cue(word):
            draws = attention.draws(plant, word, kind_of(plant, word))
            way_of_word = way if not draws else "moved" if attention.to_next else "own"
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
        asked = asked_in(query)
        query_ids = torch.from_numpy(vocabulary.encode(query))[None]
        weights = drawings.of_words(torch.from_numpy(ids)[None], query_ids).softmax(-1)[0].numpy()
        behind = np.append(weights[1:], 0.0)
        for number, word, weight, next_weight in zip(ids, words, weights, behind, strict=True):
            if not is_cue(word) or kind_of(plant, word) == asked:
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


class OnText(nn.Module):
    """Scores of the positions of pairs by their numbers: −∞ on words of the query."""

    is_of_query: Tensor

    def __init__(self, drawings: Drawings, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.drawings = drawings
        marked = [False] * len(SPECIAL) + [is_of_query(word) for word in vocabulary.words]
        self.register_buffer("is_of_query", torch.tensor(marked))

    def forward(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """Return the scores."""
        return self.drawings.of_words(ids, ids).masked_fill(self.is_of_query[ids], -torch.inf)
