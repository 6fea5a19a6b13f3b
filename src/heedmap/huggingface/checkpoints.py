"""Check the files of a checkpoint before transformers loads any of them.

An index or a configuration may name any file as weights, and transformers unpickles what does not end in
.safetensors. It drops weights that the configuration has no place for, and ignores an adapter that it cannot
load. These cases are refused here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.modules.module import register_module_buffer_registration_hook as on_buffer
from torch.nn.modules.module import register_module_parameter_registration_hook as on_parameter
from transformers.utils.hub import cached_file

from heedmap.data.clones import confine, plain
from heedmap.errors import InputError
from heedmap.huggingface.class_names import check_numbers

WEIGHTS, INDEX, PEFT_CONFIG = (
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_config.json",
)
MOST = 100_000  # layers or classes: transformers makes lists of them before it knows the weights
_COUNTS = re.compile(
    r"(num|n|encoder|decoder|hidden)_(\w+_)?(layers?|blocks|groups)|block_(sizes|repeats)"
    r"|num_(labels|classes)"
)
# Numbers; a parameter counts as some at least, for what Python needs for it.
SPARE, OF_ANY = 10**8, 10**4


class Place(NamedTuple):
    """Where to look for a model: a folder, or a name on the Hub."""

    source: str
    local: bool

    @property
    def what(self) -> str:
        """Return the place as messages name it."""
        return f"the folder {self.source}" if self.local else f"{self.source} on the Hub"


def check_config(place: Place) -> None:
    """Check the files beside the weights, before the configuration is loaded.

    Raises:
        InputError: an adapter that is not merged; a configuration that is not a JSON object, that names no
            classes or no dtype where it should, or with more layers or classes than any.
        OSError: the Hub cannot be reached.
    """
    if model_file(place, PEFT_CONFIG) is not None:
        raise unmerged_peft(place.what)
    config = json_object(place, "config.json")
    check_values(config, place.what)
    for name, count in counts(config, _COUNTS):
        if count > MOST:
            raise InputError(
                f"expected up to {MOST} layers or classes in {place.what}; config.json says "
                f"{name} = {count:.3g}; bring back the config.json of these weights"
            )


def unmerged_peft(model_name: str) -> InputError:
    """Return the refusal of an adapter that is not merged into its model."""
    return InputError(
        f"expected a whole model in {model_name}; it holds an adapter ({PEFT_CONFIG}), which would be left "
        "out; merge it into its model (peft: merge_and_unload) and save that"
    )


def check_values(config: Mapping[str, Any], model_name: str) -> None:
    """Check the values of a config.json with which transformers would stop without naming them.

    Raises:
        InputError: names of outputs without numbers, or an unknown dtype.
    """
    names, dtype = config.get("id2label"), config.get("dtype")
    numbered = isinstance(names, dict) and all(re.fullmatch(r"-?\d+", key) for key in names)
    if names is not None and not numbered:
        raise InputError(
            f"expected as id2label in the config.json of {model_name} a name for each output's number, such as "
            f'{{"0": "negative", "1": "positive"}}, got {names!r:.60}; correct it'
        )
    named = isinstance(dtype, str) and isinstance(getattr(torch, dtype, None), torch.dtype)
    if dtype is not None and not named and not isinstance(dtype, dict):
        raise InputError(
            f"expected as dtype in the config.json of {model_name} a type of torch, such as float32, got "
            f"{dtype!r:.60}; correct it, or remove it"
        )


def check_class_numbers(place: Place) -> None:
    """Check the numbers of the outputs that the classes' names are of.

    Raises:
        InputError: they are not 0 to n - 1, or there are names for another number of outputs.
        OSError: the Hub cannot be reached.
    """
    config = json_object(place, "config.json")
    names = config.get("id2label")
    if isinstance(names, dict):
        check_numbers(map(str, names), place.what)
        count = config.get("num_labels")
        if isinstance(count, int) and count != len(names):
            raise InputError(
                f"expected as many class names as outputs in {place.what}; its config.json has {len(names)} "
                f"names (id2label) for {count} outputs (num_labels); correct it"
            )


def config_of(place: Place) -> dict[str, Any]:
    """Read a model's config.json as it is written."""
    return json_object(place, "config.json")


def asked_attention(place: Place) -> str | None:
    """Return the attention implementation that config.json asks for, other than those that are always there."""
    config = config_of(place)
    for key in ("attn_implementation", "_attn_implementation"):
        name = config.get(key)
        if isinstance(name, str) and name not in ("eager", "sdpa"):
            return name
    return None


