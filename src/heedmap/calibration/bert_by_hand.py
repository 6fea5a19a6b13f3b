"""A BERT that is set by hand: of the numbers of its words and the maps of its layers (`hand_layers`)."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.calibration.hand_layers import (
    AttentionMaps,
    States,
    clear,
    configuration,
    mirrored,
    set_maps,
)

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")  # as many as SPECIAL, so that words keep their numbers
SMALL = 1e-3  # the pooler's tanh is linear there


def bert_by_hand(
    states: States, words: Float[Tensor, "V D"], layers: Sequence[AttentionMaps]
) -> Any:
    """Make the model of transformers, whose logits are what [CLS] collects.

    Args:
        states: has the numbers of classes and positions.
        words: the numbers of a state that each word begins with.
        layers: their maps, from the first on.
    """
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        **configuration(states, len(layers)),
        vocab_size=len(words),
        max_position_embeddings=states.positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    model: Any = BertForSequenceClassification(config)
    with torch.no_grad():
        clear(model)
        model.bert.embeddings.word_embeddings.weight.copy_(mirrored(words))
        places = torch.zeros(states.positions, states.size)
        places[:, states.place] = torch.eye(states.positions)
        model.bert.embeddings.position_embeddings.weight.copy_(mirrored(places))
        for layer, maps in zip(model.bert.encoder.layer, layers, strict=True):
            attention = layer.attention.self
            out = layer.attention.output.dense
            set_maps(maps, attention.query, attention.key, attention.value, out)
        read_out = torch.eye(states.count)
        model.bert.pooler.dense.weight[: states.count, states.collected] = SMALL * read_out
        model.classifier.weight[:, : states.count] = read_out / SMALL
    return model.eval().requires_grad_(False)
