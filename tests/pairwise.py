"""The models that one property is tried on: every pair of choices occurs, not every combination.

A mistake in how two parts fit together shows with any third; a product of all would take ten times as long.
"""

from itertools import combinations, product

import pytest

from heedmap.models.encoders import ENCODERS

SINGLE_TEXTS = {
    "encoder": list(ENCODERS),
    "score": ["additive", "wide-additive", "dot", "linear", "uniform"],
    "normaliser": ["softmax", "sparsemax", "entmax15"],
}
# What models of pairs are trained with in the papers.
PAIRS = {
    "encoder": ["lstm", "cnn", "average"],
    "score": ["additive", "dot", "uniform"],
    "normaliser": ["softmax", "entmax15"],
}


def rows(choices):
    """Return few combinations in which every two choices of two parameters meet."""

    def pairs(row):
        return set(combinations(enumerate(row), 2))

    every = list(product(*map(range, map(len, choices.values()))))
    missing, chosen = set().union(*map(pairs, every)), []
    while missing:
        chosen.append(max(every, key=lambda row: len(pairs(row) & missing)))
        missing -= pairs(chosen[-1])
    values = list(choices.values())
    return [tuple(values[i][choice] for i, choice in enumerate(row)) for row in chosen]


def pairwise(**choices):
    """Parametrise a test with every pair of these choices."""
    return pytest.mark.parametrize(tuple(choices), rows(choices))
