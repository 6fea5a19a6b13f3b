"""Vashishth et al.'s learned, uniform and permuted attention as a part of the debate."""

from pathlib import Path
from typing import Any

from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer
from heedmap.papers.vashishth.paper import PAPER, cells, reproduce
from heedmap.papers.vashishth.settings import VashishthSettings

SIZES = ("epochs", "batch_size", "learning_rate", "hidden_size", "embedding_size")


def _task(subject: DebateInput) -> str:
    return "pair" if subject.corpus.pairs else "single"


def _refusal(subject: DebateInput) -> str:
    return "it reads texts of words, and these are sentences" if subject.corpus.sentences else ""


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    corpora: dict[str, Any] = {_task(subject): subject.corpus}
    reproduce(**corpora, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    corpus = subject.corpus
    settings = VashishthSettings.of(**{_task(subject): corpus.fingerprint()}, **options)
    texts = len(corpus.splits["train"])
    share = min(1.0, (settings.train_texts or texts) / texts)
    sizes = {name: getattr(settings, name) for name in SIZES}
    return timer.side_by_side([share * timer.training(**sizes)] * len(cells(settings)))


PARTS = [
    Part(
        "vashishth",
        "Vashishth et al. (2019): Attention Interpretability Across NLP Tasks",
        "Is attention needed here: what do uniform and permuted weights cost, at training and at test?",
        2019,
        {"epochs": 6},
        _refusal,
        _run,
        _seconds,
        reader(PAPER),
    )
]
