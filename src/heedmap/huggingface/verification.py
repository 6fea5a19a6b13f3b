"""Verify that a model's attention is read and replaced exactly, before it is audited.

Every claim about a model is measured on the model itself, on a few texts of different lengths. A lost mask,
a skipped layer or an output that does not come from the weights shows as a number.

There are two tolerances, both multiplied by the size of the answer (at least 1). If the same operations run
on tensors of the same shape: 64 units of the dtype's precision (float32: 8e-6); most models differ by 0. If
shapes differ (a row alone, without its padding), other kernels sum in another order: 1024 units in float32
(1.2e-4), 64 in half precision (float16: 0.06, bfloat16: 0.5).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.errors import InputError, running_model
from heedmap.huggingface import as_loaded
from heedmap.huggingface.inputs import encode
from heedmap.huggingface.limits import longest
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import Drift, answer, drift_between
from heedmap.huggingface.model_adapter import attach, detach, eagerly, evaluating, is_attached
from heedmap.huggingface.padding import declare_in_batches, padding_token
from heedmap.huggingface.peft_merging import merge_of
from heedmap.huggingface.probe import Probe
from heedmap.huggingface.sample_texts import SENTENCES

Part = Literal["reading", "editing", "batches", "as loaded", "report"]


@dataclass(frozen=True)
class Check:
    """One measurement. A check of the part "report" only informs and never fails."""

    name: str
    part: Part
    passed: bool
    value: float | None
    explanation: str


@dataclass(frozen=True)
class VerificationResult:
    """All measurements of a model. `kind` is the way in: interface, softmax, reading, or refused.

    `calls` names the attention layers and `heads` counts their heads, in the order of the calls.
    """

    architecture: str
    kind: str
    calls: tuple[str, ...]
    heads: tuple[int, ...]
    checks: tuple[Check, ...]
    reason: str | None = None
    dtype: str = "float32"
    other_side: bool = False  # whether the model may be padded on the other side too

    @property
    def ok(self) -> bool:
        """Return whether the model can be audited."""
        return self.reason is None and all(check.passed for check in self.checks)

    @property
    def reads(self) -> bool:
        """Return whether the weights are exactly those the model computes with."""
        return self._part("reading")

    @property
    def edits(self) -> bool:
        """Return whether the weights can be replaced exactly."""
        return self.reads and self.kind != "reading" and self._part("editing")

    @property
    def refusal(self) -> str | None:
        """Return one line with reason and remedy; None if the model can be audited."""
        if self.ok:
            return None
        if self.reason is not None:
            return self.reason
        check = next(check for check in self.checks if not check.passed)
        remedy = {
            "other weights, other answer": _UNTRAINED,
            "gradient in every layer": _UNTRAINED,
        }.get(check.name, _CHOOSE)
        if self.dtype != "float32":
            remedy = f"it is read in {self.dtype}: load it with dtype float32"
        elif check.name == "padded as unpadded" and self.other_side:
            remedy = "set the tokenizer's padding_side to the other side and save it again"
        return (
            f"expected attention that is read and replaced exactly; {self.architecture} fails at "
            f"{check.name!r}: {check.explanation}; {remedy}"
        )

    @property
    def size(self) -> str:
        """Return layers × heads, as in "12 × 12"."""
        fewest, largest = min(self.heads, default=0), max(self.heads, default=0)
        return f"{len(self.calls)} × {fewest}" + (f"–{largest}" if largest > fewest else "")

    def value(self, name: str) -> float | None:
        """Return the number that a check measured; None if it was not made."""
        return next((check.value for check in self.checks if check.name == name), None)

    def _part(self, part: Part) -> bool:
        passed = [check.passed for check in self.checks if check.part == part]
        return bool(passed) and all(passed)


_CHOOSE = "choose another model"
_UNTRAINED = "its attention hardly moves its answers: is it trained? else " + _CHOOSE


def verify(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, pairs: bool = False
) -> VerificationResult:
    """Try the model on English sentences, padded on the tokenizer's side, and compare it with itself as loaded.

    With `pairs` it is compared on pairs of texts too.

    The model is measured in eval mode. Its mode, its attention implementation and whether it is attached
    are the same afterwards.

    Raises:
        InputError: The model cannot read the tokenizer's output at all.
    """
    was_attached = is_attached(model)
    detach(model)
    declare_in_batches(model)
    with quiet(), evaluating(model), running_model(type(model).__name__, "verification"):
        readings, untried = as_loaded.read(model, tokenizer, pairs=pairs)
        inputs = _sentences(model, tokenizer)
        result = verify_on(model, inputs)
        try:
            if result.reason is None:
                comparison = as_loaded.compare(readings, untried, attach(model, inputs), tokenizer)
                checks = (*result.checks, _as_loaded(comparison), *_as_unmerged(model))
                result = replace(result, checks=checks)
        finally:
            detach(model)
            if was_attached:
                attach(model, inputs)
    return result


def _as_loaded(comparison: as_loaded.Comparison) -> Check:
    passed = comparison.different is None
    return Check("as loaded", "as loaded", passed, comparison.answer, comparison.explanation)


def _as_unmerged(model: PreTrainedModel) -> list[Check]:
    """Return what was measured when an adapter was merged into the model; none of a model loaded whole."""
    if (merge := merge_of(model)) is None:
        return []
    compared = f"{merge}; the logits of the unmerged model differ by"
    return [_at_most("merged as unmerged", "as loaded", merge.gap, merge.limit, compared)]


def drift(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Drift:
    """Measure the verification's last two numbers alone, in two passes; the model is left unchanged."""
    return drift_on(model, _sentences(model, tokenizer))


