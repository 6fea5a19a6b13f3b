"""How a loaded model is entered: by the interface, by its softmax, or only by what it reports.

Support is never looked up by name: a model that does not know the interface is silent about it, or fails
in the middle of a pass. So a small pass is made and the calls are counted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from heedmap.errors import InputError
from heedmap.huggingface.door import NAME, Call, Visitor, visiting
from heedmap.huggingface.interception import visiting_softmax
from heedmap.huggingface.logging import quiet

Kind = Literal["interface", "softmax", "reading"]
Inputs = Mapping[str, Tensor]
_REPORTED = (
    "attentions", "encoder_attentions", "decoder_attentions", "cross_attentions",
)  # fmt: skip


@dataclass(frozen=True)
class Entrance:
    """A model that has been entered.

    `kind` says by which way: "interface" and "softmax" read and replace the weights, "reading" only reads
    them, after the pass. Only "interface" knows queries, keys and values.
    """

    model: PreTrainedModel
    kind: Kind

    def visiting(self, visitor: Visitor) -> AbstractContextManager[list[str]]:
        """While it lasts, `visitor` sees every attention layer of each forward pass of the model.

        Gives the names of the layers that called. A "reading" entrance raises InputError where the
        visitor wants to replace weights.
        """
        ways: dict[Kind, Callable[..., AbstractContextManager[list[str]]]] = {
            "interface": visiting,
            "softmax": visiting_softmax,
            "reading": _visiting_reported,
        }
        return ways[self.kind](self.model, visitor)

    def leave(self) -> None:
        """As the function `leave`."""
        leave(self.model)


def enter(model: PreTrainedModel, inputs: Inputs | None = None) -> Entrance:
    """Opens the best way into `model`; `leave` closes it. The model keeps its mode and its weights.

    Args:
        model: On any device.
        inputs: What the model is tried on, as its forward takes it; without it a few made-up tokens.

    Raises:
        InputError: There is no way in: no attention weights of tokens over tokens are to be had.
    """
    leave(model)
    inputs = probe(model) if inputs is None else inputs
    before = _Before.of(model)
    with quiet(), evaluating(model):
        _entered[model] = before
        try:
            kind = _find(model, inputs)
        except BaseException:
            leave(model)
            raise
    if kind is None:
        leave(model)
        raise InputError(
            f"expected attention weights of tokens over tokens; {type(model).__name__} has no such layer "
            "or hides it from transformers' interface; `heedmap support` lists what can be audited"
        )
    return Entrance(model, kind)


def leave(model: PreTrainedModel) -> None:
    """Gives the model back the attention implementation it had before `enter`; without one, nothing."""
    before = _entered.pop(model, None)
    if before is not None:
        before.restore()


def entered(model: PreTrainedModel) -> bool:
    """Whether `enter` was the last that happened to the model."""
    return model in _entered


@contextmanager
def eagerly(model: PreTrainedModel) -> Iterator[None]:
    """While it lasts, the model computes attention as its own file says. Not inside `enter`."""
    before = _Before.of(model)
    try:
        use_eager(model)
        yield
    finally:
        before.restore()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode, and afterwards every module's mode as it was."""
    modes = [(module, module.training) for module in model.modules()]
    model.train(False)
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def use_eager(model: PreTrainedModel) -> None:
    """Sets the model's own eager attention; between `enter` and `leave`, or for good."""
    model.config._attn_implementation = "eager"
    for config in _configs(model):
        config._attn_implementation = "eager"


def probe(model: PreTrainedModel) -> dict[str, Tensor]:
    """Two rows of eight made-up tokens that end as texts do, the second padded on the right."""
    config = model.config.get_text_config()
    size = int(getattr(config, "vocab_size", 2))
    ids = torch.arange(16).reshape(2, 8) % max(size - 4, 1) + min(3, size - 1)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    pad, end = config.pad_token_id, getattr(config, "eos_token_id", None)
    end = end[0] if isinstance(end, list) else end
    if isinstance(end, int) and end < size:  # BART classifies by its last end-of-text token
        ids[0, -1] = ids[1, 5] = end
    if isinstance(pad, int) and pad < size:
        ids[1, 6:] = pad
    elif pad is None:
        ids, mask = ids[:1], mask[:1]  # a decoder without padding classifies one row at a time
    found = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
    if model.config.is_encoder_decoder and not hasattr(model, "classification_head"):
        found["decoder_input_ids"] = ids[:, :5].to(model.device)
    return found


