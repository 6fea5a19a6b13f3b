"""Attention classifiers as an objective of `fit`."""

from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint as read_again

from heedmap.data.batches import Batch, Encoded
from heedmap.models.classifier import Classifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.settings.training import TrainSettings
from heedmap.training.checkpoint import made_with
from heedmap.training.evaluation import evaluate
from heedmap.training.objective import Objective, Progress, rank
from heedmap.training.row_adam import LARGE, RowAdam

GRADIENT_POSITIONS = 32_768  # whose graphs are held at a time

Loss = Callable[[Tensor, Tensor, Batch], Tensor]  # outputs (B, O), weights (B, K, T), batch


class AttentionObjective(Objective):
    """Train an attention classifier by the protocol of Jain & Wallace.

    Adam with amsgrad; L2 of `weight_decay` on everything but the attention; the loss summed over a batch, with
    the positive class of one output weighted by n_neg / n_pos; the epoch selected by ROC AUC on the dev split
    (accuracy for more than two classes, or by `settings.selection`; the first of ties). Unlike in the released
    code, the first epoch may be the best (`settings.first_epoch`). Training ends early only at a score of 1.
    For pairs of texts, as there, the loss is the mean over a batch, nothing is weighted, and L2 is on
    everything.

    `loss` replaces the paper's loss.
    """

    model: Classifier

    def __init__(
        self,
        model: Classifier,
        train: Encoded,
        dev: Encoded,
        settings: TrainSettings,
        loss: Loss | None = None,
    ) -> None:
        super().__init__(
            model,
            optimizer_of(model, settings),
            train.lengths,
            train.batch,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=settings.seed,
            made_with=made_with(settings),
        )
        self.dev = dev
        self.first_epoch = settings.first_epoch or settings.epochs == 1
        self.selection = settings.selection
        self.batch_loss = loss or cross_entropy(model, train)

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the paper's loss, or the one passed in."""
        batch = batch.to(self.model.device)
        return self.batch_loss(*outputs_of(model, batch), batch)

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        return evaluate(self.model, self.dev)

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare epochs; by the released code's rule any later epoch beats the first one."""
        best = progress.best_epoch
        if best is None or (best == 0 and not self.first_epoch):
            return True
        return self._rank(scores) > self._rank(progress.scores[best])

    def is_finished(self, progress: Progress) -> bool:
        """Return whether no later epoch can be better."""
        best = progress.best_epoch
        return (
            best is not None
            and (self.first_epoch or best > 0)
            and self._rank(progress.scores[best]) >= 1
        )

    def on_end(self) -> None:
        """Leave the embeddings as they were before the training, but for their weights."""
        assert isinstance(self.optimizer, RowAdam)
        self.optimizer.release()

    def _rank(self, scores: dict[str, float]) -> float:
        return scores["accuracy"] if self.selection == "accuracy" else rank(scores)


def outputs_of(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, O) and weights (B, K, T) of `model(batch)`.

    Above GRADIENT_POSITIONS positions, the model reads some texts at a time, and again for their gradient:
    this bounds the memory, and changes the gradient only by the order of a sum.
    """
    rows = max(1, GRADIENT_POSITIONS // batch.ids.shape[1])
    if rows >= len(batch.rows):
        return cast("tuple[Tensor, Tensor]", model(batch))
    outputs, weights = [], []
    for start in range(0, len(batch.rows), rows):
        part = batch.taken(slice(start, start + rows))
        output, attention = read_again(model, part, use_reentrant=False, preserve_rng_state=False)
        outputs.append(output)
        weights.append(functional.pad(attention, (0, batch.mask.shape[1] - attention.shape[2])))
    return torch.cat(outputs), torch.cat(weights)


def optimizer_of(model: Classifier, settings: TrainSettings) -> torch.optim.Optimizer:
    """Return the paper's optimiser; its steps are the same numbers for large embeddings, read by rows."""
    groups = _parameter_groups(model, settings.weight_decay)
    large = [table for table in model.embeddings() if table.weight.numel() >= LARGE]
    return RowAdam(groups, large, lr=settings.learning_rate, amsgrad=settings.amsgrad)


def cross_entropy(model: Classifier, train: Encoded) -> Loss:
    """Return the paper's loss, for single texts or pairs."""
    pairs = isinstance(model, PairClassifier)
    weight = _positive_weight(train.labels) if len(model.classes) == 2 and not pairs else None

    def summed(outputs: Tensor, attention: Tensor, batch: Batch) -> Tensor:
        loss = batch_loss(outputs, batch.labels, weight)
        return loss / len(batch.labels) if pairs else loss

    return summed


def batch_loss(
    outputs: Float[Tensor, "B O"], labels: Tensor, positive_weight: float | None
) -> Float[Tensor, ""]:
    """Return the cross entropy summed over the batch, the positives of two classes weighted."""
    labels = labels.to(outputs.device)
    if outputs.shape[1] > 1:
        return functional.cross_entropy(outputs, labels, reduction="sum")
    weight = (
        None if positive_weight is None else torch.tensor(positive_weight, device=outputs.device)
    )
    return functional.binary_cross_entropy_with_logits(
        outputs.squeeze(1), labels.to(outputs.dtype), pos_weight=weight, reduction="sum"
    )


def _positive_weight(labels: NDArray[np.int64]) -> float:
    return float(len(labels) / labels.sum() - 1)


def _parameter_groups(model: Classifier, weight_decay: float) -> list[dict[str, object]]:
    attention = model.attention_parameters()
    excluded = {id(p) for p in attention}
    decayed = [p for p in model.parameters() if id(p) not in excluded]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": attention, "weight_decay": 0.0},
    ]
