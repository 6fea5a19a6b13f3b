"""What tokens contribute to hidden states, beside attention, raw and effective: one row per text and layer.

Effective attention and the null space: `heedmap.importance.effective`.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedmap.experiments.generators import named_generator
from heedmap.experiments.methods.kendall import tau_against
from heedmap.huggingface.attention_hook import Call, Output, Visitor
from heedmap.huggingface.hidden_states import states_from
from heedmap.huggingface.inputs import kinds_of
from heedmap.huggingface.projections import projections_of, transformed_values
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.effective import effective_attention, effective_share, freedom
from heedmap.importance.hidden_tokens import contributions, random_directions
from heedmap.importance.rollout import extend
from heedmap.papers.brunner.recovery import Words
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import track

SPECIAL = 2  # the first kind of positions that are neither words nor punctuation
# How far a token is from the state, in positions: from, and up to.
RANGES = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 1 << 30))


def attribution_rows(
    model: TransformerClassifier, texts: Words, settings: BrunnerSettings
) -> list[Row]:
    """Return rows of the parts `contributions` (per text and layer) and `heads` (per text, layer and head).

    All means are over the rows of words; special tokens are among the tokens that contribute.
    """
    projections: dict[str, nn.Module] = {}
    if model.adapter.kind == "interface":
        sample = model.inputs(model.batch(texts[:1], [0]))
        projections = projections_of(model.model, model.layout.layers, sample)
    rows: list[Row] = []
    for index in track(range(len(texts))):
        batch = model.batch(texts[index : index + 1], [index])
        embedded = model.embed(batch)[0]
        rng = named_generator(settings.seed, "brunner directions", index)
        directions = random_directions(embedded.shape[-1], settings.directions, rng)
        by_layer = contributions(partial(states_from, model, batch), embedded, directions)
        recorder = _Recorder(projections)
        with torch.no_grad(), model.adapter.visiting(recorder):
            model.model(**model.inputs(batch))
        is_word = batch.words[0] >= 0
        special = kinds_of(model.tokenizer, batch, model.kinds)[0] >= SPECIAL
        rolled = torch.eye(len(is_word), dtype=torch.float64).unsqueeze(0)
        # The states before the first layer are left out: each has its own token alone.
        for layer, shares in enumerate(by_layer[1:]):
            attention, transformed = recorder.layers[layer]
            average = attention.mean(0)
            rolled = extend(rolled, average.unsqueeze(0), torch.ones_like(rolled[:, 0]).bool())
            masses = {"contribution": shares, "attention": average, "rollout": rolled[0]}
            rows.append({"text": index, "layer": layer, **contribution_row(masses, is_word)})
            heads = head_rows(attention, transformed, shares, is_word, special, rng)
            rows += [{"text": index, "layer": layer, **row} for row in heads]
    return rows


def contribution_row(masses: dict[str, Float[Tensor, "N N"]], is_word: Bool[Tensor, " N"]) -> Row:
    """Return the mean mass of each matrix on every range of distances, and facts of the contributions.

    `median` is that of the words' contributions to their own states; `not_largest` counts the words of which
    another token contributes more.
    """
    size = len(is_word)
    place = torch.arange(size)
    distance = (place.unsqueeze(1) - place).abs()
    by_range = [((distance >= low) & (distance <= high)).double() for low, high in RANGES]
    uniform = torch.full((size, size), 1 / size, dtype=torch.float64)

    def mass(matrix: Float[Tensor, "N N"]) -> list[float]:
        return [float((matrix.double() * near).sum(1)[is_word].mean()) for near in by_range]

    shares = masses["contribution"]
    itself = shares.diagonal()[is_word]
    return {
        "part": "contributions",
        "n": int(is_word.sum()),
        "positions": size,
        **{name: mass(matrix) for name, matrix in {**masses, "uniform": uniform}.items()},
        "median": float(itself.quantile(0.5)),
        "not_largest": int((itself < shares[is_word].amax(1)).sum()),
    }


def head_rows(
    attention: Float[Tensor, "H N N"],
    transformed: Float[Tensor, "H N R"] | None,
    shares: Float[Tensor, "N N"],
    is_word: Bool[Tensor, " N"],
    special: Bool[Tensor, " N"],
    rng: np.random.Generator,
) -> list[Row]:
    """Return facts of every head of a layer; those of T are left out where it is not known.

    `special_raw` and `special_effective` are the mass on special tokens, of |effective attention| as a share of
    its sum; `special_control` is the same with a random null space of equal dimension, which spreads a row
    just as much but knows nothing of the values. `tau_raw` and `tau_effective` are Kendall's τ of a row and the
    contributions to the state, mean over rows, without the token itself, which the residual connection carries
    past the attention.
    """
    heads, size, _ = attention.shape
    maps = {"raw": attention.double()}
    known: dict[str, Tensor] = {}
    if transformed is not None:
        mask = torch.ones(heads, size, dtype=torch.bool)
        free = freedom(transformed, mask)
        has_room = (free.dimension > 0)[:, None, None]
        effective = effective_attention(attention, transformed, mask)
        known = {
            "rank": free.rank,
            "free": free.dimension,
            "free_on_simplex": free.dimension_on_simplex,
            "effective_share": effective_share(attention, effective)[:, is_word].mean(1),
        }
        maps["effective"] = effective.abs()
        control = attention.clone()
        for head in has_room.flatten().nonzero().flatten().tolist():
            kept = random_directions(size, int(free.rank[head]), rng).double()
            control[head] = attention[head] @ kept.T @ kept
        maps["control"] = control.abs()
    for name, matrix in maps.items():
        rows = matrix[:, is_word]
        known[f"special_{name}"] = (rows[..., special].sum(-1) / rows.sum(-1)).mean(1)
        other_tokens = ~torch.eye(size, dtype=torch.bool)[is_word]
        if name == "control":
            continue
        tau = tau_against(rows.transpose(0, 1), shares[is_word].unsqueeze(1), other_tokens)
        known[f"tau_{name}"] = tau[..., 0].nanmean(0)
    return [
        {
            "part": "heads",
            "head": head,
            "n": int(is_word.sum()),
            "positions": size,
            **{name: _number(values[head]) for name, values in known.items()},
        }
        for head in range(heads)
    ]


def _number(value: Tensor) -> float | int | None:
    """Return a number of Python, None for NaN."""
    return value.item() if bool(value.isfinite()) else None


class _Recorder(Visitor):
    """Keep the weights of every layer, and T = V W_O where the projections are known, of one text."""

    def __init__(self, projections: Mapping[str, nn.Module]) -> None:
        self.projections = projections
        self.layers: list[tuple[Tensor, Tensor | None]] = []

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        output, weights = eager()
        assert weights is not None
        transformed = None
        if self.projections:
            transformed = transformed_values(call, self.projections[call.name], weights.shape[1])
            transformed = transformed[0]
        self.layers.append((weights[0].double(), transformed))
        return output, weights

    def weights(self, call: Call, weights: Tensor) -> None:  # entered by the softmax: no values
        self.layers.append((weights[0].double(), None))