@torch.no_grad()
def drift_on(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> Drift:
    """Do as `drift`, on ready tensors."""
    was_attached = is_attached(model)
    detach(model)
    with quiet(), evaluating(model):
        try:
            default = str(model.config._attn_implementation)
            default_answer = answer(model(**inputs))
            with eagerly(model):
                return drift_between(default, default_answer, answer(model(**inputs)))
        finally:
            if was_attached:
                attach(model, inputs)


def _sentences(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, Tensor]:
    limit = longest(model, tokenizer)
    texts = [as_loaded.words_within(tokenizer, [text], limit) for text in SENTENCES]
    batch = encode(tokenizer, texts, range(len(texts)), model.device, padding_token(model))
    return as_loaded.accepted(model, batch.inputs(tokenizer.model_input_names))


def verify_on(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> VerificationResult:
    """Do as `verify`, on ready tensors: `input_ids` (B, N), `attention_mask` and what else it takes.

    The rows should be of different lengths, and the mask should say so.
    """
    was_attached = is_attached(model)
    detach(model)
    with quiet(), evaluating(model), running_model(type(model).__name__, "verification"):
        try:
            return _measure(model, inputs)
        finally:
            if was_attached:
                attach(model, inputs)


def _measure(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> VerificationResult:
    name = type(model).__name__
    try:
        with torch.no_grad():
            probe = Probe(model, inputs)
    except InputError as error:
        return VerificationResult(name, "refused", (), (), (), str(error))
    try:
        checks = [*_reading(probe)]
        if probe.kind != "reading":
            checks += _editing(probe)
        checks += [*_batches(probe), *_reports(probe, other_side := probe.other_side())]
    finally:
        detach(model)
    reason = None
    if probe.kind == "reading" and all(check.passed for check in checks):
        reason = (
            f"expected attention that can be replaced; {name} only reports its weights, and computes "
            f"its output where they cannot be reached; {_CHOOSE}"
        )
    heads = tuple(weights.shape[1] for weights in probe.weights)
    dtype = str(model.dtype).removeprefix("torch.")
    either = other_side is not None and other_side <= probe.shapes
    return VerificationResult(
        name, probe.kind, tuple(probe.layers), heads, tuple(checks), reason, dtype, either
    )


def _reading(probe: Probe) -> list[Check]:
    again, layers = probe.calls_again(), len(probe.layers)
    gap, count = probe.to_reported(), len(probe.reported)
    compared = (
        "the model reports none to compare with" if gap is None else f"they differ by {gap:.2g}"
    )
    return [
        Check(
            "layers called", "reading", 0 < layers == again and count in (0, layers), float(layers),
            f"{layers} attention layers called, {again} in a second pass; the model reports {count or 'none'}",
        ),
        Check(
            "finite answer", "reading", probe.finite, None,
            "the answer holds numbers only" if probe.finite else "the answer is infinite or not a number",
        ),
        _at_most(
            "entered as eager", "reading", probe.to_eager(), probe.same,
            "the answer differs from the model's own eager attention by",
        ),
        Check(
            "weights as reported", "reading", gap is None or gap <= probe.same, gap,
            f"the weights against those the model itself reports: {compared}",
        ),
        _at_most(
            "no weight on padding", "reading", probe.on_padding(), 0.0,
            "the largest weight from a token to padding is",
        ),
    ]  # fmt: skip


def _editing(probe: Probe) -> list[Check]:
    moved = probe.spread()
    gradients = probe.gradients()
    smallest = min(gradients, default=math.nan)
    put_back, slope = probe.embedded()
    return [
        _at_most(
            "same weights, same answer", "editing", probe.copied(), probe.same,
            "putting back the same weights moves the answer by",
        ),
        Check(
            "other weights, other answer", "editing", moved > probe.same, moved,
            f"even weights move the answer by {moved:.2g}",
        ),
        Check(
            "gradient in every layer", "editing", math.isfinite(smallest), smallest,
            f"the largest gradient by a layer's weights is {smallest:.2g} or more"
            if math.isfinite(smallest) else "there is no gradient by some layer's weights",
        ),
        _at_most(
            "same embeddings, same answer", "editing", put_back, probe.same,
            "putting the looked-up embeddings in their place again moves the answer by",
        ),
        Check(
            "gradient from the embeddings", "editing", slope > 0, slope,
            f"every text's largest gradient by its embeddings is {slope:.2g} or more"
            if slope > 0 else "there is no finite gradient by some text's embeddings",
        ),
    ]  # fmt: skip


def _batches(probe: Probe) -> list[Check]:
    side = "left" if probe.pads_left else "right"
    return [
        _at_most(
            "alone as in a batch", "batches", probe.one_by_one(), probe.shapes,
            "a text read alone is answered differently from the same text in a batch by",
        ),
        _at_most(
            "padded as unpadded", "batches", probe.unpadded(), probe.shapes,
            f"padding on the {side} moves the answer by",
        ),
    ]  # fmt: skip


def _reports(probe: Probe, other_side: float | None) -> list[Check]:
    causal, off, drift = probe.causal(), probe.off_one(), probe.drift()
    side = "right" if probe.pads_left else "left"
    effect = "the inputs hold no padding" if other_side is None else (
        f"moves the answer by {other_side:.2g}"
        + (", so pad on the other side alone" if other_side > probe.shapes else "")
    )  # fmt: skip
    return [
        Check("padding on the other side", "report", True, other_side, f"padding on the {side}: {effect}"),
        Check(
            "causal", "report", True, float(causal),
            f"{causal} of {len(probe.weights)} layers never look ahead",
        ),
        Check(
            "rows sum to one", "report", True, off,
            f"row sums are off one by up to {off:.2g}"
            + (": some attention goes to no token (a sink)" if off > 0.01 else ""),
        ),
        Check(
            "eager as default", "report", True, drift.logits,
            f"eager attention differs from the model's default ({drift.default}) by {drift.logits:.2g}",
        ),
        Check(
            "predictions as default", "report", True, drift.tvd,
            "the answer is no prediction" if drift.tvd is None
            else f"in {'the unit of the output' if drift.is_number else 'probabilities (TVD)'} they differ by "
            f"{drift.tvd:.2g}",
        ),
    ]  # fmt: skip


def _at_most(name: str, part: Part, value: float | None, limit: float, text: str) -> Check:
    if value is None:
        return Check(name, part, True, None, "not tried: the inputs hold no padding")
    return Check(name, part, value <= limit, value, f"{text} {value:.2g} (at most {limit:.2g})")
