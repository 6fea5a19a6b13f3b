"""Learning to copy, as an objective of `fit`: sequences are drawn as they are needed."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.sequences import Sequences
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.parts import Row
from heedmap.settings.base import Settings
from heedmap.training.fit import fit
from heedmap.training.objective import Objective, Progress, seeded

EVERY, SEEN = 10, 50  # steps between two looks, and the sequences that are looked at
GOOD, BAD = 0.95, 0.6  # accuracy: has learned to copy, at any look; has failed to, at the last
LOOKS = [
    ("step", pa.int64()),
    *((name, pa.float64()) for name in ("accuracy", "attention", "before", "after")),
]  # columns
RELEASED = 200  # steps of the released code, whose last look is 10 steps earlier


class CopySettings(Settings):
    """A copying task and its training; the defaults are the released code's.

    `seed` draws sequences and initial weights. With `heads`, a seed each, these are those of the attention,
    and all other weights are those of seed 0.
    """

    sequences: Sequences
    model: EncoderDecoderSettings
    steps: int = RELEASED
    batch_size: int = 128
    learning_rate: float = 1e-3
    seed: int = 0
    heads: tuple[int, ...] = ()


class Copies(NamedTuple):
    """A batch: sources with their end, which are the targets too, and the decoder's inputs."""

    source: Int[Tensor, "B S"]
    inputs: Int[Tensor, "B S"]


def _initial(settings: EncoderDecoderSettings, sequences: Sequences, seed: int) -> EncoderDecoder:
    with seeded(seed):
        return EncoderDecoder(settings, sequences.symbols + 2)


class CopyObjective(Objective):
    """Repeat a sequence and its end: the mean cross entropy of all steps, by Adam; an epoch is EVERY steps.

    Ends when the sequences are copied (an accuracy above GOOD), but not before the released code does.
    """

    model: EncoderDecoder

    def __init__(self, settings: CopySettings) -> None:
        model = _initial(settings.model, settings.sequences, 0 if settings.heads else settings.seed)
        if settings.heads:
            single = replace(settings.model, heads=1)
            model.take_heads(
                [_initial(single, settings.sequences, 1 + head) for head in settings.heads]
            )
        super().__init__(
            model,
            torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True),
            np.zeros(EVERY * settings.batch_size, dtype=np.int64),
            self._drawn,
            epochs=-(-settings.steps // EVERY),
            batch_size=settings.batch_size,
            seed=settings.seed,
            made_with=settings.model_dump(mode="json"),
        )
        self.sequences = settings.sequences
        self.epoch = 0

    def on_epoch(self, progress: Progress) -> None:
        """Know which epoch it is: each draws its own sequences."""
        self.epoch = progress.epochs_done

    def _drawn(self, rows: NDArray[np.int64]) -> Copies:
        return self._copies(len(rows), 1 + int(rows[0]))

    def _copies(self, count: int, part: int) -> Copies:
        """Draw sequences; a part of an epoch has its own."""
        rng = np.random.default_rng([self.seed, self.epoch, part])
        symbols = torch.from_numpy(self.sequences.draw(count, rng))
        end, start = self.sequences.symbols, self.sequences.symbols + 1
        source = functional.pad(symbols, (0, 1), value=end)
        return Copies(source, functional.pad(symbols, (1, 0), value=start))

    def loss(self, model: nn.Module, batch: Copies) -> Float[Tensor, ""]:
        """Return the mean cross entropy of all steps."""
        device = self.model.output.weight.device
        source, inputs = batch.source.to(device), batch.inputs.to(device)
        logits, _ = model(source, inputs)
        return functional.cross_entropy(logits.flatten(0, 1), source.flatten())

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """Look at fresh sequences, under teacher forcing.

        `accuracy` of the symbols; and how often the largest weight is on the symbol to copy (`attention`), the
        one `before` it or the one `after` it, of the steps that have one; of any head.
        """
        device = self.model.output.weight.device
        source, inputs = (part.to(device) for part in self._copies(SEEN, 0))
        logits, weights = self.model(source, inputs)
        attended = weights.argmax(-1)
        steps = torch.arange(source.shape[1], device=device)

        def looking(offset: int) -> float:
            has_neighbour = (steps + offset >= 0) & (steps + offset < len(steps))
            return float((attended == steps + offset).any(1)[:, has_neighbour].float().mean())

        return {
            "accuracy": float((logits.argmax(-1) == source).float().mean()),
            "attention": looking(0),
            "before": looking(-1),
            "after": looking(1),
        }

    def is_finished(self, progress: Progress) -> bool:
        """Return whether the sequences are copied, and the released code would have ended."""
        learned = any(scores["accuracy"] > GOOD for scores in progress.scores)
        return learned and progress.epochs_done * EVERY >= RELEASED


def looks_at(settings: CopySettings, checkpoints: Path) -> list[Row]:
    """Train a model to copy and return a row per look at it."""
    training = fit(CopyObjective(settings), checkpoints / "model.safetensors")
    return [{"step": EVERY * look, **scores} for look, scores in enumerate(training.scores, 1)]
