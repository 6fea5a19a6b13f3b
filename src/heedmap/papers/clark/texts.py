"""The texts of a reproduction: sentences of the grammar or of a file, segments of them, and word vectors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.conllu import read_conllu
from heedmap.data.dependency_grammar import DependencyGrammar
from heedmap.data.trees import DependencyTree, HeldOut, hold_out
from heedmap.data.vocabulary import Vocabulary, read_vectors
from heedmap.errors import InputError
from heedmap.experiments.generators import named_generator
from heedmap.huggingface.limits import longest
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.word_attention import unreadable, word_vectors
from heedmap.papers.kit.parts import left_out_of

SEGMENT = 128  # positions, special ones included, as in the paper
SCALED_BY = 100  # sentences, by whose words embeddings are scaled
FEWEST = 20
GRAMMAR = "our grammar"


@dataclass(frozen=True)
class WordVectors:
    """Vectors of a file, by words in lower case."""

    vocabulary: Vocabulary
    matrix: NDArray[np.float32]

    def of(self, tree: DependencyTree) -> Float[Tensor, "T E"]:
        """Return the vectors of a sentence's words; 0 for a word that the file does not have."""
        numbers = self.vocabulary.encode([word.lower() for word in tree.words])[1:-1]
        return torch.from_numpy(self.matrix[numbers])


def all_trees(path: Path | None, count: int) -> tuple[list[DependencyTree], list[str]]:
    """Read the trees of a file, or draw at least `count` different ones from the grammar; with notes.

    Raises:
        InputError: the file cannot be read as CoNLL-U.
    """
    if path is None:
        grammar = DependencyGrammar(named_generator(0, "clark grammar"))
        distinct = {tree.pieces: tree for tree in grammar.draw(count + count // 2 + 20)}
        return [*distinct.values()], []
    trees, changed = read_conllu(path)
    return trees, left_out_of(changed, "Of the file")


def readable(
    model: TransformerClassifier, trees: Sequence[DependencyTree], train: int, test: int
) -> tuple[HeldOut, list[str]]:
    """Return sentences to learn from and to judge on, and notes on those that are left out.

    Raises:
        InputError: too few are left.
    """
    limit = longest(model.model, model.tokenizer)
    fitting, reasons = [], Counter[str]()
    for tree in trees:
        reason = unreadable(model, tree.pieces, limit) if tree.scored else "no word with a head"
        if reason is None:
            fitting.append(tree)
        else:
            reasons[reason] += 1
    split = hold_out(fitting, train, test, named_generator(0, "clark split"))
    if len(split.train) + len(split.test) < FEWEST or not split.test:
        raise InputError(
            f"expected {FEWEST} different sentences or more that the model can read, got "
            f"{len(split.train) + len(split.test)} of {len(trees)}"
        )
    counts = f"Sentences: {len(split.train)} to learn from, {len(split.test)} to judge on."
    return split, [counts, *left_out_of(reasons, "Sentences left out")]


def segments(
    model: TransformerClassifier, trees: Sequence[DependencyTree], count: int
) -> list[list[str]]:
    """Join following sentences to texts of at most `SEGMENT` positions; a longer sentence is left out."""
    limit = min(SEGMENT, longest(model.model, model.tokenizer))
    texts: list[list[str]] = []
    text: list[str] = []
    for tree in trees:
        sentence = [*tree.pieces]
        joined = [*text, f" {sentence[0]}", *sentence[1:]] if text else sentence
        if model.lengths([joined])[0] <= limit:
            text = joined
            continue
        if text:
            texts.append(text)
        text = sentence if model.lengths([sentence])[0] <= limit else []
        if len(texts) == count:
            return texts
    return [*texts, text] if text else texts


def read_word_vectors(path: Path, trees: Sequence[DependencyTree]) -> tuple[WordVectors, str]:
    """Read the vectors of all words of some sentences, and note how many there are.

    Raises:
        InputError: see `read_vectors`.
    """
    vocabulary = Vocabulary.build(([word.lower() for word in tree.words] for tree in trees), 1)
    matrix, count = read_vectors(path, vocabulary)
    words = len(vocabulary.words)
    note = (
        f"Word vectors: {path.name} has {count} of {words} words (in lower case); the others are 0."
    )
    return WordVectors(vocabulary, matrix), note


class Vectors:
    """Vectors of words for probes: of a file, or else the model's embeddings, scaled to a mean square of 1."""

    def __init__(
        self,
        model: TransformerClassifier,
        from_file: WordVectors | None,
        trees: Sequence[DependencyTree],
    ) -> None:
        self.model, self.from_file, self.scale = model, from_file, 1.0
        if from_file is None:
            sample = torch.cat([self.of(tree) for tree in trees[:SCALED_BY]])
            self.scale = float(sample.square().mean().sqrt()) or 1.0

    def of(self, tree: DependencyTree) -> Float[Tensor, "T E"]:
        """Return the vectors of a sentence's words."""
        if self.from_file is not None:
            return self.from_file.of(tree)
        return word_vectors(self.model, tree.pieces) / self.scale
