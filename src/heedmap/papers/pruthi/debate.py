"""Pruthi et al.'s models that hide impermissible words, as a part of the debate."""

from pathlib import Path
from typing import Any

from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer
from heedmap.papers.pruthi.paper import PAPER, reproduce
from heedmap.papers.pruthi.settings import MODELS, TRAINING, PruthiSettings
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings

_DEFAULTS = PruthiSettings.model_fields


def _refusal(subject: DebateInput) -> str:
    return subject.refuse_pairs() or ("" if subject.forbidden else subject.missing["forbidden"])


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce(subject.corpus, out=out, forbidden=subject.forbidden, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    values = {name: options.get(name, field.default) for name, field in _DEFAULTS.items()}
    retraining = RetrainSettings.of(
        seeds=values["seeds"], penalties=values["penalties"], forbidden=subject.forbidden
    )
    instances = values["test_instances"] or AuditSettings.model_fields["instances"].default
    seconds = 0.0
    for name in values["models"]:
        recipe: dict[str, Any] = {
            **MODELS[name].model_dump(),
            **TRAINING,
            "epochs": values["epochs"],
            "batch_size": values["batch_size"],
        }
        seconds += timer.training(**recipe) + timer.audit(instances, **recipe)
        seconds += timer.retraining(("deception",), retraining, instances, **recipe)
    return seconds


PARTS = [
    Part(
        "pruthi",
        "Pruthi et al. (2020): Learning to Deceive with Attention-Based Explanations",
        "Can models use some words and hide it?",
        2020,
        {"seeds": 3, "epochs": 5, "batch_size": 32, "penalties": (1.0,), "test_instances": 200},
        _refusal,
        _run,
        _seconds,
        reader(PAPER),
    )
]
