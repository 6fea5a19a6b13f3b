"""The training loop of Jain & Wallace's classifiers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint as read_again
from torch.utils.data import DataLoader, Dataset

from heedmap.data.batches import Batch, Encoded, bucketed_batches, scatter_rows, sorted_batches
from heedmap.errors import InputError
from heedmap.models.classifier import AttentionClassifier
from heedmap.settings import TrainSettings
from heedmap.training.checkpoint import Progress, load_checkpoint, save_checkpoint

EVALUATION_TOKENS = 16_384
GRADIENT_POSITIONS = 32_768  # that keep at a time what their gradient needs

Report = Callable[[int, int, str], None]
Objective = Callable[[Tensor, Tensor, Batch], Tensor]  # outputs (B, O), weights (B, K, T), batch
MakeBatch = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Trained:
    """What the training says of itself: dev scores by epoch, and the epoch whose weights were kept.

    `vectors` says how many of the vocabulary's words had a pretrained vector, None without a file of them;
    `left_out` what the training did not see of the texts, in the words of `Corpus.left_out`; `threads` with
    how many it ran, several where it went on with others: another number is another order of its sums.
    """

    scores: list[dict[str, float]]
    best_epoch: int
    vectors: int | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    threads: list[int] = field(default_factory=list)


def train_classifier(
    model: AttentionClassifier,
    train: Encoded,
    dev: Encoded,
    settings: TrainSettings,
    checkpoint: Path | None = None,
    report: Report = lambda done, total, text: None,
    objective: Objective | None = None,
) -> Trained:
    """Train in place and leave the weights of the best dev epoch in the model.

    The paper's protocol: Adam with amsgrad, L2 of `weight_decay` on everything but the attention, batches
    of texts of similar length in random order, the loss summed over a batch and the positive class
    weighted by n_neg / n_pos, selection by ROC AUC on the dev split (accuracy for more than two classes;
    the first of equals). Unlike in the released code, the first epoch may be the best one
    (`settings.first_epoch`). It ends early only where the score is 1. For pairs of texts, as there: the
    loss is the mean over a batch, nothing is weighted, and L2 is on everything.

    `objective` takes the place of that loss.

    With `checkpoint`, every epoch is saved there and a later call goes on after the last one; the result
    is the same as of an uninterrupted training.
    """
    from accelerate import Accelerator

    accelerator = Accelerator()
    optimizer = optimizer_of(model, settings)
    model.to(accelerator.device)
    progress = load_checkpoint(checkpoint, model, optimizer, settings) if checkpoint else Progress()
    model, optimizer = accelerator.prepare(model, optimizer)
    bare: AttentionClassifier = accelerator.unwrap_model(model)
    objective = objective or cross_entropy(bare, train)
    steps = -(-len(train) // settings.batch_size)
    total = steps * settings.epochs
    for epoch in range(progress.epochs_done, settings.epochs):
        if _perfect(progress, settings.first_epoch):
            break  # no later epoch can be better
        rng = np.random.default_rng([settings.seed, epoch])
        order = bucketed_batches(train.lengths, settings.batch_size, rng)
        batches = accelerator.prepare(loader(train.batch, order))
        model.train()
        for step, batch in enumerate(batches):
            optimizer.zero_grad()
            here = batch.to(bare.device)
            outputs, attention = outputs_of(model, here)
            accelerator.backward(objective(outputs, attention, here))
            optimizer.step()
            report(epoch * steps + step + 1, total, f"epoch {epoch + 1} of {settings.epochs}")
        # Raises if the training diverged.
        note(progress, evaluate(bare, dev), bare, settings.first_epoch or settings.epochs == 1)
        if checkpoint and accelerator.is_main_process:
            save_checkpoint(checkpoint, progress, bare, optimizer, settings)
    assert progress.best_epoch is not None
    bare.load_state_dict(progress.best)
    bare.eval().requires_grad_(False)
    return Trained(progress.scores, progress.best_epoch, threads=sorted(set(progress.threads)))


def outputs_of(model: torch.nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Outputs (B, O) and weights (B, K, T), as `model(batch)` gives them.

    Of more than GRADIENT_POSITIONS positions, some texts at a time, which are read again for their gradient:
    the memory is bounded, and the gradient the same but for the order of a sum.
    """
    rows = max(1, GRADIENT_POSITIONS // batch.ids.shape[1])
    if rows >= len(batch.rows):
        return cast("tuple[Tensor, Tensor]", model(batch))
    outputs, weights = [], []
    for start in range(0, len(batch.rows), rows):
        part = batch.taken(slice(start, start + rows))
        made, attention = read_again(model, part, use_reentrant=False, preserve_rng_state=False)
        outputs.append(made)
        weights.append(functional.pad(attention, (0, batch.mask.shape[1] - attention.shape[2])))
    return torch.cat(outputs), torch.cat(weights)


def optimizer_of(model: AttentionClassifier, settings: TrainSettings) -> torch.optim.Optimizer:
    """The paper's."""
    return torch.optim.Adam(
        _parameter_groups(model, settings.weight_decay),
        lr=settings.learning_rate,
        amsgrad=True,
        fused=True,  # the same numbers as the plain loop over parameters, several times faster
    )


def note(
    progress: Progress, scores: dict[str, float], model: torch.nn.Module, first: bool = True
) -> None:
    """One more epoch is done; its weights are kept if it is better than every one before.

    Without `first` any later epoch is better than the first one.
    """
    progress.scores.append(scores)
    progress.threads.append(torch.get_num_threads())
    best = progress.best_epoch
    passed_over = best == 0 and not first
    if best is None or passed_over or _rank(scores) > _rank(progress.scores[best]):
        progress.best_epoch = progress.epochs_done
        progress.best = {k: v.detach().clone() for k, v in model.state_dict().items()}
    progress.epochs_done += 1


def cross_entropy(model: AttentionClassifier, train: Encoded) -> Objective:
    """The paper's objective, of single texts or of pairs."""
    pairs = model.query is not None
    weight = _positive_weight(train.labels) if len(model.classes) == 2 and not pairs else None

    def objective(outputs: Tensor, attention: Tensor, batch: Batch) -> Tensor:
        loss = batch_loss(outputs, batch.labels, weight)
        return loss / len(batch.labels) if pairs else loss

    return objective


def batch_loss(
    outputs: Float[Tensor, "B O"], labels: Tensor, positive_weight: float | None
) -> Float[Tensor, ""]:
    """Cross entropy summed over the batch, the positives of two classes weighted."""
    labels = labels.to(outputs.device)
    if outputs.shape[1] > 1:
        return functional.cross_entropy(outputs, labels, reduction="sum")
    weight = (
        None if positive_weight is None else torch.tensor(positive_weight, device=outputs.device)
    )
    return functional.binary_cross_entropy_with_logits(
        outputs.squeeze(1), labels.to(outputs.dtype), pos_weight=weight, reduction="sum"
    )


@torch.no_grad()
def predict_logits(model: AttentionClassifier, split: Encoded) -> Float[Tensor, "N C"]:
    """Logits of a whole split, in its order."""
    model.eval()
    batches = [split.batch(r) for r in sorted_batches(split.lengths, EVALUATION_TOKENS)]
    logits = [model.as_logits(model(batch.to(model.device))[0]).cpu() for batch in batches]
    return scatter_rows([batch.rows for batch in batches], logits)


def evaluate(model: AttentionClassifier, split: Encoded) -> dict[str, float]:
    """How well a model predicts a split (see `scores_of`)."""
    return scores_of(predict_logits(model, split), split.labels)


def scores_of(logits: Float[Tensor, "N C"], labels: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy, F1 (of class 1; macro for more than two) and, for two classes that both occur, ROC AUC.

    Raises:
        InputError: the logits are not finite.
    """
    from sklearn import metrics

    if not torch.isfinite(logits).all():
        raise diverged()
    predicted = logits.argmax(1).numpy()
    two = logits.shape[1] == 2
    average = "binary" if two else "macro"
    scores = {
        "accuracy": float(metrics.accuracy_score(labels, predicted)),
        "f1": float(metrics.f1_score(labels, predicted, average=average, zero_division=0.0)),
    }
    if two and len(np.unique(labels)) == 2:
        scores["roc_auc"] = float(metrics.roc_auc_score(labels, logits[:, 1].numpy()))
    return scores


class Diverged(InputError):
    """A training whose numbers are no longer finite."""


def diverged() -> Diverged:
    """What is said of it."""
    return Diverged(
        "the training diverged: the model's outputs are not finite; try a smaller --learning-rate"
    )


def _perfect(progress: Progress, first: bool) -> bool:
    best = progress.best_epoch
    return best is not None and (first or best > 0) and _rank(progress.scores[best]) >= 1


def _rank(scores: dict[str, float]) -> float:
    return scores.get("roc_auc", scores["accuracy"])


def _positive_weight(labels: NDArray[np.int64]) -> float:
    return float(len(labels) / labels.sum() - 1)


def _parameter_groups(model: AttentionClassifier, weight_decay: float) -> list[dict[str, object]]:
    attention = [] if model.query is not None else list(model.score.parameters())
    kept = {id(p) for p in attention}
    others = [p for p in model.parameters() if id(p) not in kept]
    return [
        {"params": others, "weight_decay": weight_decay},
        {"params": attention, "weight_decay": 0.0},
    ]


class _Batches(Dataset[Any]):
    """Whole batches as items, so that a loader shares them out among processes."""

    def __init__(self, make: MakeBatch, order: list[NDArray[np.int64]]) -> None:
        self.make, self.order = make, order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Any:
        return self.make(self.order[index])


def loader(make: MakeBatch, order: list[NDArray[np.int64]]) -> DataLoader[Any]:
    """Batches of those rows, in that order."""
    # A generator of its own: a loader draws a seed from the global one otherwise.
    return DataLoader(_Batches(make, order), batch_size=None, generator=torch.Generator())
