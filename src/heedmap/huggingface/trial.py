"""One model on the handshake's texts: every pass it is asked for, and the numbers that come of them."""

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from heedmap.huggingface.door import Visitor
from heedmap.huggingface.embedding import embedded_as, look_up
from heedmap.huggingface.entrance import eagerly, enter, reported
from heedmap.huggingface.measuring import (
    Copying,
    Drift,
    Leaves,
    Recording,
    Spreading,
    ahead,
    alone,
    answer,
    difference,
    drift_between,
    kept,
    nearest,
    off_one,
    on_padding,
    other_side,
    real_tokens,
)

_EMBEDDED = ("input_ids", "decoder_input_ids", "pixel_values")
_SAME, _SHAPES = 64, {torch.float32: 1024, torch.float64: 1024}


class Trial:
    """Passes over the same inputs: with the model's default attention, its eager one, and entered.

    The model is in eval mode; when this is made it has been entered, and the maker leaves it.
    `same` and `shapes` are the two tolerances of the handshake.

    Raises:
        InputError: There is no way in. Whatever the model raises on inputs that it cannot read.
    """

    def __init__(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> None:
        self.model, self.inputs = model, inputs
        self.real = real_tokens(inputs)
        self.padded = self.real is not None and not bool(self.real.all())
        self.left = self.real is not None and not bool(self.real[:, 0].all())
        self.default = str(model.config._attn_implementation)
        self._default = self._own(answer(model(**inputs)))
        with eagerly(model):
            try:
                output = model(**inputs, output_attentions=True)
            except TypeError:
                output = model(**inputs)
        self.eager, self.reported = self._own(answer(output)), reported(output)
        self.entrance = enter(model, inputs)
        self.kind = self.entrance.kind
        recording = Recording()
        with self.entrance.visiting(recording) as seen:
            self.said = self._own(answer(model(**inputs)))
        self.taken, self.seen = recording.taken, list(seen)
        self.finite = bool(self.said.isfinite().all())
        size = max(1.0, float(self.eager.abs().nan_to_num(0.0, 0.0, 0.0).max()))
        unit = torch.finfo(self.said.dtype).eps * size
        self.same, self.shapes = _SAME * unit, _SHAPES.get(self.said.dtype, _SAME) * unit

    def calls_again(self) -> int:
        """The layers that are called in a second pass."""
        with torch.no_grad(), self.entrance.visiting(Visitor()) as seen:
            self.model(**self.inputs)
        return len(seen)

    def to_eager(self) -> float:
        """Entered, against the model's own eager attention."""
        return difference(self.said, self.eager)

    def drift(self) -> Drift:
        """Eager, against the model's default implementation: a matter of the model, not of the door."""
        return drift_between(self.default, self._default, self.eager)

    def to_reported(self) -> float | None:
        """The weights, against those the model reports of itself; None where it reports none."""
        if not self.reported:
            return None
        # Encoder, decoder and cross-attention are reported in another order than they are called.
        return max(nearest(weights, self.reported) for weights in self.taken or [torch.empty(0)])

    def on_padding(self) -> float | None:
        """The largest weight on padding; None without padding."""
        if self.real is None or not self.padded:
            return None
        return max((on_padding(weights, self.real) for weights in self.taken), default=0.0)

    def copied(self) -> float:
        """How far the answer moves when each layer's weights are replaced by a copy."""
        return difference(self._with(Copying()), self.said)

    def spread(self) -> float:
        """How far it moves when every row is even."""
        return difference(self._with(Spreading()), self.said)

    def gradients(self) -> list[float]:
        """The largest |∂ answer / ∂ weights| of each layer; NaN where the answer does not come of them."""
        visitor = Leaves()
        with torch.enable_grad(), self.entrance.visiting(visitor):
            total = _uneven(answer(self.model(**self.inputs)))
        leaves = list(visitor.leaves.values())
        if not total.requires_grad:
            return [float("nan")] * len(leaves)
        found = torch.autograd.grad(total, leaves, allow_unused=True)
        return [float("nan") if g is None else float(g.abs().max()) for g in found]

    def embedded(self) -> tuple[float, float]:
        """How far the answer moves when the embeddings that the model looks up are put in their place again,
        and the largest |∂ answer / ∂ embeddings| of the text that has the smallest; NaN where there is none.
        """
        ids = next(self.inputs[name] for name in _EMBEDDED if name in self.inputs)
        with torch.no_grad():
            leaf = look_up(self.model, ids)
        leaf = leaf.detach().requires_grad_(True)
        # Visited, so that the pass is the one that the gradients of an audit go through.
        with (
            torch.enable_grad(),
            embedded_as(self.model, ids, leaf),
            self.entrance.visiting(Visitor()),
        ):
            said = answer(self.model(**self.inputs))
        moved = difference(self._own(said), self.said)
        if not said.requires_grad:
            return moved, float("nan")
        (found,) = torch.autograd.grad(_uneven(said), leaf, allow_unused=True)
        if found is None or not bool(found.isfinite().all()):
            return moved, float("nan")
        return moved, float(found.abs().flatten(1).amax(1).min())

    def one_by_one(self) -> float:
        """How far the answer to a text moves when it is read alone, padding included."""
        return self._rows(self.inputs, self.real, cut=False)

    def unpadded(self) -> float | None:
        """How far it moves without its padding; None without padding."""
        if not self.padded:
            return None
        return self._rows(self.inputs, self.real, cut=True)

    def other_side(self) -> float | None:
        """How far the answer to a text moves when it is padded on the other side."""
        if self.real is None or not self.padded:
            return None
        inputs, real = other_side(self.inputs, self.real)
        return self._rows(inputs, real, cut=True)

    def causal(self) -> int:
        """How many layers look at no later token."""
        return sum(ahead(weights, self.real) == 0 for weights in self.taken)

    def off_one(self) -> float:
        """How far a row's sum is from one."""
        return max((off_one(weights, self.real) for weights in self.taken), default=0.0)

    def _own(self, said: Tensor) -> Tensor:
        return kept(said.detach(), self.real)

    @torch.no_grad()
    def _with(self, visitor: Visitor) -> Tensor:
        with self.entrance.visiting(visitor):
            return self._own(answer(self.model(**self.inputs)))

    @torch.no_grad()
    def _rows(self, inputs: Mapping[str, Tensor], real: Tensor | None, *, cut: bool) -> float:
        """Each text in its batch against the same text alone, with or without its padding: the most."""
        together = answer(self.model(**inputs))
        worst = 0.0
        for i in range(len(next(iter(inputs.values())))):
            one, many = (
                answer(self.model(**alone(inputs, i, real if cut else None))),
                together[i : i + 1],
            )
            if real is not None:
                own = real[i : i + 1]
                one, many = kept(one, own[:, own[0]] if cut else own), kept(many, own)
            worst = max(worst, difference(many, one))
        return worst


def _uneven(said: Tensor) -> Tensor:
    """One number of an answer, to differentiate. Not the sum: a layer norm's is constant."""
    some = torch.linspace(-1, 1, said.numel(), device=said.device).cos()
    return (said.float().flatten() * some).sum()
