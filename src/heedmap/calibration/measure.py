"""Audit a plant: where each finding stands between chance and ceiling. One file of numbers per plant."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from heedmap.calibration.by_hand import planted_by_hand
from heedmap.calibration.plants import (
    RIGHT,
    TRAINED,
    TRANSFORMERS,
    WRONG,
    Family,
    Kind,
    Plant,
    vocabulary_of,
    write_texts,
)
from heedmap.calibration.trained import TRAIN, is_admitted, trained_plant
from heedmap.calibration.trained_transformer import trained_transformer
from heedmap.calibration.transformer import planted_transformer, spaced
from heedmap.data.corpus import Split
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.findings import ByValue
from heedmap.experiments.registry import applicable
from heedmap.experiments.results import make_findings
from heedmap.files import manifest
from heedmap.models.trace import Model
from heedmap.settings import AuditSettings
from heedmap.terminal.progress import portion, track

SHARES = (0.25, 0.5, 0.75)  # ρ of the partly faithful
MOST_CLASSES = 5
# They say nothing of the map on trial on the scale from chance to ceiling; or, of plausibility, nothing of what
# the model rests on, though of planted texts it would seem so: there people would mark what decides.
NOT_ASKED = ("scan", "mix", "instead", "heads", "eraser", "plausibility")


@dataclass(frozen=True, eq=False)
class Number(ByValue):
    """A finding's share of the attainable, with its interval; `low` and `high` are NaN where there is none."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Measured(ByValue):
    """The numbers of one plant. `accuracies`: of a trained one, see `trained_plant`."""

    plant: Plant
    numbers: dict[str, Number]
    accuracies: tuple[float, float] | None = None
    confidence: float = math.nan

    @property
    def admitted(self) -> bool:
        """Whether the plant is what it should be."""
        return self.accuracies is None or is_admitted(self.accuracies)


def plants(seeds: int, classes: int | None = None) -> list[Plant]:
    """Return the plants of a calibration: `seeds` of each kind by hand, fewer of the slower families.

    Of a trained family half as many are right, and a sixth as many of each other kind.

    What a model's ease may depend on (classes, margin, sharpness, deciding words, noise, length, number of
    texts) is drawn for each, independently. `classes`: of a user's data, at most MOST_CLASSES are used.
    """
    kinds: list[tuple[Kind, float]] = [
        *((k, 1.0) for k in RIGHT),
        *((k, 0.0) for k in WRONG),
        *(("partly", s) for s in SHARES),
    ]
    by_hand: list[tuple[Family, int]] = [("by hand", seeds), ("transformer by hand", seeds // 4)]
    return [
        _drawn(family, kind, share, seed, classes)
        for family, count in by_hand
        for kind, share in kinds
        for seed in range(count)
    ] + [
        _drawn(family, kind, share, seed, classes)
        for family in TRAINED
        for kind, share in kinds
        if kind != "proportional"  # no trained model's values are known
        for seed in range(seeds // 2 if kind == "faithful" else seeds // 6)
    ]


def _drawn(family: Family, kind: Kind, share: float, seed: int, classes: int | None) -> Plant:
    rng = np.random.default_rng([seed, *f"{family} {kind} {share}".encode()])
    slow = family in TRANSFORMERS
    drawn = int(rng.choice([2, 2, 3] if family in TRAINED else [2, 2, 2, 3, 5]))
    return Plant(
        family,
        kind,
        share,
        seed,
        classes=drawn if classes is None else min(classes, MOST_CLASSES),
        margin=float(rng.choice([1.5, 3.0, 6.0, 12.0])),
        sharpness=float(rng.choice([2.0, 3.0, 4.0, 6.0])),
        deciding=int(rng.integers(1, 4)),
        opposing=bool(rng.integers(2)),
        noise=float(rng.choice([0.0, 0.01, 0.05])),
        length=int(rng.choice([10, 16] if slow else [10, 16, 30])),
        texts=int(rng.choice([20, 40] if slow else [30, 60, 120])),
    )


def measure(plant: Plant, folder: Path, own: Split | None) -> Measured:
    """Make and audit a plant, or read its numbers if they are in the folder."""
    path = folder / plant.file
    if (kept := read_measured(path)) is not None and kept.plant == plant:
        return kept
    split = write_texts(plant, plant.texts, "test", own)
    training = 0.5 if plant.is_trained else 0.0
    with portion(training):
        model, accuracies = _made(plant, split, own)
    if plant.is_transformer:
        split = spaced(split)
    settings = AuditSettings(
        seed=plant.seed,
        gradient_path="open" if plant.is_transformer else "closed",
        descent_steps=0,
        search_restarts=2,
        search_steps=15,
        curve=(0.01,),
    )
    evidence = Evidence(model, split, settings)
    names = [name for name in applicable(model, split) if name not in NOT_ASKED]
    with portion(1 - training):
        tables = {name: evidence.table(name) for name in track(names)}
    confidence = [max(row) for row in tables["instances"]["probabilities"].to_pylist()]
    numbers = {
        finding.key: Number(finding.relative.share, finding.relative.low, finding.relative.high)
        for finding in make_findings(tables, settings, model.classes)
        if finding.relative is not None
    }
    measured = Measured(plant, numbers, accuracies, float(np.mean(confidence)))
    manifest.write(path, _to_json(measured))
    return measured


def _made(
    plant: Plant, split: Split, own: Split | None
) -> tuple[Model, tuple[float, float] | None]:
    if plant.is_trained:
        vocabulary = vocabulary_of(plant, write_texts(plant, TRAIN, "train", own), split)
        train = trained_transformer if plant.is_transformer else trained_plant
        return train(plant, vocabulary, own)
    make = planted_transformer if plant.is_transformer else planted_by_hand
    return make(plant, split, vocabulary_of(plant, split)), None


def _to_json(measured: Measured) -> str:
    content = {
        "plant": asdict(measured.plant),
        "numbers": {
            key: [None if math.isnan(x) else x for x in (n.share, n.low, n.high)]
            for key, n in measured.numbers.items()
        },
        "accuracies": measured.accuracies,
        "confidence": measured.confidence,
    }
    return json.dumps(content, indent=1, allow_nan=False)


def read_measured(path: Path) -> Measured | None:
    """Read a file of numbers; None if there is none, or it is damaged."""
    try:
        content = json.loads(manifest.read(path))
        numbers = {
            key: Number(*(math.nan if x is None else float(x) for x in three))
            for key, three in content["numbers"].items()
        }
        accuracies = content["accuracies"]
        return Measured(
            Plant(**content["plant"]),
            numbers,
            None if accuracies is None else (accuracies[0], accuracies[1]),
            content["confidence"],
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
