"""Load trained classifiers and their tokenizers, from a folder or by a name on the Hugging Face Hub.

Weights are read from safetensors only: a pickle can run arbitrary code. For the same reason code that
comes with a model is never run. A folder is read without the network.
"""

import warnings
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from heedmap.errors import InputError
from heedmap.huggingface.checkpoints import (
    Place,
    asked_attention,
    check_class_numbers,
    checked_weights,
    config_of,
    dropped_layers,
)
from heedmap.huggingface.class_names import contradiction
from heedmap.huggingface.classification_head import untrained as untrained_head
from heedmap.huggingface.configurations import (
    FoundModel,
    check_classes,
    configuration,
    find_model,
    find_place,
    refuse_word_classes,
)
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.padding import declare_in_batches
from heedmap.huggingface.peft_adapters import base_of
from heedmap.huggingface.peft_merging import merged
from heedmap.huggingface.placement import device_named, placed
from heedmap.huggingface.refusals import first_line, no_weights
from heedmap.huggingface.targets import answer_at_targets
from heedmap.huggingface.tasks import Task
from heedmap.huggingface.tokenization import agree_on_padding, check_padding, tokenizer_at
from heedmap.terminal.output import remark

DTYPES = ("float32", "float16", "bfloat16")
_Mismatch = tuple[str, Sequence[int], Sequence[int]]  # a weight's name, its shape, and the model's


