"""Predict under other weights in one layer, without running the whole model again.

There are three ways to the same numbers; the fastest that the model allows is used:

* narrow: if the classifier reads one row of the last layer, only that row is computed. The model runs on
  texts of one position; the blocks below are skipped, the block on trial gets the row's own hidden
  state, and its attention returns imposed weights @ the recorded values.
* upward: the blocks below the one on trial are skipped and return their recorded outputs.
* full: the whole model runs again.

A way is used only if it gives the same numbers as the full one on a sample.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedmap.counterfactual.row_weights import uniform
from heedmap.huggingface import blocks
from heedmap.huggingface.attention_hook import Call, Output, Then, Visitor
from heedmap.huggingface.attention_layout import at_rows
from heedmap.huggingface.interventions import Imposed
from heedmap.huggingface.model_adapter import Inputs, ModelAdapter

Way = Literal["narrow", "upward", "full"]
Rows = Int[Tensor, " B"]
TOLERANCE = 1e-3  # of logits: the same numbers are summed in another order
# What a model's own code raises for a way of reading that it does not support.
UNSUPPORTED = (RuntimeError, ValueError, IndexError, TypeError, KeyError, AttributeError)


@dataclass
class Pass:
    """What one pass recorded at one attention call, for later runs by that way; batch first.

    `weights` are those of all rows, or of the read row alone. The rest only if the way needs it: the
    values, the hidden states that entered the block, the outputs of the last skipped block of each stack
    (`below`), and those of the other attention calls in the same block (`sibling_outputs`).
    """

    way: Way
    logits: Float[Tensor, "B C"]
    weights: Float[Tensor, "B H *Q N"]
    value: Tensor | None = None
    entering: Tensor | None = None
    below: dict[int, Any] = field(default_factory=dict)
    sibling_outputs: dict[int, Tensor] = field(default_factory=dict)


class Rerun:
    """Passes of a model with the weights of one attention call on trial.

    `names` are the layers of all calls of a pass. `reads` finds the row that the classifier reads of each
    text; None if all rows are on trial. `way` is the fastest one that agrees with the full one on `sample`.
    """

    def __init__(
        self,
        adapter: ModelAdapter,
        names: Sequence[str],
        call: int,
        reads: Callable[[Inputs], Rows] | None,
        sample: Inputs,
    ) -> None:
        self.adapter, self.call, self.reads = adapter, call, reads
        self.blocks = blocks.blocks_of(adapter.model, names)
        self.place = blocks.place_of(adapter, self.blocks, call, sample)
        self.way = self._fastest(sample)

    @torch.no_grad()
    def base(self, inputs: Inputs, way: Way | None = None) -> Pass:
        """Run one whole pass, and record what later runs need."""
        way = way or self.way
        rows = None if self.reads is None else self.reads(inputs)
        recorder = _BlockRecorder(self.call, self.call - self.place.call_in_block)
        recorded: dict[str, Any] = {"below": {}}
        turn = iter(range(1 << 30))

        def record(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            run = next(turn)
            if run == self.place.turn:
                recorded["entering"] = blocks.entering(args, kwargs)
            result = forward(*args, **kwargs)
            if run in self.place.stack_ends:
                recorded["below"][run] = result
            return result

        with blocks.patched(self.blocks, record), self.adapter.visiting(recorder):
            logits = self.adapter.model(**inputs).logits
        weights = recorder.final_weights
        if weights is None:
            raise ValueError(f"expected call {self.call} of the attention, the model made fewer")
        if rows is not None:
            weights = at_rows(weights.transpose(1, 2), rows)
        if way == "full":
            return Pass(way, logits, weights)
        entering, sibling_outputs = recorded["entering"], recorder.sibling_outputs
        if way == "upward":
            return Pass(
                way, logits, weights, recorder.value, entering, recorded["below"], sibling_outputs
            )
        assert rows is not None
        sibling_outputs = {
            i: at_rows(output, rows).unsqueeze(1) for i, output in sibling_outputs.items()
        }
        entering = at_rows(entering, rows).unsqueeze(1)
        return Pass(way, logits, weights, recorder.value, entering, {}, sibling_outputs)

    def logits(
        self, inputs: Inputs, base: Pass, weights: Float[Tensor, "S B H *Q N"]
    ) -> Float[Tensor, "S B C"]:
        """Return logits under imposed weights: of all rows of the layer, or of the read row alone."""
        times = len(weights)
        rows = None if self.reads is None else self.reads(inputs)
        flat = weights.flatten(0, 1)
        repeated_rows = None if rows is None else rows.repeat(times)
        if base.way == "full":
            with self.adapter.visiting(Imposed(self.call, flat, repeated_rows)):
                logits: Tensor = self.adapter.model(**_repeat_inputs(inputs, times)).logits
        elif base.way == "upward":
            visitor: Visitor = Imposed(self.place.call_in_block, flat, repeated_rows)
            logits = self._above(
                _repeat_inputs(inputs, times), base.entering, base.below, times, visitor
            )
        else:
            assert rows is not None
            assert base.value is not None
            # Group the heads that share values (GQA), so that the values are not repeated in memory.
            groups = (*weights.shape[:2], base.value.shape[1], -1, weights.shape[-1])
            grouped = weights.reshape(groups).to(base.value.dtype)
            context = torch.einsum("sbgrn,bgnd->sbgrd", grouped, base.value)
            output = context.flatten(2, 3).flatten(0, 1).unsqueeze(1)
            sibling_outputs = {
                i: blocks.repeated(o, times) for i, o in base.sibling_outputs.items()
            }
            row_inputs = {
                name: at_rows(part, rows).unsqueeze(1).repeat(times, 1)
                for name, part in inputs.items()
            }
            ready = _ReadyOutputs(self.place.call_in_block, output, sibling_outputs)
            logits = self._above(row_inputs, base.entering, base.below, times, ready)
        return logits.reshape(*weights.shape[:2], -1)

    def fast_logits(self, inputs: Inputs, imposing: Visitor | None = None) -> Float[Tensor, "B C"]:
        """Return the model's own logits, without the unread rows of the last block; `narrow` only.

        The pass stops after the attention on trial, and a second one goes on with the read row alone. The
        visitor `imposing` may change weights up to there. Differentiable.
        """
        assert self.reads is not None
        rows = self.reads(inputs)
        recorder = _BlockRecorder(self.call, self.call - self.place.call_in_block, stop=True)
        turn = iter(range(1 << 30))
        entering: list[Tensor] = []

        def record(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            if next(turn) == self.place.turn:
                entering.append(blocks.entering(args, kwargs))
            return forward(*args, **kwargs)

        with (
            suppress(_Stop),
            blocks.patched(self.blocks, record),
            self.adapter.visiting(recorder if imposing is None else Then(imposing, recorder)),
        ):
            self.adapter.model(**inputs)
        answers = {
            i: at_rows(output, rows).unsqueeze(1) for i, output in recorder.sibling_outputs.items()
        }
        state = at_rows(entering[0], rows).unsqueeze(1)
        row_inputs = {name: at_rows(part, rows).unsqueeze(1) for name, part in inputs.items()}
        output = answers.pop(self.place.call_in_block)
        ready = _ReadyOutputs(self.place.call_in_block, output, answers)
        return self._above(row_inputs, state, {}, 1, ready)

    @torch.no_grad()
    def _fastest(self, sample: Inputs) -> Way:
        full = self.base(sample, "full")
        # Other weights too: a way that loses the imposed weights would pass with the model's own.
        weights = torch.stack([full.weights, uniform(full.weights, full.weights > 0)])
        expected = self.logits(sample, full, weights)
        # A model that is entered by its softmax does not show its values.
        narrow = self.reads is not None and self.adapter.kind == "interface"
        ways: tuple[Way, ...] = ("narrow", "upward") if narrow else ("upward",)
        for way in ways:
            try:
                logits = self.logits(sample, self.base(sample, way), weights)
            except UNSUPPORTED:
                continue
            if logits.shape == expected.shape and (logits - expected).abs().max() <= TOLERANCE:
                return way
        return "full"

    def _above(
        self,
        inputs: Inputs,
        entering: Tensor | None,
        below: Mapping[int, Any],
        times: int,
        visitor: Visitor,
    ) -> Tensor:
        assert entering is not None
        turn, count = iter(range(1 << 30)), len(entering)

        def skip(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            run = next(turn)
            if run in below:
                return blocks.mapped(below[run], lambda t: _repeat_output(t, times, count))
            if run < self.place.turn:
                return blocks.through(self.place.shapes[run], blocks.entering(args, kwargs))
            if run == self.place.turn:
                args, kwargs = blocks.replaced(blocks.repeated(entering, times), args, kwargs)
            return forward(*args, **kwargs)

        with blocks.patched(self.blocks, skip), self.adapter.visiting(visitor):
            logits: Tensor = self.adapter.model(**inputs).logits
        return logits


class _Stop(Exception):
    """The rest of the pass is not needed."""


class _BlockRecorder(Visitor):
    def __init__(self, call: int, first_call: int, *, stop: bool = False) -> None:
        self.call, self.first_call, self.stop = call, first_call, stop
        self.final_weights: Tensor | None = None
        self.value: Tensor | None = None
        self.sibling_outputs: dict[int, Tensor] = {}

    def weights(self, call: Call, weights: Tensor) -> None:
        if call.index == self.call:
            self.final_weights, self.value = weights, call.value

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        output, weights = eager() if self.stop else super().attend(call, eager)
        if self.first_call <= call.index < self.first_call + 3 and (
            self.stop or call.index != self.call
        ):
            self.sibling_outputs[call.index - self.first_call] = output
        if self.stop and call.index == self.call:
            raise _Stop
        return output, weights


class _ReadyOutputs(Visitor):
    """Return ready outputs to the calls of one block."""

    def __init__(self, call: int, output: Tensor, sibling_outputs: dict[int, Tensor]) -> None:
        self.outputs = {call: output, **{i: o for i, o in sibling_outputs.items() if i != call}}

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        if call.index not in self.outputs:
            return eager()
        return self.outputs[call.index], None


def _repeat_inputs(inputs: Inputs, times: int) -> dict[str, Tensor]:
    return {name: blocks.repeated(part, times) for name, part in inputs.items()}


def _repeat_output(value: Tensor, times: int, count: int) -> Tensor:
    return blocks.repeated(value, times) if value.shape[:1] == (count,) else value
