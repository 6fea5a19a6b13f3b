"""Transformers that are set by hand: the numbers of a position, and what attention does with them.

Every number x is written as (x, −x), so that its mean is 0, and the norms' ε is so large that they change
nothing: the model is linear in the weights of the layer on trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

NORM = 1e8  # ε of the norms
STRONG = 60.0  # a score above all others

# Where the first layer takes what is spread: to every state, to the state of a mark, which the second layer may
# attend to, or past the second layer's attention to the read-out.
Gathered = Literal["everywhere", "[CLS]", "[SEP]", "read-out"]


class States:
    """Where the numbers of a position are: values, what [CLS] collects, `more` numbers, the place."""

    def __init__(self, count: int, more: int, positions: int) -> None:
        self.count, self.positions = count, positions
        self.own, self.spread, self.moved, self.collected = (
            slice(i * count, (i + 1) * count) for i in range(4)
        )
        self.place = slice(4 * count + more, 4 * count + more + positions)
        self.size = self.place.stop


class Layout(States):
    """The states of single texts and pictures, which have scores and constants, too."""

    def __init__(self, count: int, positions: int) -> None:
        super().__init__(count, 5, positions)
        self.score, self.following, self.one = range(4 * count, 4 * count + 3)
        self.is_mark = {"[CLS]": 4 * count + 3, "[SEP]": 4 * count + 4}


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The maps of an attention of two heads: from the numbers of a state, and of `out` back to them.

    `query`, `key` and `value` are (2 size, size), a head in each half of the rows; `out` is (size, 2 size).
    """

    query: Float[Tensor, "J D"]
    key: Float[Tensor, "J D"]
    value: Float[Tensor, "J D"]
    out: Float[Tensor, "D J"]


def only_the_last(positions: int) -> Float[Tensor, "P P"]:
    """Return how much the place p draws to the place before it, [p, q], of texts without gaps."""
    draws = torch.zeros(positions, positions)
    draws[1:, :-1] = torch.eye(positions - 1)
    return draws


def the_nearest(positions: int) -> Float[Tensor, "P P"]:
    """Return how much the place p draws to those before it, [p, q]: most to the nearest that there is."""
    return torch.arange(1.0, positions + 1).expand(positions, positions).tril(-1)


def passing_maps(layout: Layout, gathered: Gathered, draws: Float[Tensor, "P P"]) -> AttentionMaps:
    """Return the maps of the first layer.

    Head 0 has the mean of what is spread, head 1 what the place before moves.

    Args:
        layout: of the states.
        gathered: which rows have the mean of what is spread.
        draws: how much the place p draws to the place q in head 1.
    """
    size, count, positions = layout.size, layout.count, layout.positions
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    if gathered != "everywhere":
        # All rows but one attend to [CLS], which has nothing to spread.
        gatherer = layout.is_mark["[SEP]" if gathered == "[SEP]" else "[CLS]"]
        query[0, [layout.one, gatherer]] = torch.tensor([1.0, -1.0]) * STRONG * size**0.5
        key[0, layout.is_mark["[CLS]"]] = 1.0
    # Products are divided by the root of the head's size.
    query[size : size + positions, layout.place] = torch.eye(positions) * STRONG * size**0.5
    key[size : size + positions, layout.place] = draws
    value[:count, layout.spread] = torch.eye(count)
    value[size : size + count, layout.moved] = torch.eye(count)
    value[size + count, layout.following] = 1.0
    out = torch.zeros(size, 2 * size)
    out[layout.collected if gathered == "read-out" else layout.own, :count] = torch.eye(count)
    out[layout.own, size : size + count] = torch.eye(count)
    out[layout.score, size + count] = 1.0
    return AttentionMaps(query, key, value, out)


def reading_maps(states: States, products: Mapping[int, int]) -> AttentionMaps:
    """Return the maps of the last layer: both heads attend by score; the first collects what has come.

    Args:
        states: of the positions.
        products: the score is the sum of products of a number of the row and one of the state, by the former.
    """
    size, count = states.size, states.count
    query, key, value = (torch.zeros(2 * size, size) for _ in range(3))
    for head in (0, size):
        for place, (of_row, of_state) in enumerate(products.items(), head):
            query[place, of_row] = size**0.5
            key[place, of_state] = 1.0
    value[:count, states.own] = torch.eye(count)
    out = torch.zeros(size, 2 * size)
    out[states.collected, :count] = torch.eye(count)
    return AttentionMaps(query, key, value, out)


def configuration(states: States, layers: int) -> dict[str, Any]:
    """Return what a configuration of BERT or ViT says of a model of these states."""
    return {
        "hidden_size": 2 * states.size,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 1,
        "layer_norm_eps": NORM,
        "id2label": {c: str(c) for c in range(states.count)},
    }


def clear(model: Any) -> None:
    """Set all weights of a model to 0, and its norms so that they change nothing."""
    for name, parameter in model.named_parameters():
        is_of_norm = "norm" in name.lower() and name.endswith("weight")
        parameter.fill_(NORM**0.5 if is_of_norm else 0.0)


def set_maps(maps: AttentionMaps, query: Any, key: Any, value: Any, out: Any) -> None:
    """Set an attention's linear layers, which read the first half of a state: (x, −x) holds x twice."""
    for layer, weight in ((query, maps.query), (key, maps.key), (value, maps.value)):
        layer.weight[:, : weight.shape[1]] = weight
    out.weight.copy_(mirrored(maps.out.T).T)


def mirrored(rows: Float[Tensor, "N D"]) -> Float[Tensor, "N M"]:
    """Return (x, −x) for each row x."""
    return torch.cat([rows, -rows], dim=-1)
