"""What one pass over a few texts tells of a classifier: its attention layers, its heads, the row it reads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from transformers import PreTrainedConfig

from heedmap.huggingface.entrance import Entrance, Inputs
from heedmap.huggingface.measuring import Leaves

Reads = Literal["first", "last", "all"]
Rows = Callable[[Inputs], Int[Tensor, " B"]]
CROSS = ("cross", "encoder_attn", "encdec")  # how model files call attention over another stack


@dataclass(frozen=True)
class AttentionLayout:
    """The calls of the attention in one pass of a model.

    `names` are the layers' of all calls; `calls` the numbers of those on trial: all of one stack, in an
    encoder-decoder its cross-attention. `heads` is that of one call. `reads` says which row of the last
    call the logits depend on: a text's first, its last, or more than one of them; `rows` finds that one. `end`
    is the token that it stands at, where that is how it is found: texts then need one of it each.
    """

    names: list[str]
    calls: list[int]
    heads: int
    reads: Reads
    rows: Rows | None
    end: int | None = None

    @property
    def layers(self) -> list[str]:
        """The names of the layers on trial, in the order of their calls."""
        return [self.names[call] for call in self.calls]

    def read_rows(self, given: Inputs) -> Int[Tensor, " B"]:
        """The row that the classifier reads of each text, found as the model finds it."""
        assert self.rows is not None
        return self.rows(given)


def survey(entrance: Entrance, inputs: Inputs) -> AttentionLayout:
    """Finds it out from passes over the inputs, texts of several lengths with an `attention_mask`."""
    config = entrance.model.config
    leaves, total, names = _pass(entrance, inputs)
    calls = list(range(len(names)))
    if config.is_encoder_decoder:
        crossing = [i for i in calls if any(mark in names[i].lower() for mark in CROSS)]
        calls = crossing or calls
    last = calls[-1]
    read = _read(total, leaves[last])
    # Some rules agree on usual texts: they are told apart on texts that end in another way.
    others = []
    for other in _other_endings(inputs, config):
        try:
            found, total, _ = _pass(entrance, other)
        except (RuntimeError, ValueError, IndexError):
            continue  # BART does not read a text without its end
        others.append((other, _read(total, found[last])))
    heads = leaves[last].shape[1]
    for reads, rows, end in _rules(config):
        only = _only(rows(inputs), read)
        if bool((read == only).all()) and not any(
            bool((there & ~_only(rows(other), there)).any()) for other, there in others
        ):
            return AttentionLayout(names, calls, heads, reads, rows, end)
    return AttentionLayout(names, calls, heads, "all", None)


def at_rows(
    values: Shaped[Tensor, "B Q *rest"], rows: Int[Tensor, " B"]
) -> Shaped[Tensor, "B *rest"]:
    """One row of each text: values[b, rows[b]]."""
    return values[torch.arange(len(rows), device=rows.device), rows]


def _pass(entrance: Entrance, inputs: Inputs) -> tuple[dict[int, Tensor], Tensor, list[str]]:
    """A leaf in every call's weights, a number made of the logits, and the calls' layers."""
    visitor = Leaves(held=False)
    with torch.enable_grad(), entrance.visiting(visitor) as names:
        logits = entrance.model(**inputs).logits
        # Weighted unevenly: a softmax's or a mean's symmetric sums would cancel.
        scale = torch.arange(1, logits.shape[1] + 1, device=logits.device).to(logits.dtype)
        total = (logits * scale).sum()
    return visitor.leaves, total, list(names)


def _read(total: Tensor, weights: Tensor) -> Bool[Tensor, "B Q"]:
    """The rows that have a gradient."""
    (gradient,) = torch.autograd.grad(total, weights)
    found: Tensor = gradient.abs().amax(dim=(1, 3)) > 0
    return found


def _rules(config: PreTrainedConfig) -> Iterator[tuple[Reads, Rows, int | None]]:
    """How classifiers find their row: by its place, or (decoders in transformers) by the ids alone.

    The token comes with the rule that finds the row at it.
    """
    pad, end = config.get_text_config().pad_token_id, config.eos_token_id

    def rightmost(marked: Bool[Tensor, "B N"]) -> Int[Tensor, " B"]:
        # As transformers has it, with 0 where no position is marked.
        return (marked * torch.arange(marked.shape[1], device=marked.device)).argmax(-1)

    yield "first", lambda given: given["attention_mask"].argmax(1), None
    yield "last", lambda given: rightmost(given["attention_mask"].bool()), None
    if pad is not None:  # GPT-2 and nearly all decoders
        yield "last", lambda given: rightmost(given["input_ids"] != pad), None
    if isinstance(end, int):  # BART, T5
        yield "last", lambda given: rightmost(given["input_ids"] == end), end


def _other_endings(inputs: Inputs, config: PreTrainedConfig) -> Iterator[dict[str, Tensor]]:
    """The texts with padding for their last token, and with their last two tokens in the other order."""
    ids, real = inputs["input_ids"], inputs["attention_mask"].bool()
    texts = torch.arange(len(ids), device=ids.device)
    last = real.shape[1] - 1 - real.flip(1).long().argmax(1)
    before = torch.where(real.sum(1) > 1, last - 1, last)
    pad = config.get_text_config().pad_token_id
    if pad is not None:
        padded = ids.clone()
        padded[texts, last] = pad
        yield {**inputs, "input_ids": padded}
    turned = ids.clone()
    turned[texts, last], turned[texts, before] = ids[texts, before], ids[texts, last]
    yield {**inputs, "input_ids": turned}


def _only(rows: Int[Tensor, " B"], like: Bool[Tensor, "B Q"]) -> Bool[Tensor, "B Q"]:
    """True at one row of each text."""
    return torch.arange(like.shape[1], device=like.device) == rows.unsqueeze(1)