def load_classifier(
    source: object, dtype: str = "float32", device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a trained classifier, frozen and in eval mode, and its tokenizer. It gives all its outputs.

    Neither is changed: texts alone are read as transformers itself reads them. A model whose configuration
    names no padding token can read batches too (see `heedmap.huggingface.padding`). An adapter is merged into
    its base model in memory (see `heedmap.huggingface.peft_merging`). A model that answers at each position
    gives what it answers at one (see `heedmap.huggingface.targets`).

    Args:
        source: A folder as `save_pretrained` writes it, of a model or of an adapter, or a name on the Hub
            (HF_HUB_OFFLINE=1: its cache); what is no string and no path is refused.
        dtype: float32, float16 or bfloat16.
        device: cpu, cuda or cuda:N; None: the CPU, and no line says so.

    Raises:
        InputError: No such device, folder or name; no model in it; no trained classification head; no fast
            tokenizer; weights damaged or pickled; an adapter that does not fit
            its base model, or answers differently when it is merged.
    """
    _check_available(dtype, device)
    found_model = find_model(source)
    place, adapter, task = found_model.place, found_model.adapter, found_model.task
    found_model.check_head()
    remedy = f"fine-tune it first: `heedmap train --model {place.source}`"
    model = _trained(found_model, dtype, task.auto_class, "classifier", remedy)
    if task is not Task.MASKS:
        check_classes(place, model.config)
    if (said := contradiction(model.config)) is not None:
        remark(f"{place.source}: {said}")
    tokenizer = tokenizer_at(adapter.place if adapter and adapter.has_tokenizer else place)
    check_padding(place, model, tokenizer)
    if adapter is not None:
        model = merged(adapter, model, tokenizer)
    declare_in_batches(model)
    if task.is_asked_of_words:
        answer_at_targets(model, of_masks=task is Task.MASKS)
    return placed(frozen(model), device), tokenizer


def load_for_training(
    source: object, classes: list[str]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model with a head for `classes`, in train mode, and its tokenizer.

    A missing head, or one of another size, is drawn from torch's global random state: seed it inside
    `torch.random.fork_rng`. A head of the right size is kept and trained further.

    Raises:
        InputError: As `load_classifier`, but a head may be missing; fewer than two classes; a token classifier.
    """
    if len(classes) < 2:
        raise InputError(f"expected at least two classes to train on; got {classes}")
    refuse_word_classes(source)
    place = find_place(source)
    config = configuration(place)
    config.num_labels = len(classes)
    config.id2label = dict(enumerate(classes))
    config.label2id = {name: index for index, name in enumerate(classes)}
    config.problem_type = "single_label_classification"
    model, info = _weights(place, config, "float32", Task.TEXTS.auto_class)
    _check_body(place, model, info)
    tokenizer = tokenizer_at(place)
    agree_on_padding(place, model, tokenizer)
    return model.train(), tokenizer


def load_trained(
    source: object, dtype: str, device: str | None, auto: Any, kind: str
) -> tuple[PreTrainedModel, Place]:
    """Load a trained model by one of transformers' classes `auto`, frozen and in eval mode, and where it lies.

    Raises:
        InputError: as `load_classifier`, with `kind` for what was expected; an adapter.
    """
    _check_available(dtype, device)
    place = find_place(source)
    found_model = FoundModel(place, configuration(place, auto))
    model = _trained(found_model, dtype, auto, kind, "train it first")
    check_classes(place, model.config)
    return placed(frozen(model), device), place


def frozen(model: PreTrainedModel) -> PreTrainedModel:
    """Put the model in eval mode, turn off its gradients, and return it."""
    nn.Module.eval(model)
    return model.requires_grad_(False)


def _check_available(dtype: str, device: str | None) -> None:
    """Refuse a number format or a device that is not there, before any weights are read."""
    if dtype not in DTYPES:
        raise InputError(f"expected a dtype of {', '.join(DTYPES)}; got {dtype!r}")
    if device is not None:
        device_named(device)


def _trained(
    found_model: FoundModel, dtype: str, auto: Any, kind: str, remedy: str
) -> PreTrainedModel:
    """Load a model of which every weight is in the checkpoint or in the adapter that is around it."""
    place, adapter = found_model.place, found_model.adapter
    check_class_numbers(place)
    brought = frozenset[str]() if adapter is None else adapter.whole_weights
    # A head that the adapter brings is drawn first where the base model has none.
    with base_of(adapter), torch.random.fork_rng(devices=[]):
        model, info = _weights(place, found_model.config, dtype, auto)
        _check_body(place, model, info)
        mismatched = [
            mismatch for mismatch in info["mismatched_keys"] if mismatch[0] not in brought
        ]
        _check_shapes(place, model, mismatched)
    if untrained := set(info["missing_keys"]) - brought:
        body = f"{model.base_model_prefix}."
        # The head's first.
        names = sorted(untrained, key=lambda name: (name.startswith(body), name))
        raise InputError(
            f"expected a trained {kind} in {place.what}; {untrained_head(config_of(place))}{_some(names)} of "
            f"{type(model).__name__} {'is' if len(names) == 1 else 'are'} not in the checkpoint"
            f"{'' if adapter is None else f' or the adapter in {adapter.place.what}'}; {remedy}"
        )
    return model


def _weights(
    place: Place, config: PreTrainedConfig, dtype: str, auto: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    with quiet():
        load = partial(
            auto.from_pretrained,
            place.source,
            config=config,
            dtype=getattr(torch, dtype),
            local_files_only=place.local,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused with their shapes, or drawn anew for training
        )
        try:
            with checked_weights(place) as not_floats:
                try:
                    model, info = load()
                except (ImportError, ValueError) as error:
                    if isinstance(error, InputError) or not (attention := asked_attention(place)):
                        raise
                    warnings.warn(
                        f"{place.source}: its config.json asks for {attention}, which cannot be used here "
                        f"({first_line(error)}); it is read with eager attention",
                        stacklevel=4,
                    )
                    try:
                        model, info = load(attn_implementation="eager")
                    except Exception as second:
                        raise InputError(
                            f"{no_weights(place, second)}; its config.json also asks for {attention}, which is "
                            "not installed here: remove attn_implementation from it"
                        ) from second
        except InputError:
            raise
        except Exception as error:
            raise no_weights(place, error) from error
    _check_floats(place, model, not_floats)
    if dropped := dropped_layers(info["unexpected_keys"], model.state_dict()):
        raise InputError(
            f"expected a config.json with the layers of the weights in {place.what}; it has no place for "
            f"{len(dropped)} of them ({_some(sorted(dropped))}); bring back the config.json of these weights, "
            "or save the shorter model with `save_pretrained`"
        )
    return model, info


def _check_floats(place: Place, model: PreTrainedModel, not_floats: Collection[str]) -> None:
    """Refuse integers or truth values as weights: transformers would read them as the floats of that value."""
    parameters = {name for name, _ in model.named_parameters()}
    body = f"{model.base_model_prefix}."
    # A checkpoint of the body alone lacks the prefix.
    if quantised := sorted(name for name in not_floats if parameters & {name, f"{body}{name}"}):
        raise InputError(
            f"expected weights of floating point in {place.what}; those of {_some(quantised)} are integers or "
            "truth values, as a quantisation leaves them; choose the model before it was quantised, or save it "
            "dequantised"
        )


def _check_shapes(place: Place, model: PreTrainedModel, wrong: Iterable[_Mismatch]) -> None:
    """Refuse weights of other shapes than the configuration says, with both."""
    if not (pairs := sorted(wrong, key=lambda mismatch: (-len(mismatch[1]), mismatch[0]))):
        return
    name, weight_shape, model_shape = pairs[0]
    classes = model.config.num_labels
    if not _of_body(model, name) and (*weight_shape[1:], model_shape[0]) == (
        *model_shape[1:],
        classes,
    ):
        said = f"it has {classes} name{'s' * (classes != 1)} (id2label)"
        if config_of(place).get("id2label") is None:
            said = f"it names none (id2label), which stands for {classes}"
        raise InputError(
            f"expected in the config.json of {place.what} a class name for each output; {said}, and the "
            f"weights ({name}) have {weight_shape[0]} outputs; correct id2label"
        )
    others_differ = f" ({len(pairs) - 1} more differ)" if len(pairs) > 1 else ""
    raise InputError(
        f"expected weights of the shapes that config.json says in {place.what}; {name} is "
        f"{_shape(weight_shape)}, not {_shape(model_shape)}{others_differ}; bring back the config.json "
        "of these weights"
    )


def _shape(sizes: Iterable[int]) -> str:
    return " × ".join(map(str, sizes))


def _of_body(model: PreTrainedModel, name: str) -> bool:
    """Return whether every checkpoint needs this weight; a pooler belongs to the head."""
    return name.startswith(f"{model.base_model_prefix}.") and "pooler" not in name


def _check_body(place: Place, model: PreTrainedModel, info: dict[str, Any]) -> None:
    _check_shapes(
        place,
        model,
        [mismatch for mismatch in info["mismatched_keys"] if _of_body(model, mismatch[0])],
    )
    if lost := [name for name in sorted(info["missing_keys"]) if _of_body(model, name)]:
        raise InputError(
            f"expected the weights of a {type(model).__name__} in {place.what}; {_some(lost)} not in it; "
            "is the checkpoint of another architecture than its config.json says?"
        )


def _some(names: list[str]) -> str:
    shortened = ", ".join(names[:3])
    return shortened if len(names) <= 3 else f"{shortened} and {len(names) - 3} more"