@contextmanager
def checked_weights(place: Place) -> Iterator[set[str]]:
    """Yield which tensors in the weight files are not of floating point; none where a file is damaged.

    Within the block a model of more numbers than the files have bytes, and `SPARE`, is refused as it is made:
    transformers makes it without memory first (on torch's meta device), and tied weights several times.

    Raises:
        InputError: files that are not safetensors or lie outside the model's folder; such a model.
        OSError: the Hub cannot be reached.
    """
    kinds: dict[str, str] = {}
    size = 0
    try:
        for path in _weight_files(place, json_object(place, "config.json")):
            size += path.stat().st_size
            with safe_open(path, "pt") as file:
                kinds |= {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, FileNotFoundError):
        kinds = {}  # transformers reports the damage
    allowance = size + SPARE

    def count(owner: nn.Module, name: str, part: Tensor | None) -> None:
        nonlocal allowance
        if part is None or getattr(owner, name, None) is not None:  # whose place weights take
            return
        allowance -= max(part.numel(), OF_ANY)
        if kinds and allowance < 0:
            raise InputError(
                f"expected a model about as large as the weights in {place.what}, {size:,} bytes; "
                f"config.json says more, with {' × '.join(map(str, part.shape))} in {type(owner).__name__}; "
                "bring back the config.json of these weights"
            )

    with on_parameter(count), on_buffer(count):
        yield {name for name, kind in kinds.items() if not kind.startswith(("F", "BF"))}


def dropped_layers(unexpected: Iterable[str], model_names: Iterable[str]) -> list[str]:
    """Return the weights of missing layers: names that differ from the model's own in the layer number only."""

    def anywhere(name: str) -> str:
        return re.sub(r"(?<=\.)\d+(?=\.)", "*", f".{name}")

    # A checkpoint of the body alone lacks the prefix that the classifier puts before its names.
    shapes = {anywhere(name) for name in model_names}
    shapes |= {"." + shape.split(".", 2)[2] for shape in shapes if shape.count(".") > 1}
    return [name for name in unexpected if "*" in anywhere(name) and anywhere(name) in shapes]


def model_file(place: Place, name: str) -> Path | None:
    """Return the path of a file of the model, downloaded from the Hub if need be; None if there is none.

    Raises:
        OSError: the Hub cannot be reached.
    """
    if place.local:
        path = Path(place.source) / name
        return path if path.is_file() else None
    cached = cached_file(place.source, name, _raise_exceptions_for_missing_entries=False)
    return None if cached is None else Path(cached)


def json_object(place: Place, name: str) -> dict[str, Any]:
    """Read a JSON object from the model's files; empty if there is no such file.

    Raises:
        InputError: it is damaged, or no object.
        OSError: the Hub cannot be reached.
    """
    path = model_file(place, name)
    try:
        content = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"expected a readable {name} in {place.what}; it is no JSON; save or download the model again"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"expected a JSON object as {name} in {place.what}; save the model again")
    return content


def _weight_files(place: Place, config: Mapping[str, Any]) -> list[Path]:
    """Return the weight files that transformers would read, found in its order."""
    named = config.get("transformers_weights")
    if named is None:
        if (single := model_file(place, WEIGHTS)) is not None:
            return [single]
        named = INDEX
    if not str(named).endswith(".index.json"):
        return [_weight_file(place, "config.json", named)]
    if model_file(place, str(plain(Path(place.source), named))) is None:
        return []
    shards = json_object(place, named).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise InputError(
            f"expected the weights' files as weight_map in {named} of {place.what}; save the model again"
        )
    return [_weight_file(place, named, name) for name in dict.fromkeys(map(str, shards.values()))]


def _weight_file(place: Place, naming_file: str, name: object) -> Path:
    """Return the path of a weight file that `naming_file` names."""
    file = str(plain(Path(place.source), name))
    if not file.endswith(".safetensors"):
        raise InputError(
            f"expected .safetensors weights in {place.what}; {naming_file} names {file:.80}, which may be a "
            "pickle and run anything when read; save the model anew with `save_pretrained`"
        )
    if (path := model_file(place, file)) is None:
        raise InputError(
            f"expected the weights that {naming_file} names in {place.what}; {file:.80} is not there; copy or "
            "download the model again"
        )
    if place.local:
        confine(Path(place.source), path)
    return path


def counts(config: Mapping[Any, Any], names: re.Pattern[str]) -> list[tuple[str, int | float]]:
    """Return the numbers of these names in a configuration and its sub-configurations."""
    result: list[tuple[str, int | float]] = []
    for name, value in config.items():
        if isinstance(value, dict):
            result += counts(value, names)
        elif names.fullmatch(str(name)):
            numbers = value if isinstance(value, list | tuple) else [value]
            result += [(name, number) for number in numbers if isinstance(number, int | float)]
    return result
