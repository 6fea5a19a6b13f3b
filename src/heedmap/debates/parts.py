"""The parts of the debate: the audit and the further trainings of an LSTM, and those of the papers."""

from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from heedmap import papers
from heedmap.experiments.questions.adversary_by_model import ENCODERS, NORMALISERS
from heedmap.experiments.registry import registered
from heedmap.papers.kit.debate_part import DebateInput, Options, Part
from heedmap.papers.kit.registry import names
from heedmap.papers.kit.result import Result, Table
from heedmap.papers.kit.timing import Timer
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.conclusions import read_findings
from heedmap.runs.folder import RunFolder
from heedmap.runs.retrain import retrain
from heedmap.runs.run import Run
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings

MODEL = {"encoder": "lstm", "score": "additive"}
# Necessity, stability, guidance and trained adversaries are asked by Wiegreffe & Pinter's part.
QUESTIONS = ("transfer", "adversary_by_model")
WITH_WORDS = "deception"
QUICK: Options = {"epochs": 6, "instances": 200}
COLUMNS = {
    "question": "what is asked",
    "value": "the number",
    "low": "lower end",
    "high": "upper end",
}


@cache
def debate_parts() -> dict[str, Part]:
    """Return all parts by name: ours, then the papers' by year."""
    modules = (f"{papers.__name__}.{name.replace('-', '_')}.debate" for name in names())
    theirs = [
        part
        for module in modules
        if find_spec(module) is not None
        for part in import_module(module).PARTS
    ]
    ordered = [*OURS, *sorted(theirs, key=lambda part: (part.year, part.name))]
    return {part.name: part for part in ordered}


def _trained(subject: DebateInput, out: Path, options: Options) -> Run:
    return train(subject.corpus, out=out, **_recipe(options))


def _instances(options: Options) -> int:
    return int(options.get("instances", AuditSettings.model_fields["instances"].default))


def _audit(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    audit(_trained(subject, out, options), instances=_instances(options))


def _retrain(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    run = _trained(subject, out, options)
    settings: dict[str, Any] = {**options, "instances": _instances(options)}
    settings.pop("epochs", None)
    retrain(run, _questions(subject), forbidden=subject.forbidden, **settings, **how)


def _questions(subject: DebateInput) -> tuple[str, ...]:
    return (*QUESTIONS, WITH_WORDS) if subject.forbidden else QUESTIONS


def _audit_seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    recipe = _recipe(options)
    return timer.training(**recipe) + timer.audit(_instances(options), **recipe)


def _retrain_seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    chosen = {
        name: value for name, value in options.items() if name in RetrainSettings.model_fields
    }
    settings = RetrainSettings.of(forbidden=subject.forbidden, **chosen)
    recipe, instances = _recipe(options), _instances(options)
    models = len(ENCODERS) * len(NORMALISERS)  # in each of which adversaries are sought
    return (
        timer.retraining(_questions(subject), settings, instances, **recipe)
        + timer.audit(instances, ("adversary",), **recipe) * models
    )


def _recipe(options: Options) -> dict[str, Any]:
    return {**MODEL, **{name: value for name, value in options.items() if name == "epochs"}}


def _read(folder: Path, *, further: bool) -> Result | None:
    """Return the findings of the audit, or of the further trainings; None until all of them are there."""
    if not folder.is_dir() or read_findings(RunFolder(folder)) is None:
        return None
    finished = open_audit(folder)
    if further and not {*QUESTIONS} <= {*finished.tables}:
        return None
    trains = {name for name, experiment in registered().items() if experiment.variants is not None}
    findings = [finding for finding in finished.findings if (finding.key in trains) == further]
    table = Table.of(
        "The further trainings" if further else "The audit",
        findings,
        {
            "question": lambda finding: finding.question,
            "what is measured": lambda finding: finding.measure,
            "number": lambda finding: finding.number,
            "reading": lambda finding: finding.reading,
        },
        labels=4,
    )
    line = finished.bottom_line
    rows = pd.DataFrame([{name: getattr(f, name) for name in COLUMNS} for f in findings])
    notes = [] if further else [f"The audit's answer: {line.answer}. {line.sentence}"]
    return Result(table.title, notes, table, [table], [], rows, table, COLUMNS)


OURS = [
    Part(
        "audit",
        "heedmap: the audit of an LSTM with additive scores",
        "May its map be shown?",
        0,
        QUICK,
        lambda subject: "",
        _audit,
        _audit_seconds,
        partial(_read, further=False),
        "report.html",
    ),
    Part(
        "retrain",
        "heedmap: further trainings of that LSTM",
        "Do its weights suit other models, with which models are adversaries easy, can it be made to deceive?",
        0,
        {**QUICK, "seeds": 2, "penalties": (1.0,)},
        DebateInput.refuse_pairs,
        _retrain,
        _retrain_seconds,
        partial(_read, further=True),
        "report.html",
        "audit",
    ),
]
