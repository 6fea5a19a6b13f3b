"""Integrated gradients of a recurrent encoder, from its projected inputs on.

What a cell reads of an input is linear: W x + b. On a straight path from a baseline to a text, the projected
inputs move on a straight line too, and

    Σ_e (x − x₀)_e ∂y/∂x_e = Σ_g (W x − W x₀)_g ∂y/∂(W x)_g.

So both ends are projected once, and no step projects its inputs, forward or backward. The recurrence runs
position by position over the rows of many steps at once. A position's input is made where it is read, and what
its gates pass back is summed over the steps there: nothing is as large as steps × inputs.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch
from heedmap.measures import log_odds
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoders import GRU, LSTM, reverse_rows
from heedmap.models.kernels import product, tanh_

STATES = 1 << 22  # numbers of one direction's states that are held at a time


def recurrent_attributions(
    model: AttentionClassifier,
    encoder: LSTM | GRU,
    batch: Batch,
    ends: tuple[Float[Tensor, "B L E"], Float[Tensor, "B L E"]],
    predicted: Int[Tensor, " B"],
    steps: int,
    imposed: Float[Tensor, "B K T"] | None = None,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"], Float[Tensor, " B"]]:
    """Return attributions to the predicted classes' log-odds, sums of their absolute parts, and the error.

    `ends` are the baseline and the text, embedded, with marks and padding; `steps` are points of Gauss-Legendre
    quadrature between them. The attention changes along the path, unless weights are `imposed`. The error is
    |Σ attributions − (y(text) − y(baseline))|.
    """
    lengths = batch.lengths + 2 * int(encoder.marks)
    baseline, text = (encoder.reads(end, batch.lengths)[0] for end in ends)
    ways: list[_Way] = (
        [_LSTMWay(encoder.forward_lstm), _LSTMWay(encoder.backward_lstm)]
        if isinstance(encoder, LSTM)
        else [_GRUWay(encoder.forward_gru), _GRUWay(encoder.backward_gru)]
    )
    ways[0].project(baseline, text)
    ways[1].project(reverse_rows(baseline, lengths), reverse_rows(text, lengths))
    nodes, shares = np.polynomial.legendre.leggauss(steps)
    # The ends have no share in the sum: they are read for the error.
    points = text.new_tensor([*((1 + nodes) / 2), 0.0, 1.0])
    weights = text.new_tensor([*(shares / 2), 0.0, 0.0])
    at_once = max(1, STATES // (text[..., 0].numel() * encoder.size))
    outcomes = []
    for first in range(0, len(points), at_once):
        part = points[first : first + at_once]
        times = len(part)
        states = torch.stack([way.states(part) for way in ways]).requires_grad_()
        forward, backward = (of_way.transpose(0, 1) for of_way in states)
        both = torch.cat([forward, reverse_rows(backward, lengths.repeat(times))], dim=-1)
        outputs, _ = model.outputs_of(
            both[:, 1:-1] if encoder.marks else both,
            batch.repeated(times),
            None if imposed is None else imposed.repeat(times, 1, 1),
        )
        outcome = log_odds(model.as_logits(outputs), predicted.repeat(times))
        outcomes.append(outcome.detach())
        (gradients,) = torch.autograd.grad(outcome.sum(), states)
        for way, gradient in zip(ways, gradients, strict=True):
            way.gather(gradient, weights[first : first + at_once])
    parts = torch.cat([ways[0].parts(), reverse_rows(ways[1].parts(), lengths)], dim=-1)
    at_baseline, at_text = torch.cat(outcomes)[-2 * len(text) :].chunk(2)
    error = (parts.sum((1, 2)) - (at_text - at_baseline)).abs()
    tokens = parts[:, 1:-1] if encoder.marks else parts
    return tokens.sum(-1), tokens.abs().sum(-1), error


class _Way(ABC):
    """One direction: its states at points of the path, and what its inputs' parts add up to.

    Rows are points × texts, and everything has the positions first.
    """

    def __init__(self, cell: nn.LSTM | nn.GRU) -> None:
        # A product with the inputs, one with the states, and the biases of both.
        self.of_input, self.of_state, self.input_bias, self.state_bias = (
            weight.detach() for weight in cell.all_weights[0]
        )
        self.size = cell.hidden_size

    def project(self, baseline: Float[Tensor, "B L E"], text: Float[Tensor, "B L E"]) -> None:
        """Project both ends."""
        start = functional.linear(baseline, self.of_input, self.input_bias)
        self.start = start.transpose(0, 1).contiguous()
        self.change = functional.linear(text - baseline, self.of_input).transpose(0, 1).contiguous()
        self.total = torch.zeros_like(self.change)

    def parts(self) -> Float[Tensor, "B L G"]:
        """Return what each gate of each position has added so far."""
        return (self.total * self.change).transpose(0, 1)

    def inputs(self, place: int, points: Float[Tensor, " S"]) -> Float[Tensor, "S B G"]:
        """Return the projected inputs of one position at points of the path."""
        return torch.addcmul(self.start[place], points[:, None, None], self.change[place])

    def add(self, place: int, of_inputs: Float[Tensor, "R G"], weights: Tensor) -> None:
        """Add the gradients of one position's inputs, weighted by the points' shares."""
        summed = torch.mv(of_inputs.view(len(weights), -1).T, weights)
        self.total[place] += summed.view_as(self.total[place])

    @abstractmethod
    def states(self, points: Float[Tensor, " S"]) -> Float[Tensor, "L R D"]:
        """Return the states at points of the path, and remember what `gather` needs."""

    @abstractmethod
    def gather(self, gradient: Float[Tensor, "L R D"], weights: Float[Tensor, " S"]) -> None:
        """Add the parts of these points, given the gradient of the states."""


class _LSTMWay(_Way):
    """c ← f c + i n, h = o tanh c, with the gates i, f, n, o in PyTorch's order; c and h begin with 0."""

    def __init__(self, cell: nn.LSTM | nn.GRU) -> None:
        super().__init__(cell)
        self.input_bias = self.input_bias + self.state_bias

    def states(self, points: Float[Tensor, " S"]) -> Float[Tensor, "L R D"]:
        """Return the states at points of the path."""
        length, rows = len(self.start), len(points) * self.start.shape[1]
        self.gates = self.start.new_empty(length, rows, 4 * self.size)
        self.memories, self.squashed, states = self.start.new_empty(
            3, length, rows, self.size
        ).unbind()
        state = memory = self.start.new_zeros(rows, self.size)
        for t in range(length):
            inputs = self.inputs(t, points).flatten(0, 1)
            gates = torch.add(inputs, product(state, self.of_state), out=self.gates[t])
            # tanh x = 2 σ(2x) − 1: with the new input's gate doubled, one σ serves all four.
            gates[:, 2 * self.size : 3 * self.size].mul_(2.0)
            enter, keep, new, leave = gates.sigmoid_().chunk(4, dim=-1)
            new.mul_(2.0).sub_(1.0)
            memory = torch.mul(keep, memory, out=self.memories[t]).addcmul_(enter, new)
            squashed = tanh_(self.squashed[t].copy_(memory))
            state = torch.mul(leave, squashed, out=states[t])
        return states

    def gather(self, gradient: Float[Tensor, "L R D"], weights: Float[Tensor, " S"]) -> None:
        """Add the parts of these points, given the gradient of the states."""
        of_gates = torch.empty_like(self.gates[0])
        of_enter, of_keep, of_new, of_leave = of_gates.chunk(4, dim=-1)
        of_state, of_memory = torch.zeros_like(self.squashed[:2]).unbind()
        for t in range(len(self.gates) - 1, -1, -1):
            enter, keep, new, leave = self.gates[t].chunk(4, dim=-1)
            squashed = self.squashed[t]
            of_state.add_(gradient[t])
            torch.mul(of_state, squashed, out=of_leave).mul_(leave).mul_(1 - leave)
            of_memory.addcmul_(of_state * leave, 1 - squashed * squashed)
            torch.mul(of_memory, new, out=of_enter).mul_(enter).mul_(1 - enter)
            torch.mul(of_memory, enter, out=of_new).mul_(1 - new * new)
            if t:
                torch.mul(of_memory, self.memories[t - 1], out=of_keep).mul_(keep).mul_(1 - keep)
            else:
                of_keep.zero_()  # before the first position there is nothing to keep
            of_memory.mul_(keep)
            of_state = product(of_gates, self.of_state.T)
            self.add(t, of_gates, weights)


