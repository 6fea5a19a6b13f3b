"""What Snell et al. compare: attention, its relevance under uniform attention, influence and their proxies.

For the model A of one seed, and its uniform twin, all of one text oriented towards its label:

    uniform     A(α, β^uf): does the word that A attends to most stand out in the twin's relevance?
    influence   A(Δ, β^uf): does the word whose gate matters most to A?
    bag         A(β^px, β^uf): does the best word of a bag of embeddings?
    logistic    A(β^lr, β^uf): that of a logistic regression on a bag of words?
    other       A(α, β'): β' is the relevance in a model of another seed
    seeds       A(α, α'): the ceiling, what the attention of another seed reaches
    dictionary  of translators: A(·, β^uf) of the words' co-occurrence

The paper chooses A's checkpoint, and then that of the second map for the largest agreement, on the texts that
are compared. `dev` chooses both by accuracy on the dev split; `last` takes the last ones.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.parts import S
from heedmap.papers.kit.reproduction import Cell, CellReproduction
from heedmap.papers.snell.records import Record, agreement, crossing, matches
from heedmap.training.dynamics import recorded_in

CHOICES = ("paper", "dev", "last")
Rows = list[dict[str, Any]]
Maps = dict[str, Float[Tensor, "N T"]]


MODELS = "models"  # the folder of the trainings
SCHEMA = pa.schema(
    [
        ("seed", pa.int64()),
        ("quantity", pa.string()),
        ("choice", pa.string()),
        *((name, pa.float64()) for name in ("step", "value", "chance", "error", "tau")),
    ]
)


def seed_cells(settings: Any) -> list[Cell]:
    """Return the comparisons, one of each seed's model with the others."""
    return [Cell(str(seed), {"seed": seed}) for seed in range(settings.seeds)]


@dataclass(frozen=True)
class Compared(CellReproduction[S], ABC):
    """What was read off the models."""

    @property
    def example(self) -> Path:
        """The folder of the first model, whose texts are drawn."""
        return self.folder / MODELS / "learned-0"

    @property
    def twin_example(self) -> Path:
        """The folder of its twin."""
        return self.folder / MODELS / "uniform-0"

    def values(self, quantity: str, choice: str, column: str = "value") -> list[float]:
        """Return a number of each seed, in their order."""
        return [
            row[column]
            for row in self.rows
            if (row["quantity"], row["choice"]) == (quantity, choice)
        ]

    @property
    @abstractmethod
    def dataset(self) -> str:
        """The name under which published numbers are found, empty if there are none."""

    @property
    @abstractmethod
    def classes(self) -> Sequence[str]:
        """What labels are called."""

    @property
    def of_words(self) -> bool:
        """Whether labels are words, most of them frequent ones that say little."""
        return False

    @property
    @abstractmethod
    def accuracies(self) -> dict[str, tuple[list[float], float]]:
        """The accuracies of the models and of their twins, one per seed, beside the published one or NaN."""

    @cached_property
    def learned(self) -> Learned:
        """Whether the models and their twins have learned, on the texts that are compared."""
        commonest, n = _commonest(self.example)
        return Learned({
            name: {
                seed: [accuracy(value, commonest, n, published)] for seed, value in enumerate(values)
            }
            for name, (values, published) in self.accuracies.items()
        })  # fmt: skip


def _commonest(example: Path) -> tuple[float, int]:
    """Return the share of the commonest label among the recorded test texts, and how many these are."""
    recorded = recorded_in(example / "dynamics")
    if recorded is None:
        return math.nan, 0
    test = recorded.filter(pc.equal(recorded["split"], "test"))
    labels = test.filter(pc.equal(test["step"], pc.max(test["step"])))["label"].to_numpy()
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels)), len(labels)


