"""Attach to a model's attention: by the interface, by its softmax, or only to the weights that it reports.

Support is never looked up by name: a model that does not know the interface ignores it silently, or fails
in the middle of a pass. So the calls of a small pass are counted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedConfig, PreTrainedModel

from heedmap.errors import InputError
from heedmap.huggingface.attention_hook import NAME, Call, Visitor, visiting
from heedmap.huggingface.embedding import look_up_with_norm
from heedmap.huggingface.interception import visiting_softmax
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import WeightRecorder, answer
from heedmap.huggingface.padding import of_text_model
from heedmap.huggingface.refusals import REMEDIES
from heedmap.models import kernels

Kind = Literal["interface", "softmax", "reading"]
Inputs = Mapping[str, Tensor]
_REPORTED = (
    "attentions", "encoder_attentions", "decoder_attentions", "cross_attentions",
)  # fmt: skip


@dataclass(frozen=True)
class ModelAdapter:
    """A model whose attention is attached to.

    `kind` is the way: "interface" and "softmax" read and replace the weights, "reading" only reads
    them, after the pass. Only "interface" has queries, keys and values.
    """

    model: PreTrainedModel
    kind: Kind

    def visiting(self, visitor: Visitor) -> AbstractContextManager[list[str]]:
        """Let `visitor` see every attention call of the model within the block.

        Yields the names of the calling layers. A "reading" adapter raises InputError if the visitor
        returns other weights.
        """
        ways: dict[Kind, Callable[..., AbstractContextManager[list[str]]]] = {
            "interface": visiting,
            "softmax": visiting_softmax,
            "reading": _visiting_reported,
        }
        return ways[self.kind](self.model, visitor)

    def detach(self) -> None:
        """Detach from the model (see the function `detach`)."""
        detach(self.model)


def attach(model: PreTrainedModel, inputs: Inputs | None = None) -> ModelAdapter:
    """Attach to `model` in the best way that it allows; its mode and its weights stay as they are.

    Args:
        model: On any device.
        inputs: What to try the model on, as its forward takes it; by default a few made-up tokens.

    Raises:
        InputError: No attention weights of tokens over tokens can be read.
    """
    # Else a second `attach` would take our function for the implementation that `detach` has to restore.
    detach(model)
    inputs = example_inputs(model) if inputs is None else inputs
    settings = _Settings.saved_from(model)
    with quiet(), evaluating(model):
        _attached[model] = settings
        settings.hooks.extend(_multiplying_fast(model))
        try:
            kind = _find_access(model, inputs)
            if kind is not None and "input_ids" in inputs:
                with suppress(
                    InputError
                ):  # embeddings that cannot be replaced are refused by `Probe`
                    settings.hooks.extend(look_up_with_norm(model, inputs, answer))
        except BaseException:
            detach(model)
            raise
    if kind is None:
        detach(model)
        attention = getattr(model.config, "attention_type", "")
        remedy = REMEDIES.get(attention, "`heedmap support` lists what can be audited")
        raise InputError(
            f"expected attention weights of tokens over tokens; {type(model).__name__} has no such layer "
            f"or hides it from transformers' interface; {remedy}"
        )
    return ModelAdapter(model, kind)


def detach(model: PreTrainedModel) -> None:
    """Restore the attention implementation that the model had before `attach`, if it was attached."""
    settings = _attached.pop(model, None)
    if settings is not None:
        settings.restore()


def is_attached(model: PreTrainedModel) -> bool:
    """Return whether the model is between `attach` and `detach`."""
    return model in _attached


@contextmanager
def eagerly(model: PreTrainedModel) -> Iterator[None]:
    """Use the model's own eager attention within the block; not while it is attached."""
    settings = _Settings.saved_from(model)
    try:
        use_eager(model)
        yield
    finally:
        settings.restore()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Use eval mode within the block, and restore every module's mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.train(False)
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def use_eager(model: PreTrainedModel) -> None:
    """Set the model's own eager attention, for good or until `detach`."""
    # Fused kernels (sdpa, flash) never form the weights, so that none could be reported or compared.
    model.config._attn_implementation = "eager"
    for config in _configs(model):
        config._attn_implementation = "eager"


