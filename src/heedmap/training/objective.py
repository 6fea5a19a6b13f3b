"""The definition of a training for `fit`: a model, its data, its loss, and how epochs compare."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.errors import InputError
from heedmap.training.dynamics import Recorder

REMEDY = "try a smaller --learning-rate"


@dataclass
class Progress:
    """Epochs done, the dev scores so far, the best epoch's weights, and the threads of each epoch."""

    epochs_done: int = 0
    scores: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None
    best: dict[str, Tensor] = field(default_factory=dict)
    threads: list[int] = field(default_factory=list)

    def is_over(self, patience: int) -> bool:
        """Return whether `patience` epochs were trained since the best one."""
        return self.best_epoch is not None and self.epochs_done - 1 - self.best_epoch >= patience


class Diverged(InputError):
    """A training whose numbers are no longer finite."""

    def __init__(self, remedy: str = REMEDY) -> None:
        super().__init__(f"the training diverged: the model's outputs are not finite; {remedy}")


class Objective(ABC):
    """One training, from the first step to the final weights.

    Attributes:
        model: trained in place.
        optimizer: of the model's parameters.
        lengths: tokens per training text, (N,): texts of similar length share a batch.
        batch: makes the input of `loss` from some training texts.
        epochs, batch_size, seed: of the training; the seed orders the batches.
        made_with: settings that a checkpoint must match, as JSON.
        generators: random states that continue from epoch to epoch; a checkpoint keeps them.
        max_norm: the limit of a batch's gradient norm; None for no limit.
        recorder: watches the training; None for none.
        remedy: what to do if the training diverges.
    """

    max_norm: float | None = None
    recorder: Recorder | None = None
    remedy: str = REMEDY

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        lengths: NDArray[np.int64],
        batch: Callable[[NDArray[np.int64]], Any],
        *,
        epochs: int,
        batch_size: int,
        seed: int,
        made_with: Mapping[str, Any],
        generators: Mapping[str, torch.Generator] | None = None,
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self.lengths, self.batch = lengths, batch
        self.epochs, self.batch_size, self.seed = epochs, batch_size, seed
        self.made_with, self.generators = dict(made_with), dict(generators or {})

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Float[Tensor, ""]:
        """Return the number to minimise; `model` is `self.model`, or a wrapper for several devices."""

    @abstractmethod
    def scores(self) -> dict[str, float]:
        """Score the model after an epoch; must include `accuracy`, unless `is_better` is overridden."""

    def on_epoch(self, progress: Progress) -> None:  # noqa: B027 - most have no such schedule
        """Hook before every epoch, for a learning rate that depends on the scores so far."""

    def on_step(self, step: int, total: int) -> None:  # noqa: B027 - most have no schedule
        """Hook before every step, for a learning rate schedule."""

    def on_end(self) -> None:  # noqa: B027 - most have nothing to undo
        """Hook after the last epoch, before the best epoch's weights are restored."""

    def random_state(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Seed torch's global generators for an epoch (dropout).

        Each epoch has its own seed, so that a resumed training draws the same as an uninterrupted one.
        """
        return seeded(int(rng.integers(2**63)))

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Return whether to keep an epoch's weights: its score is higher than the best so far."""
        best = progress.best_epoch
        return best is None or rank(scores) > rank(progress.scores[best])

    def is_finished(self, progress: Progress) -> bool:
        """Return whether to end before the last epoch."""
        return False


def rank(scores: dict[str, float]) -> float:
    """Return ROC AUC if there is one, else accuracy."""
    return scores.get("roc_auc", scores["accuracy"])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generators within the block, and restore them afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Let torch's global generator of a device continue this one within the block, and store its state."""
    cuda = generator.device.type == "cuda"
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        state = generator.get_state()
        torch.cuda.set_rng_state(state, generator.device) if cuda else torch.set_rng_state(state)
        yield
        state = torch.cuda.get_rng_state(generator.device) if cuda else torch.get_rng_state()
        generator.set_state(state)
