"""Compute the heat map on trial as a function of its layer's weights.

Rollout, flow, gradient and effective attention depend on more than the layer's weights. The layers below
do not change if only that layer is edited, and are recorded in one pass; the gradient is computed by the
model again.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from heedmap.huggingface.attention_hook import Call, Visitor
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.maps import Maps
from heedmap.huggingface.projections import transformed_values
from heedmap.importance.effective import kept_directions
from heedmap.importance.flow import flow
from heedmap.importance.rollout import extend, mixed
from heedmap.importance.words import shares, sum_by_word
from heedmap.measures import LN2, jensen_shannon, log_odds
from heedmap.models.layered import Map
from heedmap.settings.models import PLAIN

Predict = Callable[[Tensor], Tensor]  # (S, B, K, P) weights to (S, B, C) logits


class View:
    """One heat map of a batch of texts, as a function of its layer's weights.

    Called with S weightings (S, B, K, P), all rows of the layer (K = heads × N) or, with `one_row`, the row
    that the classifier reads (K = heads); `predict` returns the model's logits under them. Differentiable,
    except `flow`, which solves a maximum flow for every text, word and weighting.
    """

    def __init__(self, maps: Maps, batch: SubwordBatch, map_on_trial: Map, one_row: bool) -> None:
        self.batch, self.map, self.one_row = batch, map_on_trial, one_row
        rows, real = maps.rows(batch), batch.real
        self.starts = real.long().argmax(1) if rows is None else rows  # of a flow
        read_rows = real if rows is None else one_hot(rows, real.shape[1])
        self.read: Float[Tensor, "B N"] = read_rows / read_rows.sum(1, keepdim=True)
        self.below = _Below(maps, batch, map_on_trial)
        if map_on_trial.view not in ("row", "received", "gradient"):
            inputs = batch.inputs(maps.tokenizer.model_input_names)
            with torch.no_grad(), maps.adapter.visiting(self.below):
                maps.adapter.model(**inputs)

    def __call__(
        self, attention: Float[Tensor, "S B K P"], predict: Predict
    ) -> Float[Tensor, "S B T"]:
        """Return the maps over words, each scaled to sum to 1."""
        if self.map.view in PLAIN:
            return self.plain(attention)
        if self.map.view == "gradient":
            return on_words(self._gradient(attention, predict), self.batch)
        remade = {"rollout": self._rollout, "flow": self._flow, "effective": self._effective}
        return on_words(remade[self.map.view](attention), self.batch)

    def plain(self, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """Return the weights themselves: the mean of the rows on trial or, in a derived view, of its rows."""
        rows = attention if self.map.view in PLAIN else self._row(attention)
        return on_words(rows.mean(2), self.batch)

    @torch.no_grad()
    def reach(
        self,
        attention: Float[Tensor, "B K P"],
        support: Bool[Tensor, "B K P"],
        heatmap: Float[Tensor, "B T"],
    ) -> Float[Tensor, " B"]:
        """Bound JSD(map, heatmap) over all weights of the layer, whatever is predicted.

        The bound is ln 2 except for rollout. A rollout is (Σ_r w_r (a_r + e_r)) R up to its sum, with R the
        rollout of the layers below, r the rows read and a_r the mean over heads, which keeps its mass m_r.
        So it is a mixture of the maps of (M e_j + Σ_r w_r e_r) R with M = Σ_r w_r m_r, j any position in a
        support. The divergence is convex, so its maximum is at one of these.
        """
        if self.map.view != "rollout":
            return torch.full_like(heatmap[:, 0], LN2, dtype=torch.float64)
        rolled = self.below.rolled
        mass = self._square(attention.unsqueeze(0))[0].double().mean(1).sum(-1)
        weight = self.read / (1 + mass)
        movable_mass = (weight * mass).sum(1)[:, None, None]
        fixed = torch.einsum("bn,bnm->bm", weight, rolled).unsqueeze(1)
        corners = on_words((movable_mass * rolled + fixed).transpose(0, 1), self.batch)  # (N, B, T)
        divergences = jensen_shannon(corners.double(), heatmap.double().expand_as(corners))
        looked_at = self._square(support.unsqueeze(0))[0].any(1) & (self.read > 0).unsqueeze(-1)
        return divergences.transpose(0, 1).masked_fill(~looked_at.any(1), 0.0).amax(1)

    def _square(self, attention: Tensor) -> Tensor:
        """Split the rows by head, if all are on trial: (S, B, K, P) → (S, B, H, N, P)."""
        size = attention.shape[-1]
        return attention.reshape(*attention.shape[:2], -1, size, size)

    def _row(self, values: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B H P"]:
        """Return the row that the classifier reads; the mean of the real rows if it reads all."""
        if self.one_row:
            return values
        return torch.einsum("sbhqn,bq->sbhn", self._square(values), self.read.to(values.dtype))

    def _rollout(self, attention: Tensor) -> Tensor:
        layer = mixed(self._square(attention).mean(2).double(), self.batch.real)
        return torch.einsum("bq,sbqn,bnm->sbm", self.read.double(), layer, self.below.rolled)

    def _flow(self, attention: Tensor) -> Tensor:
        average = self._square(attention.detach()).mean(2)
        flows = torch.zeros(average.shape[:3], dtype=torch.float64, device=average.device)
        for s, layer in enumerate(average):
            network = torch.stack([*self.below.averages, layer]).double()
            for b, start in enumerate(self.starts.tolist()):
                flows[s, b] = flow(network[:, b], start, self.batch.real[b])
        return flows

    def _gradient(self, attention: Tensor, predict: Predict) -> Tensor:
        """Return |∂y/∂a · a| of the log-odds y of the class predicted under these weights."""
        differentiable = attention.requires_grad
        weights = attention if differentiable else attention.detach().requires_grad_()
        with torch.enable_grad():
            logits = predict(weights)
            # One backward pass for all texts: each one's log-odds depend on its own weights alone.
            y = log_odds(logits, logits.argmax(-1)).sum()
            (gradient,) = torch.autograd.grad(y, weights, create_graph=differentiable)
        return self._row(gradient * attention).abs().mean(2)

    def _effective(self, attention: Tensor) -> Tensor:
        assert self.below.basis is not None
        row = self._row(attention.double())
        part = torch.einsum("sbhn,bhnr->sbhr", row, self.below.basis)
        return torch.einsum("sbhr,bhnr->sbhn", part, self.below.basis).abs().mean(2)


def on_words(values: Float[Tensor, "*lead B P"], batch: SubwordBatch) -> Float[Tensor, "*lead B T"]:
    """Sum values over each word, as shares of the total on words."""
    return shares(sum_by_word(values, batch.words, batch.mask.shape[1])).float()


class _Below(Visitor):
    """Record what a view needs beside its layer's weights: the layers below it, and its values."""

    def __init__(self, maps: Maps, batch: SubwordBatch, map_on_trial: Map) -> None:
        self.maps, self.batch, self.map = maps, batch, map_on_trial
        self.layer_of = {call: layer for layer, call in enumerate(maps.layout.calls)}
        texts, size = batch.real.shape
        start = torch.eye(size, dtype=torch.float64, device=batch.real.device)
        self.rolled = start.expand(texts, -1, -1)
        self.averages: list[Tensor] = []
        self.basis: Float[Tensor, "B H N R"] | None = None

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        """Record what the view needs."""
        layer, view = self.layer_of.get(call.index), self.map.view
        if layer is None or layer > self.map.layer:
            return
        if layer == self.map.layer:
            if view == "effective":
                self._directions(call, weights.shape[1])
            return
        average = weights.detach().float().mean(1)
        if view == "rollout":
            self.rolled = extend(self.rolled, average.double(), self.batch.real)
        elif view == "flow":
            self.averages.append(average)

    def _directions(self, call: Call, heads: int) -> None:
        transformed = transformed_values(call, self.maps.projections[call.name], heads)
        if self.map.head is not None:
            transformed = transformed[:, [self.map.head]]
        mask = self.batch.real.unsqueeze(1).expand(transformed.shape[:3])
        self.basis = kept_directions(transformed, mask)
