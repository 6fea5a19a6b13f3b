"""Train a calibrated translator: two losses, each for its own parameters, in every step.

    mask networks:   (−L(a_p) + λ ‖1 − m‖₂ / S) / n    worsen the translation with as little masking as possible
    all else:         L(fused) / n                      label-smoothed cross entropy of the calibrated pass

L is a sum over the n target sub-words of a batch, so that λ weighs 1 / n of what it would beside a mean. ‖·‖ is
one norm over the masks of the calibrated pass, of all its layers, heads, and pairs of target and source
positions; S is the longest source. Padded pairs are included, and 1 − m is 1 at a padded source.

As in the released code each loss is differentiated by its own parameters alone in every step, and one Adam
takes both gradients.
"""

import re
from typing import Any

import torch
from jaxtyping import Float, Int
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
MASK_NETWORKS = re.compile(r"calibration\.(queries|keys)\.")


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
        """Return the sum of both losses, of which each has a gradient by its own parameters alone."""
        device = self.model.translator.embedding.weight.device
        source, lengths, inputs, targets = (part.to(device) for part in batch)
        smoothing, calibration = self.settings.label_smoothing, self.model.calibration
        count = (targets != NO_TARGET).sum()
        if calibration is None:
            (logits,) = model(source, inputs, lengths)
            return smoothed(logits, targets, smoothing) / count
        masks: list[Tensor] = []

        def fuse(call: CrossCall) -> Float[Tensor, "B H T S"]:
            masks.append(calibration.masks(call))
            return calibration.fused(call, masks[-1])

        def perturb(call: CrossCall) -> Float[Tensor, "B H T S"]:
            return perturbed(call.weights, calibration.masks(call), call.real)

        # Copies of the mask networks' parameters keep the gradient of the translation away from them.
        parameters = {n: p for n, p in model.named_parameters() if MASK_NETWORKS.search(n)}
        copies = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        passes = torch.func.functional_call(
            model, copies, (source, inputs, lengths, (fuse, perturb))
        )
        translating, worsening = (smoothed(logits, targets, smoothing) / count for logits in passes)
        penalty = torch.linalg.vector_norm(1 - torch.stack(masks)) / source.shape[1] / count
        masking = self.settings.penalty * penalty - worsening
        gradients = torch.autograd.grad(masking, list(copies.values()), retain_graph=True)
        total: Tensor = translating + masking.detach()
        for parameter, gradient in zip(parameters.values(), gradients, strict=True):
            total = total + ((parameter - parameter.detach()) * gradient).sum()
        return total

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        was_training = self.model.training
        accuracy, cross_entropy = next_symbols(self.model.eval(), self.dev, self.model.hook)
        self.model.train(was_training)
        return {"accuracy": accuracy, "cross_entropy": cross_entropy}


def schedule(train: Encoded, settings: LuSettings) -> tuple[int, int]:
    """Return the sentences in a batch of about so many target sub-words, and the epochs of so many updates."""
    mean = sum(map(len, train.target)) / len(train.target)
    batch_size = max(1, min(len(train.target), round(settings.batch_tokens / mean)))
    steps = -(-len(train.target) // batch_size)
    return batch_size, max(1, round(settings.updates / steps))


def smoothed(
    logits: Float[Tensor, "B T V"], targets: Int[Tensor, "B T"], smoothing: float
) -> Float[Tensor, ""]:
    """Return the label-smoothed cross entropy, a sum over target sub-words."""
    return functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET, label_smoothing=smoothing,
        reduction="sum",
    )  # fmt: skip


@torch.no_grad()
def next_symbols(model: CalibratedTranslator, pairs: Encoded, hook: Hook) -> tuple[float, float]:
    """Return the accuracy and the cross entropy of the next sub-word, given the right ones before it."""
    right, total, count = 0, 0.0, 0
    device = model.translator.embedding.weight.device
    for rows in sorted_batches(pairs.lengths, AT_ONCE):
        source, lengths, inputs, targets = (part.to(device) for part in pairs.batch(rows))
        logits = model.translator(source, inputs, lengths, hook)
        right += int((logits.argmax(-1) == targets).sum())
        total += float(smoothed(logits, targets, 0.0))
        count += int((targets != NO_TARGET).sum())
    return right / count, total / count
