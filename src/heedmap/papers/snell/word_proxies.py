"""What a source sub-word says about a target sub-word by itself, learned without attention.

Both are functions of a sentence's sub-words and its translation's, and return scores of shape (T, S).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from torch import Tensor

from heedmap.papers.kit.translators import Encoded
from heedmap.training.objective import seeded

Scores = Callable[[Sequence[int], Sequence[int]], Float[Tensor, "T S"]]
BATCH, RATE = 64, 1e-3


def dictionary(train: Encoded, symbols: int) -> Scores:
    """Return by how much two sub-words occur together more often than if they were independent.

    Σ over pairs of sentences of (n_y − m_y) n_s / S, where n are counts in target and source, S is the source's
    length, and m_y the target's length times y's share of all target sub-words: the first gradient step of a
    linear model with uniform attention, Snell et al.'s dictionary, from equal output probabilities of the
    training's frequencies. Divided by Σ n_s / S, since common words would win otherwise.
    """
    rows = np.repeat(np.arange(len(train.source)), train.lengths)
    weight = np.repeat(1 / train.lengths, train.lengths)
    shape = (len(train.source), symbols)
    source = sparse.csr_matrix((weight, (rows, np.concatenate(train.source))), shape=shape)
    steps = np.array([len(sentence) for sentence in train.target])
    to = np.repeat(np.arange(len(train.target)), steps)
    target = sparse.csr_matrix((np.ones(len(to)), (to, np.concatenate(train.target))), shape=shape)
    together = (target.T @ source).tocsr()
    share = np.asarray(target.sum(0)).ravel() / steps.sum()
    expected = np.asarray(source.T @ steps).ravel()  # of each source sub-word: positions beside it
    seen = np.maximum(np.asarray(source.sum(0)).ravel(), 1e-9)

    def scores(source: Sequence[int], target_symbols: Sequence[int]) -> Float[Tensor, "T S"]:
        counts = together[list(target_symbols)][:, list(source)].toarray()
        excess = counts - share[list(target_symbols)][:, None] * expected[list(source)]
        return torch.from_numpy(excess / seen[list(source)])

    return scores


def bag_of_words(train: Encoded, symbols: int, size: int, epochs: int, seed: int = 0) -> Scores:
    """Return log p(y | s), p = softmax(W E_s), learned as p(y | the mean of a sentence's E_s) (β^px)."""
    with seeded(seed):
        embedding = torch.nn.EmbeddingBag(symbols, size, mode="mean")
        output = torch.nn.Linear(size, symbols)
    parameters = [*embedding.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=True)
    for epoch in range(epochs):
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(train.source))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            source = [train.source[i] for i in rows]
            offsets = np.cumsum([0, *(len(sentence) for sentence in source[:-1])])
            target = [train.target[i] for i in rows]
            to = torch.from_numpy(
                np.repeat(np.arange(len(rows)), [len(sentence) for sentence in target])
            )
            share = output(
                embedding(torch.tensor(np.concatenate(source)), torch.from_numpy(offsets))
            ).log_softmax(-1)
            loss = -share[to, torch.tensor(np.concatenate(target))].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    @torch.no_grad()
    def scores(source: Sequence[int], target_symbols: Sequence[int]) -> Float[Tensor, "T S"]:
        log_probabilities = output(embedding.weight[torch.tensor(list(source))]).log_softmax(-1)
        scored: Tensor = log_probabilities[:, list(target_symbols)].T
        return scored

    return scores
