"""Drozdyuk et al.'s sparse transformers as a part of the debate."""

from pathlib import Path

from heedmap.papers.drozdyuk.forecast import cell_seconds
from heedmap.papers.drozdyuk.paper import PAPER, reproduce
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce(subject.corpus, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    corpus = subject.corpus
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    return timer.side_by_side(cell_seconds(corpus, settings))


PARTS = [
    Part(
        "drozdyuk",
        "Drozdyuk et al.: Is Sparse Attention a Better Explanation?",
        "Do sparse weights explain more: what do shuffled, random, adversarial and opposite keys cost?",
        2022,
        {
            "seeds": 3,
            "activations": ("softmax", "entmax15"),
            "size": 64,
            "feed_forward": 128,
            "epochs": 8,
            "learning_rate": 1e-3,
            "adversary_epochs": 3,
        },
        DebateInput.refuse_pairs,
        _run,
        _seconds,
        reader(PAPER),
    )
]
