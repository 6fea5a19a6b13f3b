"""Read a classifier's hidden states: those that enter the first layer, and those that leave each."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.errors import InputError
from heedmap.huggingface.embedding import embedded_as
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.transformer_classifier import TransformerClassifier


def hidden_states(
    model: TransformerClassifier, batch: SubwordBatch
) -> list[Float[Tensor, "B N D"]]:
    """Return the states that enter the first layer, then those that leave each: one more than layers.

    As transformers returns them: a decoder's last states are those after its final norm.

    Raises:
        InputError: an encoder-decoder, or a model whose layers do not keep one state per position.
    """
    return _states(model, model.inputs(batch), batch.ids.shape)


def states_from(
    model: TransformerClassifier, batch: SubwordBatch, embedded: Float[Tensor, "B N E"]
) -> list[Float[Tensor, "B N D"]]:
    """Return the same of one text, read with other embeddings in place of its own: any number of them.

    Raises:
        InputError: as `hidden_states`.
    """
    count = len(embedded)
    ids = batch.ids.expand(count, -1)
    inputs = {name: part.expand(count, -1) for name, part in model.inputs(batch).items()}
    with embedded_as(model.model, ids, embedded):
        return _states(model, inputs, ids.shape)


def _states(
    model: TransformerClassifier, inputs: dict[str, Tensor], shape: torch.Size
) -> list[Tensor]:
    kind = type(model.model).__name__
    if model.model.config.is_encoder_decoder:
        raise InputError(
            f"expected a model of one stack of layers, got the encoder-decoder {kind}; choose another model"
        )
    states = list(model.model(**inputs, output_hidden_states=True).hidden_states or ())
    if len(states) != len(model.calls) + 1 or any(state.shape[:2] != shape for state in states):
        raise InputError(
            f"expected one hidden state per position from each of the {len(model.calls)} layers of {kind}; "
            "its layers return others; choose another model"
        )
    return states
