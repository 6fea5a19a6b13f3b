"""Train a calibrated translator: two losses, each for its own parameters, in every step.

    mask networks:   −L(a_p) + λ ‖1 − m‖₂ / S      worsen the translation with as little masking as possible
    all else:         L(fused)                      label-smoothed cross entropy of the calibrated pass

‖·‖ is one norm over layers, heads and all real pairs of a batch's target and source positions, S the longest
source. L is a mean over target sub-words: whether theirs is a mean or a sum could not be read, and with it how
much λ weighs. As in the released code both backward passes are in every step, and Adam is one. Here they are
one backward pass of the sum, in which each loss sees the other's parameters as constants, and both passes
read the same encoder states.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import sorted_batches
from heedmap.models.transformer_translator import CrossCall, Hook
from heedmap.papers.kit.translators import NO_TARGET, Encoded, Translations
from heedmap.papers.lu.calibration import CalibratedTranslator, perturbed
from heedmap.papers.lu.settings import LuSettings
from heedmap.training.objective import Objective

AT_ONCE = 4096  # source positions that are read together
BETAS = (0.9, 0.98)


class CalibrationObjective(Objective):
    """Translate, and learn the masks. The epoch with the best dev accuracy of the next sub-word is kept.

    The learning rate rises over `warm_up` steps and falls with the inverse square root of the steps.
    """

    model: CalibratedTranslator

    def __init__(
        self,
        model: CalibratedTranslator,
        train: Encoded,
        dev: Encoded,
        settings: LuSettings,
        *,
        seed: int,
        made_with: dict[str, Any],
    ) -> None:
        batch_size, epochs = schedule(train, settings)
        optimizer = torch.optim.Adam(
            model.parameters(), lr=settings.learning_rate, betas=BETAS, fused=True
        )
        super().__init__(
            model, optimizer, train.lengths, train.batch,
            epochs=epochs, batch_size=batch_size, seed=seed, made_with=made_with,
        )  # fmt: skip
        self.dev, self.settings = dev, settings

    def on_step(self, step: int, total: int) -> None:
        """Set the learning rate, and how much of the training is done, for the annealed fusion."""
        warm_up, number = self.settings.warm_up, step + 1
        rate = self.settings.learning_rate * min(number / warm_up, (warm_up / number) ** 0.5)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.model.calibration is not None:
            self.model.calibration.progress = step / total

    def loss(self, model: nn.Module, batch: Translations) -> Float[Tensor, ""]:
        """Return the sum of both losses; that of the masks only where there are any."""
        device = self.model.translator.embedding.weight.device
        source, lengths, inputs, targets = (part.to(device) for part in batch)
        smoothing = self.settings.label_smoothing
        if self.model.calibration is None:
            return smoothed(model(source, inputs, lengths)[0], targets, smoothing)
        recorded = MaskRecorder(self.model, targets != NO_TARGET)
        losses = [
            smoothed(logits, targets, smoothing)
            for logits in model(source, inputs, lengths, recorded)
        ]
        penalty = recorded.norm() / source.shape[1]
        return losses[0] - losses[1] + self.settings.penalty * penalty

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        was_training = self.model.training
        accuracy, cross_entropy = next_symbols(self.model.eval(), self.dev, self.model.hook)
        self.model.train(was_training)
        return {"accuracy": accuracy, "cross_entropy": cross_entropy}


class MaskRecorder:
    """A hook that gives the perturbed weights and keeps 1 − m of all real pairs of positions."""

    def __init__(self, model: CalibratedTranslator, targets: Bool[Tensor, "B T"]) -> None:
        assert model.calibration is not None
        self.calibration, self.targets = model.calibration, targets
        self.masked: list[Tensor] = []

    def __call__(self, call: CrossCall) -> Float[Tensor, "B H T S"]:
        """Return the perturbed weights of a layer."""
        masks = self.calibration.masks(call, learning=True)
        pairs = self.targets[:, None, :, None] & call.real[:, None, None]
        self.masked.append((1 - masks)[pairs.expand_as(masks)])
        return perturbed(call.weights, masks, call.real)

    def norm(self) -> Float[Tensor, ""]:
        """Return ‖1 − m‖₂ over all layers."""
        norm: Tensor = torch.linalg.vector_norm(torch.cat(self.masked))
        return norm


def schedule(train: Encoded, settings: LuSettings) -> tuple[int, int]:
    """Return the sentences in a batch of about so many target sub-words, and the epochs of so many updates."""
    mean = sum(map(len, train.target)) / len(train.target)
    batch_size = max(1, min(len(train.target), round(settings.batch_tokens / mean)))
    steps = -(-len(train.target) // batch_size)
    return batch_size, max(1, round(settings.updates / steps))


def smoothed(
    logits: Float[Tensor, "B T V"], targets: Int[Tensor, "B T"], smoothing: float
) -> Float[Tensor, ""]:
    """Return the label-smoothed cross entropy, a mean over target sub-words."""
    return functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, label_smoothing=smoothing
    )


@torch.no_grad()
def next_symbols(model: CalibratedTranslator, pairs: Encoded, hook: Hook) -> tuple[float, float]:
    """Return the accuracy and the cross entropy of the next sub-word, given the right ones before it."""
    right, total, count = 0, 0.0, 0
    device = model.translator.embedding.weight.device
    for rows in sorted_batches(pairs.lengths, AT_ONCE):
        source, lengths, inputs, targets = (part.to(device) for part in pairs.batch(rows))
        logits = model.translator(source, inputs, lengths, hook)
        right += int((logits.argmax(-1) == targets).sum())
        real = int((targets != NO_TARGET).sum())
        total += float(smoothed(logits, targets, 0.0)) * real
        count += real
    return right / count, total / count