class _GRUWay(_Way):
    """h ← (1 − z) n + z h, n = tanh(x + r (U h + c)), with r, z, n in PyTorch's order; h begins with 0."""

    def __init__(self, cell: nn.LSTM | nn.GRU) -> None:
        super().__init__(cell)
        # A gate multiplies U h + c: its bias c stays with the states, the others join the inputs'.
        self.own_bias = self.state_bias.clone()
        self.own_bias[: 2 * self.size] = 0.0
        self.input_bias = self.input_bias + self.state_bias - self.own_bias

    def states(self, points: Float[Tensor, " S"]) -> Float[Tensor, "L R D"]:
        """Return the states at points of the path."""
        length, rows = len(self.start), len(points) * self.start.shape[1]
        self.gates = self.start.new_empty(length, rows, 3 * self.size)
        self.candidates, self.stored = self.start.new_empty(2, length, rows, self.size).unbind()
        state = self.start.new_zeros(rows, self.size)
        for t in range(length):
            inputs = self.inputs(t, points).flatten(0, 1)
            gates = self.gates[t].copy_(product(state, self.of_state, self.own_bias))
            self.candidates[t] = gates[:, 2 * self.size :]
            gates[:, : 2 * self.size].add_(inputs[:, : 2 * self.size]).sigmoid_()
            reset, stay, new = gates.chunk(3, dim=-1)
            tanh_(new.mul_(reset).add_(inputs[:, 2 * self.size :]))
            state = torch.lerp(new, state, stay, out=self.stored[t])
        return self.stored

    def gather(self, gradient: Float[Tensor, "L R D"], weights: Float[Tensor, " S"]) -> None:
        """Add the parts of these points, given the gradient of the states."""
        of_gates = torch.empty_like(self.gates[0])
        of_reset, of_stay, of_new = of_gates.chunk(3, dim=-1)
        of_state, nothing = torch.zeros_like(self.stored[0]), torch.zeros_like(self.stored[0])
        for t in range(len(self.gates) - 1, -1, -1):
            reset, stay, new = self.gates[t].chunk(3, dim=-1)
            before = self.stored[t - 1] if t else nothing
            of_state.add_(gradient[t])
            torch.mul(of_state, before - new, out=of_stay).mul_(stay).mul_(1 - stay)
            torch.mul(of_state, 1 - stay, out=of_new).mul_(1 - new * new)
            torch.mul(of_new, self.candidates[t], out=of_reset).mul_(reset).mul_(1 - reset)
            self.add(t, of_gates, weights)
            of_new.mul_(reset)  # by U h + c
            of_state.mul_(stay).add_(product(of_gates, self.of_state.T))
