"""All deletions of a recurrent encoder in one pass a direction.

Deleting token j leaves the forward states before j unchanged: the deletion branches off the base text
at j. At step s the pass carries the base row and the s deletions that already happened, so there are
half the cell steps of reading each shortened text again, no input is projected twice, and the matrix
products are large. The backward direction is the same pass over the reversed text.

    step s     rows carried                        token read
      1        base                                x_1
      2        base, without 1                     x_2
      3        base, without 1, without 2          x_3 ...
"""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.models.classifier import AttentionClassifier
from heedmap.models.encoders import LSTM, reverse_rows
from heedmap.models.scores import Additive, Dot, Lexical

# Rows whose gates are computed at a time: 1 MB of them at hidden size 128.
BLOCK = 512


def lstm_without_each(
    model: AttentionClassifier,
    encoder: LSTM,
    embedded: Float[Tensor, "B L E"],
    batch: Batch,
    query: Float[Tensor, "B 1 D"] | None = None,
) -> tuple[Float[Tensor, "B J T"], Float[Tensor, "B J T O"]]:
    """Scores and relevance of position t in the text without token j; t = j is meaningless."""
    lengths = batch.lengths
    features = _Features(model, encoder.size // 2, query)
    ways = (
        _Direction(encoder.forward_lstm, embedded),
        _Direction(encoder.backward_lstm, reverse_rows(embedded, lengths + 2)),
    )
    # In the text without j, a position after j has a new forward state and its old backward state (and
    # the other way round), so each direction completes its own half of the table with the other's
    # states in the whole text, each counted in its own order of reading.
    halves = []
    for way, direction in enumerate(ways):
        states = reverse_rows(ways[1 - way].base(), lengths)
        halves.append(_fill(features, way, direction, features.of(states, 1 - way)))
    (scores, relevance), mirrored = halves
    turned = [_turn(part, batch.mask) for part in mirrored]
    place = torch.arange(batch.mask.shape[1], device=scores.device)
    later = (place[:, None] > place).unsqueeze(-1)  # position after deletion
    scores = torch.where(later, scores, turned[0])
    relevance = torch.where(later.unsqueeze(-1), relevance, turned[1])
    return scores.permute(2, 1, 0), relevance.permute(2, 1, 0, 3)


def _fill(
    features: "_Features", way: int, direction: "_Direction", other: tuple[Tensor, Tensor]
) -> tuple[Float[Tensor, "T J B"], Float[Tensor, "T J B O"]]:
    """Scores and relevance of every position after the deletion, in one direction's order of reading."""
    size, count = direction.tokens, direction.count
    # Row 0 is the whole text, row j + 1 the text without token j.
    scores = other[0].new_zeros(size, size + 1, count)
    relevance = other[1].new_zeros(size, size + 1, count, other[1].shape[-1])
    for step, rows, states in direction.without_each():
        scores[step, rows], relevance[step, rows] = features.complete(
            states, way, other[0][:, step], other[1][:, step]
        )
    return scores[:, 1:], relevance[:, 1:]


def _turn(table: Float[Tensor, "T J B *rest"], mask: Bool[Tensor, "B T"]) -> Tensor:
    """A table over (position, deletion) counted from each text's end, counted from its start."""
    place = torch.arange(mask.shape[1], device=mask.device)
    index = (mask.sum(1) - 1 - place[:, None]).clamp(min=0)  # (T, B)
    text = torch.arange(len(mask), device=mask.device)
    return table[index[:, None, :], index[None, :, :], text]


class _Features:
    """What score and decoder need of a state, split into its forward and its backward half.

    States come doubled (see `_cell`), so the weights are halved.
    """

    def __init__(self, model: AttentionClassifier, hidden: int, query: Tensor | None) -> None:
        assert not isinstance(model.score, Lexical)  # scores come from states here
        self.score = model.score
        halves = (slice(0, hidden), slice(hidden, None))
        self.decoder = [0.5 * model.projection.weight[:, half].T.contiguous() for half in halves]
        self.bias: Tensor | None = None
        if isinstance(self.score, Additive):
            self.bias = self.score.hidden.bias
            if self.score.query is not None:
                self.bias = self.bias + self.score.query(query)  # (B, 1, A)
            first = self.score.hidden.weight
        elif self.score.vector is not None:
            first = self.score.vector.weight
        else:
            assert query is not None
            self.query = [0.5 * query[:, 0, half] for half in halves]
            return
        self.first = [0.5 * first[:, half].T.contiguous() for half in halves]

    def of(self, states: Float[Tensor, "B T H"], way: int) -> tuple[Tensor, Tensor]:
        """Projections of one half: (B, T, A) for the score, its bias included, (B, T, O)."""
        if isinstance(self.score, Dot) and self.score.vector is None:
            projected = torch.matmul(states, self.query[way].unsqueeze(-1))
        else:
            projected = torch.matmul(states, self.first[way])
        if self.bias is not None:
            projected = projected + self.bias
        return projected, torch.matmul(states, self.decoder[way])

    def complete(
        self,
        states: Float[Tensor, "J B H"],
        way: int,
        other_score: Float[Tensor, "B A"],
        other_output: Float[Tensor, "B O"],
    ) -> tuple[Float[Tensor, "J B"], Float[Tensor, "J B O"]]:
        """Scores and relevance of one half, given the other half's projections."""
        flat = states.flatten(0, 1)
        output = (flat @ self.decoder[way]).view(*states.shape[:2], -1) + other_output
        if isinstance(self.score, Dot) and self.score.vector is None:
            hidden = (states * self.query[way]).sum(-1) + other_score[:, 0]
            return hidden * self.score.scale, output
        hidden = flat.new_empty(*states.shape[:2], other_score.shape[-1]).copy_(other_score)
        hidden = hidden.flatten(0, 1).addmm_(flat, self.first[way])
        if isinstance(self.score, Additive):
            scores = hidden.tanh_() @ self.score.vector.weight.T
        else:
            scores = hidden * self.score.scale
        return scores.view(states.shape[:2]), output


class _Direction:
    """One LSTM over a batch of texts, inputs projected once; `inputs` starts and ends with a mark."""

    def __init__(self, lstm: nn.LSTM, inputs: Float[Tensor, "B L E"]) -> None:
        hidden = lstm.hidden_size
        self.count, self.tokens = len(inputs), inputs.shape[1] - 2
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

    def _start(self, rows: int) -> tuple[Tensor, Tensor]:
        """Doubled state and cell before anything is read."""
        state = self.projected.new_zeros(rows, self.count, len(self.recurrent))
        return state, torch.zeros_like(state)

    def _scratch(self, rows: int) -> tuple[Tensor, Tensor]:
        """Gates and tanh c of `rows` rows."""
        hidden = len(self.recurrent)
        gates = self.projected.new_empty(rows, self.count, 4 * hidden)
        return gates, self.projected.new_empty(rows, self.count, hidden)

    def base(self) -> Float[Tensor, "B T H"]:
        """Doubled states of the tokens in the whole texts."""
        state, cell = self._start(1)
        gates, spare = self._scratch(1)
        states = []
        for step in range(self.tokens + 1):  # the mark, then the tokens
            _cell(state, cell, gates, spare, self.projected[step], self.recurrent)
            states.append(state[0].clone())
        return torch.stack(states[1:], dim=1)

    def without_each(self) -> Iterator[tuple[int, slice, Float[Tensor, "rows B H"]]]:
        """Token after token: its index, some rows, and their doubled states once it is read.

        Row 0 is the whole text, row j + 1 the text without token j, there from the token after j on.
        Rows come in blocks whose gates stay in the processor's cache; the next step overwrites them.
        """
        state, cell = self._start(self.tokens + 1)
        block = max(1, BLOCK // self.count)
        gates, spare = self._scratch(block)
        _cell(state[:1], cell[:1], gates[:1], spare[:1], self.projected[0], self.recurrent)
        for step in range(self.tokens):
            # The text without this token goes on from the whole text's state before it.
            state[step + 1], cell[step + 1] = state[0], cell[0]
            for start in range(0, step + 1, block):
                rows = slice(start, min(start + block, step + 1))
                size = rows.stop - start
                _cell(
                    state[rows], cell[rows], gates[:size], spare[:size],
                    self.projected[step + 1], self.recurrent,
                )  # fmt: skip
                yield step, rows, state[rows]


def _cell(
    state: Tensor, cell: Tensor, gates: Tensor, spare: Tensor, projected: Tensor, recurrent: Tensor
) -> None:
    """One LSTM step for all rows (J, B, H), in place; gates i, f, g, o as PyTorch orders them.

    `state` holds 2h, so that its factor ½ is in the weights that multiply it.
    """
    gates.copy_(projected)
    gates.flatten(0, 1).addmm_(state.flatten(0, 1), recurrent)
    gates.tanh_()
    enter, keep, new, leave = gates.chunk(4, dim=-1)
    # c ← ½ [(1 + keep) c + (1 + enter) new];  2h ← (1 + leave) tanh c
    torch.lerp(cell.addcmul_(keep, cell), new.addcmul_(enter, new), 0.5, out=cell)
    torch.tanh(cell, out=spare)
    torch.addcmul(spare, leave, spare, out=state)
