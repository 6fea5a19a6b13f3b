"""Maps from hidden states back to the embeddings of their tokens, learned on training texts."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.huggingface.embedding import look_up
from heedmap.huggingface.hidden_states import hidden_states
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.terminal.progress import working
from heedmap.training.fit import fit
from heedmap.training.objective import Objective, Progress, seeded

MAPS = ("linear", "mlp")
DISTANCES = ("cosine", "l2")
SOLVED = "linear-l2"  # has its least squares from the start
RIDGE = 1e-4  # of the variance of a standardised state
Words = Sequence[Sequence[str]]


class TokenStates(NamedTuple):
    """The words' positions of some texts: their states in every layer, their tokens, and their texts."""

    states: Float[Tensor, "L n D"]
    ids: Int[Tensor, " n"]
    text: Int[Tensor, " n"]


@torch.no_grad()
def token_states(model: TransformerClassifier, texts: Words) -> TokenStates:
    """Read some texts.

    Special tokens are left out: they are the same in all texts, and a map learns them by heart.
    """
    batch = model.batch(texts, range(len(texts)))
    inside_words = (batch.words >= 0) & batch.real
    states = torch.stack([layer[inside_words].float() for layer in hidden_states(model, batch)])
    return TokenStates(states, batch.ids[inside_words], inside_words.nonzero()[:, 0])


class Moments(NamedTuple):
    """Sums over the words' positions of the training texts, in float64: of (h, 1)(h, 1)ᵀ, (h, 1)xᵀ and x²."""

    gram: Float[Tensor, "L K K"]
    cross: Float[Tensor, "L K E"]
    squares: Float[Tensor, " E"]

    @classmethod
    def of(cls, states: Float[Tensor, "L n D"], embeddings: Float[Tensor, "n E"]) -> "Moments":
        """Sum over some positions."""
        with_one = functional.pad(states.double(), (0, 1), value=1.0)
        wide = embeddings.double()
        return cls(with_one.mT @ with_one, with_one.mT @ wide, wide.square().sum(0))

    def plus(self, more: "Moments") -> "Moments":
        """Sum over these positions and others."""
        return Moments(*(a + b for a, b in zip(self, more, strict=True)))

    @property
    def positions(self) -> float:
        """The number of positions."""
        return float(self.gram[0, -1, -1])

    @property
    def of_states(self) -> tuple[Float[Tensor, "L D"], Float[Tensor, "L D"]]:
        """Mean and deviation of every dimension of the states; 1 for a dimension that never changes."""
        mean = self.gram[:, -1, :-1] / self.positions
        return mean, _deviation(self.gram.diagonal(dim1=1, dim2=2)[:, :-1] / self.positions, mean)

    @property
    def of_embeddings(self) -> tuple[Float[Tensor, " E"], Float[Tensor, " E"]]:
        """The same of the embeddings."""
        mean = self.cross[0, -1] / self.positions
        return mean, _deviation(self.squares / self.positions, mean)

    def least_squares(self) -> Float[Tensor, "L D E"]:
        """Return the linear map of least squares between standardised states and embeddings.

        (C + RIDGE · 1)⁻¹ B, with C and B the correlations: the ridge only keeps the inverse finite.
        """
        (mean, deviation), (center, spread) = self.of_states, self.of_embeddings
        covariance = self.gram[:, :-1, :-1] / self.positions - mean.unsqueeze(2) * mean.unsqueeze(1)
        correlation = covariance / (deviation.unsqueeze(2) * deviation.unsqueeze(1))
        shared = self.cross[:, :-1] / self.positions - mean.unsqueeze(2) * center
        ridge = RIDGE * torch.eye(mean.shape[1], dtype=torch.float64, device=mean.device)
        scaled = shared / (deviation.unsqueeze(2) * spread)
        solution: Tensor = torch.linalg.solve(correlation + ridge, scaled)
        return solution


def _deviation(mean_square: Tensor, mean: Tensor) -> Tensor:
    """Return the deviation, 1 where it is only rounding."""
    variance = mean_square - mean.square()
    return torch.where(variance > 1e-12 * mean_square, variance, 1.0).sqrt()


