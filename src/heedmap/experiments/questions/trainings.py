"""Does the answer hold for other trainings? The same model with other seeds, asked the same on the same texts.

Another seed is another model. What is true of one map need not be true of the setting: the data, the
architecture and the way of training.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.intervals import of_mean
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.instances import is_doubtful
from heedmap.experiments.registry import Experiment, make_findings, registered
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.rule import (
    Answer,
    ClassNumbers,
    MapNumbers,
    Thresholds,
    answer,
    map_numbers,
    texts_of,
)
from heedmap.files.tables import table
from heedmap.terminal.progress import in_job, plan, track

ASKED = ("instances", "highlights", "permutation", "alternatives")
STEPS = ("instances", "highlights", "permutation", "leave_one_out", "alternatives")
OF_CLASS = tuple(field.name for field in fields(ClassNumbers))

COLUMNS = Columns(
    "One row per training.",
    {
        "training": ("number, from 0", "the training, in the order in which they were given"),
        "is_weak": (
            "true or false",
            "whether it is not certain that the model predicts better than its commonest class",
        ),
        "weights": (
            "0 to 1",
            "mean change of the prediction (TVD) under shuffles of the weights; null where there is none",
        ),
        "class_{what}": (
            "list per predicted class",
            "`{what}` of the class's texts: `heedmap.experiments.rule.ClassNumbers`",
        ),
    },
    what={name: name for name in OF_CLASS},
)


def trainings(context: AuditContext) -> pa.Table:
    """Return what the rule of the bottom line reads, for each of the other trainings."""
    weak: list[bool] = []
    numbers: list[MapNumbers] = []
    for number, model in enumerate(track([*context.other_seeds.values()]), 1):
        # Without a folder: tables of another training are none of this run's.
        training_context = AuditContext(model, context.split, context.settings, context.experiments)
        with in_job(f"other training {number}"):
            plan(dict.fromkeys(STEPS, 1.0))
            tables = {name: training_context.table(name) for name in ASKED}
        instances = {"instances": tables["instances"]}
        (skill,) = make_findings(instances, context.settings, model.classes)
        weak.append(is_doubtful(skill))
        numbers.append(map_numbers(texts_of(by_text(tables))))
    weights = np.array([training_numbers.weights for training_numbers in numbers], dtype=np.float64)
    return table(
        {
            "training": range(len(numbers)),
            "is_weak": weak,
            "weights": pa.array(weights, from_pandas=True),
            **{
                f"class_{name}": [
                    [getattr(x, name) for x in training_numbers.classes]
                    for training_numbers in numbers
                ]
                for name in OF_CLASS
            },
        }
    )


def answers(trainings: pa.Table, thresholds: Thresholds) -> list[Answer]:
    """Return what the rule says of each of the other trainings."""
    return [
        "cannot tell" if row["is_weak"] else answer(numbers_of(row), thresholds)
        for row in trainings.to_pylist()
    ]


def numbers_of(row: Mapping[str, Any]) -> MapNumbers:
    """Return what the rule reads of a training from a row of the table."""
    columns = (row[f"class_{name}"] for name in OF_CLASS)
    classes = [ClassNumbers(*values) for values in zip(*columns, strict=True)]
    return MapNumbers(classes, math.nan if row["weights"] is None else row["weights"])


def told_of_trainings(
    answer_here: Answer, tables: Mapping[str, pa.Table], thresholds: Thresholds, seed: int
) -> str:
    """Say in how many trainings the answer holds, and how alike their maps are; empty without others.

    `tables`: with one row per text.
    """
    if not {"trainings", "baselines"} <= tables.keys():
        return ""
    every_answer = [answer_here, *answers(tables["trainings"], thresholds)]
    taus = tables["baselines"]["tau_other_seed"].to_numpy()
    is_known = np.isfinite(taus)
    alike = "how alike the maps are is not known"
    if is_known.any():
        clusters = text_numbers(tables["instances"])[is_known]
        low, high = of_mean(taus[is_known], clusters, seed, (-1.0, 1.0))
        between = f" [{low:z.2f}, {high:z.2f}]" if math.isfinite(low) else ""
        mean = f"{taus[is_known].mean():z.2f}{between}".replace("-", "−")
        alike = f"between this map and the others the mean τ is {mean} (1 = the same order)"
    named = ["the right words" if said == "words" else said for said in every_answer]
    count = every_answer.count(answer_here)
    return f"The answer holds in {count} of {len(every_answer)} trainings ({', '.join(named)}); {alike}."


def _cost(probe: CostProbe) -> float:
    """Return seconds: what the same experiments take for the model on trial, for each of the others."""
    costs = (registered()[name].cost for name in STEPS)
    once = sum(cost(probe) for cost in costs if cost is not None)
    return once * len(probe.context.other_seeds)


EXPERIMENT = Experiment(
    "trainings",
    trainings,
    columns=COLUMNS,
    needs=("reading", "classes"),
    place=46,
    per_text=False,
    compares=True,
    cost=_cost,
)
