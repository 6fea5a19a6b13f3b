"""Compute every heat map that a transformer offers, and facts about each of its heads, in one pass.

Nothing of size layers × heads × N × N is kept: each layer's weights become maps during the pass.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from heedmap.huggingface.attention_hook import Call, Output, Then, Visitor
from heedmap.huggingface.attention_layout import AttentionLayout, at_rows
from heedmap.huggingface.inputs import SubwordBatch, kinds_of
from heedmap.huggingface.measuring import Leaves
from heedmap.huggingface.model_adapter import ModelAdapter
from heedmap.huggingface.projections import transformed_values
from heedmap.importance.effective import effective_attention, effective_share, freedom
from heedmap.importance.flow import LONGEST, flow
from heedmap.importance.rollout import extend
from heedmap.importance.special_tokens import head_entropy
from heedmap.importance.special_tokens import shares as special_shares
from heedmap.importance.words import shares, sum_by_word
from heedmap.measures import log_odds
from heedmap.models.layered import Map

VIEWS = ("row", "received", "rollout", "flow", "gradient", "effective")
PER_HEAD = ("row", "received", "gradient", "effective")


class Maps:
    """The heat maps of one classifier: per layer, the mean over heads and, if the view has them, each head.

    `projections` are the output projections of the layers on trial; empty if they or the values are unknown.
    """

    def __init__(
        self,
        adapter: ModelAdapter,
        tokenizer: PreTrainedTokenizerBase,
        layout: AttentionLayout,
        projections: Mapping[str, nn.Module],
    ) -> None:
        self.adapter, self.tokenizer = adapter, tokenizer
        self.layout, self.projections = layout, projections

    def available(self) -> list[Map]:
        """List all maps, in order. Rollout and flow need self-attention in all layers, from the input up."""
        missing = self.missing()
        return [m for view in VIEWS if view not in missing for m in self._of(view)]

    def missing(self) -> dict[str, tuple[int, str]]:
        """Return the views that this model lacks: how many maps each would be, and why."""
        missing = {}
        if self.adapter.model.config.is_encoder_decoder:
            reason = "its cross-attention is on trial, and no path leads through that to the input"
            missing = {view: (len(self._of(view)), reason) for view in ("rollout", "flow")}
        if not self.projections:
            reason = (
                "no linear module reads what its heads put out"
                if self.adapter.kind == "interface"
                else "its values are out of reach: it is entered by its softmax"
            )
            missing["effective"] = (len(self._of("effective")), reason)
        return missing

    def _of(self, view: str) -> list[Map]:
        heads = [None, *(range(self.layout.heads) if view in PER_HEAD else ())]
        return [Map(view, layer, head) for layer in range(len(self.layout.calls)) for head in heads]

    def read(
        self, batch: SubwordBatch, maps: Sequence[Map], edit: Visitor | None = None
    ) -> Float[Tensor, "B M T"]:
        """Compute the wanted maps over words, each scaled to sum to 1; NaN for a flow that would take too long.

        With `edit`, the maps are of the model as changed by that visitor.
        """
        reader = _Reader(self, batch, maps)
        visitor = reader if edit is None else Then(edit, reader)
        inputs = batch.inputs(self.tokenizer.model_input_names)
        with torch.set_grad_enabled(reader.needs_gradient), self.adapter.visiting(visitor):
            by_map = reader.finish(self.adapter.model(**inputs).logits.float())
        values = torch.stack([by_map[m] for m in maps], dim=1)
        words = batch.words.unsqueeze(1).expand(-1, len(maps), -1).flatten(0, 1)
        summed = sum_by_word(values.flatten(0, 1), words, batch.mask.shape[1])
        return shares(summed.reshape(*values.shape[:2], -1)).float()

    def rows(self, batch: SubwordBatch) -> Int[Tensor, " B"] | None:
        """Return the row that the classifier reads of each text; None if it reads all."""
        if self.layout.reads == "all":
            return None
        return self.layout.read_rows(batch.inputs(self.tokenizer.model_input_names))


def _mean_row(
    weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B H N"]:
    queries = real.to(weights.dtype)
    return torch.einsum("bhqn,bq->bhn", weights, queries) / queries.sum(1)[:, None, None]


def _read_row(
    weights: Float[Tensor, "B H Q N"], rows: Int[Tensor, " B"] | None, real: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B H N"]:
    """Return the row that the classifier reads; the mean of the real rows if it reads all."""
    return _mean_row(weights, real) if rows is None else at_rows(weights.transpose(1, 2), rows)


class _Reader(Visitor):
    def __init__(self, maps: Maps, batch: SubwordBatch, requested: Sequence[Map]) -> None:
        self.maps, self.batch, self.requested = maps, batch, list(requested)
        self.layer_of = {call: layer for layer, call in enumerate(maps.layout.calls)}
        self.views = {m.view for m in requested}
        self.needs_gradient = "gradient" in self.views
        self.rows = maps.rows(batch)
        self.values: dict[Map, Tensor] = {}
        self.clean: dict[int, Tensor] = {}
        self.leaves = Leaves(held=False)
        self.averages: list[Tensor] = []
        texts, size = batch.real.shape
        start = torch.eye(size, dtype=torch.float64, device=batch.real.device)
        self.rolled = start.expand(texts, -1, -1)

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        output, weights = super().attend(call, eager)
        if call.index in self.layer_of and "effective" in self.views and weights is not None:
            self._effective(self.layer_of[call.index], weights.detach(), call)
        return output, weights

    def weights(self, call: Call, weights: Tensor) -> Tensor | None:
        layer = self.layer_of.get(call.index)
        if layer is None:
            return None
        clean = weights.detach().float()
        self._put("row", layer, self._row(clean))
        self._put("received", layer, _mean_row(clean, self.batch.real))
        if self.views & {"rollout", "flow"}:
            average = clean.mean(1)
            if "rollout" in self.views:
                self.rolled = extend(self.rolled, average.double(), self.batch.real)
                self.values[Map("rollout", layer, None)] = self._row(self.rolled.unsqueeze(1))[:, 0]
            if "flow" in self.views:
                self.averages.append(average)
        if self.needs_gradient:
            self.clean[call.index] = clean
            return self.leaves.weights(call, weights)
        return None

    def _row(self, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H N"]:
        return _read_row(weights, self.rows, self.batch.real)

    def _put(self, view: str, layer: int, values: Float[Tensor, "B H N"]) -> None:
        if view in self.views:
            self.values[Map(view, layer, None)] = values.mean(1)
            for head in range(values.shape[1]):
                self.values[Map(view, layer, head)] = values[:, head]

    def _effective(self, layer: int, weights: Tensor, call: Call) -> None:
        transformed = transformed_values(call, self.maps.projections[call.name], weights.shape[1])
        mask = self.batch.real.unsqueeze(1).expand(transformed.shape[:3])
        row = self._row(weights.double()).unsqueeze(2)
        effective = effective_attention(row, transformed, mask).squeeze(2)
        self._put("effective", layer, effective.abs())  # effective weights may be negative

    def finish(self, logits: Float[Tensor, "B C"]) -> dict[Map, Tensor]:
        """Compute the maps that need the whole pass, and return all."""
        if self.needs_gradient:
            # One backward pass for all texts: each one's log-odds depend on its own weights alone.
            y = log_odds(logits, logits.argmax(-1)).sum()
            gradients = torch.autograd.grad(y, list(self.leaves.leaves.values()))
            for call, gradient in zip(self.leaves.leaves, gradients, strict=True):
                rows = self._row(gradient * self.clean[call])
                self._put("gradient", self.layer_of[call], rows.abs())
        layers = {m.layer for m in self.requested if m.view == "flow"}
        for layer in layers:
            stacked = torch.stack(self.averages[: layer + 1]).float()
            self.values[Map("flow", layer, None)] = self._flow(stacked)
        return self.values

    def _flow(self, layers: Float[Tensor, "layers B N N"]) -> Float[Tensor, "B N"]:
        real = self.batch.real
        flows = torch.full(real.shape, torch.nan, dtype=torch.float64, device=real.device)
        starts = self.rows if self.rows is not None else real.long().argmax(1)
        for i in range(len(real)):
            if len(self.requested) == 1 or int(real[i].sum()) <= LONGEST:
                flows[i] = flow(layers[:, i].double(), int(starts[i]), real[i])
        return flows


def layer_facts(maps: Maps, batch: SubwordBatch, kinds: Sequence[str]) -> dict[str, Tensor]:
    """Measure every head of every layer on a batch of texts: (B, layers, H) each, NaN if unknown.

    Of pairs, `within` is the mass of the rows of each text's words on words of the same text, and `across` on
    those of the other, means over the rows of both texts.

    `row_on_words`: mass of the read row on words. `share_KIND`: mass on positions of a kind, mean over real
    rows (Clark et al. 2019). `entropy`: in nats, mean over real rows. `rank`: of T = V W_O. `free` and
    `free_on_simplex`: dimension of its left null space, without and with rows that sum to 1 (Brunner et
    al. 2019). `effective_share`: ‖A⊥‖ / ‖A‖ of the read row.
    """
    reader = _Facts(maps, batch, kinds)
    with torch.no_grad(), maps.adapter.visiting(reader):
        maps.adapter.model(**batch.inputs(maps.tokenizer.model_input_names))
    return {name: torch.stack(values, dim=1) for name, values in reader.values.items()}


def _between_sides(
    weights: Float[Tensor, "B H Q N"], batch: SubwordBatch
) -> dict[str, Float[Tensor, "B H"]]:
    """Return the mean mass of the rows of a pair's words on their own text, and on the other; none of one text.

    None either where rows are of other positions than columns.
    """
    sides = batch.sides
    if not bool((sides == 1).any()) or weights.shape[-1] != weights.shape[-2]:
        return {}
    of_words = (sides >= 0).to(weights.dtype)
    rows, columns = sides.unsqueeze(2), sides.unsqueeze(1)
    between_words = (rows >= 0) & (columns >= 0)
    masses = {
        "within": between_words & (rows == columns),
        "across": between_words & (rows != columns),
    }
    return {
        name: torch.einsum("bhqn,bqn->bh", weights, mask.to(weights.dtype)).double()
        / of_words.sum(1, keepdim=True)
        for name, mask in masses.items()
    }


class _Facts(Visitor):
    def __init__(self, maps: Maps, batch: SubwordBatch, kinds: Sequence[str]) -> None:
        self.maps, self.batch, self.kinds = maps, batch, kinds
        self.values: dict[str, list[Tensor]] = {}
        self.calls = set(maps.layout.calls)
        self.rows = maps.rows(batch)
        self.keys = kinds_of(maps.tokenizer, batch, kinds)

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        output, weights = eager()
        if call.index in self.calls and weights is not None:
            self._record(call, weights.detach().float())
        return output, weights

    def weights(self, call: Call, weights: Tensor) -> None:
        if call.index in self.calls:  # entered by the softmax: no values
            self._record(call, weights.detach().float())

    def _record(self, call: Call, weights: Tensor) -> None:
        real = self.batch.real
        mass = special_shares(weights, self.keys, real, len(self.kinds))
        for kind, name in enumerate(self.kinds):
            self._add(f"share_{name}", mass[..., kind])
        for name, side_mass in _between_sides(weights, self.batch).items():
            self._add(name, side_mass)
        self._add("entropy", head_entropy(weights, real))
        words = (self.batch.words >= 0).unsqueeze(1)
        self._add("row_on_words", (_read_row(weights, self.rows, real) * words).sum(-1))
        if call.value is None or not self.maps.projections:
            return
        transformed = transformed_values(call, self.maps.projections[call.name], weights.shape[1])
        mask = real.unsqueeze(1).expand(transformed.shape[:3])
        free = freedom(transformed, mask)
        row = _read_row(weights.double(), self.rows, real).unsqueeze(2)
        effective = effective_attention(row, transformed, mask)
        self._add("rank", free.rank)
        self._add("free", free.dimension)
        self._add("free_on_simplex", free.dimension_on_simplex)
        self._add("effective_share", effective_share(row, effective).squeeze(2))

    def _add(self, name: str, values: Tensor) -> None:
        self.values.setdefault(name, []).append(values.double())
