"""Merge a PEFT adapter into its base model in memory, and check that the answers stay.

With a LoRA adapter (Hu et al. 2021) a layer of weights W computes W·x + s·B·(A·x). Merged, W + s·B·A are its
weights, and the model is one of transformers alone, whose attention is reached as any other's. The two sum in
another order: their logits may differ by rounding, no more.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.errors import InputError
from heedmap.files.identity import weights_hash
from heedmap.files.naming import kind_of
from heedmap.huggingface.as_loaded import accepted
from heedmap.huggingface.limits import UNLIMITED, longest
from heedmap.huggingface.measuring import answer, difference, roundings
from heedmap.huggingface.model_adapter import evaluating
from heedmap.huggingface.peft_adapters import Adapter
from heedmap.huggingface.refusals import first_line
from heedmap.huggingface.sample_texts import sample_texts
from heedmap.terminal.output import remark
from heedmap.terminal.progress import note

_ATTRIBUTE = "heedmap_merged_adapter"


@dataclass(frozen=True)
class Merge:
    """What was merged into a model.

    `gap` is the largest difference of a logit between the merged and the unmerged model, on the verification's
    texts, and `limit` what rounding allows. `weights` is a hash of the base model's and the adapter's weights:
    the merged ones depend on the order in which a machine sums.
    """

    kind: str
    source: str
    base: str
    gap: float
    limit: float
    weights: str

    def __str__(self) -> str:
        return f"the {self.kind} adapter {self.source} was merged into {self.base}"


def merge_of(model: nn.Module) -> Merge | None:
    """Return what was merged into a model; None of a model that was loaded whole."""
    return getattr(model, _ATTRIBUTE, None)


def merged(
    adapter: Adapter, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> PreTrainedModel:
    """Merge an adapter into its base model, which is changed, and note it.

    Raises:
        InputError: the adapter does not fit the model; peft cannot merge it; merged, it answers differently.
    """
    weights, what = _hash(adapter, model), adapter.place.what
    result, gap, limit = _merged_as_unmerged(_applied(adapter, model), tokenizer, what)
    merge = Merge(adapter.kind, adapter.place.source, adapter.base, gap, limit, weights)
    setattr(result, _ATTRIBUTE, merge)
    note(str(merge))
    return result


def is_wrapped(model: nn.Module) -> bool:
    """Return whether peft has wrapped a model with adapters. It is imported then, and not imported here."""
    peft = sys.modules.get("peft")
    return peft is not None and isinstance(model, peft.PeftModel)


def merged_copy(
    wrapped: nn.Module, tokenizer: PreTrainedTokenizerBase, model_name: str
) -> PreTrainedModel:
    """Merge the active adapters of a copy of a PeftModel, and note it. The user's own stays as it is.

    Raises:
        InputError: no model of transformers; peft cannot merge them, or merged it answers differently.
    """
    result, _, _ = _merged_as_unmerged(deepcopy(wrapped), tokenizer, model_name)
    note(f"the adapter of {model_name} was merged into a copy")
    return result


def _merged_as_unmerged(
    wrapped: Any, tokenizer: PreTrainedTokenizerBase, model_name: str
) -> tuple[PreTrainedModel, float, float]:
    """Merge a PeftModel, which is changed. Returns how far its logits move, and how far they may."""
    model = wrapped.get_base_model()
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"expected an adapter of a model of transformers in {model_name}, got one of {kind_of(model)}"
        )
    inputs = _inputs(model, tokenizer)
    unmerged_logits = _logits(wrapped, inputs)
    result = _unloaded(wrapped, model_name)
    gap, limit = _compared(unmerged_logits, _logits(result, inputs), result.dtype)
    if not gap <= limit:
        raise InputError(
            f"expected an adapter that answers the same merged as unmerged in {model_name}; its logits differ "
            f"by {gap:.2g} (at most {limit:.2g}); merge it yourself (peft: merge_and_unload), compare the "
            "answers, and save that"
        )
    return result, gap, limit


def _hash(adapter: Adapter, model: PreTrainedModel) -> str:
    """Hash both models' weights, without those of the base model that the adapter's take the place of."""
    tensors = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if name not in adapter.whole_weights
    }
    tensors |= {f"adapter.{name}": tensor for name, tensor in adapter.tensors.items()}
    return weights_hash(tensors, adapter.weights_settings())


def _applied(adapter: Adapter, model: PreTrainedModel) -> nn.Module:
    """Wrap a model with an adapter as `PeftModel.from_pretrained` does, from tensors that are read already."""
    from peft import PeftConfig, PeftModelForSequenceClassification, set_peft_model_state_dict

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = PeftConfig.from_peft_type(**adapter.config)  # type: ignore[no-untyped-call]
            config.inference_mode = True
            # peft draws the matrices before it is given those that were saved.
            with torch.random.fork_rng(devices=[]):
                wrapped = PeftModelForSequenceClassification(model, config)
            said: Any = set_peft_model_state_dict(wrapped, dict(adapter.tensors))
        except KeyError as error:
            raise InputError(
                f"expected all weights of the adapter in {adapter.place.what}; {_short(error.args[0])} is not "
                "among them; save the adapter anew with peft's `save_pretrained`"
            ) from error
        except (RuntimeError, ValueError, TypeError, AttributeError, ImportError) as error:
            raise _no_fit(adapter, error) from error
    absent = [name for name in said.missing_keys if "default" in name.split(".")]
    if absent or said.unexpected_keys:
        counted = [
            f"{len(names)} {verdict} ({_short(names[0])})"
            for names, verdict in ((absent, "are missing"), (said.unexpected_keys, "have no place"))
            if names
        ]
        raise InputError(
            f"expected the weights of an adapter of {adapter.base} in {adapter.place.what}; of those that "
            f"its adapter_config.json asks for {' and '.join(counted)}; is it of another base model?"
        )
    for warning in caught:
        if issubclass(warning.category, FutureWarning | DeprecationWarning):
            continue  # for developers of peft
        remark(f"{adapter.place.source}: {str(warning.message).splitlines()[0]:.160}")
    return wrapped.eval()


def _no_fit(adapter: Adapter, error: Exception) -> InputError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # torch names the weights below a first line that says only that there is an error.
    line = lines[1] if len(lines) > 1 and lines[0].startswith("Error(s)") else first_line(error)
    return InputError(
        f"expected an adapter of {adapter.base} in {adapter.place.what}; peft stops with "
        f"{type(error).__name__} ({_short(line)}); is it of another base model?"
    )


def _short(name: object) -> str:
    return f"{str(name).removeprefix('base_model.model.'):.160}"


def _unloaded(wrapped: Any, model_name: str) -> PreTrainedModel:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rounding, which is measured
            model: PreTrainedModel = wrapped.merge_and_unload()
    except (AttributeError, NotImplementedError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"expected an adapter that can be merged into its model in {model_name}; peft stops with "
            f"{type(error).__name__} ({first_line(error)}); choose another one"
        ) from error
    return model


def _inputs(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Tensor]]:
    """Return the verification's texts as the model reads them, each alone."""
    texts, _ = sample_texts(model, tokenizer)
    limit = longest(model, tokenizer)
    cut = {"truncation": True, "max_length": limit} if limit < UNLIMITED else {}
    inputs = [
        accepted(model, tokenizer(text, return_tensors="pt", verbose=False, **cut).to(model.device))
        for text in texts.values()
    ]
    tokenizer("", verbose=False)  # a tokenizer keeps the last limit, and would be saved with it
    return inputs


@torch.no_grad()
def _logits(model: nn.Module, inputs: Sequence[Mapping[str, Tensor]]) -> list[Tensor]:
    with evaluating(model):
        return [answer(model(**text)).float().cpu() for text in inputs]


def _compared(
    unmerged_logits: Sequence[Tensor], merged_logits: Sequence[Tensor], dtype: torch.dtype
) -> tuple[float, float]:
    """Return the largest difference of two models' logits, and the largest that rounding explains."""
    gaps = [difference(a, b) for a, b in zip(unmerged_logits, merged_logits, strict=True)]
    sizes = [float(logits.abs().nan_to_num(0.0, 0.0, 0.0).max()) for logits in unmerged_logits]
    limit = roundings(dtype) * torch.finfo(dtype).eps * max([1.0, *sizes])
    return max(gaps, default=0.0), limit
