"""Do maps of sub-words link the words that people, or an aligner, linked? AER (Och & Ney 2003)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.parallel import Link
from heedmap.papers.kit.translators import Encoded


class Counts(NamedTuple):
    """What a sentence adds to AER = 1 − (Σ |A∩S| + |A∩P|) / Σ (|A| + |S|)."""

    hits: float
    links: float


def counts(predicted: Iterable[Link], sure: set[Link], possible: set[Link]) -> Counts:
    """Count a sentence's predicted links."""
    a = set(predicted)
    return Counts(len(a & sure) + len(a & possible), len(a) + len(sure))


def error_rate(sentences: Sequence[Counts]) -> float:
    """Return the alignment error rate; NaN without links."""
    total = sum(sentence_counts.links for sentence_counts in sentences)
    return (
        1 - sum(sentence_counts.hits for sentence_counts in sentences) / total
        if total
        else float("nan")
    )


def links(of_words: Float[np.ndarray, "J I"]) -> list[Link]:
    """Return the best source word of each target word, the first of equals, as links (source, target)."""
    return [(int(i), j) for j, i in enumerate(of_words.argmax(1))]


def by_words(
    values: Float[Tensor, "*maps T S"], pairs: Encoded, row: int, *, summed: bool
) -> Float[np.ndarray, "*maps J I"]:
    """Return maps of words from maps of sub-words, ends left out.

    A target word's number is the mean of its sub-words'; a source word's is their sum (of weights), or their
    largest (of log-probabilities and logits).
    """
    target_words = torch.tensor(pairs.target_words[row])
    source_words = torch.tensor(pairs.source_words[row])
    wide = values.double()
    columns = []
    for word in range(int(source_words.max()) + 1):
        columns_of_word = wide[..., source_words == word]
        columns.append(columns_of_word.sum(-1) if summed else columns_of_word.amax(-1))
    words = torch.stack(columns, -1)
    rows = [
        words[..., target_words == word, :].mean(-2) for word in range(int(target_words.max()) + 1)
    ]
    return torch.stack(rows, -2).numpy()


def baselines(source: int, target: int, sure: set[Link], possible: set[Link]) -> dict[str, Counts]:
    """Return what one link per target word gives: on the diagonal, at random (expected), and at best."""
    diagonal = [(min(source - 1, j * source // target), j) for j in range(target)]
    hits = len(sure) + len(possible)
    best: list[Link] = []
    for j in range(target):
        linked = [i for i, to in sure if to == j] or [i for i, to in possible if to == j] or [0]
        best.append((linked[0], j))
    return {
        "diagonal": counts(diagonal, sure, possible),
        "random": Counts(hits / source, target + len(sure)),
        "best possible": counts(best, sure, possible),
    }
