"""Models whose attention is learned, uniform or permuted: what Vashishth et al. change at training and at test.

learned: the model's own weights; uniform: the same for every token; permuted: the model's own in a random order
of the tokens, drawn anew for every row whenever it is read, so that a training sees another at each step.
"""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedmap.counterfactual.permute import shuffled
from heedmap.data.batches import Batch, Encoded, sorted_batches
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.kit.translating import AT_ONCE, TranslationObjective, accuracy
from heedmap.papers.kit.translators import Encoded as EncodedPairs
from heedmap.papers.kit.translators import Translations
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.fit import fit
from heedmap.training.objective import Objective


def changed(
    weights: Float[Tensor, "*batch T"],
    real: Bool[Tensor, "*#batch T"],
    attention: str,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "*batch T"]:
    """Return the weights as `attention` says; padding, on the right, has none. None: torch's own generator."""
    if attention == "uniform":
        even = real.to(weights.dtype) / real.sum(-1, keepdim=True).clamp(min=1)
        return even.expand_as(weights)
    return shuffled(weights, generator, real) if attention == "permuted" else weights


def classified(
    model: AttentionClassifier,
    batch: Batch,
    attention: str,
    generator: torch.Generator | None = None,
) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B 1 T"]]:
    """Return a classifier's outputs and the changed weights that they are made with."""
    states, query = model.encode(model.embed(batch), batch), model.encode_query(batch)
    own = model.attend(states, batch, query)
    weights = changed(own, batch.mask.unsqueeze(1), attention, generator)
    projected = model.projection(torch.matmul(weights, states))
    return model.decode(projected, batch, query).squeeze(1), weights


def translated(
    model: EncoderDecoder,
    batch: Translations,
    attention: str,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "B T V"]:
    """Return a translator's logits of every target position, each with weights changed on their own."""
    states, final_state = model.encode(model.source(batch.source), batch.lengths)
    decoded, _ = model.decode(batch.inputs, final_state)
    own = model.attend(decoded, states, batch.lengths)
    real = model.real(batch.lengths, states.shape[1])[:, None, None]
    return model.emit(decoded, changed(own, real, attention, generator) @ states.unsqueeze(1))


class Classification(AttentionObjective):
    """Train a classifier under an attention; the best epoch is that of the accuracy on dev under the same."""

    model: AttentionClassifier

    def __init__(
        self,
        model: AttentionClassifier,
        train: Encoded,
        dev: Encoded,
        settings: TrainSettings,
        attention: str,
    ) -> None:
        super().__init__(model, train, dev, settings)
        self.attention = attention
        self.made_with["attention"] = attention

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss under the attention."""
        batch = batch.to(self.model.device)
        return self.batch_loss(*classified(self.model, batch, self.attention), batch)

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        return {"accuracy": text_accuracy(self.model, self.dev, self.attention, self.seed)}


class Translating(TranslationObjective):
    """Train a translator under an attention; the best epoch is that of the accuracy on dev under the same."""

    def __init__(
        self,
        model: EncoderDecoder,
        train: EncodedPairs,
        dev: EncodedPairs,
        attention: str,
        **how: Any,
    ) -> None:
        super().__init__(model, train, dev, **how)
        self.attention = attention

    def logits(self, model: nn.Module, batch: Translations) -> Float[Tensor, "B T V"]:
        """Return the logits of every target position under the attention."""
        return translated(self.model, batch, self.attention)

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        return {"accuracy": sub_word_accuracy(self.model, self.dev, self.attention, self.seed)}


def trained(objective: Objective, checkpoint: Path) -> nn.Module:
    """Train a model, and return it as it is used."""
    fit(objective, checkpoint)
    return objective.model.cpu().eval().requires_grad_(False)


@torch.no_grad()
def text_accuracy(model: AttentionClassifier, split: Encoded, attention: str, seed: int) -> float:
    """Return the share of texts that are answered correctly under an attention."""
    was_training, right = model.training, 0
    model.eval()
    generator = torch.Generator().manual_seed(
        seed
    )  # one for all: the same split gives the same orders
    for rows in sorted_batches(split.lengths, AT_ONCE):
        batch = split.batch(rows).to(model.device)
        outputs, _ = classified(model, batch, attention, generator)
        right += int((model.as_logits(outputs).argmax(-1) == batch.labels).sum())
    model.train(was_training)
    return right / len(split.labels)


def sub_word_accuracy(
    model: EncoderDecoder, pairs: EncodedPairs, attention: str, seed: int
) -> float:
    """Return the share of target sub-words that are predicted under an attention, given those before them."""
    was_training = model.training
    generator = torch.Generator().manual_seed(seed)  # as in `text_accuracy`
    share = accuracy(
        model.eval(), pairs, lambda model, batch: translated(model, batch, attention, generator)
    )
    model.train(was_training)
    return share
