"""The one page of a sweep: the answer about each run, its numbers, and a figure per question."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from heedmap.experiments.levels import LEVEL_WORDS, SIGNS, UNJUDGED
from heedmap.papers.kit.result import Result, Table
from heedmap.report.grid_figures import bars
from heedmap.report.wording import plural
from heedmap.runs.audited import Audit
from heedmap.sweeps.plan import Plan, SweepRun

Row = dict[str, Any]
COLUMNS = {
    "run": "name of the run, and its folder",
    "data": "where its texts are",
    "model": "encoder, score and normaliser, or a transformer and its view",
    "seed": "of the weights and of the audit's draws",
    "answer": "that of the bottom line",
    "key": "short name of a question",
    "question": "what is asked",
    "measure": "what the value is",
    "value": "the mean over texts",
    "low": "lower end of its 95 % interval over texts",
    "high": "upper end",
    "n": "texts that have a value",
    "level": "whether it speaks for or against showing the map",
}


def rows_of(run: SweepRun, audit: Audit) -> list[Row]:
    """Return a row per finding of a run's audit."""
    model = (
        f"{run.encoder}, {run.score}, {run.normaliser}"
        if run.model is None
        else f"{run.model}, {run.view}"
    )
    shared = {
        "run": str(run),
        "data": run.data,
        "model": model,
        "seed": run.seed,
        "answer": audit.bottom_line.answer,
    }
    fields = ("key", "question", "measure", "value", "low", "high", "n", "level")
    return [
        {**shared, **{name: getattr(finding, name) for name in fields}}
        for finding in audit.findings
    ]


def make_result(plan: Plan, rows: list[Row], notes: list[str]) -> Result:
    """Make the page of the rows of all runs, in the order of the plan."""
    frame = pd.DataFrame(rows, columns=[*COLUMNS])
    keys = list(dict.fromkeys(frame["key"]))
    topics = {key: str(frame[frame["key"] == key]["measure"].iloc[0]) for key in keys}
    by_run = {str(run): frame[frame["run"] == str(run)] for run in plan.runs}
    judged = set(frame[frame["level"] != UNJUDGED]["key"])
    decisive = [key for key in keys if key in judged]
    measures = "".join(f"“{_heading(key)}”: {topics[key]}. " for key in decisive)
    summary = _table("All runs", by_run, decisive, measures)
    answers = frame.drop_duplicates("run")["answer"].value_counts()
    counted = ", ".join(
        f"“{answer}” for {plural(count, 'run')}" for answer, count in sorted(answers.items())
    )
    figures = [
        bars(
            [
                {
                    "dataset": row["data"],
                    "series": row["model"],
                    "seed": row["seed"],
                    "value": row["value"] if math.isfinite(row["low"]) else math.nan,
                }
                for row in rows
                if row["key"] == key
            ],
            key=key.replace("_", "-"),
            title=str(frame[frame["key"] == key]["question"].iloc[0]),
            measure=topics[key],
        )
        for key in keys
        if frame[frame["key"] == key]["low"].notna().any()
    ]
    return Result(
        title=f"A sweep of {len(plan.runs)} runs",
        notes=[f"May the map be shown? The answer is {counted}.", *notes],
        summary=summary,
        sections=[summary, _table("All numbers", by_run, keys)],
        figures=figures,
        rows=frame,
        latex=summary,
        columns=COLUMNS,
        lead="Run by run: the answer, the numbers, and each number by model and data.",
        answers_first=True,
    )


def _table(
    title: str, by_run: Mapping[str, pd.DataFrame], keys: Sequence[str], measures: str = ""
) -> Table:
    """Return a line per run with its answer, and its number of each question of these keys."""
    signs = ", ".join(f"{sign} {LEVEL_WORDS[level]}" for level, sign in SIGNS.items())
    return Table(
        title,
        ["run", "answer", *map(_heading, keys)],
        [
            [name, str(numbers["answer"].iloc[0]), *(_number(numbers, key) for key in keys)]
            for name, numbers in by_run.items()
        ],
        note=f"{measures}Each number is a mean over texts. The sign before it says what it means for the map: "
        f"{signs}. One in brackets has no interval and is in no figure: the report of the run says why.",
        labels=2,
        links={name: f"{name}/report.html" for name in by_run},
    )


def _heading(key: str) -> str:
    return key.replace("_", " ")


def _number(numbers: pd.DataFrame, key: str) -> str:
    """Return a run's number of a question, with the sign of its level; in brackets without an interval."""
    asked = numbers[numbers["key"] == key]
    if asked.empty or math.isnan(asked["value"].iloc[0]):
        return ""
    value, low, level = (asked[name].iloc[0] for name in ("value", "low", "level"))
    text = f"{value:.3f}" if math.isfinite(low) else f"({value:.3f})"
    return f"{SIGNS[level]} {text}"
