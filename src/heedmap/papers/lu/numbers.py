"""The numbers of Lu et al. by quantity, fusion, map and layer, over the seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedmap.experiments.seeds import seed_mean
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import changed_settings
from heedmap.papers.lu.measures import MEAN
from heedmap.papers.lu.settings import LuSettings

WORDS = {
    "vocabulary": "{} sub-words",
    "size": "{} units",
    "layers": "{layer}",
    "heads": "{head}",
    "feed_forward": "{} units between the linear maps",
    "dropout": "{} as dropout",
    "label_smoothing": "{} as label smoothing",
    "learning_rate": "{} as learning rate",
    "warm_up": "{} warm-up steps",
    "batch_tokens": "{} target sub-words in a batch",
    "updates": "{} updates",
    "penalty": "λ = {}",
}
MAPS = {
    "attention": "a, the model's own",
    "calibrated": "a_c, calibrated",
    "mask": "1 − m, what is masked",
    "fused": "fused, what the model uses",
}
CHOICES = {"automatic": "automatic links, test", "people": "people's links"}


@dataclass(frozen=True)
class Lu(CellReproduction[LuSettings]):
    """What was measured of the translators."""

    @property
    def missing(self) -> int:
        """How many models are still to be run."""
        finished = {(row["fusion"], row["seed"]) for row in self.rows}
        return len(self.settings.fusions) * self.settings.seeds - len(finished)

    @property
    def differences(self) -> list[str]:
        """How it differs from the released code's example."""
        pairs = self.settings.train_pairs
        return [
            *changed_settings(self.settings, WORDS),
            *([] if pairs is None else [f"at most {pairs} pairs to train on"]),
            *(["fused weights that sum to 1"] if self.settings.renormalise else []),
            "other data: theirs could not be read",
        ]

    @cached_property
    def fusions(self) -> list[str]:
        """The fusions of the models that are finished."""
        return list(dict.fromkeys(row["fusion"] for row in self.rows))

    @cached_property
    def choices(self) -> list[str]:
        """Whose links of words there are."""
        quantities = {row["quantity"] for row in self.rows}
        return [choice for choice in CHOICES if f"AER {choice}" in quantities]

    @cached_property
    def learned(self) -> Learned:
        """Which translators predict the next sub-word better than always the commonest."""
        return Learned({
            fusion: {
                row["seed"]: [accuracy(row["value"], row["chance"], row["n"])]
                for row in self.rows
                if (row["fusion"], row["quantity"]) == (fusion, "accuracy")
            }
            for fusion in self.fusions
        })  # fmt: skip

    @cached_property
    def _by_key(self) -> dict[tuple[str, str, str, int], dict[int, Mapping[str, float]]]:
        numbers: dict[tuple[str, str, str, int], dict[int, Mapping[str, float]]] = {}
        for row in self.rows:
            key = (row["quantity"], row["fusion"], row["map"], row["layer"])
            numbers.setdefault(key, {})[row["seed"]] = row
        return numbers

    def by_seed(
        self, quantity: str, fusion: str, map: str = "", layer: int = MEAN, column: str = "value"
    ) -> dict[int, float]:
        """Return a number by seed; empty where there is none."""
        rows = self._by_key.get((quantity, fusion, map, layer), {})
        return {seed: row[column] for seed, row in rows.items()}

    def differences_from_chance(
        self, fusion: str, quantity: str, map: str = "", layer: int = MEAN
    ) -> list[float]:
        """Return a number minus its chance, by seed."""
        values, chances = (
            self.by_seed(quantity, fusion, map, layer, column) for column in ("value", "chance")
        )
        return [values[seed] - chances[seed] for seed in values]

    def shown(
        self,
        quantity: str,
        fusion: str,
        map: str = "",
        layer: int = MEAN,
        column: str = "value",
        digits: int = 3,
    ) -> str:
        """Return a number's mean over seeds, a value with its interval; `mean` is a value without."""
        column_read = "value" if column == "mean" else column
        numbers = [*self.by_seed(quantity, fusion, map, layer, column_read).values()]
        if column == "value" or not numbers:
            return seed_mean(numbers, digits)
        return f"{np.mean(numbers):.{digits}f}"

    def maps(self, quantity: str) -> list[tuple[str, str]]:
        """Return the fusions and maps of which there is a number."""
        keys = {(fusion, map) for name, fusion, map, _ in self._by_key if name == quantity}
        return [(f, map) for f in self.fusions for map in MAPS if (f, map) in keys]
