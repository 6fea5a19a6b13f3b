"""A control task of the same form as parsing, without anything to find (Hewitt & Liang 2019, section 2).

Each word type draws one of three rules: its head is always the first word, always the last, or always the word
before. A probe can only learn them from the words themselves. Hewitt and Liang's third rule is the word itself,
which is no candidate here.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedmap.data.trees import ROOT, DependencyTree

RULES = 3


def rules_of(trees: Sequence[DependencyTree], rng: np.random.Generator) -> dict[str, int]:
    """Draw a rule for each word type, in lower case."""
    types = sorted({word.lower() for tree in trees for word in tree.words})
    return dict(zip(types, rng.integers(RULES, size=len(types)).tolist(), strict=True))


def with_control_heads(tree: DependencyTree, rules: dict[str, int]) -> DependencyTree:
    """Return a sentence whose words have the heads of their rules; the root stays the root.

    The first word's head is the last where its rule says itself or the word before, and the last word's the
    first where its rule says itself.
    """
    heads, end = list(tree.heads), len(tree) - 1
    for word in (word for word, head in enumerate(heads) if head != ROOT):
        head = (0, end, word - 1)[rules[tree.words[word].lower()]]
        heads[word] = head if head not in (word, -1) else end - word
    return replace(tree, heads=tuple(heads))
