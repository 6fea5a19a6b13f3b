"""Load trained classifiers and their tokenizers, from a folder or by a name on the Hugging Face Hub.

Weights are read from safetensors only: a pickle can run arbitrary code. For the same reason code that
comes with a model is never run. A folder is read without the network.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from heedmap.data.asked_words import FIRST_AND_SECOND
from heedmap.data.streams import reading
from heedmap.errors import InputError
from heedmap.files.naming import MODEL, check_name, is_there, name_of
from heedmap.huggingface.checkpoints import (
    PEFT_CONFIG,
    asked_attention,
    check_class_numbers,
    check_config,
    check_weights,
    config_of,
    dropped_layers,
)
from heedmap.huggingface.class_names import class_names, contradiction
from heedmap.huggingface.classification_head import check_head
from heedmap.huggingface.classification_head import untrained as untrained_head
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.one_output import (
    OneOutput,
    gives_number,
    is_relevance,
    one_output,
    unit_of,
)
from heedmap.huggingface.padding import declare_in_batches
from heedmap.huggingface.peft_adapters import Adapter, adapter_at, base_of
from heedmap.huggingface.peft_merging import merged
from heedmap.huggingface.placement import device_named, placed
from heedmap.huggingface.refusals import first_line, no_config, no_weights
from heedmap.huggingface.targets import answer_at_targets
from heedmap.huggingface.tasks import Task, task_of
from heedmap.huggingface.tokenization import Place, agree_on_padding, check_padding, tokenizer_at
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
    if device is not None:
        device_named(device)  # what is not there is said before any weights are read
    place, config, adapter = _open(source, dtype)
    task = _task(place, adapter)
    check_head(_written(place, adapter), place.what, of_words=task.is_asked_of_words)
    check_class_numbers(place)
    trained = frozenset[str]() if adapter is None else adapter.whole_weights
    # A head that the adapter brings is drawn first where the base model has none.
    with base_of(adapter), torch.random.fork_rng(devices=[]):
        model, info = _weights(place, config, dtype, task.auto_class)
        _check_body(place, model, info)
        mismatched = [
            mismatch for mismatch in info["mismatched_keys"] if mismatch[0] not in trained
        ]
        _check_shapes(place, model, mismatched)
    body = f"{model.base_model_prefix}."
    if untrained := set(info["missing_keys"]) - trained:
        # The head's first.
        names = sorted(untrained, key=lambda name: (name.startswith(body), name))
        raise InputError(
            f"expected a trained classifier in {place.what}; {untrained_head(config_of(place))}"
            f"{_some(names)} of "
            f"{type(model).__name__} {'is' if len(untrained) == 1 else 'are'} not in the checkpoint"
            f"{'' if adapter is None else f' or the adapter in {adapter.place.what}'}; "
            f"fine-tune it first: `heedmap train --model {place.source}`"
        )
    if task is not Task.MASKS:
        _check_classes(place, model.config)
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


def task_at(source: object) -> Task:
    """Return what a model answers, by its configuration.

    Raises:
        InputError: As `load_classifier`, for what the configuration says.
    """
    place, _, adapter = _open(source, "float32")
    return _task(place, adapter)


def refuse_word_classes(source: object) -> None:
    """Refuse to fine-tune a token classifier, before the texts are read; other faults are said later.

    Raises:
        InputError: it is one.
    """
    try:
        task = task_at(source)
    except InputError:
        return
    if task is Task.WORDS:
        raise InputError(
            f"{source}: expected a model to fine-tune as a classifier of texts, got one of token "
            "classification, which heedmap audits and does not train; train it with transformers, or name "
            "another model"
        )


def outputs_of(
    source: object, label: str | None = None, threshold: float = 0.5, unit: str | None = None
) -> tuple[list[str], OneOutput | None]:
    """Return the names of a classifier's classes in their order, without its weights.

    With the output that is read as no and yes, of a cross-encoder with one output or of several labels. The
    classes of a masked language model are the two words that may be hidden. Of a model that gives a number it
    is one name, the number's `unit`.

    Raises:
        InputError: As `load_classifier`, for what the configuration says.
    """
    place, config, adapter = _open(source, "float32")
    task = _task(place, adapter)
    several = check_head(_written(place, adapter), place.what, of_words=task.is_asked_of_words)
    if task is Task.MASKS:
        one_output(config, label, threshold, several=False)  # refuses the options of several labels
        return [*FIRST_AND_SECOND], None
    if adapter is None and (headless := untrained_head(config_of(place))):
        # Else the labels would be refused, for not being the names that transformers makes up.
        raise InputError(
            f"expected a trained classifier in {place.what}; {headless}has no classification head; fine-tune "
            f"it first: `heedmap train --model {place.source}`"
        )
    check_class_numbers(place)
    _check_classes(place, config)
    output = one_output(config, label, threshold, several=several)
    if unit is not None or gives_number(config):
        return [unit_of(config, unit)], output
    names = class_names(config.id2label, place.what) if output is None else output.classes
    return names, output


def labels_of(source: object) -> list[str] | None:
    """Return the names of the labels that a model gives several of at once; None of a model of classes.

    Raises:
        InputError: as `load_classifier`, for what the configuration says.
    """
    place, config, adapter = _open(source, "float32")
    of_words = _task(place, adapter).is_asked_of_words
    if not check_head(_written(place, adapter), place.what, of_words=of_words):
        return None
    check_class_numbers(place)
    return class_names(config.id2label, place.what)


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
    place = _locate(source)
    config = _configuration(place)
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
    if dtype not in DTYPES:
        raise InputError(f"expected a dtype of {', '.join(DTYPES)}; got {dtype!r}")
    if device is not None:
        device_named(device)
    place = _locate(source)
    config = _configuration(place, auto)
    check_class_numbers(place)
    with torch.random.fork_rng(devices=[]):
        model, info = _weights(place, config, dtype, auto)
    _check_body(place, model, info)
    _check_shapes(place, model, info["mismatched_keys"])
    if missing := sorted(info["missing_keys"]):
        raise InputError(
            f"expected a trained {kind} in {place.what}; {_some(missing)} of {type(model).__name__} "
            f"{'is' if len(missing) == 1 else 'are'} not in the checkpoint; train it first"
        )
    _check_classes(place, model.config)
    return placed(frozen(model), device), place


def written_config(source: object) -> dict[str, Any]:
    """Return a model's config.json as it is written; empty of an adapter, which has none.

    Raises:
        InputError: no such folder or name, or no model in it.
    """
    place = _locate(source)
    try:
        return config_of(place)
    except InputError:
        raise
    except OSError as error:  # the Hub cannot be reached
        raise no_config(place, error) from error


def frozen(model: PreTrainedModel) -> PreTrainedModel:
    """Put the model in eval mode, turn off its gradients, and return it."""
    nn.Module.eval(model)
    return model.requires_grad_(False)


def _open(source: object, dtype: str) -> tuple[Place, PreTrainedConfig, Adapter | None]:
    """Return a model's place and configuration, or those of an adapter's base model and the adapter."""
    if dtype not in DTYPES:
        raise InputError(f"expected a dtype of {', '.join(DTYPES)}; got {dtype!r}")
    place = _locate(source)
    with quiet():
        try:
            adapter = adapter_at(place)
        except InputError:
            raise
        except Exception as error:  # the Hub cannot be reached
            raise no_config(place, error) from error
    if adapter is None:
        return place, _configuration(place), None
    with base_of(adapter):
        place = _locate(adapter.base)
        config = _configuration(place)
    adapter.declare_outputs(config)
    return place, config, adapter


def _task(place: Place, adapter: Adapter | None) -> Task:
    """Return what a model answers; an adapter brings a head that classifies texts."""
    return Task.TEXTS if adapter is not None else task_of(config_of(place))


def _written(place: Place, adapter: Adapter | None) -> dict[str, Any]:
    """Return config.json as it is written, with what a config.json beside an adapter says of the outputs."""
    return config_of(place) | ({} if adapter is None else adapter.outputs())


def _configuration(place: Place, auto: Any = None) -> PreTrainedConfig:
    with quiet():
        try:
            check_config(place)
            config: PreTrainedConfig = AutoConfig.from_pretrained(
                place.source, local_files_only=place.local, trust_remote_code=False
            )
        except InputError:
            raise
        except Exception as error:  # the file is bad, or cannot be reached
            raise no_config(place, error) from error
    task = task_of(config_of(place))
    known = {Task.TEXTS.auto_class, task.auto_class} if auto is None else {auto}
    if not any(type(config) in kind._model_mapping for kind in known):
        raise InputError(
            f"expected a text classifier in {place.what}; transformers has no sequence classification "
            f"for the architecture {config.model_type}; choose another model"
        )
    config.return_dict = True  # answers are taken by name
    return config


def _locate(source: object) -> Place:
    name = name_of(source, MODEL)
    if not is_there(name) and not _is_path(name):
        check_name(name, MODEL)
    with reading(name):
        path = Path(name).expanduser()
        exists, is_dir = path.exists(), path.is_dir()
    if is_dir:
        if not any((path / name).is_file() for name in ("config.json", PEFT_CONFIG)):
            raise InputError(
                f"expected a model in the folder {path}; it holds no config.json; "
                "give the folder that `save_pretrained` wrote"
            )
        return Place(str(path), local=True)
    if exists:
        raise InputError(f"expected a model's folder or a name on the Hub; {path} is a file")
    if _is_path(name):
        raise InputError(f"expected a model's folder; {name:.200} does not exist; check the path")
    return Place(name, local=False)


def _is_path(name: str) -> bool:
    return name.isprintable() and (name.startswith((".", "/", "~")) or name.count("/") > 1)


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
            not_floats = check_weights(place)
            try:
                model, info = load()
            except (ImportError, ValueError) as error:
                if (attention := asked_attention(place)) is None:
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
                        f"{no_weights(place, second)}; its config.json also asks for {attention}, which is not "
                        "installed here: remove attn_implementation from it"
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


def _check_classes(place: Place, config: PreTrainedConfig) -> None:
    if gives_number(config):
        return
    if (config.num_labels or 0) < 2 and not is_relevance(config):
        raise InputError(
            f"expected a classifier of two or more classes, or a regression, in {place.what}; it has one "
            f"output and problem_type {config.problem_type}; choose a model with classes"
        )
    names = Counter(str(name).strip() for name in (config.id2label or {}).values())
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(
            f"expected different class names in {place.what}; its config.json (id2label) has "
            f"{', '.join(twice[:3])} for several outputs; give each a name of its own"
        )
    if odd := [name for name in names if len(name.splitlines()) != 1]:
        raise InputError(
            f"expected class names of one line in {place.what}; its config.json (id2label) has "
            f"{odd[0]!r:.40}; rename it"
        )
