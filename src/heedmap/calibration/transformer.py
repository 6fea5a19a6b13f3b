"""Planted transformers: a BERT of two layers whose every weight is set by hand.

The first layer passes a word's values on (head 0: the mean over all positions, to all rows or to that of a
mark; head 1: from the position before), the second is on trial: the [CLS] row attends to the positions by
their scores and collects their values (`hand_layers`). The model is linear in the weights, as the plants of
`by_hand`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from heedmap.calibration.bert_by_hand import MARKS, bert_by_hand
from heedmap.calibration.by_hand import median_margin, scores_by_values, values_of
from heedmap.calibration.hand_layers import (
    STRONG,
    Gathered,
    Layout,
    only_the_last,
    passing_maps,
    reading_maps,
)
from heedmap.calibration.plants import Design, Plant, scores_of, spaced
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings

POSITIONS = 96


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
    set_margin(classifier, spaced(split), plant.margin)
    return classifier


def set_margin(classifier: TransformerClassifier, split: Split, margin: float) -> None:
    """Scale the logits, so that the median margin on some texts is this; no answer changes.

    The texts are as the classifier reads them.
    """
    rows = range(min(64, len(split)))
    batch = classifier.batch(split.take(rows).texts, rows)
    scale = margin / median_margin(classifier.logits(batch))
    output = classifier.model.get_submodule("classifier")
    if isinstance(output, PreTrainedModel):  # a model of patches is one around transformers' own
        output = output.get_submodule("classifier")
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
    values = values.copy()
    values[:, 1] *= np.mean([len(text) + 2 for text in split.tokens])
    layout = Layout(plant.classes, POSITIONS)
    model = bert_by_hand(
        layout,
        _words(layout, values, scores, mark_scores or {}),
        [
            passing_maps(layout, gathered, only_the_last(POSITIONS)),
            reading_maps(layout, {layout.one: layout.score}),
        ],
    )
    settings = TransformerSettings(source="planted")
    classes = [str(c) for c in range(plant.classes)]
    return TransformerClassifier(model, tokenizer_of(vocabulary), settings, classes)


def _words(
    layout: Layout,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    mark_scores: Mapping[str, float],
) -> Float[Tensor, "V D"]:
    """Return the numbers of the state that each word begins with."""
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
    return words


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
