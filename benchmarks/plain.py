"""The papers' loops, written out plainly: what the fast paths are measured against and checked with.

Batches of 32. `Literal` reads as the released code does: packed sequences, and an autograd graph kept
whether it is needed or not. `Fair` drops the graph and takes our own encoder: the same loop, as one would
write it today.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from heedmap.data.batches import Batch, Encoded
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoders import LSTM

BATCH = 32


def batches(split: Encoded, size: int = BATCH) -> Iterator[Batch]:
    """Batches of 32 texts in order of length, as the papers read their test split."""
    order = np.argsort(split.lengths, kind="stable")
    for start in range(0, len(order), size):
        yield split.batch(order[start : start + size])


class Fair:
    """Encoder states, attention (B, T) and the probability of class 1 (B), without a graph."""

    def __init__(self, model: AttentionClassifier) -> None:
        self.model = model
        self.graph = False

    def encode(self, batch: Batch) -> Tensor:
        return self.model.encode(self.model.embed(batch), batch)

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        states = self.encode(batch)
        attention = self.model.attend(states, batch).squeeze(1)
        return states, attention, probability(self.model, states, attention)


class Literal(Fair):
    """The same numbers from one bidirectional LSTM over packed sequences, with a graph."""

    def __init__(self, model: AttentionClassifier) -> None:
        super().__init__(copy.deepcopy(model).requires_grad_(True))
        self.graph = True
        self.lstm = one_module(self.model.encoder)

    def encode(self, batch: Batch) -> Tensor:
        return packed(self.lstm, self.model.embed(batch), batch.lengths + 2)[:, 1:-1]


def one_module(ours: LSTM) -> torch.nn.LSTM:
    """Our two LSTMs as PyTorch's bidirectional one."""
    first = ours.forward_lstm
    lstm = torch.nn.LSTM(first.input_size, first.hidden_size, batch_first=True, bidirectional=True)
    for end, each in (("", first), ("_reverse", ours.backward_lstm)):
        for name, value in each.named_parameters():
            getattr(lstm, name + end).data.copy_(value)
    return lstm


def packed(lstm: torch.nn.LSTM, embedded: Tensor, lengths: Tensor) -> Tensor:
    """States of every position, padding packed away on the way."""
    rows = torch.nn.utils.rnn.pack_padded_sequence(
        embedded, lengths, batch_first=True, enforce_sorted=False
    )
    return torch.nn.utils.rnn.pad_packed_sequence(
        lstm(rows)[0], batch_first=True, total_length=embedded.shape[1]
    )[0]


def probability(model: AttentionClassifier, states: Tensor, attention: Tensor) -> Tensor:
    """σ(w · Σ α h + b)."""
    context = (attention.unsqueeze(-1) * states).sum(-2)
    return model.decoder(context).squeeze(-1).sigmoid()


def permutation(
    read: Fair, split: Encoded, permutations: int, rng: np.random.Generator
) -> dict[int, float]:
    """Median |Δp| over permutations: one decoder pass over the states a permutation."""
    with torch.set_grad_enabled(read.graph):
        return _permutation(read, split, permutations, rng)


def _permutation(
    read: Fair, split: Encoded, permutations: int, rng: np.random.Generator
) -> dict[int, float]:
    medians = {}
    for batch in batches(split):
        states, attention, before = read(batch)
        changes = []
        for _ in range(permutations):
            shuffled = attention.clone()
            for i, n in enumerate(batch.lengths.tolist()):
                order = torch.from_numpy(rng.permutation(n))
                shuffled[i, :n] = attention[i, :n][order]
            changes.append((probability(read.model, states, shuffled) - before).abs())
        median = np.median(torch.stack(changes).detach().numpy(), axis=0)
        medians |= dict(zip(batch.rows.tolist(), median.tolist(), strict=True))
    return medians


def leave_one_out(read: Fair, split: Encoded) -> dict[int, list[float]]:
    """|Δp| of every token: for each position, delete its column and read the whole batch again."""
    with torch.set_grad_enabled(read.graph):
        return _leave_one_out(read, split)


def _leave_one_out(read: Fair, split: Encoded) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for batch in batches(split):
        before = read(batch)[2].detach()
        columns = []
        for t in range(batch.mask.shape[1]):
            columns.append((read(without(batch, t))[2] - before).abs().detach())
        table = torch.stack(columns, dim=1)
        for row, n, values in zip(batch.rows.tolist(), batch.lengths.tolist(), table, strict=True):
            found[row] = values[:n].tolist()
    return found


def without(batch: Batch, t: int) -> Batch:
    """The batch without its column t of tokens."""
    keep = [c for c in range(batch.ids.shape[1]) if c != t + 1]
    mask = batch.mask[:, [c for c in range(batch.mask.shape[1]) if c != t]]
    # Rows that end before t lose a column of padding and stay as they are.
    mask = torch.where((batch.lengths > t)[:, None], batch.mask[:, 1:], mask)
    return replace(batch, ids=batch.ids[:, keep], mask=mask)


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """As the papers' code: clipped, 1e-10 inside the logarithms."""

    def kl(a: Tensor, b: Tensor) -> Tensor:
        a, b = a.clamp(0, 1), b.clamp(0, 1)
        return (a * (torch.log(a + 1e-10) - torch.log(b + 1e-10))).sum(-1)

    m = (p + q) / 2
    return 0.5 * (kl(p, m) + kl(q, m))


def adversary(
    model: AttentionClassifier, split: Encoded, epsilon: float, generator: torch.Generator
) -> dict[int, float]:
    """The paper's search: K = 5 weightings, 500 steps of Adam through the states, last iterate."""
    found = {}
    for batch in batches(split):
        with torch.no_grad():
            states, attention, before = Fair(model)(batch)
        size = (len(before), 5, attention.shape[1])
        logits = np.log(1 / size[-1]) + 3 * torch.randn(size, generator=generator)
        logits.requires_grad_()
        adam = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
        mask = batch.mask.unsqueeze(1)
        for _ in range(500):
            weights = torch.softmax(logits.masked_fill(~mask, -torch.inf), dim=-1)
            p = probability(model, states.unsqueeze(1), weights)
            slack = torch.relu((p - before[:, None]).abs() - 0.01)
            apart = jensen_shannon(weights, attention.unsqueeze(1))
            pairs = jensen_shannon(weights.unsqueeze(1), weights.unsqueeze(2)).mean((1, 2))
            loss = (500 * slack - apart).sum() - pairs.sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            weights = torch.softmax(logits.masked_fill(~mask, -torch.inf), dim=-1)
            p = probability(model, states.unsqueeze(1), weights)
            apart = jensen_shannon(weights, attention.unsqueeze(1))
            apart[(p - before[:, None]).abs() > epsilon] = 0.0
            best = apart.amax(1)
        found |= dict(zip(batch.rows.tolist(), best.tolist(), strict=True))
    return found


def kendall(first: list[np.ndarray], second: list[np.ndarray]) -> list[float]:
    """scipy, one text after the other."""
    return [float(kendalltau(a, b).statistic) for a, b in zip(first, second, strict=True)]
