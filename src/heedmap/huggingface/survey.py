"""What one pass over a few texts tells of a classifier: its attention layers, its heads, the row it reads."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from heedmap.huggingface.entrance import Entrance, Inputs
from heedmap.huggingface.measuring import Leaves

Reads = Literal["first", "last", "all"]
CROSS = ("cross", "encoder_attn", "encdec")  # how model files call attention over another stack


@dataclass(frozen=True)
class Survey:
    """The calls of the attention in one pass of a model.

    `names` are the layers' of all calls; `calls` the numbers of those on trial: all of one stack, in an
    encoder-decoder its cross-attention. `heads` is that of one call. `reads` says which row of the last
    call the logits depend on: a text's first, its last, or more than one of them.
    """

    names: list[str]
    calls: list[int]
    heads: int
    reads: Reads

    @property
    def layers(self) -> list[str]:
        """The names of the layers on trial, in the order of their calls."""
        return [self.names[call] for call in self.calls]

    def read_rows(self, given: Inputs) -> Int[Tensor, " B"]:
        """The row that the classifier reads of each text: the first real one, or the last."""
        assert self.reads != "all"
        return _end(given["attention_mask"], self.reads)


def survey(entrance: Entrance, inputs: Inputs) -> Survey:
    """Finds it out from a pass over the inputs, texts of several lengths with an `attention_mask`."""
    visitor = Leaves(held=False)
    with torch.enable_grad(), entrance.visiting(visitor) as names:
        logits = entrance.model(**inputs).logits
        # Weighted unevenly: a softmax's or a mean's symmetric sums would cancel.
        scale = torch.arange(1, logits.shape[1] + 1, device=logits.device).to(logits.dtype)
        total = (logits * scale).sum()
    calls = list(range(len(names)))
    if entrance.model.config.is_encoder_decoder:
        crossing = [i for i in calls if any(mark in names[i].lower() for mark in CROSS)]
        calls = crossing or calls
    last = visitor.leaves[calls[-1]]
    (gradient,) = torch.autograd.grad(total, last)
    return Survey(list(names), calls, last.shape[1], _reads(gradient, inputs["attention_mask"]))


def at_rows(
    values: Shaped[Tensor, "B Q *rest"], rows: Int[Tensor, " B"]
) -> Shaped[Tensor, "B *rest"]:
    """One row of each text: values[b, rows[b]]."""
    return values[torch.arange(len(rows), device=rows.device), rows]


def _reads(gradient: Float[Tensor, "B H Q N"], real: Int[Tensor, "B N"]) -> Reads:
    read = gradient.abs().amax(dim=(1, 3)) > 0
    place = torch.arange(real.shape[1], device=real.device)
    ends: tuple[Literal["first", "last"], ...] = ("first", "last")
    for which in ends:
        if bool((read == (place == _end(real, which).unsqueeze(1))).all()):
            return which
    return "all"


def _end(real: Int[Tensor, "B N"], which: Literal["first", "last"]) -> Int[Tensor, " B"]:
    if which == "first":
        return real.argmax(1)
    return real.shape[1] - 1 - real.flip(1).argmax(1)