def rows_of_seed(
    seed: int, learned: Sequence[Record], twin: Record, proxies: Maps, keyword: str = "logistic"
) -> Rows:
    """Return the rows of one seed's model A, which is `learned[seed]`, compared with its twin and the others.

    `proxies` are maps of the same texts; that of `keyword` says which word is a text's keyword.
    """
    model, other_models = learned[seed], [*learned[:seed], *learned[seed + 1 :]]
    # Each model is another's comparison once: B of A, C of B, and A of the last.
    nearest = learned[(seed + 1) % len(learned)]
    rows = _curves(model, other_models, twin) + _rise(model, twin, proxies[keyword])
    for choice in CHOICES:
        checkpoint = _chosen(model, choice)
        attention, influence = (
            model.values["attention"][checkpoint],
            model.values["influence"][checkpoint],
        )
        firsts = {
            "uniform": (attention, twin, "relevance"),
            "influence": (influence, twin, "relevance"),
            **{name: (proxy, twin, "relevance") for name, proxy in proxies.items()},
            "other": (attention, nearest, "relevance"),
            "seeds": (attention, nearest, "attention"),
        }
        curve, performance = _seed_curve(attention, other_models)
        for name, (map_of_model, record, quantity) in firsts.items():
            second = record.values[quantity]
            second_checkpoint = _chosen(record, choice)
            if choice == "paper":
                second_checkpoint = int(matches(map_of_model, second, model.mask).argmax())
            compared = agreement(map_of_model, second[second_checkpoint], model.mask)
            rows.append(
                {
                    "quantity": name, "choice": choice, "step": float(record.steps[second_checkpoint]),
                    "value": compared.match, "chance": compared.chance, "error": compared.error,
                    "tau": compared.tau,
                }
            )  # fmt: skip
            if name != "seeds":
                steps = _steps(other_models)
                reached = crossing(steps, curve, compared.match, performance)
                rows += [
                    _row(f"xi {name}", choice, reached.step, reached.value),
                    _row(
                        f"xi {name}, interpolated", choice, reached.between, reached.value_between
                    ),
                ]
        rows.append(
            _row("best", choice, float(model.steps[checkpoint]), float(model.accuracy[checkpoint]))
        )
    return rows


def _row(quantity: str, choice: str, step: float, value: float) -> dict[str, Any]:
    return {"quantity": quantity, "choice": choice, "step": step, "value": value}


def _chosen(record: Record, choice: str) -> int:
    if choice == "last":
        return len(record.steps) - 1
    return record.best if choice == "paper" else record.best_on_dev


def _steps(records: Sequence[Record]) -> Any:
    return np.unique(np.concatenate([record.steps for record in records]))


def _seed_curve(attention: Float[Tensor, "N T"], other_models: Sequence[Record]) -> tuple[Any, Any]:
    """Return the mean of A(α, α'_t) over other seeds, and that of their accuracy, at each step of any."""
    curves, accuracies = [], []
    for record in other_models:
        agreements = matches(attention, record.values["attention"], record.mask)
        checkpoints = [record.at(float(step)) for step in _steps(other_models)]
        curves.append(agreements[checkpoints])
        accuracies.append(record.accuracy[checkpoints])
    return np.mean(curves, axis=0), np.mean(accuracies, axis=0)


def _curves(model: Record, other_models: Sequence[Record], twin: Record) -> Rows:
    """Return the curves over the steps, with the paper's choice of A's checkpoint."""
    attention = model.values["attention"][model.best]
    seeds, accuracy = _seed_curve(attention, other_models)
    uniform = matches(attention, twin.values["relevance"], model.mask)
    return [
        _row(name, "curve", float(step), float(value))
        for name, steps, values in (
            ("seeds", _steps(other_models), seeds),
            ("accuracy", _steps(other_models), accuracy),
            ("uniform", twin.steps, uniform),
            ("accuracy, uniform", twin.steps, twin.accuracy),
        )
        for step, value in zip(steps, values, strict=True)
    ]


def _rise(model: Record, twin: Record, proxy: Float[Tensor, "N T"]) -> Rows:
    """Return when a text's keyword rises: the word with the largest number in a proxy.

    `rank`: how often it is among the top 5 % by relevance, by attention and by the twin's relevance; `size`: by
    how much its number exceeds the mean of the text's. Texts without a word that speaks for the label are left
    out. At the steps `half …`, between two checkpoints, half of the way to its last value is made.
    """
    has = proxy.masked_fill(~model.mask, -torch.inf).amax(1) > 0
    mask, keywords = model.mask[has], proxy[has]
    best = keywords.masked_fill(~mask, -torch.inf).argmax(1, keepdim=True)
    rows: Rows = []
    for name, record, quantity in _risers(model, twin):
        values = record.values[quantity][:, has]
        rank = matches(keywords, values, mask)
        mean = (values * mask).sum(-1) / mask.sum(-1)
        at_best = values.gather(-1, best.expand(len(values), -1, 1)).squeeze(-1)
        size = (at_best - mean).mean(1).numpy().astype(np.float64)
        for measure, curve in (("rank", rank), ("size", size)):
            rows += [
                _row(f"{measure} {name}", "keyword", float(step), float(value))
                for step, value in zip(record.steps, curve, strict=True)
            ]
            half = crossing(record.steps, curve, curve[0] + (curve[-1] - curve[0]) / 2, curve)
            # Where nothing rises, half of it is never reached.
            when = half.between if curve[-1] > curve[0] else np.nan
            rows.append(_row(f"half {measure} {name}", "keyword", when, float(curve[-1])))
    return rows


def _risers(model: Record, twin: Record) -> Iterator[tuple[str, Record, str]]:
    yield "relevance", model, "relevance"
    yield "attention", model, "attention"
    yield "relevance, uniform", twin, "relevance"
