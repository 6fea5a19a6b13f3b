"""Sentences whose words have a head each: dependency trees, and their split into two sets without overlap."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ROOT = -1
PUNCTUATION = "punct"


@dataclass(frozen=True)
class DependencyTree:
    """A sentence. `pieces` are its words with the white space before them: joined they are the text.

    `heads` are the numbers of the words' heads, from 0, and ROOT for the one word without a head.
    """

    pieces: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def words(self) -> list[str]:
        """Return the words without the white space before them."""
        return [piece.strip() for piece in self.pieces]

    @property
    def scored(self) -> list[int]:
        """Return the words whose head is looked for: all but punctuation and the root.

        >>> DependencyTree(("It", " works", "."), (1, ROOT, 1), ("nsubj", "root", "punct")).scored
        [0]
        """
        return [
            word
            for word, (head, relation) in enumerate(zip(self.heads, self.relations, strict=True))
            if head != ROOT and relation != PUNCTUATION
        ]


class HeldOut(NamedTuple):
    """Sentences to learn from, and others to judge on."""

    train: list[DependencyTree]
    test: list[DependencyTree]


def fault_of(heads: Sequence[int]) -> str | None:
    """Return why heads are those of no tree; None if they are.

    >>> fault_of([1, ROOT]), fault_of([1, 0]), fault_of([ROOT, 2, 1])
    (None, 'no word is the root', 'words 2, 3 are in a circle')
    """
    if outside := [word for word, head in enumerate(heads) if not ROOT <= head < len(heads)]:
        return f"word {outside[0] + 1} has the head {heads[outside[0]] + 1} of {len(heads)} words"
    roots = [word + 1 for word, head in enumerate(heads) if head == ROOT]
    if len(roots) != 1:
        listed = ", ".join(map(str, roots))
        return f"words {listed} are all roots" if roots else "no word is the root"
    reaches_root = {ROOT}
    for start in range(len(heads)):
        path: list[int] = []
        word = start
        while word not in reaches_root:
            if word in path:
                circle = sorted(path[path.index(word) :])
                listed = ", ".join(str(member + 1) for member in circle)
                return f"words {listed} are in a circle"
            path.append(word)
            word = heads[word]
        reaches_root.update(path)
    return None


def fingerprint(trees: Sequence[DependencyTree]) -> str:
    """Hash words, heads and relations: the same trees in the same order give the same."""
    content = repr([(tree.pieces, tree.heads, tree.relations) for tree in trees])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def hold_out(
    trees: Sequence[DependencyTree], train: int, test: int, rng: np.random.Generator
) -> HeldOut:
    """Draw sentences to learn from and others to judge on; no sentence (by its words) is in both or twice.

    Of too few, a quarter is judged on, or `test` where that is less.
    """
    distinct = [*{tuple(tree.words): tree for tree in trees}.values()]
    order = rng.permutation(len(distinct))
    shuffled = [distinct[i] for i in order]
    held = min(test, len(distinct) // 4) if len(distinct) < train + test else test
    return HeldOut(shuffled[held : held + train], shuffled[:held])
