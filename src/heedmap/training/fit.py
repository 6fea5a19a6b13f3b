"""The training loop, on Accelerate. A resumed training ends at the same weights."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from heedmap.data.batches import bucketed_batches
from heedmap.terminal.progress import at, log_line
from heedmap.training.checkpoint import load_checkpoint, save_checkpoint
from heedmap.training.objective import Diverged, Objective, Progress
from heedmap.training.spinning import spinning_bounded


@dataclass(frozen=True)
class Trained:
    """The record of a training: dev scores per epoch, and the epoch whose weights were kept.

    `vectors` counts the vocabulary's words with a pretrained vector, None without a file of them;
    `left_out` counts the texts that were cut, with the keys of `Corpus.left_out`; `threads` lists the thread
    counts of all its runs, since they change the order of sums.
    """

    scores: list[dict[str, float]]
    best_epoch: int
    vectors: int | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    threads: list[int] = field(default_factory=list)


def fit(objective: Objective, checkpoint: Path | None = None) -> Trained:
    """Train the objective's model in place; it ends with the weights of the best epoch, frozen.

    Every epoch reads batches of texts of similar length in random order.

    Args:
        objective: what to train, and how.
        checkpoint: saved after every epoch; a later call resumes from it, and ends at exactly the same
            weights as an uninterrupted training.

    Raises:
        Diverged: the loss or the scores are not finite.
        InputError: the checkpoint is damaged or of another training.
    """
    from accelerate import Accelerator

    accelerator = Accelerator()
    bare = objective.model.to(accelerator.device)
    progress = load_checkpoint(checkpoint, objective) if checkpoint else Progress()
    model, optimizer = accelerator.prepare(bare, objective.optimizer)
    steps = -(-len(objective.lengths) // objective.batch_size)
    total = steps * objective.epochs
    for epoch in range(progress.epochs_done, objective.epochs):
        if objective.is_finished(progress):
            break
        objective.on_epoch(progress)
        rng = np.random.default_rng([objective.seed, epoch])
        order = bucketed_batches(objective.lengths, objective.batch_size, rng)
        batches = accelerator.prepare(_loader(objective, order))
        model.train()
        losses, name = [], f"epoch {epoch + 1} of {objective.epochs}"
        with objective.random_state(rng), spinning_bounded() as look:
            for step, batch in enumerate(batches, epoch * steps):
                # Before the first step of a later epoch the model is as it was recorded after the last one.
                if objective.recorder is not None and (step == 0 or step % steps):
                    objective.recorder.before(step)
                objective.on_step(step, total)
                optimizer.zero_grad()
                loss = objective.loss(model, batch)
                if not torch.isfinite(loss):
                    raise Diverged(objective.remedy)
                accelerator.backward(loss)
                if objective.max_norm is not None:
                    accelerator.clip_grad_norm_(model.parameters(), objective.max_norm)
                optimizer.step()
                losses.append(float(loss.detach()))
                at(step + 1, total, name)
                look()
        if objective.recorder is not None:
            objective.recorder.after_epoch(epoch, (epoch + 1) * steps)
        record_epoch(progress, objective)
        scores = ", ".join(f"dev {key} {value:.3f}" for key, value in progress.scores[-1].items())
        log_line(f"{name}, loss per step {np.mean(losses):.4f}, {scores}")
        if checkpoint and accelerator.is_main_process:
            save_checkpoint(checkpoint, progress, objective)
    assert progress.best_epoch is not None
    objective.on_end()
    bare.load_state_dict(progress.best)
    torch.nn.Module.eval(bare).requires_grad_(False)
    return Trained(progress.scores, progress.best_epoch, threads=sorted(set(progress.threads)))


def record_epoch(progress: Progress, objective: Objective) -> None:
    """Add an epoch to the progress; keep its weights if they are the best so far."""
    scores = objective.scores()
    if objective.is_better(scores, progress):
        weights = objective.model.state_dict()
        progress.best_epoch = progress.epochs_done
        progress.best = {name: value.detach().clone() for name, value in weights.items()}
    progress.scores.append(scores)
    progress.threads.append(torch.get_num_threads())
    progress.epochs_done += 1


class _Batches(Dataset[Any]):
    """Whole batches as items, so that several processes can divide them."""

    def __init__(self, objective: Objective, order: list[NDArray[np.int64]]) -> None:
        self.objective, self.order = objective, order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Any:
        return self.objective.batch(self.order[index])


def _loader(objective: Objective, order: list[NDArray[np.int64]]) -> DataLoader[Any]:
    # With its own generator, since a loader otherwise draws a seed from the global one.
    return DataLoader(_Batches(objective, order), batch_size=None, generator=torch.Generator())
