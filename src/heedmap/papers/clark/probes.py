"""Probes that predict each word's head: from attention, with word vectors, and from distances with vectors.

Each gives a score S[j, i] to every word i as the head of a word j, and p(i | j) = softmax_i S[j, i] over i ≠ j
(Clark et al. 2019, section 5). They differ from the paper's in one thing: the root has no score, for no word is
its head; punctuation is left out as there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedmap.data.trees import DependencyTree

LEARNING_RATE = 2e-3  # the paper's, with Adam, one sentence per step, one epoch
HIDDEN = 100
SHORT = 5  # words; up to this distance, each has an indicator


@dataclass(frozen=True)
class Sentence:
    """A sentence as probes read it; `vectors` are those of its words."""

    tree: DependencyTree
    attention: Float[Tensor, "K T T"]
    vectors: Float[Tensor, "T E"]


class AttentionProbe(nn.Module):
    """S[j, i] = Σ_k w_k a^k_ij + u_k a^k_ji, with a weight for each head in each direction."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        # The scores are linear in both, so that learning can start from 0.
        self.to_dependent = nn.Parameter(torch.zeros(heads))
        self.to_head = nn.Parameter(torch.zeros(heads))

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        attention = sentence.attention
        from_dependent: Tensor = torch.einsum("k,kji->ji", self.to_head, attention)
        from_head = torch.einsum("k,kij->ji", self.to_dependent, attention)
        return from_dependent + from_head


class AttentionWordsProbe(nn.Module):
    """The same with weights that are linear in the words: w = W [v_i; v_j], u = U [v_i; v_j]."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        # By direction, and by whether the vector is the head's or the dependent's.
        self.weights = nn.Parameter(torch.zeros(2, 2, size, heads))

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        attention, vectors = sentence.attention, sentence.vectors
        of_head, of_dependent = torch.einsum("te,dsek->sdtk", vectors, self.weights)
        from_head = torch.einsum("kij->jik", attention)
        from_dependent = torch.einsum("kji->jik", attention)
        directions = torch.stack([from_head, from_dependent])  # (2, T dependents, T heads, K)
        weights = of_head.unsqueeze(1) + of_dependent.unsqueeze(2)
        scores: Tensor = (directions * weights).sum((0, -1))
        return scores


class DistanceWordsProbe(nn.Module):
    """A network with one hidden layer on both words' vectors and their distance, the paper's baseline.

    Short distances have indicators, and all are numbers too, those ahead and behind apart (section 5).
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.head = nn.Linear(size, HIDDEN)
        self.dependent = nn.Linear(size, HIDDEN)
        self.distance = nn.Linear(2 * SHORT + 3, HIDDEN)
        self.output = nn.Linear(HIDDEN, 1)

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        vectors = sentence.vectors
        hidden = self.head(vectors) + self.dependent(vectors).unsqueeze(1)
        hidden = hidden + self.distance(distance_features(len(vectors)))
        scores: Tensor = self.output(hidden.relu()).squeeze(-1)
        return scores


def distance_features(words: int) -> Float[Tensor, "T T F"]:
    """Return the features of the way from each word (row) to each word (column)."""
    place = torch.arange(words)
    offset = place - place.unsqueeze(1)
    indicators = offset.unsqueeze(-1) == torch.arange(-SHORT, SHORT + 1)
    ahead, behind = offset.clamp(min=0), (-offset).clamp(min=0)
    return torch.cat([indicators.float(), torch.log1p(torch.stack([ahead, behind], -1))], -1)


def candidate_scores(probe: nn.Module, sentence: Sentence) -> Float[Tensor, "W T"]:
    """Return the scores of all words as heads of each scored word, −∞ for the word itself."""
    scores: Tensor = probe(sentence)
    itself = torch.eye(len(scores), dtype=torch.bool)
    return scores.masked_fill(itself, -torch.inf)[sentence.tree.scored]


class ProbeTraining:
    """A probe with its optimiser: a step per sentence on the heads of a tree."""

    def __init__(self, probe: nn.Module) -> None:
        self.probe = probe
        self.optimiser = torch.optim.Adam(probe.parameters(), lr=LEARNING_RATE)

    def step(self, sentence: Sentence, heads: Sequence[int]) -> None:
        """Learn from one sentence: the mean −log p(head | word) of its scored words."""
        scored = sentence.tree.scored
        if not scored:
            return
        gold = torch.tensor([heads[word] for word in scored])
        self.optimiser.zero_grad()
        loss = cross_entropy(candidate_scores(self.probe, sentence), gold)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()

    @torch.no_grad()
    def right(self, sentence: Sentence, heads: Sequence[int]) -> int:
        """Return how many of the scored words get their head."""
        scored = sentence.tree.scored
        if not scored:
            return 0
        predicted = candidate_scores(self.probe, sentence).argmax(-1).tolist()
        return sum(head == heads[word] for head, word in zip(predicted, scored, strict=True))


def new_probes(heads: int, size: int, seed: int) -> Mapping[str, nn.Module]:
    """Return untrained probes by their names."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        distances = DistanceWordsProbe(size)
    return {
        "attention": AttentionProbe(heads),
        "attention and vectors": AttentionWordsProbe(heads, size),
        "distances and vectors": distances,
    }