class Recovery(nn.Module):
    """One map per layer: linear, or an MLP, which adds one hidden layer as wide as the states, with a GELU.

    Both begin as the linear map of least squares, the MLP's hidden layer adding 0. States are standardised
    before and embeddings after it, which leaves a linear map linear (with a bias).
    """

    def __init__(self, kind: str, moments: Moments) -> None:
        super().__init__()
        for name, (mean, deviation) in (
            ("states", moments.of_states),
            ("embeddings", moments.of_embeddings),
        ):
            self.register_buffer(f"{name}_mean", mean.float())
            self.register_buffer(f"{name}_deviation", deviation.float())
        weights = moments.least_squares().float()
        _, width, size = weights.shape
        self.linear = nn.ModuleList(nn.Linear(width, size) for _ in weights)
        self.hidden = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, size))
            for _ in (weights if kind == "mlp" else ())
        )
        with torch.no_grad():
            for layer, weight in zip(self.linear, weights, strict=True):
                layer.get_parameter("weight").copy_(weight.T)
                layer.get_parameter("bias").zero_()
            for layer in self.hidden:
                layer.get_parameter("2.weight").zero_()
                layer.get_parameter("2.bias").zero_()

    def forward(self, states: Float[Tensor, "L n D"]) -> Float[Tensor, "L n E"]:
        """Return the embeddings that the maps read off the states."""
        mean, deviation = self.get_buffer("states_mean"), self.get_buffer("states_deviation")
        standard = (states - mean.unsqueeze(1)) / deviation.unsqueeze(1)
        read = torch.stack([layer(part) for layer, part in zip(self.linear, standard, strict=True)])
        if self.hidden:
            pairs = zip(self.hidden, standard, strict=True)
            read = read + torch.stack([layer(part) for layer, part in pairs])
        return read * self.get_buffer("embeddings_deviation") + self.get_buffer("embeddings_mean")


def recovery_loss(
    recovered: Float[Tensor, "L n E"], embeddings: Float[Tensor, "n E"], distance: str
) -> Float[Tensor, ""]:
    """Return the mean distance, summed over layers: 1 − cos, or ‖x̂ − x‖² over the mean of ‖x‖²."""
    if distance == "cosine":
        distances = 1 - functional.cosine_similarity(recovered, embeddings.unsqueeze(0), dim=-1)
        return distances.mean(-1).sum()
    errors = (recovered - embeddings).square().sum(-1).mean(-1)
    return (errors / embeddings.square().sum(-1).mean().clamp(min=1e-12)).sum()


class RecoveryObjective(Objective):
    """Train all maps at once by Adam; the rate falls linearly to 0, and the last epoch is kept.

    The maps share no parameter, so that each is trained as if alone, for the distance by which it is judged;
    the linear one for L2 is that of least squares already. The frozen transformer reads every batch anew: the
    states of all texts may not fit into memory.
    """

    remedy = "try a smaller learning rate"

    def __init__(
        self, model: TransformerClassifier, texts: Words, settings: BrunnerSettings, control: str
    ) -> None:
        self.subject, self.texts, self.rate = model, texts, settings.learning_rate
        self.total, self.count = 0.0, 0  # of the epoch's losses and batches
        starts = range(0, len(texts), settings.batch_size)
        parts = (
            self._batch(np.arange(i, min(i + settings.batch_size, len(texts)))) for i in starts
        )
        moments = reduce(Moments.plus, (Moments.of(**part) for part in parts))
        with seeded(settings.seed):
            maps = {f"{m}-{d}": Recovery(m, moments) for m in MAPS for d in DISTANCES}
        maps[SOLVED].requires_grad_(False)
        optimizer = torch.optim.Adam(
            [p for m in maps.values() for p in m.parameters() if p.requires_grad], lr=self.rate
        )
        super().__init__(
            nn.ModuleDict(maps),
            optimizer,
            model.lengths(texts),
            self._batch,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=settings.seed,
            made_with={**settings.model_dump(mode="json", exclude={"data"}), "control": control},
        )

    def _batch(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        states, ids, _ = token_states(self.subject, [self.texts[row] for row in rows])
        with torch.no_grad():
            embeddings = look_up(self.subject.model, ids.unsqueeze(0))[0].float()
        return {"states": states, "embeddings": embeddings}

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        """Return the sum of all maps' losses."""
        losses = [
            recovery_loss(part(batch["states"]), batch["embeddings"], name.partition("-")[2])
            for name, part in self.model.named_children()
            if name != SOLVED
        ]
        loss = torch.stack(losses).sum()
        self.total, self.count = self.total + loss.item(), self.count + 1
        return loss

    def on_step(self, step: int, total: int) -> None:
        """Let the learning rate fall linearly."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * (1 - step / total)

    def scores(self) -> dict[str, float]:
        """Return the epoch's mean loss."""
        mean, self.total, self.count = self.total / max(1, self.count), 0.0, 0
        return {"loss": mean}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Return True: the last epoch's weights are kept."""
        return True


def train_maps(
    model: TransformerClassifier,
    texts: Words,
    settings: BrunnerSettings,
    control: str,
    checkpoint: Path | None = None,
) -> dict[str, nn.Module]:
    """Train the maps on some texts; return them by `MAP-DISTANCE`."""
    objective = RecoveryObjective(model, texts, settings, control)
    with working("learning maps"):
        fit(objective, checkpoint)
    return dict(objective.model.named_children())
