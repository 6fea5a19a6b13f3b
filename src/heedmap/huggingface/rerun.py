"""Predictions under other weights in one layer, without reading the text again from the start.

Three ways to the same numbers, the fastest that the model allows:

* narrow: where the classifier reads one row of the last layer, only that row is computed. The model is
  given texts of one position; the blocks below are skipped, the block on trial gets the row's own hidden
  state, and its attention returns imposed weights @ the values that the pass left behind.
* upward: the blocks below the one on trial are skipped and give what they gave before.
* full: the whole model again.

A way is taken only if it gives the full one's numbers on a probe.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedmap.counterfactual.row_weights import uniform
from heedmap.huggingface import blocks
from heedmap.huggingface.door import Call, Output, Visitor
from heedmap.huggingface.entrance import Entrance, Inputs
from heedmap.huggingface.interventions import Imposed
from heedmap.huggingface.survey import at_rows

Way = Literal["narrow", "upward", "full"]
Rows = Int[Tensor, " B"]
TOLERANCE = 1e-3  # of logits, where the same numbers are added up in another order


@dataclass
class Pass:
    """What one pass left behind at one call of the door, for a later run of that way; batch first.

    `weights` are those of all rows, or of the read row alone. Of the rest, only what the way needs: the
    values, the hidden states that entered the block, the outputs of the last skipped block of each stack
    (`below`), and those of the other attention calls in the same block (`beside`).
    """

    way: Way
    logits: Float[Tensor, "B C"]
    weights: Float[Tensor, "B H *Q N"]
    value: Tensor | None = None
    entering: Tensor | None = None
    below: dict[int, Any] = field(default_factory=dict)
    beside: dict[int, Tensor] = field(default_factory=dict)


class Rerun:
    """Passes of a model with the weights of one call of the door on trial.

    `names` are the layers of all calls of a pass. `reads` gives the row that the classifier reads of each
    text; None where all rows are on trial. `way` is the fastest that gives the full one's numbers on `probe`.
    """

    def __init__(
        self,
        entrance: Entrance,
        names: Sequence[str],
        call: int,
        reads: Callable[[Inputs], Rows] | None,
        probe: Inputs,
    ) -> None:
        self.entrance, self.call, self.reads = entrance, call, reads
        self.blocks = blocks.blocks_of(entrance.model, names)
        self.place = blocks.place_of(entrance, self.blocks, call, probe)
        self.way = self._fastest(probe)

    @torch.no_grad()
    def base(self, inputs: Inputs, way: Way | None = None) -> Pass:
        """One whole pass, keeping what a later run needs."""
        way = way or self.way
        rows = None if self.reads is None else self.reads(inputs)
        keeper = _Keeper(self.call, self.call - self.place.within)
        kept: dict[str, Any] = {"below": {}}
        turn = iter(range(1 << 30))

        def record(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            at = next(turn)
            if at == self.place.turn:
                kept["entering"] = blocks.entering(args, kwargs)
            result = forward(*args, **kwargs)
            if at in self.place.last:
                kept["below"][at] = result
            return result

        with blocks.patched(self.blocks, record), self.entrance.visiting(keeper):
            logits = self.entrance.model(**inputs).logits
        weights = keeper.weights_kept
        if weights is None:
            raise ValueError(f"expected call {self.call} of the attention, the model made fewer")
        if rows is not None:
            weights = at_rows(weights.transpose(1, 2), rows)
        if way == "full":
            return Pass(way, logits, weights)
        entering, beside = kept["entering"], keeper.beside
        if way == "upward":
            return Pass(way, logits, weights, keeper.value, entering, kept["below"], beside)
        assert rows is not None
        beside = {i: at_rows(output, rows).unsqueeze(1) for i, output in beside.items()}
        entering = at_rows(entering, rows).unsqueeze(1)
        return Pass(way, logits, weights, keeper.value, entering, {}, beside)

    def logits(
        self, inputs: Inputs, kept: Pass, weights: Float[Tensor, "S B H *Q N"]
    ) -> Float[Tensor, "S B C"]:
        """Logits with weights imposed: all rows of the layer, or the read row with the others as they were."""
        times = len(weights)
        rows = None if self.reads is None else self.reads(inputs)
        flat = weights.flatten(0, 1)
        many = None if rows is None else rows.repeat(times)
        if kept.way == "full":
            with self.entrance.visiting(Imposed(self.call, flat, many)):
                logits: Tensor = self.entrance.model(**_times(inputs, times)).logits
        elif kept.way == "upward":
            visitor: Visitor = Imposed(self.place.within, flat, many)
            logits = self._above(_times(inputs, times), kept, times, visitor)
        else:
            assert rows is not None
            assert kept.value is not None
            # Values of shared heads (GQA) are not repeated in memory: heads are grouped instead.
            groups = (*weights.shape[:2], kept.value.shape[1], -1, weights.shape[-1])
            grouped = weights.reshape(groups).to(kept.value.dtype)
            context = torch.einsum("sbgrn,bgnd->sbgrd", grouped, kept.value)
            output = context.flatten(2, 3).flatten(0, 1).unsqueeze(1)
            beside = {i: blocks.repeated(o, times) for i, o in kept.beside.items()}
            one = {
                name: at_rows(part, rows).unsqueeze(1).repeat(times, 1)
                for name, part in inputs.items()
            }
            logits = self._above(one, kept, times, _Answer(self.place.within, output, beside))
        return logits.reshape(*weights.shape[:2], -1)

    def fast_logits(self, inputs: Inputs) -> Float[Tensor, "B C"]:
        """The model's own logits, without the rows of the last block that nobody reads; `narrow` only.

        The pass is broken off once the read row's attention is there, and goes on with that row alone.
        """
        assert self.reads is not None
        rows = self.reads(inputs)
        keeper = _Keeper(self.call, self.call - self.place.within, stop=True)
        turn = iter(range(1 << 30))
        entering: list[Tensor] = []

        def record(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            if next(turn) == self.place.turn:
                entering.append(blocks.entering(args, kwargs))
            return forward(*args, **kwargs)

        with (
            suppress(_Stop),
            blocks.patched(self.blocks, record),
            self.entrance.visiting(keeper),
        ):
            self.entrance.model(**inputs)
        answers = {i: at_rows(output, rows).unsqueeze(1) for i, output in keeper.beside.items()}
        state = at_rows(entering[0], rows).unsqueeze(1)
        kept = Pass("narrow", entering[0][:0, 0], entering[0], None, state)
        one = {name: at_rows(part, rows).unsqueeze(1) for name, part in inputs.items()}
        output = answers.pop(self.place.within)
        return self._above(one, kept, 1, _Answer(self.place.within, output, answers))

    @torch.no_grad()
    def _fastest(self, probe: Inputs) -> Way:
        whole = self.base(probe, "full")
        weights = torch.stack([whole.weights, uniform(whole.weights, whole.weights > 0)])
        expected = self.logits(probe, whole, weights)
        # Entered by its softmax a model does not show its values.
        narrow = self.reads is not None and self.entrance.kind == "interface"
        ways: tuple[Way, ...] = ("narrow", "upward") if narrow else ("upward",)
        for way in ways:
            # A way that the model's own code does not bear is passed over.
            try:
                found = self.logits(probe, self.base(probe, way), weights)
            except (RuntimeError, ValueError, IndexError, TypeError, KeyError, AttributeError):
                continue
            if found.shape == expected.shape and (found - expected).abs().max() <= TOLERANCE:
                return way
        return "full"

    def _above(self, inputs: Inputs, kept: Pass, times: int, visitor: Visitor) -> Tensor:
        turn, count = iter(range(1 << 30)), len(kept.logits)

        def skip(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            at = next(turn)
            if at in kept.below:
                return blocks.mapped(kept.below[at], lambda t: _many(t, times, count))
            if at < self.place.turn:
                return blocks.through(self.place.shapes[at], blocks.entering(args, kwargs))
            if at == self.place.turn:
                assert kept.entering is not None
                args, kwargs = blocks.replaced(blocks.repeated(kept.entering, times), args, kwargs)
            return forward(*args, **kwargs)

        with blocks.patched(self.blocks, skip), self.entrance.visiting(visitor):
            logits: Tensor = self.entrance.model(**inputs).logits
        return logits


class _Stop(Exception):
    """The rest of the pass is not needed."""


class _Keeper(Visitor):
    def __init__(self, call: int, first: int, *, stop: bool = False) -> None:
        self.call, self.first, self.stop = call, first, stop
        self.weights_kept: Tensor | None = None
        self.value: Tensor | None = None
        self.beside: dict[int, Tensor] = {}

    def weights(self, call: Call, weights: Tensor) -> None:
        if call.index == self.call:
            self.weights_kept, self.value = weights, call.value

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        output, weights = super().attend(call, eager)
        if self.first <= call.index < self.first + 3 and (self.stop or call.index != self.call):
            self.beside[call.index - self.first] = output
        if self.stop and call.index == self.call:
            raise _Stop
        return output, weights


class _Answer(Visitor):
    """Gives ready outputs to the calls of one block."""

    def __init__(self, call: int, output: Tensor, beside: dict[int, Tensor]) -> None:
        self.outputs = {call: output, **{i: o for i, o in beside.items() if i != call}}

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        if call.index not in self.outputs:
            return eager()
        return self.outputs[call.index], None


def _times(inputs: Inputs, times: int) -> dict[str, Tensor]:
    return {name: blocks.repeated(part, times) for name, part in inputs.items()}


def _many(value: Tensor, times: int, count: int) -> Tensor:
    return blocks.repeated(value, times) if value.shape[:1] == (count,) else value
