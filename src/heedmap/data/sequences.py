"""Sequences of symbols, drawn as they are needed: what can be learned of copying (Snell et al. 2021, §5)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

Kind = Literal["permutations", "subsets", "repeats"]


@dataclass(frozen=True)
class Sequences:
    """Sequences of `length` symbols out of `symbols`, 0 to symbols − 1.

    `permutations`: all symbols, each once, so that every symbol occurs beside every other in every sequence.
    `subsets`: different symbols out of more. `repeats`: symbols drawn independently of each other.
    """

    kind: Kind
    length: int
    symbols: int

    def __post_init__(self) -> None:
        fits = {
            "permutations": self.symbols == self.length,
            "subsets": self.symbols > self.length,
            "repeats": True,
        }
        if self.length < 1 or self.symbols < 1 or not fits[self.kind]:
            raise ValueError(f"no {self.kind} of {self.length} out of {self.symbols} symbols")

    def draw(self, count: int, rng: np.random.Generator) -> Int[np.ndarray, "N L"]:
        """Draw some sequences."""
        if self.kind == "repeats":
            return rng.integers(self.symbols, size=(count, self.length))
        symbols = np.tile(np.arange(self.symbols), (count, 1))
        return rng.permuted(symbols, axis=1)[:, : self.length]
