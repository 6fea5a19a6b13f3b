"""What the tasks of translators share: samples of pairs of sentences, padded batches, and BLEU."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedmap.data.parallel import Pairs

NO_TARGET = -1  # the target of padding, which the cross entropy leaves out


def sampled(pairs: Pairs, limit: int | None) -> Pairs:
    """Return at most so many pairs, a seeded sample in their order."""
    if limit is None or len(pairs) <= limit:
        return pairs
    rng = np.random.default_rng(0)
    return pairs.take(np.sort(rng.choice(len(pairs), limit, replace=False)))


def padded(sequences: Sequence[Sequence[int]], value: int) -> Int[Tensor, "B T"]:
    """Return sequences as a matrix, with a value beyond their ends."""
    longest = max(len(sequence) for sequence in sequences)
    return torch.tensor(
        [[*sequence, *[value] * (longest - len(sequence))] for sequence in sequences]
    )


def bleu(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Return sacrebleu's BLEU of sentences, whose words are separated already."""
    from sacrebleu import corpus_bleu

    texts, reference_texts = (
        [" ".join(words) for words in sentences] for sentences in (translations, references)
    )
    return float(corpus_bleu(texts, [reference_texts], tokenize="none", force=True).score)
