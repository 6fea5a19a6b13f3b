"""Learning to translate, as an objective of `fit`, and the accuracy of the next sub-word."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import sorted_batches
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.kit.translators import NO_TARGET, Encoded, Translations
from heedmap.training.objective import Objective

AT_ONCE = 4096  # source positions that are read together
MAX_NORM = 5.0


class TranslationObjective(Objective):
    """Translate: the mean cross entropy of a batch's target sub-words, by Adam, gradients clipped.

    The epoch with the best accuracy on dev is kept: of the next sub-word, given the right ones before it.
    """

    model: EncoderDecoder
    max_norm = MAX_NORM

    def __init__(
        self,
        model: EncoderDecoder,
        train: Encoded,
        dev: Encoded,
        *,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
        made_with: dict[str, Any],
    ) -> None:
        super().__init__(
            model,
            torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True),
            train.lengths,
            train.batch,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            made_with=made_with,
        )
        self.dev = dev

    def loss(self, model: nn.Module, batch: Translations) -> Float[Tensor, ""]:
        """Return the mean cross entropy of all target sub-words."""
        batch = on_device_of(self.model, batch)
        return functional.cross_entropy(
            self.logits(model, batch).flatten(0, 1), batch.targets.flatten(), ignore_index=NO_TARGET
        )

    def logits(self, model: nn.Module, batch: Translations) -> Float[Tensor, "B T V"]:
        """Return the logits of every target position, given the right sub-words before it."""
        return next_logits(model, batch)

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        was_training = self.model.training
        dev_accuracy = accuracy(self.model.eval(), self.dev)
        self.model.train(was_training)
        return {"accuracy": dev_accuracy}


def on_device_of(model: EncoderDecoder, batch: Translations) -> Translations:
    """Return a batch where the model is."""
    device = model.output.weight.device
    return Translations(*(part.to(device) for part in batch))


def next_logits(model: nn.Module, batch: Translations) -> Float[Tensor, "B T V"]:
    """Return the logits of every target position, as the model reads."""
    logits: Tensor = model(batch.source, batch.inputs, batch.lengths)[0]
    return logits


@torch.no_grad()
def accuracy(
    model: EncoderDecoder,
    pairs: Encoded,
    logits_of: Callable[[EncoderDecoder, Translations], Float[Tensor, "B T V"]] = next_logits,
) -> float:
    """Return the share of target sub-words, ends included, that are predicted, given those before them."""
    right = count = 0
    for rows in sorted_batches(pairs.lengths, AT_ONCE):
        batch = on_device_of(model, pairs.batch(rows))
        real = batch.targets != NO_TARGET
        right += int(((logits_of(model, batch).argmax(-1) == batch.targets) & real).sum())
        count += int(real.sum())
    return right / count
