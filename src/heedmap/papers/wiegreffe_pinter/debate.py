"""Wiegreffe & Pinter's tests as a part of the debate."""

from pathlib import Path

from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer
from heedmap.papers.wiegreffe_pinter.paper import MODEL, PAPER, QUESTIONS, reproduce
from heedmap.papers.wiegreffe_pinter.settings import WiegreffePinterSettings
from heedmap.settings.retraining import RetrainSettings

_DEFAULTS = WiegreffePinterSettings.model_fields


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce(subject.corpus, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    values = {name: options.get(name, field.default) for name, field in _DEFAULTS.items()}
    epochs = {} if values["epochs"] is None else {"epochs": values["epochs"]}
    names = ("seeds", "lambdas", "adversary_epochs", "patience")
    settings = RetrainSettings.of(**{name: values[name] for name in names})
    instances = values["test_instances"]
    return (
        timer.training(**MODEL, **epochs)
        + timer.retraining(QUESTIONS, settings, instances, **MODEL, **epochs)
        + timer.audit(instances, **MODEL, **epochs)
    )


PARTS = [
    Part(
        "wiegreffe-pinter",
        "Wiegreffe & Pinter (2019): Attention is not not Explanation",
        "Is attention needed, is it stable, does it help another model, and can a model be trained to attend "
        "elsewhere?",
        2019,
        {
            "seeds": 3,
            "epochs": 6,
            "lambdas": (0.001, 0.01),
            "adversary_epochs": 10,
            "test_instances": 200,
        },
        DebateInput.refuse_pairs,
        _run,
        _seconds,
        reader(PAPER),
    )
]
