"""All deletions of a recurrent encoder in one pass a direction.

Deleting token j leaves the forward states before j unchanged: the deletion branches off the base text
at j. At step s the pass carries the s deletions that already happened, so there are half the cell steps
of reading each shortened text again, no input is projected twice, and the matrix products are large.
The backward direction is the same pass over the reversed text.

    step s     rows carried                  token read
      1        (the base text alone)         x_1
      2        without 1                     x_2
      3        without 1, without 2          x_3 ...

In the text without j, a position after j has a new forward state and its old backward state, and a position
before j the other way round. So each direction adds its own new states and its own old ones, weighted, to
the context: nothing is ever written out for every (deletion, position) but the scores and, for as long as
the weights are not known, the new states (or, where that is less, what the decoder makes of them).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoders import LSTM, reverse_rows
from heedmap.models.scores import Additive, Dot, PairAdditive, PairDot

# Numbers of a block of states: their gates, 1 MB, stay in the processor's cache.
BLOCK = 1 << 16

Project = Callable[[Tensor], Tensor]


def lstm_without_each(
    model: AttentionClassifier,
    encoder: LSTM,
    embedded: Float[Tensor, "B L E"],
    batch: Batch,
    query: Float[Tensor, "B 1 D"] | None = None,
) -> tuple[Float[Tensor, "B J T"], Project]:
    """Scores of position t in the text without token j (t = j is meaningless), and a function that gives
    what `model.projection` makes of the contexts, its bias left out, from weights (B, J, T), 0 at t = j.
    """
    lengths = batch.lengths
    features = _Features(model, encoder.size // 2, query)
    ways = (
        _Direction(encoder.forward_lstm, embedded, features.decoder[0]),
        _Direction(encoder.backward_lstm, reverse_rows(embedded, lengths + 2), features.decoder[1]),
    )
    tables = []
    for way, direction in enumerate(ways):
        # The other direction's states in the whole text, in this one's order of reading.
        other = reverse_rows(ways[1 - way].base, lengths)
        tables.append(direction.scores_without_each(features, way, features.of(other, 1 - way)))
    later, earlier = tables[0], _turned(tables[1], lengths)
    place = torch.arange(batch.mask.shape[1], device=later.device)
    scores = torch.where(place > place[:, None], later, earlier)  # position after deletion

    def project(weights: Float[Tensor, "B J T"]) -> Float[Tensor, "B J O"]:
        forward = ways[0].projected_context(weights)
        backward = ways[1].projected_context(_turned(weights, lengths))
        return forward + reverse_rows(backward, lengths)

    return scores, project


def _turned(table: Float[Tensor, "B J T"], lengths: Tensor) -> Float[Tensor, "B J T"]:
    """A table over (deletion, position) counted from each text's other end."""
    return reverse_rows(reverse_rows(table, lengths).mT.contiguous(), lengths).mT


class _Features:
    """What score and decoder need of a state, split into its forward and its backward half.

    States come doubled (see `_cell`), so the weights are halved.
    """

    def __init__(self, model: AttentionClassifier, hidden: int, query: Tensor | None) -> None:
        score = model.score
        assert isinstance(
            score, Additive | PairAdditive | Dot | PairDot
        )  # scores come from states here
        self.score = score
        halves = (slice(0, hidden), slice(hidden, None))
        self.decoder = [0.5 * model.projection.weight[:, half].T.contiguous() for half in halves]
        self.bias: Tensor | None = None
        if isinstance(score, PairDot):
            assert query is not None
            self.query = [0.5 * query[:, 0, half] for half in halves]
            return
        if isinstance(score, PairAdditive):
            self.bias = score.hidden.bias + score.query(query)  # (B, 1, A)
        elif isinstance(score, Additive):
            self.bias = score.hidden.bias
        first = (score.vector if isinstance(score, Dot) else score.hidden).weight
        self.first = [0.5 * first[:, half].T.contiguous() for half in halves]

    def of(self, states: Float[Tensor, "B T H"], way: int) -> Float[Tensor, "B T A"]:
        """The score's projection of one half, its bias included."""
        if isinstance(self.score, PairDot):
            return torch.matmul(states, self.query[way].unsqueeze(-1))
        projected = torch.matmul(states, self.first[way])
        return projected if self.bias is None else projected + self.bias

    def complete(
        self, states: Float[Tensor, "J B H"], way: int, other: Float[Tensor, "B A"]
    ) -> Float[Tensor, "J B"]:
        """Scores of one half, given the other half's projection."""
        if isinstance(self.score, PairDot):
            return ((states * self.query[way]).sum(-1) + other[:, 0]) * self.score.scale
        hidden = states.new_empty(*states.shape[:2], other.shape[-1]).copy_(other)
        hidden = hidden.flatten(0, 1).addmm_(states.flatten(0, 1), self.first[way])
        if isinstance(self.score, Dot):
            scores = hidden * self.score.scale
        else:
            scores = hidden.tanh_() @ self.score.vector.weight.T
        return scores.view(states.shape[:2])


