"""Train all probes in one pass over the sentences, on the trees and on the control task, and judge them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.data.trees import DependencyTree, HeldOut
from heedmap.experiments.generators import named_generator
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.word_attention import read_attention, with_random_layers
from heedmap.papers.clark.control import with_control_heads
from heedmap.papers.clark.probes import ProbeTraining, Sentence, new_probes
from heedmap.papers.clark.relations import control_rules
from heedmap.papers.clark.texts import Vectors
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import at

TASKS = ("trees", "control")
RANDOM = "random layers: "


@dataclass(frozen=True)
class _Judged:
    """A probe that is trained on a task, reading one of the models."""

    name: str
    task: str
    reads_random: bool
    training: ProbeTraining


def probe_rows(
    model: TransformerClassifier, vectors: Vectors, trees: HeldOut, seed: int
) -> list[Row]:
    """Train every probe for one epoch and return a row for each, with its right words per test sentence."""
    models = {False: model, True: with_random_layers(model, seed)}
    heads = model.heads * len(model.calls)
    size = vectors.of(trees.train[0]).shape[-1]
    probes = [
        _Judged((RANDOM if reads_random else "") + name, task, reads_random, ProbeTraining(probe))
        for task in TASKS
        for reads_random in models
        for name, probe in new_probes(heads, size, seed).items()
        if not (reads_random and name.startswith("distances"))
    ]
    rules = control_rules(trees, 0)
    order = named_generator(seed, "clark order").permutation(len(trees.train))
    total = len(trees.train) + len(trees.test)
    for number, i in enumerate(order):
        at(number, total, "learning")
        gold = _gold(trees.train[i], rules)
        for reads_random, sentence in _read(models, vectors, trees.train[i]).items():
            for probe in probes:
                if probe.reads_random == reads_random:
                    probe.training.step(sentence, gold[probe.task])
    correct: list[list[int]] = [[] for _ in probes]
    for number, tree in enumerate(trees.test, len(trees.train)):
        at(number, total, "judging")
        gold, sentences = _gold(tree, rules), _read(models, vectors, tree)
        for counts, probe in zip(correct, probes, strict=True):
            counts.append(probe.training.right(sentences[probe.reads_random], gold[probe.task]))
    scored = [len(tree.scored) for tree in trees.test]
    return [
        {
            "probe": probe.name,
            "task": probe.task,
            "accuracy": sum(counts) / sum(scored),
            "n": sum(scored),
            "correct": counts,
            "scored": scored,
        }
        for counts, probe in zip(correct, probes, strict=True)
    ]


def _gold(tree: DependencyTree, rules: dict[str, int]) -> dict[str, Sequence[int]]:
    return {"trees": tree.heads, "control": with_control_heads(tree, rules).heads}


def _read(
    models: dict[bool, TransformerClassifier], vectors: Vectors, tree: DependencyTree
) -> dict[bool, Sentence]:
    of_words = vectors.of(tree)
    return {
        reads_random: Sentence(
            tree, read_attention(model, tree.pieces).of_words(len(tree)).cpu(), of_words.cpu()
        )
        for reads_random, model in models.items()
    }


def chance(trees: Sequence[DependencyTree]) -> float:
    """Return the accuracy of guessing one of the other words."""
    guesses = [1 / (len(tree) - 1) for tree in trees for _ in tree.scored]
    return float(np.mean(guesses))
