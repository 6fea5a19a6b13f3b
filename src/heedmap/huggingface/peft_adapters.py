"""Read a PEFT adapter of a sequence classifier, as `PeftModel.save_pretrained` writes it.

Its folder holds `adapter_config.json`, which names the base model, and `adapter_model.safetensors`: small
matrices that change the base model's weights, and whole weights that take the place of the base model's own,
above all those of the classification head (`modules_to_save`).
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PreTrainedConfig

from heedmap.errors import InputError, check_installed
from heedmap.huggingface.checkpoints import (
    INDEX,
    PEFT_CONFIG,
    WEIGHTS,
    Place,
    check_class_numbers,
    check_values,
    json_object,
    model_file,
    unmerged_peft,
)
from heedmap.huggingface.refusals import first_line

PEFT_WEIGHTS, PEFT_PICKLE = "adapter_model.safetensors", "adapter_model.bin"
TASK = "SEQ_CLS"
MERGEABLE = ("LORA", "IA3", "LOHA", "LOKR")
_PREFIX = "base_model.model."
_OUTPUTS = ("id2label", "label2id", "problem_type")
_NOT_WEIGHTS = (
    "base_model_name_or_path",
    "revision",
    "inference_mode",
    "auto_mapping",
    "peft_version",
)
_MANY_OUTPUTS = 7919  # a prime, which is no other size of a model


@dataclass(frozen=True)
class Adapter:
    """An adapter: where it lies, what its configuration says, and its tensors by their names there."""

    place: Place
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    @property
    def kind(self) -> str:
        """Return the method, such as LORA."""
        return str(self.config["peft_type"])

    @property
    def base(self) -> str:
        """Return the name of the base model."""
        return str(self.config["base_model_name_or_path"])

    @property
    def whole_weights(self) -> frozenset[str]:
        """Return the names of weights that could take the place of the base model's own."""
        return frozenset(name.removeprefix(_PREFIX) for name in self.tensors)

    @property
    def has_tokenizer(self) -> bool:
        """Return whether a tokenizer lies beside the adapter."""
        names = ("tokenizer.json", "tokenizer_config.json")
        return any(model_file(self.place, name) is not None for name in names)

    def outputs(self) -> dict[str, Any]:
        """Return what a config.json beside the adapter says of the outputs; empty if there is none.

        Raises:
            InputError: it gives no name to each output's number.
        """
        config = json_object(self.place, "config.json")
        check_values(config, self.place.what)
        check_class_numbers(self.place)
        return {name: config[name] for name in _OUTPUTS if config.get(name) is not None}

    def declare_outputs(self, config: PreTrainedConfig) -> None:
        """Give the base model's configuration the outputs of the head that was saved with the adapter.

        Their names are those of a config.json beside the adapter. Else they are the base model's, or the ones
        that transformers makes up if it has another number of outputs.
        """
        count = self._output_count(config)
        if count is not None and count != config.num_labels:
            config.num_labels = count
        written = self.outputs()
        if "id2label" in written:
            config.id2label = {int(number): name for number, name in written["id2label"].items()}
            config.label2id = {name: number for number, name in config.id2label.items()}
        if "problem_type" in written:
            config.problem_type = written["problem_type"]

    def _output_count(self, config: PreTrainedConfig) -> int | None:
        """Count the outputs of the saved head; None if it has none that depends on them."""
        widened = deepcopy(config)
        widened.num_labels = _MANY_OUTPUTS
        with torch.device("meta"):
            model = AutoModelForSequenceClassification.from_config(widened)  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters():
            saved = self.tensors.get(f"{_PREFIX}{name}")
            if saved is not None and parameter.shape[:1] == (_MANY_OUTPUTS,) and saved.ndim:
                return len(saved)
        return None

    def weights_settings(self) -> list[str]:
        """Return what the adapter's weights mean, for a hash: its configuration without places and versions."""
        values = {name: x for name, x in self.config.items() if name not in _NOT_WEIGHTS}
        return [json.dumps(values, sort_keys=True)]


def adapter_at(place: Place) -> Adapter | None:
    """Read the adapter at a place; None if there is none.

    Raises:
        InputError: a whole model beside it; one of another task, or of a method that is not merged; no base
            model named; weights that are missing, pickled or damaged; peft is not installed.
        OSError: the Hub cannot be reached.
    """
    if model_file(place, PEFT_CONFIG) is None:
        return None
    config = json_object(place, PEFT_CONFIG)
    if any(model_file(place, name) is not None for name in (WEIGHTS, INDEX)):
        raise unmerged_peft(place.what)
    if config.get("task_type") != TASK:
        raise InputError(
            f"expected an adapter of a sequence classifier ({TASK}) in {place.what}; as task_type its "
            f"{PEFT_CONFIG} has {config.get('task_type')!r:.60}; choose an adapter of a classifier of texts"
        )
    _check_method(config, place)
    _check_base(config, place)
    check_installed("peft", "peft", f"{place.source}: an adapter")
    return Adapter(place, config, _tensors(place))


def _check_method(config: Mapping[str, Any], place: Place) -> None:
    if config.get("peft_type") not in MERGEABLE:
        raise InputError(
            f"expected an adapter of {', '.join(MERGEABLE)} in {place.what}, which can be merged into its base "
            f"model; as peft_type its {PEFT_CONFIG} has {config.get('peft_type')!r:.60}; choose another one"
        )
    if config.get("megatron_config") is not None:
        raise InputError(
            f"expected an adapter of a model of transformers in {place.what}; its {PEFT_CONFIG} has a "
            "megatron_config, with which peft imports other code; choose another one"
        )


def _check_base(config: Mapping[str, Any], place: Place) -> None:
    name, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(name, str) or not name:
        raise InputError(
            f"expected a base model as base_model_name_or_path in the {PEFT_CONFIG} of {place.what}, got "
            f"{name!r:.60}; write its folder or its name on the Hub there"
        )
    if revision not in (None, "", "main"):
        raise InputError(
            f"expected the main revision of the base model in the {PEFT_CONFIG} of {place.what}, got "
            f"{revision!r:.60}; download that revision, write its folder as base_model_name_or_path and remove "
            "revision"
        )


def _tensors(place: Place) -> dict[str, Tensor]:
    path = model_file(place, PEFT_WEIGHTS)
    if path is None and model_file(place, PEFT_PICKLE) is not None:
        raise InputError(
            f"expected {PEFT_WEIGHTS} in {place.what}; its weights are pickled ({PEFT_PICKLE}), which can run "
            "anything when read; save the adapter anew with peft's `save_pretrained`"
        )
    if path is None:
        raise InputError(
            f"expected {PEFT_WEIGHTS} in {place.what}; there is none; save the adapter with peft's "
            "`save_pretrained`"
        )
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"expected readable weights in {place.what}; {PEFT_WEIGHTS} is damaged ({first_line(error)}); copy "
            "or download it again"
        ) from error
    if integers := [name for name, x in tensors.items() if not x.is_floating_point()]:
        raise InputError(
            f"expected weights of floating point in {place.what}; {integers[0]} in {PEFT_WEIGHTS} has integers "
            "or truth values; save the adapter anew, not quantised"
        )
    return tensors


@contextmanager
def base_of(adapter: Adapter | None) -> Iterator[None]:
    """Say in every refusal within the block that the model is the base model of an adapter, if it is."""
    try:
        yield
    except InputError as error:
        if adapter is None:
            raise
        raise InputError(
            f"{error} (it is the base model that {PEFT_CONFIG} names in {adapter.place.what})"
        ) from error