def reported(output: Any) -> list[Float[Tensor, "B H Q N"]]:
    """The attention weights an output reports, layer after layer; none where it reports none."""
    found: list[Tensor] = []
    for name in _REPORTED:
        found += [w for w in getattr(output, name, None) or () if isinstance(w, Tensor)]
    # SqueezeBERT reports its scores as they are before the softmax.
    return [w.softmax(-1) if bool((w < 0).any()) else w for w in found]


@dataclass(frozen=True)
class _Before:
    """What the configurations of a model said before it was entered.

    They are held, not the model, which could not be forgotten otherwise.
    """

    said: list[tuple[PreTrainedConfig, str | None, bool]]

    @classmethod
    def of(cls, model: PreTrainedModel) -> "_Before":
        before = cls(
            [(c, c._attn_implementation, bool(c.output_attentions)) for c in _configs(model)]
        )
        for config, _, always in before.said:
            if always:  # a configuration that asks for weights insists on eager
                config.output_attentions = False
        return before

    def restore(self) -> None:
        # Parents first: setting one sets its parts as well.
        for config, implementation, _ in self.said:
            config._attn_implementation = implementation
        for config, _, always in self.said:
            if always:
                with suppress(ValueError):
                    config.output_attentions = True


_entered: "WeakKeyDictionary[PreTrainedModel, _Before]" = WeakKeyDictionary()


def _configs(model: nn.Module) -> list[PreTrainedConfig]:
    """Every configuration in the model, parents before their parts."""
    found: dict[int, PreTrainedConfig] = {}

    def add(config: PreTrainedConfig) -> None:
        found.setdefault(id(config), config)
        for name in config.sub_configs:
            part = getattr(config, name, None)
            if isinstance(part, PreTrainedConfig):
                add(part)

    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            add(module.config)
    return list(found.values())


def _find(model: PreTrainedModel, inputs: Inputs) -> Kind | None:
    if model._can_set_attn_implementation():
        # Models that refuse the name do so at any point of the pass, and each in its own way.
        with suppress(Exception), torch.no_grad():
            model.set_attn_implementation(NAME)
            looking = _Taken()
            with visiting(model, looking):
                model(**inputs)
            if looking.weights_:
                tokens = all(_over_tokens(weights, inputs) for weights in looking.weights_)
                return "interface" if tokens else None
    use_eager(model)
    taken = _Taken()
    with torch.no_grad(), visiting_softmax(model, taken):
        try:
            output = model(**inputs, output_attentions=True)
        except TypeError:
            output = model(**inputs)
    said = reported(output)
    if not said or not all(_over_tokens(weights, inputs) for weights in said):
        return None
    same = len(taken.weights_) == len(said) and all(
        any(w.shape == r.shape and torch.allclose(w.to(r.dtype), r, equal_nan=True) for r in said)
        for w in taken.weights_
    )
    return "softmax" if same else "reading"


class _Taken(Visitor):
    def __init__(self) -> None:
        self.weights_: list[Tensor] = []

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        self.weights_.append(weights.detach())


def _over_tokens(weights: Tensor, inputs: Inputs) -> bool:
    """Whether rows and columns are the tokens of a text: banded attention has windows there."""
    if weights.ndim != 4:
        return False
    if "input_ids" not in inputs:
        return True
    read = inputs["input_ids"].shape[1]
    written = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    return tuple(weights.shape[-2:]) in {(read, read), (written, written), (written, read)}


@contextmanager
def _visiting_reported(model: nn.Module, visitor: Visitor) -> Iterator[list[str]]:
    """`visiting` for models that can only be read: the visitor comes after the pass."""
    seen: list[str] = []

    def ask(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def offer(_: nn.Module, __: Any, output: Any) -> None:
        for index, weights in enumerate(reported(output)):
            name = f"attentions.{index}"
            seen.append(name)
            if visitor.weights(Call(index, name), weights) is not None:
                raise InputError(
                    f"expected a model whose attention can be replaced; {type(model).__name__} only "
                    "reports it; `heedmap support` lists what can be audited"
                )

    hooks = [
        model.register_forward_pre_hook(ask, with_kwargs=True),
        model.register_forward_hook(offer),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
