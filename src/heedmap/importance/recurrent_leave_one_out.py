"""Compute all deletions of a recurrent encoder in one pass per direction.

Deleting token j leaves the forward states before j unchanged: the deletion branches off the base text
at j. At step s the pass carries only the deletions before s. So it takes half the cell steps of reading
each shortened text again, projects no input twice, and its matrix products are large.
The backward direction is the same pass over the reversed text.

    step s     rows carried                  token read
      1        (the base text alone)         x_1
      2        without 1                     x_2
      3        without 1, without 2          x_3 ...

In the text without j, a position after j has a new forward state and its old backward state, and a position
before j the reverse. So each direction adds its own new and old states, weighted, to the context. Only the
scores are stored for every (deletion, position) and, until the weights are computed, the new states or, if
smaller, their projections by the decoder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoders import GRU, LSTM, reverse_rows
from heedmap.models.kernels import product, tanh_
from heedmap.models.scores import Additive, Dot, Linear, PairAdditive, PairDot, Uniform

# Numbers per block of states: their gates, 2 MB, stay in the processor's cache.
BLOCK = 1 << 17

Project = Callable[[Tensor], Tensor]


def recurrent_without_each(
    model: AttentionClassifier,
    encoder: LSTM | GRU,
    inputs: Float[Tensor, "B L E"],
    batch: Batch,
    query: Float[Tensor, "B 1 D"] | None = None,
    *,
    marks: bool,
) -> tuple[Float[Tensor, "B J T"], Project]:
    """Return the scores of position t without token j, and a function that projects contexts.

    t = j is meaningless. The function takes weights (B, J, T), 0 at t = j, to the contexts projected by
    `model.projection` without its bias. `inputs` has a mark at both ends, which is read or not.
    """
    lengths = batch.lengths
    cells = _cells(encoder)
    features = _Features(model, encoder.size // 2, query, cells[0].scale)
    inputs_by_way = (inputs, reverse_rows(inputs, lengths + 2))
    ways = [
        _Direction(cell, values, decoder, marks)
        for cell, values, decoder in zip(cells, inputs_by_way, features.decoder, strict=True)
    ]
    tables = []
    for way, direction in enumerate(ways):
        # The other direction's states in the whole text, in this direction's order.
        opposite = reverse_rows(ways[1 - way].base, lengths)
        tables.append(
            direction.scores_without_each(features, way, features.project(opposite, 1 - way))
        )
    later, earlier = tables[0], _reversed_table(tables[1], lengths)
    place = torch.arange(batch.mask.shape[1], device=later.device)
    scores = torch.where(place > place[:, None], later, earlier)  # later: position after deletion

    def project(weights: Float[Tensor, "B J T"]) -> Float[Tensor, "B J O"]:
        forward = ways[0].projected_context(weights)
        backward = ways[1].projected_context(_reversed_table(weights, lengths))
        return forward + reverse_rows(backward, lengths)

    return scores, project


def _reversed_table(table: Float[Tensor, "B J T"], lengths: Tensor) -> Float[Tensor, "B J T"]:
    """Reverse a table over (deletion, position) on both axes, within each text."""
    return reverse_rows(reverse_rows(table, lengths).mT.contiguous(), lengths).mT


class _Features:
    """The weights of score and decoder, split for the forward and the backward half of a state.

    States are stored divided by `scale` (see `_Cell`), so the weights are multiplied by it.
    """

    def __init__(
        self, model: AttentionClassifier, hidden: int, query: Tensor | None, scale: float
    ) -> None:
        score = model.score
        # `Lexical` does not score states.
        assert isinstance(score, Additive | PairAdditive | Dot | PairDot | Uniform)
        self.score = score
        halves = (slice(0, hidden), slice(hidden, None))
        self.decoder = [scale * model.projection.weight[:, half].T.contiguous() for half in halves]
        self.bias: Tensor | None = None
        if isinstance(score, PairDot):
            assert query is not None
            self.query = [scale * query[:, 0, half] for half in halves]
            return
        if isinstance(score, PairAdditive):
            self.bias = score.hidden.bias + score.query(query)  # (B, 1, A)
        elif isinstance(score, Additive):
            self.bias = score.hidden.bias
        elif isinstance(score, Linear):
            self.bias = score.vector.bias
        if isinstance(score, Uniform):  # every score is 0, as if of a vector of zeros
            score_weight = model.projection.weight.new_zeros(1, 2 * hidden)
        else:
            score_weight = (score.vector if isinstance(score, Dot) else score.hidden).weight
        self.score_weight = [scale * score_weight[:, half] for half in halves]

    def project(self, states: Float[Tensor, "B T D"], way: int) -> Float[Tensor, "B T A"]:
        """Return the score's projection of one half, its bias included."""
        if isinstance(self.score, PairDot):
            return torch.matmul(states, self.query[way].unsqueeze(-1))
        projected = product(states, self.score_weight[way])
        return projected if self.bias is None else projected + self.bias

    def complete(
        self, states: Float[Tensor, "J B D"], way: int, opposite: Float[Tensor, "B A"]
    ) -> Float[Tensor, "J B"]:
        """Return scores of one half, given the other half's projection."""
        if isinstance(self.score, PairDot):
            return ((states * self.query[way]).sum(-1) + opposite[:, 0]) * self.score.scale
        hidden = product(states, self.score_weight[way]).add_(opposite)
        if isinstance(self.score, Uniform):
            scores = hidden
        elif isinstance(self.score, Dot):
            scores = hidden * self.score.scale
        else:
            scores = tanh_(hidden) @ self.score.vector.weight.T
        return scores.squeeze(-1)


