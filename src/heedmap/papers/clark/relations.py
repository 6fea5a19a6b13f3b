"""Single heads as parsers: which follows a relation best, beside the best fixed offset, on held-out words."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.trees import DependencyTree, HeldOut
from heedmap.experiments.generators import named_generator
from heedmap.experiments.seed_intervals import LEVEL, mean_interval
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.word_attention import read_attention
from heedmap.importance.head_relations import DIRECTIONS, OFFSETS, Predictions
from heedmap.papers.clark.control import rules_of, with_control_heads
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import at

ALL = "all"
FEWEST = 20  # words of a relation, to learn from and to judge on; of fewer nothing is said


def predict(
    model: TransformerClassifier, trees: Sequence[DependencyTree], name: str
) -> Predictions:
    """Read the sentences, and predict heads by every head of attention."""

    def attention() -> Iterator[Tensor]:
        for number, tree in enumerate(trees):
            at(number, len(trees), name)
            yield read_attention(model, tree.pieces).of_words(len(tree))

    return Predictions.of(trees, attention())


def control_rules(trees: HeldOut, number: int) -> dict[str, int]:
    """Return a draw of the control task; that of number 0 is the probes'."""
    return rules_of([*trees.train, *trees.test], named_generator(0, "clark control", number))


def control_heads(trees: Sequence[DependencyTree], rules: dict[str, int]) -> NDArray[np.int16]:
    """Return the control heads of all scored words, in the order of `Predictions`."""
    heads = [
        changed.heads[word]
        for changed in (with_control_heads(tree, rules) for tree in trees)
        for word in changed.scored
    ]
    return np.array(heads, np.int16)


class RelationSearch:
    """The search for the head that follows a relation: chosen on one set of sentences, judged on another."""

    def __init__(self, trees: HeldOut, train: Predictions, test: Predictions, heads: int) -> None:
        self.trees, self.train, self.test, self.heads = trees, train, test, heads

    def rows(self, controls: int) -> list[Row]:
        """Return a row per relation, the commonest first, and one of all words."""
        in_train, in_test = (Counter(side.relation.tolist()) for side in (self.train, self.test))
        named = sorted(in_test, key=lambda name: (-in_test[name], name))
        frequent = [name for name in named if min(in_train[name], in_test[name]) >= FEWEST]
        rules = [control_rules(self.trees, number) for number in range(1, controls + 1)]
        control = [
            (
                control_heads(self.trees.train, assignment),
                control_heads(self.trees.test, assignment),
            )
            for assignment in rules
        ]
        judged = [self._row(name, len(frequent), control) for name in (ALL, *frequent)]
        rare = [
            {"relation": name, "n": in_test[name]}
            for name in sorted({*in_train, *in_test} - {*frequent})
        ]
        return judged + rare

    def _row(
        self,
        relation: str,
        tries: int,
        control: Sequence[tuple[NDArray[np.int16], NDArray[np.int16]]],
    ) -> Row:
        train, test = (self._words(side, relation) for side in (self.train, self.test))
        head, offset = self.train.best(train, self.train.true)
        right = self.test.hits(test, self.test.true)
        low, high = _joint_interval(
            right[:, head], right[:, offset], self.test.sentence[test], tries
        )
        control_accuracies, control_gains = [], []
        for train_heads, test_heads in control:
            control_head, control_offset = self.train.best(train, train_heads)
            share = self.test.hits(test, test_heads).mean(0)
            control_accuracies.append(float(share[control_head]))
            control_gains.append(float(share[control_head] - share[control_offset]))
        direction, number = divmod(head, self.train.parsers // len(DIRECTIONS))
        return {
            "relation": relation,
            "layer": number // self.heads,
            "head": number % self.heads,
            "direction": DIRECTIONS[direction],
            "accuracy": float(right[:, head].mean()),
            "offset": OFFSETS[offset - self.train.parsers],
            "offset_accuracy": float(right[:, offset].mean()),
            "gain": float(right[:, head].mean() - right[:, offset].mean()),
            "gain_low": low,
            "gain_high": high,
            "control_accuracy": float(np.mean(control_accuracies)),
            "control_gain": float(np.mean(control_gains)),
            "control_gain_largest": max(control_gains),
            "n": len(right),
        }

    def baseline_rows(self) -> list[Row]:
        """Return rows of parsers without a probe, on the trees and on the probes' control task."""
        rules = control_rules(self.trees, 0)
        heads = {
            "trees": (self.train.true, self.test.true),
            "control": tuple(control_heads(side, rules) for side in self.trees),
        }
        rows = []
        for task, (train_heads, test_heads) in heads.items():
            head, offset = self.train.best(self._words(self.train, ALL), train_heads)
            right = self.test.hits(self._words(self.test, ALL), test_heads)
            following = self.train.parsers + OFFSETS.index(1)
            parsers = {"best head": head, "best offset": offset, "right-branching": following}
            rows += [
                {"probe": name, "task": task, **per_sentence(right[:, i], self.test.sentence)}
                for name, i in parsers.items()
            ]
        return rows

    @staticmethod
    def _words(predictions: Predictions, relation: str) -> NDArray[np.bool_]:
        return np.asarray((predictions.relation == relation) | (relation == ALL))


def per_sentence(right: NDArray[np.bool_], sentence: NDArray[np.int64]) -> Row:
    """Return how many words of each sentence are right and how many there are, and the share of all."""
    scored = np.bincount(sentence)
    correct = np.bincount(sentence, weights=right, minlength=len(scored)).astype(np.int64)
    return {
        "accuracy": float(right.mean()),
        "n": len(right),
        "correct": correct.tolist(),
        "scored": scored.tolist(),
    }


def _joint_interval(
    head: NDArray[np.bool_], offset: NDArray[np.bool_], sentence: NDArray[np.int64], tries: int
) -> tuple[float, float]:
    """Return Student's interval of the gain in accuracy, over sentences, at 95 % for all tries together.

    The number of words per sentence counts as fixed.
    """
    _, numbers = np.unique(sentence, return_inverse=True)
    gains = np.bincount(numbers, weights=head.astype(float) - offset)
    low, high = mean_interval(gains.tolist(), 1 - (1 - LEVEL) / max(tries, 1))
    words = len(head) / max(len(gains), 1)
    return low / words, high / words
