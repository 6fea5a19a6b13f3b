"""Probes that predict each word's head: from attention, with word vectors, and from distances with vectors.

Each gives a score S[j, i] to every word i as the head of a word j, and p(i | j) = softmax_i S[j, i]. Layers,
first weights, loss and steps are those of the notebook that Clark et al. 2019 released (section 5), but for the
root: there it is one more candidate, scored by the attention to [CLS] and [SEP]. Here it is none, and the word
without a head is neither learned from nor judged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from heedmap.data.trees import ROOT, DependencyTree

LEARNING_RATE = 2e-3  # with Adam, one sentence per step, one epoch
HIDDEN = 256
SHORT = 2  # words; up to this distance, each has an indicator
DISTANCES = 2 + 2 * SHORT + 1


@dataclass(frozen=True)
class Sentence:
    """A sentence as probes read it; `vectors` are those of its words."""

    tree: DependencyTree
    attention: Float[Tensor, "K T T"]
    vectors: Float[Tensor, "T E"]

    @property
    def maps(self) -> Float[Tensor, "M T T"]:
        """The attention of all heads from each word (row), and then to it."""
        return torch.cat([self.attention, self.attention.mT])


class AttentionProbe(nn.Module):
    """S[j, i] = Σ_k w_k a^k_ji + u_k a^k_ij, with a weight for each head in each direction."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        limit = math.sqrt(3 / (2 * heads))  # TensorFlow's for a vector of 2K
        self.weights = nn.Parameter(torch.empty(2 * heads).uniform_(-limit, limit))

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        scores: Tensor = torch.einsum("k,kji->ji", self.weights, sentence.maps)
        return scores


class AttentionWordsProbe(nn.Module):
    """The same with weights that depend on the words: [w; u] = W [v_j; v_i] + b."""

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.weights = dense(2 * size, 2 * heads)

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        weights = of_pairs(self.weights.weight, sentence.vectors) + self.weights.bias
        scores: Tensor = torch.einsum("jik,kji->ji", weights, sentence.maps)
        return scores


class DistanceWordsProbe(nn.Module):
    """A network with one hidden layer on the words' distance and both vectors, the paper's baseline."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden = dense(DISTANCES + 2 * size, HIDDEN)
        self.output = dense(HIDDEN, 1)

    def forward(self, sentence: Sentence) -> Float[Tensor, "T T"]:
        """Score each word (column) as the head of each word (row)."""
        of_distance, of_words = self.hidden.weight.tensor_split([DISTANCES], 1)
        features = distance_features(len(sentence.vectors))
        hidden = linear(features, of_distance, self.hidden.bias)
        hidden = hidden + of_pairs(of_words, sentence.vectors)
        scores: Tensor = self.output(hidden.tanh()).squeeze(-1)
        return scores


def dense(inputs: int, outputs: int) -> nn.Linear:
    """Return a layer with the first weights of TensorFlow: Glorot's uniform ones, and biases of 0."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def of_pairs(weight: Float[Tensor, "O F"], vectors: Float[Tensor, "T E"]) -> Float[Tensor, "T T O"]:
    """Return W [v_j; v_i] of each word j (row) and word i, as a sum of two smaller products."""
    of_dependent, of_head = weight.chunk(2, 1)
    return linear(vectors, of_dependent).unsqueeze(1) + linear(vectors, of_head)


def distance_features(words: int) -> Float[Tensor, "T T F"]:
    """Return the features of the way from each word (row) to each word (column).

    They are how far it goes ahead and behind, as shares of the sentence, and an indicator of each short one.
    """
    place = torch.arange(words)
    offset = place - place.unsqueeze(1)
    shares = torch.stack([offset.clamp(min=0), (-offset).clamp(min=0)], -1) / words
    indicators = offset.unsqueeze(-1) == torch.arange(-SHORT, SHORT + 1)
    return torch.cat([shares, indicators.float()], -1)


class ProbeTraining:
    """A probe with its optimiser: a step per sentence on the heads of a tree."""

    def __init__(self, probe: nn.Module) -> None:
        self.probe = probe
        self.optimiser = torch.optim.Adam(probe.parameters(), lr=LEARNING_RATE)

    def step(self, sentence: Sentence, heads: Sequence[int]) -> None:
        """Learn from one sentence: the sum of −log p(head | word) over all words that have one."""
        self.optimiser.zero_grad()
        loss = cross_entropy(
            self.probe(sentence), torch.tensor(heads), ignore_index=ROOT, reduction="sum"
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()

    @torch.no_grad()
    def right(self, sentence: Sentence, heads: Sequence[int]) -> int:
        """Return how many of the scored words get their head."""
        predicted = self.probe(sentence).argmax(-1).tolist()
        return sum(predicted[word] == heads[word] for word in sentence.tree.scored)


def new_probes(heads: int, size: int, seed: int) -> Mapping[str, nn.Module]:
    """Return untrained probes by their names."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {
            "attention": AttentionProbe(heads),
            "attention and vectors": AttentionWordsProbe(heads, size),
            "distances and vectors": DistanceWordsProbe(size),
        }