class _Direction:
    """One direction over a batch of texts, inputs projected once; `inputs` starts and ends with a mark.

    `base` holds the stored states of the tokens in the whole texts, in the order of reading.
    """

    def __init__(
        self,
        cell: "_Cell",
        inputs: Float[Tensor, "B L E"],
        decoder: Float[Tensor, "D O"],
        marks: bool,
    ) -> None:
        self.cell = cell
        self.count, self.tokens, self.decoder = len(inputs), inputs.shape[1] - 2, decoder
        steps = inputs.transpose(0, 1).contiguous()
        self.projected = product(steps, cell.of_input, cell.bias)
        self._read_whole(marks)
        # The new states or projections of each step, one row per deletion.
        self.history: list[Float[Tensor, "J B V"]] = []

    def _read_whole(self, marks: bool) -> None:
        """Compute states and memory of the whole texts: index s is after the mark and s tokens."""
        steps, cell = self.tokens + 1, self.cell
        # Without a mark the first token is read from zeros.
        self.states = self.projected.new_zeros(steps, self.count, cell.hidden)
        self.memories = self.projected.new_zeros(steps, self.count, cell.memory)
        state, memory = self.states[:1].clone(), self.memories[:1].clone()
        for step in range(0 if marks else 1, steps):
            current = self.states[step : step + 1]
            cell.step(state, current, memory, self.projected[step])
            state, self.memories[step] = current, memory[0]

    @property
    def base(self) -> Float[Tensor, "B T D"]:
        return self.states[1:].transpose(0, 1)

    def scores_without_each(
        self, features: _Features, way: int, opposite: Float[Tensor, "B T A"]
    ) -> Float[Tensor, "B J T"]:
        """Return scores of every position after the deletion, and fill the history, in the order of reading.

        Rows are processed in blocks whose gates stay in the processor's cache.
        """
        hidden, size = self.cell.hidden, self.tokens
        projects = self.decoder.shape[1] < hidden
        buffers = _Buffers(self.states, projects)
        memory = self.memories.new_empty(size, self.count, self.cell.memory)
        scores = opposite.new_zeros(size, size, self.count)
        block = max(1, BLOCK // (hidden * self.count))
        previous = buffers.next(0)
        for step in range(1, size):
            # Row step − 1 is new: the text without that token continues from the base's state before it.
            memory[step - 1] = self.memories[step - 1]
            current = buffers.next(step)
            for start in range(0, step, block):
                rows = slice(start, min(start + block, step))
                self.cell.step(
                    previous[rows], current[rows], memory[rows], self.projected[step + 1]
                )
                scores[step, rows] = features.complete(current[rows], way, opposite[:, step])
            new = current[:step]
            self.history.append(torch.matmul(new, self.decoder) if projects else new)
            previous = current
        return scores.permute(2, 1, 0)

    def projected_context(self, weights: Float[Tensor, "B J T"]) -> Float[Tensor, "B J O"]:
        """Return Σ_t w_jt W h_t of this half: new states after the deletion, the base's before it."""
        by_position = weights.permute(2, 1, 0).contiguous()
        base = self.base
        projects = self.decoder.shape[1] < self.cell.hidden
        if projects:
            base = torch.matmul(base, self.decoder)
        total = base.new_zeros(self.tokens, self.count, base.shape[-1])
        for step, new in enumerate(self.history, start=1):
            total[:step].addcmul_(by_position[step, :step].unsqueeze(-1), new)
        context = torch.baddbmm(total.transpose(0, 1), weights.tril(-1), base)
        return context if projects else torch.matmul(context, self.decoder)


class _Buffers:
    """Memory for the states of step s: s rows, and the base's own, from which the next row branches.

    With `turns` two buffers alternate; otherwise each step has its own.
    """

    def __init__(self, base: Float[Tensor, "steps B D"], turns: bool) -> None:
        self.base, self.turns, self.used = base, turns, 0
        size = len(base)
        rows = 2 * size if turns else size * (size - 1) // 2
        self.buffer = base.new_empty(rows, *base.shape[1:])

    def next(self, step: int) -> Float[Tensor, "steps B D"]:
        start = len(self.base) * (step % 2) if self.turns else self.used
        self.used += step + 1
        buffer = self.buffer[start : start + step + 1]
        buffer[step] = self.base[step]
        return buffer


class _Cell(ABC):
    """One step of a recurrent network, for all rows (J, B, D); states are stored divided by `scale`.

    `hidden` and `memory` are the sizes of a state and of what is carried beside it; `of_input` and `bias`
    project an input to the gates.
    """

    scale: float
    hidden: int
    memory: int
    of_input: Float[Tensor, "G E"]
    bias: Float[Tensor, " G"]

    @abstractmethod
    def step(self, previous: Tensor, current: Tensor, memory: Tensor, projected: Tensor) -> None:
        """Write the states after one input, given its projection; `memory` in place."""


def _cells(encoder: LSTM | GRU) -> list[_Cell]:
    if isinstance(encoder, LSTM):
        return [_LSTMCell(encoder.forward_lstm), _LSTMCell(encoder.backward_lstm)]
    return [_GRUCell(encoder.forward_gru), _GRUCell(encoder.backward_gru)]


class _LSTMCell(_Cell):
    """States are stored as h / 2, memories as 2 c; the factors are in the weights and in the step."""

    scale = 2.0

    def __init__(self, lstm: nn.LSTM) -> None:
        self.hidden = self.memory = lstm.hidden_size
        of_input, of_state, *biases = lstm.all_weights[0]
        # tanh x = 2 σ(2x) − 1: with the gate of the new input doubled beforehand, one σ serves all four.
        doubled = of_input.new_ones(4 * self.hidden)
        doubled[2 * self.hidden : 3 * self.hidden] = 2.0
        self.bias = (biases[0] + biases[1]) * doubled
        self.of_input = of_input * doubled[:, None]
        self.of_state = self.scale * of_state * doubled[:, None]

    def step(self, previous: Tensor, current: Tensor, memory: Tensor, projected: Tensor) -> None:
        """Take one step; the gates i, f, g, o are in PyTorch's order."""
        gates = product(previous, self.of_state).add_(projected)
        enter, keep, new, leave = gates.sigmoid_().chunk(4, dim=-1)
        # 2c ← f 2c + 4 i (σ(2g) − ½);  h / 2 ← o (σ(2c) − ½)
        memory.mul_(keep).addcmul_(enter, new.sub_(0.5), value=4.0)
        torch.mul(leave, torch.sigmoid(memory).sub_(0.5), out=current)


class _GRUCell(_Cell):
    """n = tanh(W_n x + b_n + r (U_n h + c_n)), h ← (1 − z) n + z h; there is nothing beside the state."""

    scale = 1.0
    memory = 0

    def __init__(self, gru: nn.GRU) -> None:
        self.hidden = gru.hidden_size
        of_input, of_state, of_inputs, of_states = gru.all_weights[0]
        self.of_input, self.of_state = of_input, of_state
        # U_n h + c_n is multiplied by r, so c_n cannot be added to the projected input.
        self.own = of_states.clone()
        self.own[: 2 * self.hidden] = 0.0
        self.bias = of_inputs + of_states - self.own

    def step(self, previous: Tensor, current: Tensor, memory: Tensor, projected: Tensor) -> None:
        """Take one step; the gates r, z, n are in PyTorch's order."""
        gates = product(previous, self.of_state, self.own)
        sigmoids, new = gates[..., : 2 * self.hidden], gates[..., 2 * self.hidden :]
        reset, stay = sigmoids.add_(projected[..., : 2 * self.hidden]).sigmoid_().chunk(2, dim=-1)
        tanh_(new.mul_(reset).add_(projected[..., 2 * self.hidden :]))
        torch.lerp(new, previous, stay, out=current)
