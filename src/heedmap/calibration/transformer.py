"""Planted transformers: a BERT of two layers whose every weight is set by hand.

The first layer passes a word's values on (head 0: the mean over all positions, to all rows or to that of a
mark; head 1: from the position before), the second is on trial: the [CLS] row attends to the positions by
their scores and collects their values. Every number x is written as (x, −x), so that its mean is 0, and the
norms' ε is so large that they change nothing: the model is linear in the weights, as the plants of `by_hand`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.by_hand import median_margin, scores_by_values, values_of
from heedmap.calibration.plants import Design, Plant, scores_of, spaced
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings import TransformerSettings

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")  # as many as SPECIAL, so that words keep their numbers
POSITIONS = 96
NORM = 1e8  # ε of the norms
STRONG = 60.0  # a score above all others
SMALL = 1e-3  # the pooler's tanh is linear there

# Where the first layer takes what is spread: to every state, to the state of a mark, which the second layer may
# attend to, or past the second layer's attention to the read-out.
Gathered = Literal["everywhere", "[CLS]", "[SEP]", "read-out"]


def planted_transformer(
    plant: Plant, design: Design, split: Split, vocabulary: Vocabulary
) -> TransformerClassifier:
    """Make the model; its values are scaled so that the median margin on the texts is the plant's."""
    values = values_of(plant, design, split, vocabulary)
    scores = (
        scores_by_values(values)
        if design.kind == "proportional"
        else scores_of(plant, design, vocabulary)
    )
    classifier = transformer_by_hand(plant, split, vocabulary, values, scores)
    set_margin(classifier, split, plant.margin)
    return classifier


def set_margin(classifier: TransformerClassifier, split: Split, margin: float) -> None:
    """Scale the logits, so that the median margin on some texts is this; no answer changes."""
    rows = range(min(64, len(split)))
    batch = classifier.batch(spaced(split.take(rows)).tokens, rows)
    scale = margin / median_margin(classifier.logits(batch))
    output = classifier.model.get_submodule("classifier")
    with torch.no_grad():
        output.get_parameter("weight").mul_(scale)
        output.get_parameter("bias").mul_(scale)


def transformer_by_hand(
    plant: Plant,
    split: Split,
    vocabulary: Vocabulary,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    gathered: Gathered = "everywhere",
    mark_scores: Mapping[str, float] | None = None,
) -> TransformerClassifier:
    """Make the model of its words' values by their ways (V, 3, C), and scores as `Drawing` has them.

    Args:
        plant: has the number of classes.
        split: texts of the usual length: the first layer takes a mean where plants of our own take a sum.
        vocabulary: the words.
        values: by `heedmap.calibration.by_hand.WAYS`.
        scores: of words, to themselves and to the next one.
        gathered: where values go that are spread.
        mark_scores: of "[CLS]" and "[SEP]" in the second layer; without one a mark has no weight.
    """
    from transformers import BertConfig, BertForSequenceClassification

    count = plant.classes
    values = values.copy()
    values[:, 1] *= np.mean([len(text) + 2 for text in split.tokens])
    layout = _Layout(count)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=2 * layout.size,
        num_hidden_layers=2,
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
        for name, parameter in model.named_parameters():
            parameter.fill_(NORM**0.5 if name.endswith("LayerNorm.weight") else 0.0)
        _set_embeddings(model.bert.embeddings, layout, values, scores, mark_scores or {})
        passing, reading = (layer.attention for layer in model.bert.encoder.layer)
        _set_passing(passing, layout, gathered)
        _set_reading(reading, layout)
        model.bert.pooler.dense.weight[:count, layout.collected] = SMALL * torch.eye(count)
        model.classifier.weight[:, :count] = torch.eye(count) / SMALL
    model.eval().requires_grad_(False)
    settings = TransformerSettings(source="planted")
    classes = [str(c) for c in range(count)]
    return TransformerClassifier(model, tokenizer_of(vocabulary), settings, classes)


