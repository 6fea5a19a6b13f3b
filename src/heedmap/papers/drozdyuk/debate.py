"""Drozdyuk et al.'s sparse transformers as a part of the debate."""

import time
from pathlib import Path

from heedmap.data.readers import SPLITS
from heedmap.huggingface.interventions import KeyAdversary
from heedmap.papers.drozdyuk.adversaries import ATTACKS, AttackObjective, key_widths
from heedmap.papers.drozdyuk.interventions import TEMPERATURES
from heedmap.papers.drozdyuk.model import (
    TransformerObjective,
    all_logits,
    new_transformer,
    numbered,
    vocabulary_of,
)
from heedmap.papers.drozdyuk.paper import PAPER, reproduce, sampled
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer
from heedmap.retraining.estimate import training_seconds
from heedmap.training.sweep import one_thread


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce(subject.corpus, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    corpus = subject.corpus
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    splits, _ = sampled(corpus, settings)
    vocabulary = vocabulary_of(splits["train"], settings)
    train, dev, test = (numbered(splits[name], vocabulary, settings) for name in SPLITS)
    seconds = []
    for activation in settings.activations:
        subject_model = new_transformer(
            settings, len(vocabulary), len(corpus.classes), activation, 0
        )
        objective = TransformerObjective(subject_model, train, dev, settings, 0)
        learning = training_seconds(objective)
        subject_model.model.eval().requires_grad_(False)
        adversary = KeyAdversary(key_widths(subject_model, train), settings.adversary_hidden)
        attacking = training_seconds(
            AttackObjective("adversarial_weights", adversary, subject_model, train, settings, 0)
        )
        with one_thread():
            start = time.perf_counter()
            all_logits(subject_model, dev)
            reading = (time.perf_counter() - start) / max(1, len(dev))
        # Recording the weights and comparing them takes about as long as reading again.
        passes = 3 * (12 + len(ATTACKS)) * len(test) + 2 * len(TEMPERATURES) * len(dev)
        seconds.append(learning + attacking * len(ATTACKS) + reading * passes)
    return timer.side_by_side(seconds * settings.seeds)


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