def example_inputs(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return two rows of eight made-up tokens that end as texts do, the second padded on the right."""
    config = model.config.get_text_config()
    size = int(getattr(config, "vocab_size", 2))
    ids = torch.arange(16).reshape(2, 8) % max(size - 4, 1) + min(3, size - 1)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    pad, end = (of_text_model(config, name) for name in ("pad_token_id", "eos_token_id"))
    end = end[0] if isinstance(end, list) else end
    if isinstance(end, int) and end < size:  # BART classifies by its last end-of-text token
        ids[0, -1] = ids[1, 5] = end
    if isinstance(pad, int) and pad < size:
        ids[1, 6:] = pad
    elif pad is None:
        ids, mask = ids[:1], mask[:1]  # a decoder without padding classifies one row at a time
    inputs = {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}
    if model.config.is_encoder_decoder and not hasattr(model, "classification_head"):
        inputs["decoder_input_ids"] = ids[:, :5].to(model.device)
    return inputs


def with_weights(model: PreTrainedModel, inputs: Inputs) -> Any:
    """Return the model's output with the weights that it reports; without them if it knows no such option."""
    try:
        return model(**inputs, output_attentions=True)
    except TypeError:
        return model(**inputs)


def reported(output: Any) -> list[Float[Tensor, "B H Q N"]]:
    """Return the attention weights that an output reports, layer by layer; empty if it reports none."""
    weights: list[Tensor] = []
    for name in _REPORTED:
        weights += [w for w in getattr(output, name, None) or () if isinstance(w, Tensor)]
    # SqueezeBERT reports its scores before the softmax.
    return [w.softmax(-1) if bool((w < 0).any()) else w for w in weights]


@dataclass(frozen=True)
class _Settings:
    """The settings of a model's configurations before it was attached, and the hooks that it has been given.

    Holds the configurations and not the model, which could not be freed otherwise.
    """

    settings: list[tuple[PreTrainedConfig, str | None, bool]]
    hooks: list[RemovableHandle] = field(default_factory=list)

    @classmethod
    def saved_from(cls, model: PreTrainedModel) -> "_Settings":
        saved = cls(
            [(c, c._attn_implementation, bool(c.output_attentions)) for c in _configs(model)]
        )
        for config, _, always in saved.settings:
            if always:  # a configuration that asks for weights insists on eager
                config.output_attentions = False
        return saved

    def restore(self) -> None:
        for hook in self.hooks:
            hook.remove()
        # Parents first: setting one sets its parts as well.
        for config, implementation, _ in self.settings:
            config._attn_implementation = implementation
        for config, _, always in self.settings:
            if always:
                with suppress(ValueError):
                    config.output_attentions = True


def _multiplying_fast(model: nn.Module) -> list[RemovableHandle]:
    """Have every pass of a model multiply by `FastProducts` where that gains; removing the hooks ends it."""
    if kernels.onednn is None:
        return []
    mode: AbstractContextManager[Any] = kernels.FastProducts()

    def enter(*_: Any) -> None:
        mode.__enter__()

    def leave(*_: Any) -> None:
        mode.__exit__(None, None, None)

    # The first to be called, so that no other hook's error can keep it from being entered before it is left.
    return [
        model.register_forward_pre_hook(enter, prepend=True),
        model.register_forward_hook(leave, always_call=True),
    ]


_attached: "WeakKeyDictionary[PreTrainedModel, _Settings]" = WeakKeyDictionary()


def _configs(model: nn.Module) -> list[PreTrainedConfig]:
    """Return every configuration in the model, parents before their parts."""
    configs: dict[int, PreTrainedConfig] = {}

    def add(config: PreTrainedConfig) -> None:
        configs.setdefault(id(config), config)
        for name in config.sub_configs:
            part = getattr(config, name, None)
            if isinstance(part, PreTrainedConfig):
                add(part)

    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            add(module.config)
    return list(configs.values())


def _find_access(model: PreTrainedModel, inputs: Inputs) -> Kind | None:
    if model._can_set_attn_implementation():
        # Models that refuse the name may raise anything at any point of the pass.
        with suppress(Exception), torch.no_grad():
            model.set_attn_implementation(NAME)
            interface = WeightRecorder()
            with visiting(model, interface):
                model(**inputs)
            if interface.taken:
                tokens = all(_over_tokens(weights, inputs) for weights in interface.taken)
                return "interface" if tokens else None
    use_eager(model)
    softmaxes = WeightRecorder()
    with torch.no_grad(), visiting_softmax(model, softmaxes):
        reports = reported(with_weights(model, inputs))
    if not reports or not all(_over_tokens(weights, inputs) for weights in reports):
        return None
    # Not every 4-dimensional softmax is attention: those that are must be the weights that the model reports.
    is_reported = len(softmaxes.taken) == len(reports) and all(
        any(
            w.shape == r.shape and torch.allclose(w.to(r.dtype), r, equal_nan=True) for r in reports
        )
        for w in softmaxes.taken
    )
    return "softmax" if is_reported else "reading"


def _over_tokens(weights: Tensor, inputs: Inputs) -> bool:
    """Return whether rows and columns are tokens: in banded attention they are windows."""
    if weights.ndim != 4:
        return False
    if "input_ids" not in inputs:
        return True
    source = inputs["input_ids"].shape[1]
    target = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    return tuple(weights.shape[-2:]) in {(source, source), (target, target), (target, source)}


@contextmanager
def _visiting_reported(model: nn.Module, visitor: Visitor) -> Iterator[list[str]]:
    """Do as `visiting` for models that can only be read: call the visitor after the pass."""
    seen: list[str] = []

    def request(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
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
        model.register_forward_pre_hook(request, with_kwargs=True),
        model.register_forward_hook(offer),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
