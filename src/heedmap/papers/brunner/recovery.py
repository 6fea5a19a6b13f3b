"""Maps from hidden states back to the embeddings of their tokens, learned on training texts."""

from collections.abc import Sequence
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


class Scale(NamedTuple):
    """Mean and deviation of every dimension, over the words' positions of the training texts."""

    mean: Float[Tensor, "*L D"]
    deviation: Float[Tensor, "*L D"]

    @classmethod
    def of(cls, parts: Sequence[Float[Tensor, "*L n D"]]) -> "Scale":
        """Measure vectors that come in parts; a dimension that never changes has the deviation 1."""
        total = sum(part.shape[-2] for part in parts)
        mean = torch.stack([part.double().sum(-2) for part in parts]).sum(0) / total
        squares = [(part.double() - mean.unsqueeze(-2)).square().sum(-2) for part in parts]
        deviation = (torch.stack(squares).sum(0) / total).sqrt()
        return cls(mean.float(), torch.where(deviation > 0, deviation, 1.0).float())


class Recovery(nn.Module):
    """One map per layer: linear, or an MLP with one hidden layer as wide as the states and a GELU.

    States are standardised before and embeddings after it, which leaves a linear map linear (with a bias).
    """

    def __init__(self, kind: str, states: Scale, embeddings: Scale) -> None:
        super().__init__()
        for name, scale in (("states", states), ("embeddings", embeddings)):
            self.register_buffer(f"{name}_mean", scale.mean)
            self.register_buffer(f"{name}_deviation", scale.deviation)
        layers, width = states.mean.shape
        size = len(embeddings.mean)
        self.maps = nn.ModuleList(
            nn.Linear(width, size)
            if kind == "linear"
            else nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, size))
            for _ in range(layers)
        )

    def forward(self, states: Float[Tensor, "L n D"]) -> Float[Tensor, "L n E"]:
        """Return the embeddings that the maps read off the states."""
        mean, deviation = self.get_buffer("states_mean"), self.get_buffer("states_deviation")
        standard = (states - mean.unsqueeze(1)) / deviation.unsqueeze(1)
        read = torch.stack([layer(part) for layer, part in zip(self.maps, standard, strict=True)])
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

    The maps share no parameter, so that each is trained as if alone, for the distance by which it is judged.
    The frozen transformer reads every batch anew: the states of all texts may not fit into memory.
    """

    remedy = "try a smaller learning rate"

    def __init__(
        self, model: TransformerClassifier, texts: Words, settings: BrunnerSettings, control: str
    ) -> None:
        self.subject, self.texts, self.rate = model, texts, settings.learning_rate
        self.total, self.count = 0.0, 0  # of the epoch's losses and batches
        lengths = model.lengths(texts)
        starts = range(0, len(texts), settings.batch_size)
        parts = [token_states(model, texts[i : i + settings.batch_size]) for i in starts]
        embeddings = [look_up(model.model, part.ids.unsqueeze(0))[0].float() for part in parts]
        scales = Scale.of([part.states for part in parts]), Scale.of(embeddings)
        with seeded(settings.seed):
            maps = {f"{m}-{d}": Recovery(m, *scales) for m in MAPS for d in DISTANCES}
        optimizer = torch.optim.Adam(
            [p for m in maps.values() for p in m.parameters()], lr=self.rate
        )
        super().__init__(
            nn.ModuleDict(maps),
            optimizer,
            lengths,
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
