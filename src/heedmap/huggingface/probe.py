"""Probe a model: run it on a few texts in every way that the verification measures."""

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from heedmap.huggingface.attention_hook import Visitor
from heedmap.huggingface.embedding import embedded_as, look_up
from heedmap.huggingface.measuring import (
    SAME_SHAPES,
    Copying,
    Drift,
    Leaves,
    Spreading,
    WeightRecorder,
    ahead,
    alone,
    answer,
    difference,
    drift_between,
    nearest,
    off_one,
    on_padding,
    other_side,
    real_part,
    real_tokens,
    roundings,
)
from heedmap.huggingface.model_adapter import attach, eagerly, reported, with_weights

_EMBEDDED = ("input_ids", "decoder_input_ids", "pixel_values")


class Probe:
    """Passes over the same inputs: with the model's default attention, its eager one, and attached.

    The model must be in eval mode. It is attached here, and the caller must `detach` it.
    `same` and `shapes` are the two tolerances of the verification, multiplied by the size of the answer.

    Raises:
        InputError: There is no way in. The model's own errors on inputs that it cannot read pass through.
    """

    def __init__(self, model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> None:
        self.model, self.inputs = model, inputs
        self.real = real_tokens(inputs)
        self.padded = self.real is not None and not bool(self.real.all())
        self.pads_left = self.real is not None and not bool(self.real[:, 0].all())
        self.default = str(model.config._attn_implementation)
        self._default = self._own(answer(model(**inputs)))
        with eagerly(model):
            output = with_weights(model, inputs)
        self.eager, self.reported = self._own(answer(output)), reported(output)
        self.adapter = attach(model, inputs)
        self.kind = self.adapter.kind
        recorder = WeightRecorder()
        with self.adapter.visiting(recorder) as seen:
            self.output = self._own(answer(model(**inputs)))
        self.weights, self.layers = recorder.taken, list(seen)
        self.finite = bool(self.output.isfinite().all())
        size = max(1.0, float(self.eager.abs().nan_to_num(0.0, 0.0, 0.0).max()))
        unit = torch.finfo(self.output.dtype).eps * size
        self.same, self.shapes = SAME_SHAPES * unit, roundings(self.output.dtype) * unit

    def calls_again(self) -> int:
        """Count the calls of a second pass."""
        with torch.no_grad(), self.adapter.visiting(Visitor()) as seen:
            self.model(**self.inputs)
        return len(seen)

    def to_eager(self) -> float:
        """Compare the attached model with its own eager attention."""
        return difference(self.output, self.eager)

    def drift(self) -> Drift:
        """Compare eager attention with the model's default: a property of the model, not of heedmap."""
        return drift_between(self.default, self._default, self.eager)

    def to_reported(self) -> float | None:
        """Compare the weights with those that the model reports; None if it reports none."""
        if not self.reported:
            return None
        # Encoder, decoder and cross-attention are not reported in the order of their calls.
        return max(nearest(weights, self.reported) for weights in self.weights or [torch.empty(0)])

    def on_padding(self) -> float | None:
        """Return the largest weight on padding; None without padding."""
        if self.real is None or not self.padded:
            return None
        return max((on_padding(weights, self.real) for weights in self.weights), default=0.0)

    def copied(self) -> float:
        """Return how far the answer moves if each layer's weights are replaced by a copy."""
        return difference(self._with(Copying()), self.output)

    def spread(self) -> float:
        """Return how far it moves if every row is uniform."""
        return difference(self._with(Spreading()), self.output)

    def gradients(self) -> list[float]:
        """Return the largest |∂ answer / ∂ weights| per layer; NaN if the answer does not depend on them."""
        visitor = Leaves()
        with torch.enable_grad(), self.adapter.visiting(visitor):
            total = _uneven(answer(self.model(**self.inputs)))
        leaves = list(visitor.leaves.values())
        if not total.requires_grad:
            return [float("nan")] * len(leaves)
        gradients = torch.autograd.grad(total, leaves, allow_unused=True)
        return [float("nan") if g is None else float(g.abs().max()) for g in gradients]

    def embedded(self) -> tuple[float, float]:
        """Return how far the answer moves if its embeddings are put back by hand, and their gradient.

        The gradient is the smallest over texts of the largest |∂ answer / ∂ embeddings|; NaN if there is none.
        """
        ids = next(self.inputs[name] for name in _EMBEDDED if name in self.inputs)
        with torch.no_grad():
            leaf = look_up(self.model, ids)
        leaf = leaf.detach().requires_grad_(True)
        # With a visitor, as in the passes by which an audit takes gradients.
        with (
            torch.enable_grad(),
            embedded_as(self.model, ids, leaf),
            self.adapter.visiting(Visitor()),
        ):
            output = answer(self.model(**self.inputs))
        moved = difference(self._own(output), self.output)
        if not output.requires_grad:
            return moved, float("nan")
        (gradient,) = torch.autograd.grad(_uneven(output), leaf, allow_unused=True)
        if gradient is None or not bool(gradient.isfinite().all()):
            return moved, float("nan")
        return moved, float(gradient.abs().flatten(1).amax(1).min())

    def one_by_one(self) -> float:
        """Return how far the answer to a text moves if it is read alone, padding included."""
        return self._rows(self.inputs, self.real, cut=False)

    def unpadded(self) -> float | None:
        """Return how far it moves without its padding; None if nothing is padded."""
        if not self.padded:
            return None
        return self._rows(self.inputs, self.real, cut=True)

    def other_side(self) -> float | None:
        """Return how far the answer to a text moves if it is padded on the other side."""
        if self.real is None or not self.padded:
            return None
        inputs, real = other_side(self.inputs, self.real)
        return self._rows(inputs, real, cut=True)

    def causal(self) -> int:
        """Count the layers without weight on later tokens."""
        return sum(ahead(weights, self.real) == 0 for weights in self.weights)

    def off_one(self) -> float:
        """Return the largest distance of a row sum from one."""
        return max((off_one(weights, self.real) for weights in self.weights), default=0.0)

    def _own(self, output: Tensor) -> Tensor:
        return real_part(output.detach(), self.real)

    @torch.no_grad()
    def _with(self, visitor: Visitor) -> Tensor:
        with self.adapter.visiting(visitor):
            return self._own(answer(self.model(**self.inputs)))

    @torch.no_grad()
    def _rows(self, inputs: Mapping[str, Tensor], real: Tensor | None, *, cut: bool) -> float:
        """Compare each text in its batch with the same text alone (if `cut`, unpadded); return the largest."""
        together = answer(self.model(**inputs))
        # One text at a time: some models couple the rows of a batch, which shows only against the text alone.
        worst = 0.0
        for i in range(len(next(iter(inputs.values())))):
            by_itself, in_batch = (
                answer(self.model(**alone(inputs, i, real if cut else None))),
                together[i : i + 1],
            )
            if real is not None:
                text_mask = real[i : i + 1]
                by_itself, in_batch = (
                    real_part(by_itself, text_mask[:, text_mask[0]] if cut else text_mask),
                    real_part(in_batch, text_mask),
                )
            worst = max(worst, difference(in_batch, by_itself))
        return worst


def _uneven(output: Tensor) -> Tensor:
    """Return one number of an answer, to differentiate. Not the sum: a layer norm's is constant."""
    factors = torch.linspace(-1, 1, output.numel(), device=output.device).cos()
    return (output.float().flatten() * factors).sum()
