"""Further trainings that a question asks for: the run's own, changed in what a `Variant` says.

An experiment lists its variants and compares their outcomes; it does not train. `heedmap.retraining` does, and
an audit has it only if it was asked for (`--retrain`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from heedmap.data.batches import Ragged
from heedmap.models.trace import Model
from heedmap.settings.retraining import RetrainSettings

Direction = Literal["adversary", "base"]
"""Which of the two comes first in KL: KL(adversary ‖ base) is bounded, KL(base ‖ adversary) is not."""
Guide = Literal["uniform", "base", "gradient", "leave_one_out", "read_out"]
"""Weights that need no training of their own: 1/n, the run's, or its importances scaled to sum to 1."""
Heads = Literal["mean", "max"]
"""Of several heads, what is penalised and shown: their mean, or of each text the one that shows most."""


@dataclass(frozen=True)
class Adversary:
    """Train against the run's model: its predictions, and attention far from its (Wiegreffe & Pinter 2019)."""

    strength: float
    direction: Direction = "adversary"
    epochs: int = 30
    patience: int = 10


@dataclass(frozen=True)
class Penalty:
    """Train with a penalty on the attention to impermissible words (Pruthi et al. 2020).

    `words` are these, None for the tokens that the data mark. `rule` chooses the epoch: the paper's, or the
    released code's (see `heedmap.retraining.deception`). `removed`: the words are taken out of the texts.
    `heads` is of a transformer.
    """

    strength: float
    words: tuple[str, ...] | None
    rule: Literal["paper", "code"] = "paper"
    removed: bool = False
    heads: Heads = "mean"


@dataclass(frozen=True)
class Variant:
    """A training on the run's texts, like the run's own but for what is given here.

    `encoder`, `score` and `normaliser`: the run's own where empty. `guide`: the weights that the model reads
    the texts with, instead of learning some.
    """

    seed: int
    encoder: str = ""
    score: str = ""
    normaliser: str = ""
    guide: "Guide | Variant | None" = None
    adversary: Adversary | None = None
    penalty: Penalty | None = None

    def needs(self) -> list["Variant"]:
        """Return the variants whose outcomes its training uses."""
        needed = [self.guide] if isinstance(self.guide, Variant) else []
        if self.penalty is not None and self.penalty.strength > 0 and not self.penalty.removed:
            needed.append(self.control())
        return needed

    def control(self) -> "Variant":
        """Return the same training with a penalty of 0."""
        assert self.penalty is not None
        penalty = Penalty(0.0, self.penalty.words, self.penalty.rule)
        return Variant(self.seed, self.encoder, self.score, self.normaliser, penalty=penalty)

    def __str__(self) -> str:
        parts = [self.encoder, self.score, self.normaliser]
        if isinstance(self.guide, Variant) or self.guide is not None:
            parts.append(f"guided by {self.guide}")
        if self.adversary is not None:
            parts.append(f"adversary {self.adversary.direction} {self.adversary.strength:g}")
        if self.penalty is not None:
            penalty = (
                "words removed" if self.penalty.removed else f"penalty {self.penalty.strength:g}"
            )
            penalty += " max" if self.penalty.heads == "max" else ""
            parts.append(penalty)
        return ", ".join([*(part for part in parts if part), f"seed {self.seed}"])


@dataclass(frozen=True)
class Outcome:
    """What a trained variant makes of the audited texts.

    `attention` has the weights of each text, of one head after the other if there are several; they are those
    of the words that are left where some were removed.
    `dev` are the scores of the kept epoch on the dev split, `epoch` is its number from 1, of `epochs` trained.
    `blocked` are the logits with the attention to impermissible words set to 0 and nothing in its place; None
    where there is no such attention.
    """

    logits: Float[np.ndarray, "N C"]
    attention: Ragged
    dev: dict[str, float]
    epoch: int
    epochs: int
    blocked: Float[np.ndarray, "N C"] | None = None

    @property
    def predicted(self) -> NDArray[np.int64]:
        """Return the predicted class of each text."""
        return np.asarray(self.logits.argmax(1))


@runtime_checkable
class Retraining(Protocol):
    """Train variants, or read what was trained before.

    `seed` is that of the run's own training; `words` are the impermissible ones (see `Penalty`), empty if none
    were named; `heads` are the ways to penalise them.
    """

    settings: RetrainSettings
    seed: int
    words: tuple[str, ...] | None
    heads: tuple[Heads, ...]

    def outcomes(self, variants: Sequence[Variant]) -> list[Outcome]:
        """Return the variants' outcomes, in their order."""

    def model(self, variant: Variant) -> Model:
        """Return a trained variant itself."""


def seeds(retraining: Retraining) -> list[int]:
    """Return the seeds of the trainings of each kind; the run's own is not among them."""
    return [retraining.seed + 1 + i for i in range(retraining.settings.seeds)]
