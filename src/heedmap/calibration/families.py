"""Families of planted models: what is true of their maps is known, because of how they are made.

A family is a construction, a plant one model of it. Each module of `MODULES` declares its families in a tuple
`FAMILIES`; `families` collects them, `plants` lays out the grid, and `make` makes one plant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np

from heedmap.calibration.plants import Plant
from heedmap.data.corpus import Corpus, Split
from heedmap.errors import InputError
from heedmap.models.trace import Model

# right: the map's words make the answer, and the weights matter.
# words: they are the right words, but the weights do not make the answer.
# part: right for some classes, or it shows one of several sufficient words.
# between: right in three quarters of the texts. wrong: right in at most half of them.
# open: it cannot be told, even in principle.
Truth = Literal["right", "words", "part", "between", "wrong", "open"]
Choices = Mapping[str, Sequence[Any]]  # values to draw from, by a `Plant`'s field

# Modules with a tuple FAMILIES, in the order of the page.
MODULES: tuple[str, ...] = (
    "cue_families",
    "everywhere",
    "two_words",
    "xor",
    "uneven_classes",
    "counter_evidence",
    "weights_apart",
    "learned",
    "transformer_families",
    "transformer_evidence",
    "pairs",
    "hierarchical",
    "corpora",
    "bags",
    "numbers",
    "pictures",
    "pair_transformers",
)

# What a model's ease may depend on is drawn for each plant, independently.
CHOICES: Choices = {
    "classes": (2, 2, 2, 3, 5, 20),
    "margin": (1.5, 3.0, 6.0, 12.0),
    "sharpness": (2.0, 3.0, 4.0, 6.0),
    "deciding": (1, 2, 3),
    "opposing": (False, True),
    "noise": (0.0, 0.01, 0.05),
    "length": (10, 16, 30),
    "texts": (40, 60, 120, 200),
}
FIRST_SEED = 200  # plants of smaller seeds were looked at while the form of the rule was sought
ROOM = 5  # words per cue, on average
MANY_CLASSES = 10  # from so many on there are MANY_TEXTS texts, so that each class has enough
MANY_TEXTS = 200


@dataclass(frozen=True, eq=False)
class PlantedModel:
    """A model and the texts on which it is audited (as it reads them: `spaced` for transformers).

    `admitted`: whether it is what it should be, by checks that use nothing of what the verdict measures;
    `why_not`: else the reason, in a few words.
    """

    model: Model
    split: Split
    admitted: bool = True
    why_not: str = ""


# The corpus is that of `Plant.host`: its training texts are written into or trained on; None for drawn texts.
Maker = Callable[[Plant, Corpus | None], PlantedModel]


@dataclass(frozen=True, eq=False)
class Family:
    """One construction.

    Attributes:
        name: short, unique; names the family in a `Plant` and on the page.
        truth: what is true of its maps.
        recipe: how a plant is made, in one or two sentences.
        reason: why the truth holds, in one or two sentences.
        makers: by encoder.
        choices: what to draw a plant's fields from, where it is not `CHOICES`.
        encoder_choices: the same for single encoders; goes before `choices`.
        on_corpora: made of each corpus that is given, and of no drawn texts.
        times: how many times as many plants as of other families.
    """

    name: str
    truth: Truth
    recipe: str
    reason: str
    makers: Mapping[str, Maker]
    choices: Choices = field(default_factory=dict)
    encoder_choices: Mapping[str, Choices] = field(default_factory=dict)
    on_corpora: bool = False
    times: int = 1


def families() -> dict[str, Family]:
    """Return all families by name."""
    result: dict[str, Family] = {}
    for module in MODULES:
        for family in import_module(f"heedmap.calibration.{module}").FAMILIES:
            assert family.name not in result, f"two families are named {family.name!r}"
            result[family.name] = family
    return result


def plants(
    seeds: int, hosts: Mapping[str, Corpus] | None = None, names: Sequence[str] | None = None
) -> list[Plant]:
    """Return the grid: `seeds` plants per family and encoder, `times` as many of some families.

    Those of families on corpora are shared out among `hosts`, one for each corpus at least. `names`: of the
    families; by default all.

    Raises:
        InputError: a family that is not there.
    """
    by_name = families()
    if unknown := [name for name in names or () if name not in by_name]:
        raise InputError(f"expected families of plants, got {unknown[0]!r}")
    return [
        draw(family, encoder, seed, host)
        for family in by_name.values()
        if names is None or family.name in names
        for host in (list(hosts or ()) if family.on_corpora else [""])
        for encoder in family.makers
        for seed in range(
            FIRST_SEED,
            FIRST_SEED + max(1, seeds * family.times // (len(hosts) if host and hosts else 1)),
        )
    ]


def draw(family: Family, encoder: str, seed: int, host: str = "") -> Plant:
    """Return a plant whose difficulty is drawn by its seed."""
    rng = np.random.default_rng([seed, *f"{family.name} {encoder} {host} difficulty".encode()])
    choices = {**CHOICES, **family.choices, **family.encoder_choices.get(encoder, {})}
    # By an index, not by `rng.choice`, which would make numpy's types of the values.
    fields = {name: values[int(rng.integers(len(values)))] for name, values in choices.items()}
    cues = fields["deciding"] + fields["opposing"]
    if ROOM * cues > fields["length"]:  # the cues are no more than a third of nearly every text
        fields["length"] = max(choices["length"])
    if fields["classes"] >= MANY_CLASSES:
        fields["texts"] = max(fields["texts"], MANY_TEXTS)
    return Plant(family.name, encoder, seed, host=host, **fields)


def make(plant: Plant, hosts: Mapping[str, Corpus] | None = None) -> PlantedModel:
    """Make a plant; the same plant is always made the same.

    Raises:
        InputError: a family, an encoder of it or a corpus that is not there.
    """
    by_name = families()
    if plant.family not in by_name:
        raise InputError(f"expected a family of plants, got {plant.family!r}")
    makers = by_name[plant.family].makers
    if plant.encoder not in makers:
        raise InputError(
            f"{plant.family}: expected one of {', '.join(makers)}, got {plant.encoder!r}"
        )
    if plant.host and plant.host not in (hosts or {}):
        raise InputError(f"{plant}: expected the corpus {plant.host!r} among the hosts")
    return makers[plant.encoder](plant, (hosts or {})[plant.host] if plant.host else None)
