"""Vashishth et al.'s table, beside chance, and their claims; which numbers they print could not be read."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from heedmap.experiments.seed_intervals import bounded_interval, level_of, mean_interval
from heedmap.experiments.seeds import seed_mean
from heedmap.papers.kit.claims import Check, Side, apart, judged
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Estimate, Result, Table, signed
from heedmap.papers.vashishth.settings import ATTENTIONS, TASKS, VashishthSettings
from heedmap.report.charts import Figure
from heedmap.report.grid_figures import bars
from heedmap.report.wording import plural

MARGIN = 0.02  # of accuracy: what a change must cost less than to cost nothing
# Training and test of each row of the table; the first is what the others are compared with.
WAYS = {
    ("learned", "learned"): "learned, as it is",
    ("learned", "uniform"): "learned, uniform at test alone",
    ("learned", "permuted"): "learned, permuted at test alone",
    ("uniform", "uniform"): "uniform at training and test",
    ("permuted", "permuted"): "permuted at training and test",
}
CHANGES = [way for way in WAYS if way != ("learned", "learned")]
COLUMNS = {
    "task": "single, pair or generation",
    "data": "the data set",
    "training": "attention at training",
    "seed": "of the training",
    "test": "attention at test",
    "accuracy": "share of right classes, or of right target sub-words given those before them",
    "commonest": "accuracy of one answer to everything",
    "n": "test texts, or target sub-words",
}
FOUND = "So they say; their numbers could not be read."


@dataclass(frozen=True)
class Vashishth(CellReproduction[VashishthSettings]):
    """The accuracy of every training under each attention that it is tested with."""

    @property
    def tasks(self) -> list[str]:
        """The tasks with rows."""
        return [task for task in TASKS if any(row["task"] == task for row in self.rows)]

    def accuracies(self, task: str, training: str, test: str) -> dict[int, float]:
        """Return the accuracy of each seed."""
        return {
            row["seed"]: row["accuracy"]
            for row in self.rows
            if (row["task"], row["training"], row["test"]) == (task, training, test)
        }

    def costs(self, task: str, way: tuple[str, str]) -> list[float]:
        """Return by how much the accuracy falls, of each seed that has both."""
        own, other = self.accuracies(task, "learned", "learned"), self.accuracies(task, *way)
        return [own[seed] - other[seed] for seed in own if seed in other]

    def shares(self, task: str, way: tuple[str, str]) -> list[float]:
        """Return the same as a share of what the model has learned: of its accuracy above one answer's."""
        own, other = self.accuracies(task, "learned", "learned"), self.accuracies(task, *way)
        chance = self.row_of(task)["commonest"]
        return [
            (own[seed] - other[seed]) / (own[seed] - chance) if own[seed] > chance else math.nan
            for seed in own
            if seed in other
        ]

    def row_of(self, task: str) -> dict[str, float]:
        """Return a row of the task, whose chance and count are those of all."""
        row: dict[str, float] = next(row for row in self.rows if row["task"] == task)
        return row

    @property
    def missing(self) -> int:
        """How many trainings are still to be run."""
        trainings = {(row["task"], row["training"], row["seed"]) for row in self.rows}
        return self.settings.seeds * len(self.settings.tasks) * len(ATTENTIONS) - len(trainings)

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper."""
        return [
            "the sizes of models and samples are ours",
            "of translators the share of right sub-words instead of BLEU",
            "no random weights, no self-attention, no question answering with hierarchical models, "
            "no ratings by people",
        ]

    @cached_property
    def learned(self) -> Learned:
        """Whether the models with learned attention have learned; the others may well not."""
        return Learned({
            TASKS[task]: {
                seed: [accuracy(value, self.row_of(task)["commonest"], int(self.row_of(task)["n"]))]
                for seed, value in self.accuracies(task, "learned", "learned").items()
            }
            for task in self.tasks
        })  # fmt: skip


def result(vashishth: Vashishth) -> Result:
    """Make the result that all files show; claims about tasks that there are no data of are left out."""
    tasks = vashishth.settings.tasks
    has_single, has_others = "single" in tasks, tasks != ["single"]
    claims = {
        _costs_nothing: has_single,
        _is_needed: has_others,
        _costs_least: has_single and has_others,
    }
    made = vashishth.make_result(
        f"Vashishth et al.: attention across tasks, {vashishth.name}",
        [
            _accuracy_table(vashishth),
            _cost_table(vashishth),
            *(judge(vashishth) for judge, has_data in claims.items() if has_data),
        ],
        figures=_figures(vashishth),
        rows=pd.DataFrame(vashishth.rows),
        columns=COLUMNS,
    )
    return replace(made, lead="Task by task. The paper's own numbers could not be read.")


def _head(vashishth: Vashishth, task: str) -> str:
    name = str(vashishth.row_of(task)["data"])
    return vashishth.learned.marked(f"{TASKS[task]}, {name}", TASKS[task])


def _accuracy_table(vashishth: Vashishth) -> Table:
    table = Table.of(
        "How well do models do with another attention?",
        WAYS,
        {
            "attention": lambda way: WAYS[way],
            **{
                _head(vashishth, task): lambda way, task=task: seed_mean(  # type: ignore[misc]
                    [*vashishth.accuracies(task, *way).values()], share=True
                )
                for task in vashishth.tasks
            },
        },
        "Test accuracy of classes, or of target sub-words given the right ones before; means and 95 % "
        f"intervals over seeds. Permuted at test: the mean of {plural(vashishth.settings.draws, 'draw')}. The "
        "last line is the floor.",
    )
    floor = [
        "one answer to everything",
        *(f"{vashishth.row_of(task)['commonest']:.3f}" for task in vashishth.tasks),
    ]
    return Table(table.title, table.heads, [*table.lines, floor], table.note)


def _cost_table(vashishth: Vashishth) -> Table:
    return Table.of(
        "What share of what they have learned does it cost?",
        CHANGES,
        {
            "attention": lambda way: WAYS[way],
            **{
                _head(vashishth, task): lambda way, task=task: seed_mean(  # type: ignore[misc]
                    vashishth.shares(task, way)
                )
                for task in vashishth.tasks
            },
        },
        "The accuracy lost, as a share of the learned model's accuracy above that of one answer to everything: "
        "0 costs nothing, 1 all of it. This compares tasks whose accuracies have other floors and ceilings.",
    )


def _costs_nothing(vashishth: Vashishth) -> Claim:
    """Survives if each change costs single-sequence models certainly less than MARGIN."""
    checks = []
    for way in CHANGES if "single" in vashishth.tasks else ():
        costs = vashishth.costs("single", way)
        mean, (low, high) = _mean(costs), bounded_interval(costs, level_of(len(CHANGES)))
        # Both ways: the claim says less than the margin, so an interval wholly above it refutes.
        side = Side(high < MARGIN, low >= MARGIN)
        spare = Estimate(f"{MARGIN} less the cost", MARGIN - mean, MARGIN - high, MARGIN - low)
        line = _line(f"{WAYS[way]}: costs", Estimate("", mean, low, high))
        checks.append(Check(line, side, (TASKS["single"],), spare))
    return judged(
        "Of a single sequence, another attention hardly changes the accuracy: it is a gate.",
        checks,
        vashishth.learned,
        basis=f"Survives if every change certainly costs less than {MARGIN} of accuracy, at 95 % together.",
        found=FOUND,
    )


def _is_needed(vashishth: Vashishth) -> Claim:
    """Survives if each change certainly costs models of pairs and translators something."""
    tasks = [task for task in vashishth.tasks if task != "single"]
    tries = len(CHANGES) * len(tasks)
    checks = []
    for task in tasks:
        for way in CHANGES:
            costs = vashishth.costs(task, way)
            interval = bounded_interval(costs, level_of(tries))
            estimate = Estimate(f"{TASKS[task]}, {WAYS[way]}", _mean(costs), *interval)
            line = _line(f"{estimate.of}: costs", estimate)
            checks.append(Check(line, apart(interval), (TASKS[task],), estimate))
    return judged(
        "Of pairs and in generation, another attention costs accuracy.",
        checks,
        vashishth.learned,
        basis="Survives if every change certainly costs some, at 95 % together.",
        found=FOUND,
    )


def _costs_least(vashishth: Vashishth) -> Claim:
    """Survives if each change costs every other task a certainly larger share than the single sequence."""
    tasks = [task for task in vashishth.tasks if task != "single" and "single" in vashishth.tasks]
    tries = len(CHANGES) * len(tasks)
    checks = []
    for task in tasks:
        for way in CHANGES:
            pairs = zip(vashishth.shares(task, way), vashishth.shares("single", way), strict=False)
            differences = [other - single for other, single in pairs]
            interval = mean_interval(differences, level_of(tries))
            name = f"{TASKS[task]} beside single sequence, {WAYS[way]}"
            estimate = Estimate(name, _mean(differences), *interval)
            models = (TASKS[task], TASKS["single"])
            line = _line(f"{name}: share lost", estimate)
            checks.append(Check(line, apart(interval), models, estimate))
    return judged(
        "It costs less of a single sequence than of pairs and in generation.",
        checks,
        vashishth.learned,
        basis="Survives if the share lost is certainly larger for each task and change, at 95 % together.",
        found=FOUND,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _line(name: str, estimate: Estimate) -> str:
    """Return a number with the interval that decides, which is wider than that of the number alone."""
    if math.isnan(estimate.value):
        return f"{name} –"
    if math.isnan(estimate.low):
        return f"{name} {signed(estimate.value)}, no interval of one seed"
    return f"{name} {estimate._replace(of='').text}"


def _figures(vashishth: Vashishth) -> list[Figure]:
    runs: list[dict[str, Any]] = [
        {
            "dataset": vashishth.learned.marked(TASKS[task], TASKS[task]),
            "series": WAYS[way],
            "seed": index,
            "value": share,
        }
        for task in vashishth.tasks
        for way in CHANGES
        for index, share in enumerate(vashishth.shares(task, way))
    ]
    if all(math.isnan(float(run["value"])) for run in runs):  # nothing learned yet
        return []
    return [
        bars(
            runs,
            key="vashishth-cost",
            title="What does another attention cost?",
            measure="share of what was learned that is lost",
            none="costs nothing",
            caption="Of the learned model's accuracy above one answer to everything.",
            unit="comparison",
        )
    ]
