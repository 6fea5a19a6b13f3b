"""What the tasks of translators share: samples of sentences, sub-words in padded batches, notes, BLEU."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.parallel import Pairs, Parallel
from heedmap.data.pieces import Pieces
from heedmap.files import manifest
from heedmap.papers.kit.parts import left_out_of

PIECES = "pieces.json"
NO_TARGET = -1  # the target of padding, which the cross entropy leaves out


def sampled(pairs: Pairs, limit: int | None) -> Pairs:
    """Return at most so many pairs, a seeded sample in their order."""
    if limit is None or len(pairs) <= limit:
        return pairs
    rng = np.random.default_rng(0)
    return pairs.take(np.sort(rng.choice(len(pairs), limit, replace=False)))


def pieces_of(train: Pairs, vocabulary: int) -> Pieces:
    """Learn the sub-words of training pairs, of both languages together."""
    return Pieces.learned(
        (words for side in (train.source, train.target) for words in side), vocabulary
    )


def learned_pieces(folder: Path, train: Pairs, vocabulary: int) -> Pieces:
    """Return the sub-words of a reproduction: learned from its training pairs, or read where they are kept.

    Raises:
        InputError: the file was changed.
    """
    if not (folder / PIECES).exists():
        manifest.write(folder / PIECES, pieces_of(train, vocabulary).json())
    return kept_pieces(folder)


def kept_pieces(folder: Path) -> Pieces:
    """Read the sub-words that a reproduction has learned.

    Raises:
        InputError: the file was changed.
    """
    manifest.check(folder / PIECES)
    return Pieces.read(folder / PIECES)


def padded(sequences: Sequence[Sequence[int]], value: int) -> Int[Tensor, "B T"]:
    """Return sequences as a matrix, with a value beyond their ends."""
    longest = max(len(sequence) for sequence in sequences)
    return torch.tensor(
        [[*sequence, *[value] * (longest - len(sequence))] for sequence in sequences]
    )


class Translations(NamedTuple):
    """A batch: sources and their lengths, the decoder's inputs, and the targets, one step earlier."""

    source: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    inputs: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]


@dataclass(frozen=True)
class Encoded:
    """Pairs of sentences as sub-words, each with its end, and the index of each one's word."""

    source: list[list[int]]
    target: list[list[int]]
    source_words: list[list[int]]
    target_words: list[list[int]]

    @classmethod
    def of(cls, pairs: Pairs, pieces: Pieces) -> "Encoded":
        """Encode pairs of sentences."""
        sides = [[pieces.encode(words) for words in side] for side in (pairs.source, pairs.target)]
        (source, source_words), (target, target_words) = (
            ([number for number, _ in side], [word for _, word in side]) for side in sides
        )
        return cls(source, target, source_words, target_words)

    @property
    def lengths(self) -> Int[np.ndarray, " N"]:
        """Source positions of each pair."""
        return np.array([len(sentence) for sentence in self.source], dtype=np.int64)

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Translations:
        """Return some pairs, padded."""
        source, target = [self.source[i] for i in rows], [self.target[i] for i in rows]
        inputs = [[Pieces.start, *sentence[:-1]] for sentence in target]
        return Translations(
            padded(source, Pieces.end),
            torch.tensor([len(sentence) for sentence in source]),
            padded(inputs, Pieces.end),
            padded(target, NO_TARGET),
        )


def cased_as(train: Pairs, gold: Pairs) -> Pairs:
    """Return `gold` in lower case if all of `train` is."""
    if any(
        word != word.lower() for side in (train.source, train.target) for s in side for word in s
    ):
        return gold
    sides = [[[word.lower() for word in s] for s in side] for side in (gold.source, gold.target)]
    return Pairs(sides[0], sides[1], gold.sure, gold.possible)


def about_gold(gold: Pairs, train: Pairs) -> list[str]:
    """Return the note on sentences whose words people linked."""
    trained_on = {word for side in (train.source, train.target) for s in side for word in s}
    words = [word for side in (gold.source, gold.target) for s in side for word in s]
    new = sum(word not in trained_on for word in words) / len(words)
    return [
        f"Links by people: {len(gold)} other sentences, of whose words {new:.0%} are not in the sentences "
        "trained on (as sub-words they are read all the same)."
    ]


def notes_on_pairs(
    corpus: Parallel, train: Pairs, source: str, target: str, gold: Pairs | None
) -> list[str]:
    """Return the notes on a reproduction's sentences: how many, of which languages, what was left out."""
    held_out = ", ".join(f"{name} {len(corpus.splits[name])}" for name in ("dev", "test"))
    return [
        f"Pairs of {corpus.name}, {source} to {target}: train {len(train)} of "
        f"{len(corpus.splits['train'])}, {held_out}.",
        *left_out_of(corpus.left_out, "Left out"),
        *(about_gold(gold, train) if gold is not None else []),
    ]


def bleu(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Return sacrebleu's BLEU of sentences, whose words are separated already."""
    from sacrebleu import corpus_bleu

    texts, reference_texts = (
        [" ".join(words) for words in sentences] for sentences in (translations, references)
    )
    return float(corpus_bleu(texts, [reference_texts], tokenize="none", force=True).score)
