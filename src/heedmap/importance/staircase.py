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
from heedmap.models.encoders import reverse_rows
from heedmap.models.scores import Additive


def lstm_without_each(
    model: AttentionClassifier, embedded: Float[Tensor, "B L E"], batch: Batch
) -> tuple[Float[Tensor, "B J T"], Float[Tensor, "B J T O"]]:
    """Scores and relevance of position t in the text without token j; t = j is meaningless."""
    encoder, size = model.encoder, batch.mask.shape[1]
    lengths = batch.lengths
    hidden = encoder.size // 2
    base = model.encode(embedded, batch)
    halves = (base[..., :hidden], base[..., hidden:])
    features = _Features(model, hidden)
    scores = base.new_zeros(size, size, len(lengths))  # (position, deletion, text)
    relevance = base.new_zeros(size, size, len(lengths), model.decoder.out_features)
    mirrored = reverse_rows(embedded, lengths + 2)
    for way, lstm in enumerate((encoder.forward_lstm, encoder.backward_lstm)):
        # In the text without j, a position after j has a new forward state and its old backward state
        # (and the other way round), so each direction completes its own half of the table.
        other = features.of(halves[1 - way], 1 - way)
        if way == 1:
            other = tuple(reverse_rows(part, lengths) for part in other)
        inputs = mirrored if way else embedded
        for step, states in _staircase(lstm, inputs):
            score, output = features.complete(states, way, tuple(part[:, step] for part in other))
            scores[step, :step] = score
            relevance[step, :step] = output
        if way == 0:
            after = scores, relevance
            scores, relevance = torch.zeros_like(scores), torch.zeros_like(relevance)
    later = torch.ones(size, size, dtype=torch.bool, device=base.device).tril(-1)  # position > deletion
    # The backward pass counts positions and deletions from the text's end: turn both round.
    before = [_turn(part, batch.mask) for part in (scores, relevance)]
    s = torch.where(later[..., None], after[0], before[0])
    r = torch.where(later[..., None, None], after[1], before[1])
    return s.permute(2, 1, 0), r.permute(2, 1, 0, 3)


def _turn(table: Float[Tensor, "T J B *rest"], mask: Bool[Tensor, "B T"]) -> Tensor:
    """A table over (position, deletion) counted from each text's end, counted from its start."""
    size = mask.shape[1]
    place = torch.arange(size, device=mask.device)
    index = (mask.sum(1) - 1 - place[:, None]).clamp(min=0)  # (T, B)
    text = torch.arange(len(mask), device=mask.device)
    return table[index[:, None, :], index[None, :, :], text]


class _Features:
    """What score and decoder need of a state, split into its forward and backward half."""

    def __init__(self, model: AttentionClassifier, hidden: int) -> None:
        self.score = model.score
        halves = (slice(0, hidden), slice(hidden, None))
        self.outputs = [model.decoder.weight[:, half].T.contiguous() for half in halves]
        first = self.score.hidden if isinstance(self.score, Additive) else self.score.vector
        self.first = [first.weight[:, half].T.contiguous() for half in halves]
        self.bias = 0.0 if first.bias is None else first.bias

    def of(self, states: Float[Tensor, "B T H"], way: int) -> tuple[Tensor, Tensor]:
        """Partial projections of one half: (B, T, A) for the score, (B, T, O) for the decoder."""
        return torch.matmul(states, self.first[way]) + self.bias, states @ self.outputs[way]

    def complete(
        self, states: Float[Tensor, "J B H"], way: int, other: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "J B"], Float[Tensor, "J B O"]]:
        """Scores and relevance, given the other half's partial projections (B, A) and (B, O)."""
        flat = states.flatten(0, 1)
        hidden = flat.new_empty(*states.shape[:2], other[0].shape[-1])
        hidden = hidden.copy_(other[0]).flatten(0, 1).addmm_(flat, self.first[way])
        if isinstance(self.score, Additive):
            hidden = hidden.tanh_() @ self.score.vector.weight.T
        else:
            hidden = hidden * self.score.scale
        output = (flat @ self.outputs[way]).view(*states.shape[:2], -1) + other[1]
        return hidden.view(states.shape[:2]), output


def _staircase(
    lstm: nn.LSTM, inputs: Float[Tensor, "B L E"]
) -> Iterator[tuple[int, Float[Tensor, "J B H"]]]:
    """For each token but the first: its index and its states in the texts without 0, 1, ..., index − 1.

    `inputs` starts with a mark, which is read and never deleted. The states are overwritten by the next
    step.
    """
    count, hidden = len(inputs), lstm.hidden_size
    # σ(x) = ½ + ½ tanh(x/2): with i, f and o scaled by ½ beforehand, one tanh serves all four gates.
    scale = torch.full((4 * hidden,), 0.5, device=inputs.device, dtype=inputs.dtype)
    scale[2 * hidden : 3 * hidden] = 1.0
    bias = (lstm.bias_ih_l0 + lstm.bias_hh_l0) * scale
    projected = torch.addmm(
        bias, inputs.flatten(0, 1), (lstm.weight_ih_l0 * scale[:, None]).T
    ).view(count, -1, 4 * hidden)
    projected = projected.transpose(0, 1).contiguous()  # (L, B, 4H)
    recurrent = (lstm.weight_hh_l0 * scale[:, None]).T.contiguous()
    tokens = inputs.shape[1] - 2
    # Row 0 is the base text, row j + 1 the text without token j.
    state = inputs.new_zeros(tokens + 1, count, hidden)
    cell = torch.zeros_like(state)
    gates = inputs.new_empty(tokens + 1, count, 4 * hidden)
    spare = torch.empty_like(state)
    _cell(state[:1], cell[:1], gates[:1], spare[:1], projected[0], recurrent)
    for step in range(tokens):
        # The text without this token goes on from the base text's state before it.
        state[step + 1], cell[step + 1] = state[0], cell[0]
        rows = slice(0, step + 1)
        _cell(state[rows], cell[rows], gates[rows], spare[rows], projected[step + 1], recurrent)
        if step:
            yield step, state[1 : step + 1]


def _cell(
    state: Tensor, cell: Tensor, gates: Tensor, spare: Tensor, projected: Tensor, recurrent: Tensor
) -> None:
    """One LSTM step for all rows (J, B, H), in place; gates i, f, g, o as PyTorch orders them."""
    gates.copy_(projected)
    gates.flatten(0, 1).addmm_(state.flatten(0, 1), recurrent)
    gates.tanh_()
    enter, keep, new, leave = gates.chunk(4, dim=-1)
    # c ← ½(1 + keep) c + ½(1 + enter) new;  h ← ½(1 + leave) tanh c
    cell.addcmul_(keep, cell).add_(new).addcmul_(enter, new).mul_(0.5)
    torch.tanh(cell, out=spare)
    torch.addcmul(spare, leave, spare, out=state).mul_(0.5)