class _Direction:
    """One LSTM over a batch of texts, inputs projected once; `inputs` starts and ends with a mark.

    `base` are the doubled states of the tokens in the whole texts, in the order of reading.
    """

    def __init__(
        self, lstm: nn.LSTM, inputs: Float[Tensor, "B L E"], decoder: Float[Tensor, "H O"]
    ) -> None:
        hidden = lstm.hidden_size
        self.count, self.tokens, self.decoder = len(inputs), inputs.shape[1] - 2, decoder
        # σ(x) = ½ + ½ tanh(x/2): with i, f and o halved beforehand, one tanh serves all four gates.
        scale = inputs.new_full((4 * hidden,), 0.5)
        scale[2 * hidden : 3 * hidden] = 1.0
        of_input, of_state, *biases = lstm.all_weights[0]
        bias = (biases[0] + biases[1]) * scale
        weight = (of_input * scale[:, None]).T
        steps = inputs.transpose(0, 1).contiguous()
        self.projected = torch.addmm(bias, steps.flatten(0, 1), weight).view(
            *steps.shape[:2], 4 * hidden
        )
        self.recurrent = (0.5 * of_state * scale[:, None]).T.contiguous()
        self._read_whole()
        # After step s: its new states or projections, one row per deletion.
        self.history: list[Float[Tensor, "J B V"]] = []

    def _read_whole(self) -> None:
        """States and cells of the whole texts: index s is after the mark and s tokens."""
        size = (self.tokens + 1, self.count, len(self.recurrent))
        self.states, self.cells = self.projected.new_empty(size), self.projected.new_empty(size)
        gates, spare = self._scratch(1)
        state, cell = self.projected.new_zeros(2, 1, *size[1:])
        for step in range(self.tokens + 1):
            _cell(
                state, self.states[step : step + 1], cell, gates, spare,
                self.projected[step], self.recurrent,
            )  # fmt: skip
            state, self.cells[step] = self.states[step : step + 1], cell[0]

    @property
    def base(self) -> Float[Tensor, "B T H"]:
        return self.states[1:].transpose(0, 1)

    def _scratch(self, rows: int) -> tuple[Tensor, Tensor]:
        """Gates and tanh c of `rows` rows."""
        hidden = len(self.recurrent)
        gates = self.projected.new_empty(rows, self.count, 4 * hidden)
        return gates, self.projected.new_empty(rows, self.count, hidden)

    def scores_without_each(
        self, features: _Features, way: int, other: Float[Tensor, "B T A"]
    ) -> Float[Tensor, "B J T"]:
        """Scores of every position after the deletion, and the history, in the order of reading.

        Rows come in blocks whose gates stay in the processor's cache.
        """
        hidden, size = len(self.recurrent), self.tokens
        projects = self.decoder.shape[1] < hidden
        rooms = _Rooms(self.states, projects)
        cell = self.cells.new_empty(size, self.count, hidden)
        scores = other.new_zeros(size, size, self.count)
        block = max(1, BLOCK // (hidden * self.count))
        gates, spare = self._scratch(block)
        given = rooms.next(0)
        for step in range(1, size):
            # Row step − 1 is new: the text without that token goes on from the base's state before it.
            cell[step - 1] = self.cells[step - 1]
            made = rooms.next(step)
            for start in range(0, step, block):
                rows = slice(start, min(start + block, step))
                used = slice(0, rows.stop - start)
                _cell(
                    given[rows], made[rows], cell[rows], gates[used], spare[used],
                    self.projected[step + 1], self.recurrent,
                )  # fmt: skip
                scores[step, rows] = features.complete(made[rows], way, other[:, step])
            new = made[:step]
            self.history.append(torch.matmul(new, self.decoder) if projects else new)
            given = made
        return scores.permute(2, 1, 0)

    def projected_context(self, weights: Float[Tensor, "B J T"]) -> Float[Tensor, "B J O"]:
        """Σ_t w_jt W h_t of this half: new states after the deletion, the base's before it."""
        after = weights.permute(2, 1, 0).contiguous()
        base = self.base
        projects = self.decoder.shape[1] < len(self.recurrent)
        if projects:
            base = torch.matmul(base, self.decoder)
        total = base.new_zeros(self.tokens, self.count, base.shape[-1])
        for step, made in enumerate(self.history, start=1):
            total[:step].addcmul_(after[step, :step].unsqueeze(-1), made)
        context = torch.baddbmm(total.transpose(0, 1), weights.tril(-1), base)
        return context if projects else torch.matmul(context, self.decoder)


class _Rooms:
    """Where the states of step s are written: s rows, and the base's own, from which the next row branches.

    All of them side by side where they are kept, else two in turn.
    """

    def __init__(self, base: Float[Tensor, "S B H"], turns: bool) -> None:
        self.base, self.turns, self.used = base, turns, 0
        size = len(base)
        rows = 2 * size if turns else size * (size - 1) // 2
        self.room = base.new_empty(rows, *base.shape[1:])

    def next(self, step: int) -> Float[Tensor, "S B H"]:
        start = len(self.base) * (step % 2) if self.turns else self.used
        self.used += step + 1
        room = self.room[start : start + step + 1]
        room[step] = self.base[step]
        return room


def _cell(
    given: Tensor,
    made: Tensor,
    cell: Tensor,
    gates: Tensor,
    spare: Tensor,
    projected: Tensor,
    recurrent: Tensor,
) -> None:
    """One LSTM step for all rows (J, B, H), `cell` in place; gates i, f, g, o as PyTorch orders them.

    States are 2h, so that their factor ½ is in the weights that multiply them.
    """
    gates.copy_(projected)
    gates.flatten(0, 1).addmm_(given.flatten(0, 1), recurrent)
    gates.tanh_()
    enter, keep, new, leave = gates.chunk(4, dim=-1)
    # c ← ½ [(1 + keep) c + (1 + enter) new];  2h ← (1 + leave) tanh c
    torch.lerp(cell.addcmul_(keep, cell), new.addcmul_(enter, new), 0.5, out=cell)
    torch.tanh(cell, out=spare)
    torch.addcmul(spare, leave, spare, out=made)
