"""Find a classifier's attention layers, its heads and the row that it reads, by passes over a few texts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from transformers import PreTrainedConfig

from heedmap.huggingface.measuring import Leaves
from heedmap.huggingface.model_adapter import Inputs, ModelAdapter
from heedmap.huggingface.padding import of_text_model
from heedmap.huggingface.targets import TARGET

Reads = Literal["first", "last", "target", "all"]
Rows = Callable[[Inputs], Int[Tensor, " B"]]
CROSS = ("cross", "encoder_attn", "encdec")  # in the names of attention over another stack


@dataclass(frozen=True)
class AttentionLayout:
    """The calls of the attention in one pass of a model.

    `names` are the layers of all calls; `calls` are the numbers of those on trial: all of one stack, or an
    encoder-decoder's cross-attention. `heads` is the number per call. `reads` is the row of the last call
    that the logits depend on: a text's first, its last, that of the word that is asked about ("target"), or
    "all" if more than one; `rows` finds it. If it is
    found by a token, that is `end`: each text must then have exactly one.
    """

    names: list[str]
    calls: list[int]
    heads: int
    reads: Reads
    rows: Rows | None
    end: int | None = None

    @property
    def layers(self) -> list[str]:
        """Return the names of the layers on trial, in the order of their calls."""
        return [self.names[call] for call in self.calls]

    def read_rows(self, inputs: Inputs) -> Int[Tensor, " B"]:
        """Return the row that the classifier reads of each text, found by the model's own rule."""
        assert self.rows is not None
        return self.rows(inputs)


def find_layout(adapter: ModelAdapter, inputs: Inputs) -> AttentionLayout:
    """Find the layout from passes over the inputs, texts of several lengths with an `attention_mask`."""
    config = adapter.model.config
    leaves, total, names = _pass(adapter, inputs)
    calls = list(range(len(names)))
    if config.is_encoder_decoder:
        crossing = [i for i in calls if any(mark in names[i].lower() for mark in CROSS)]
        calls = crossing or calls
    last_call = calls[-1]
    is_read = _read(total, leaves[last_call])
    # Some rules agree on usual texts, and differ on texts with other endings.
    passes_by_ending = []
    for changed_inputs in _other_endings(inputs, config):
        try:
            other_leaves, total, _ = _pass(adapter, changed_inputs)
        except (RuntimeError, ValueError, IndexError):
            continue  # BART refuses a text without an end-of-text token
        passes_by_ending.append((changed_inputs, _read(total, other_leaves[last_call])))
    heads = leaves[last_call].shape[1]
    for reads, rows, end in _rules(config, asks=TARGET in inputs):
        only = _only(rows(inputs), is_read)
        if bool((is_read == only).all()) and not any(
            bool((other_rows & ~_only(rows(changed_inputs), other_rows)).any())
            for changed_inputs, other_rows in passes_by_ending
        ):
            return AttentionLayout(names, calls, heads, reads, rows, end)
    return AttentionLayout(names, calls, heads, "all", None)


def at_rows(
    values: Shaped[Tensor, "B Q *rest"], rows: Int[Tensor, " B"]
) -> Shaped[Tensor, "B *rest"]:
    """Return one row of each text: values[b, rows[b]]."""
    return values[torch.arange(len(rows), device=rows.device), rows]


def _pass(adapter: ModelAdapter, inputs: Inputs) -> tuple[dict[int, Tensor], Tensor, list[str]]:
    """Return a leaf per call's weights, a weighted sum of the logits, and the calls' layers."""
    visitor = Leaves(held=False)
    with torch.enable_grad(), adapter.visiting(visitor) as names:
        logits = adapter.model(**inputs).logits
        # Uneven weights, so that symmetric terms (of a softmax, a mean) do not cancel.
        scale = torch.arange(1, logits.shape[1] + 1, device=logits.device).to(logits.dtype)
        total = (logits * scale).sum()
    return visitor.leaves, total, list(names)


def _read(total: Tensor, weights: Tensor) -> Bool[Tensor, "B Q"]:
    """Return which rows have a gradient."""
    (gradient,) = torch.autograd.grad(total, weights)
    is_read: Tensor = gradient.abs().amax(dim=(1, 3)) > 0
    return is_read


def _rules(config: PreTrainedConfig, *, asks: bool) -> Iterator[tuple[Reads, Rows, int | None]]:
    """Yield the rules by which classifiers find their row: by position or (transformers' decoders) by ids.

    If the inputs say which position is asked about (`asks`), the rule is that alone. The third entry is the
    token by which the rule finds the row, or None.
    """
    if asks:
        yield "target", lambda inputs: inputs[TARGET].argmax(1), None
        return
    pad, end = (of_text_model(config, name) for name in ("pad_token_id", "eos_token_id"))

    def rightmost(marked: Bool[Tensor, "B N"]) -> Int[Tensor, " B"]:
        # As in transformers: 0 if no position is marked.
        return (marked * torch.arange(marked.shape[1], device=marked.device)).argmax(-1)

    yield "first", lambda inputs: inputs["attention_mask"].argmax(1), None
    yield "last", lambda inputs: rightmost(inputs["attention_mask"].bool()), None
    if pad is not None:  # GPT-2 and nearly all decoders
        yield "last", lambda inputs: rightmost(inputs["input_ids"] != pad), None
    if isinstance(end, int):  # BART, T5
        yield "last", lambda inputs: rightmost(inputs["input_ids"] == end), end


def _other_endings(inputs: Inputs, config: PreTrainedConfig) -> Iterator[dict[str, Tensor]]:
    """Yield the texts with padding as their last token, then with their last two tokens swapped."""
    ids, real = inputs["input_ids"], inputs["attention_mask"].bool()
    texts = torch.arange(len(ids), device=ids.device)
    last_token = real.shape[1] - 1 - real.flip(1).long().argmax(1)
    token_before = torch.where(real.sum(1) > 1, last_token - 1, last_token)
    pad = of_text_model(config, "pad_token_id")
    if pad is not None:
        padded = ids.clone()
        padded[texts, last_token] = pad
        yield {**inputs, "input_ids": padded}
    turned = ids.clone()
    turned[texts, last_token], turned[texts, token_before] = (
        ids[texts, token_before],
        ids[texts, last_token],
    )
    yield {**inputs, "input_ids": turned}


def _only(rows: Int[Tensor, " B"], like: Bool[Tensor, "B Q"]) -> Bool[Tensor, "B Q"]:
    """Return a mask with one row of each text."""
    return torch.arange(like.shape[1], device=like.device) == rows.unsqueeze(1)
