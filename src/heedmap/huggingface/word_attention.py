"""Read the attention of every head over a text, and make a model like it whose layers are untrained."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from heedmap.errors import InputError
from heedmap.huggingface.embedding import look_up
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.loading import frozen
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import WeightRecorder
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.words import between_words


@dataclass(frozen=True)
class TextAttention:
    """The weights of all layers over one text, special tokens included, and each position's word or −1."""

    weights: Float[Tensor, "layers H N N"]
    ids: Int[Tensor, " N"]
    words: Int[Tensor, " N"]

    def of_words(self, size: int) -> Float[Tensor, "K T T"]:
        """Return the weights of words over words, layer by layer (see `between_words`)."""
        return between_words(self.weights.flatten(0, 1), self.words, size)


@torch.no_grad()
def read_attention(model: TransformerClassifier, pieces: Sequence[str]) -> TextAttention:
    """Read a text, given as its words with the white space before them.

    Raises:
        InputError: the layers are not of one text's own positions, or differ in their number of heads.
    """
    batch = model.batch([pieces], [0])
    recorder = WeightRecorder()
    with model.adapter.visiting(recorder):
        model.model(**model.inputs(batch))
    layers = [recorder.taken[call][0].float() for call in model.layout.calls]
    size = batch.ids.shape[1]
    if model.model.config.is_encoder_decoder or {w.shape for w in layers} != {
        (model.heads, size, size)
    }:
        raise InputError(
            f"{model.settings.source}: expected layers of attention of a text over itself, with as many heads "
            "each; choose an encoder or a decoder alone"
        )
    return TextAttention(torch.stack(layers), batch.ids[0], batch.words[0])


@torch.no_grad()
def word_vectors(model: TransformerClassifier, pieces: Sequence[str]) -> Float[Tensor, "T E"]:
    """Return what the model looks up for each word of a text: the mean over its sub-words."""
    batch = model.batch([pieces], [0])
    looked_up = look_up(model.model, batch.ids)[0].float()
    members: Bool[Tensor, "T N"] = batch.words[0] == torch.arange(
        len(pieces), device=batch.words.device
    ).unsqueeze(1)
    return (members.float() @ looked_up) / members.sum(1, keepdim=True).clamp(min=1)


def unreadable(model: TransformerClassifier, pieces: Sequence[str], longest: int) -> str | None:
    """Return why the words of a text have no attention of their own; None if they have."""
    if model.lengths([pieces])[0] > longest:
        return f"more than {longest} positions"
    if len(next(iter(model.own_words([pieces])))) < len(pieces):
        return "words that share a sub-word"
    batch: SubwordBatch = model.batch([pieces], [0])
    if len(set(batch.words[0].tolist()) - {-1}) < len(pieces):
        return "a word that the tokenizer drops"
    return None


def with_random_layers(model: TransformerClassifier, seed: int) -> TransformerClassifier:
    """Return a model of the same architecture with its embeddings, and all other weights drawn anew.

    This is the baseline of Clark et al. 2019 (section 5): what attention says of words and positions alone.
    """
    source = model.model
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        untrained: PreTrainedModel = AutoModelForSequenceClassification.from_config(  # type: ignore[no-untyped-call]
            deepcopy(source.config)
        )
    nn.Module.to(untrained, source.device, source.dtype)
    tables = {
        name: module for name, module in source.named_modules() if isinstance(module, nn.Embedding)
    }
    for name, module in untrained.named_modules():
        if name in tables and isinstance(module, nn.Embedding):
            module.load_state_dict(tables[name].state_dict())
    return TransformerClassifier(frozen(untrained), model.tokenizer, model.settings, model.classes)