class _Layout:
    """Where the numbers of a position are: values, what [CLS] collects, scores, constants, the place."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.own, self.spread, self.moved, self.collected = (
            slice(i * count, (i + 1) * count) for i in range(4)
        )
        self.score, self.following, self.one = range(4 * count, 4 * count + 3)
        self.is_mark = {"[CLS]": 4 * count + 3, "[SEP]": 4 * count + 4}
        self.place = slice(4 * count + 5, 4 * count + 5 + POSITIONS)
        self.size = 4 * count + 5 + POSITIONS


def _set_embeddings(
    embeddings: Any,
    layout: _Layout,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    mark_scores: Mapping[str, float],
) -> None:
    words = torch.zeros(len(values), layout.size)
    for k, columns in enumerate((layout.own, layout.spread, layout.moved)):
        words[:, columns] = torch.from_numpy(values[:, k]).float()
    words[:, [layout.score, layout.following]] = torch.from_numpy(scores).float()
    words[: len(SPECIAL)] = 0.0
    for mark, number in layout.is_mark.items():
        words[MARKS.index(mark), [layout.score, number]] = torch.tensor(
            [mark_scores.get(mark, -STRONG), 1.0]
        )
    words[:, layout.one] = 1.0
    embeddings.word_embeddings.weight.copy_(_mirrored(words))
    places = torch.zeros(POSITIONS, layout.size)
    places[:, layout.place] = torch.eye(POSITIONS)
    embeddings.position_embeddings.weight.copy_(_mirrored(places))


def _set_passing(attention: Any, layout: _Layout, gathered: Gathered) -> None:
    """Head 0: the mean of what is spread. Head 1: what the position before moves."""
    size, count = layout.size, layout.count
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    if gathered != "everywhere":
        # All rows but one attend to [CLS], which has nothing to spread.
        gatherer = layout.is_mark["[SEP]" if gathered == "[SEP]" else "[CLS]"]
        query[0, [layout.one, gatherer]] = torch.tensor([1.0, -1.0]) * STRONG * size**0.5
        key[0, layout.is_mark["[CLS]"]] = 1.0
    # From place p to place p − 1. Products are divided by the root of the head's size.
    query[size : size + POSITIONS, layout.place] = torch.eye(POSITIONS) * STRONG * size**0.5
    previous = slice(layout.place.start, layout.place.stop - 1)
    key[size + 1 : size + POSITIONS, previous] = torch.eye(POSITIONS - 1)
    value[:count, layout.spread] = torch.eye(count)
    value[size : size + count, layout.moved] = torch.eye(count)
    value[size + count, layout.following] = 1.0
    out = torch.zeros(size, 2 * size)
    out[layout.collected if gathered == "read-out" else layout.own, :count] = torch.eye(count)
    out[layout.own, size : size + count] = torch.eye(count)
    out[layout.score, size + count] = 1.0
    _set(attention, query, key, value, out)


def _set_reading(attention: Any, layout: _Layout) -> None:
    """Both heads attend by score; the first collects what has come to each position."""
    size, count = layout.size, layout.count
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    query[[0, size], layout.one] = size**0.5
    key[[0, size], layout.score] = 1.0
    value[:count, layout.own] = torch.eye(count)
    out = torch.zeros(size, 2 * size)
    out[layout.collected, :count] = torch.eye(count)
    _set(attention, query, key, value, out)


def _set(attention: Any, query: Tensor, key: Tensor, value: Tensor, out: Tensor) -> None:
    """Set the maps of an attention, which read the first half of a state: (x, −x) holds x twice."""
    for name, weight in (("query", query), ("key", key), ("value", value)):
        getattr(attention.self, name).weight[:, : weight.shape[1]] = weight
    attention.output.dense.weight.copy_(_mirrored(out.T).T)


def _mirrored(rows: Tensor) -> Tensor:
    return torch.cat([rows, -rows], dim=-1)


def tokenizer_of(vocabulary: Vocabulary) -> Any:
    """Return a tokenizer of whole words with the vocabulary's numbers."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: i for i, word in enumerate([*MARKS, *vocabulary.words])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=POSITIONS,
    )
