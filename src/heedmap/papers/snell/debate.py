"""Snell et al.'s account of a classifier's attention as a part of the debate."""

from pathlib import Path

from heedmap.papers.kit.debate_part import DebateInput, Options, Part
from heedmap.papers.kit.result import Result
from heedmap.papers.kit.timing import Timer
from heedmap.papers.snell.classification import EXPERIMENT, recipe, reproduce, trainings
from heedmap.papers.snell.settings import QUICK, ClassificationSettings

COMPARING = 6.0  # seconds per seed: maps of all seeds are compared at every recorded step


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce(subject.corpus, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    corpus = subject.corpus
    settings = ClassificationSettings.of(
        fingerprint="", data=corpus.settings, classes=tuple(corpus.classes), **options
    )
    cells = [timer.training(**recipe(cell, corpus, settings)) for cell in trainings(settings)]
    return timer.side_by_side(cells) + COMPARING * settings.seeds


def _read(folder: Path) -> Result | None:
    reproduction = EXPERIMENT.read(folder)
    # The result is written after the last seed.
    if reproduction is None or not (folder / "result.md").exists():
        return None
    return EXPERIMENT.result(reproduction)


PARTS = [
    Part(
        "snell",
        "Snell et al. (2021): Approximating How Single Head Attention Learns",
        "Does the relevance of words in a twin with uniform attention foretell the attention?",
        2021,
        {**QUICK["classification"], "steps": 300, "proxy_epochs": 20},
        DebateInput.refuse_pairs,
        _run,
        _seconds,
        _read,
    )
]
