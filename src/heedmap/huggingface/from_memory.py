"""Open a classifier and its tokenizer that are loaded already, as objects or in a pipeline.

What is put on trial is a copy, which is saved and loaded as any other model and then compared with the user's
own on a few texts. The user's objects stay as they are.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformers import (
    Pipeline,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TextClassificationPipeline,
)

from heedmap.errors import InputError, KindError
from heedmap.files.naming import kind_of
from heedmap.huggingface.classification_head import check_head
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import roundings
from heedmap.huggingface.model_adapter import evaluating
from heedmap.huggingface.one_output import one_output
from heedmap.huggingface.opening import open_classifier
from heedmap.huggingface.peft_merging import is_wrapped, merged_copy
from heedmap.huggingface.placement import device_of
from heedmap.huggingface.refusals import first_line
from heedmap.huggingface.sample_texts import SENTENCES
from heedmap.huggingface.targets import AnswerAtTarget
from heedmap.huggingface.tasks import Task, task_of_model
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import MODEL_IN_MEMORY, TransformerSettings

Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase] | TextClassificationPipeline
WHAT = "the model in memory"


def loaded_parts(source: object) -> tuple[PreTrainedModel, PreTrainedTokenizerBase] | None:
    """Return the model and the tokenizer of a pair or a pipeline; None for what is neither.

    Of a model that peft has wrapped with an adapter it is a merged copy.

    Raises:
        KindError: a part of them alone, or a pair or pipeline of something else.
        InputError: an adapter that cannot be merged.
    """
    if isinstance(source, TextClassificationPipeline):
        parts: tuple[object, ...] = (source.model, source.tokenizer)
    elif isinstance(source, Pipeline):
        raise KindError(
            f"expected a pipeline of text-classification, got one of {source.task}; give the model and the "
            "tokenizer of a token classifier or a masked language model, as a pair"
        )
    elif isinstance(source, tuple | list) and any(map(_is_part, source)):
        parts = tuple(source)
    elif _is_part(source):
        raise KindError(
            f"expected (model, tokenizer), got {kind_of(source)} alone; give both, as a pair"
        )
    else:
        return None
    match parts:
        case (PreTrainedModel() as model, PreTrainedTokenizerBase() as tokenizer):
            if getattr(model, "_hf_peft_config_loaded", False):
                raise KindError(
                    f"expected (model, tokenizer), got {kind_of(model)} with an adapter that transformers has "
                    "put into it (load_adapter), which is not merged; give the adapter's folder, or the model "
                    "of peft.PeftModel.from_pretrained"
                )
            return model, tokenizer
        case (torch.nn.Module() as wrapped, PreTrainedTokenizerBase() as tokenizer) if is_wrapped(
            wrapped
        ):
            return merged_copy(wrapped, tokenizer, WHAT), tokenizer
        case (PreTrainedTokenizerBase(), PreTrainedModel()):
            raise KindError("expected (model, tokenizer), got (tokenizer, model); swap them")
    kinds = ", ".join(map(kind_of, parts))
    raise KindError(
        f"expected (model, tokenizer) of transformers, got ({kinds}); a model of another library, or wrapped "
        "by one, cannot be opened: save what it wraps with `save_pretrained` and give the folder"
    )


def _is_part(value: object) -> bool:
    return isinstance(value, torch.nn.Module | PreTrainedTokenizerBase)


def open_loaded(
    source: object, options: Mapping[str, Any], device: str | None = None, *, pairs: bool = False
) -> tuple[TransformerClassifier, TransformerSettings] | None:
    """Open a copy of a loaded classifier, with the options of `TransformerSettings`; None for what is none.

    With `pairs` it is verified on pairs of texts too. Without a device, the copy runs where the user's own
    model is.

    Raises:
        KindError: as `loaded_parts`.
        InputError: as `open_classifier`, or the copy does not compute what the user's own model does.
    """
    if (parts := loaded_parts(source)) is None:
        return None
    device = copy_device(parts[0]) if device is None else device
    with saved(*parts) as folder:
        settings = TransformerSettings.of(source=MODEL_IN_MEMORY, **options)
        try:
            model, settings = open_classifier(settings, folder, device, pairs=pairs)
        except InputError as error:
            said = str(error).replace(f"the folder {folder}", WHAT).replace(str(folder), WHAT)
            raise InputError(said) from error
    _compare(*parts, model, settings)
    settings = settings.model_copy(update={"source": MODEL_IN_MEMORY + settings.weights[:16]})
    model.settings = settings
    return model, settings


def copy_device(model: PreTrainedModel) -> str | None:
    """Return where the copy of a model in memory runs: on the model's device, of which the CPU needs no name.

    Raises:
        InputError: the model is on several devices.
    """
    name = device_of(model)
    return None if name == "cpu" else name


@contextmanager
def saved(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Iterator[Path]:
    """Save a classifier in a folder that is there within the block. The model's configuration stays as it is.

    Raises:
        InputError: they cannot be saved.
    """
    # `save_pretrained` writes both into the configuration of the user's own model.
    originals = {name: getattr(model.config, name, None) for name in ("dtype", "architectures")}
    with TemporaryDirectory(prefix="heedmap-") as folder:
        try:
            with quiet():
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
        except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
            raise InputError(
                f"expected a model that can be saved, of which a copy is put on trial; {kind_of(model)} cannot "
                f"({first_line(error)})"
            ) from error
        finally:
            for name, value in originals.items():
                setattr(model.config, name, value)
        yield Path(folder)


@torch.no_grad()
def _compare(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    copy: TransformerClassifier,
    settings: TransformerSettings,
) -> None:
    """Check that the user's own model and tokenizer give what the copy gives, text by text.

    Raises:
        InputError: token ids or logits differ.
    """
    task = task_of_model(model)
    several = check_head(model.config.to_dict(), WHAT, of_words=task.is_asked_of_words)
    output = one_output(model.config, settings.output, settings.threshold, several=several)
    coarser = max(model.dtype, copy.precision, key=lambda dtype: torch.finfo(dtype).eps)
    for text in SENTENCES:
        encoding, copy_encoding = (
            tokenize(text, return_tensors="pt") for tokenize in (tokenizer, copy.tokenizer)
        )
        if encoding["input_ids"].tolist() != copy_encoding["input_ids"].tolist():
            raise InputError(
                f"expected a tokenizer that reads the same after it is saved and loaded; {kind_of(tokenizer)} "
                f"does not, for example {text!r}"
            )
        with quiet(), evaluating(model):
            expected: Tensor = (
                model(**encoding.to(model.device), return_dict=True).logits.float().cpu()
            )
        if task.is_asked_of_words:
            answer = AnswerAtTarget(of_masks=task is Task.MASKS)
            expected = answer.at_target(
                expected, {"attention_mask": encoding["attention_mask"].cpu()}
            )
        if output is not None:
            expected = output.two_logits(expected)
        got = copy.model(**copy_encoding.to(copy.model.device)).logits.float().cpu()
        size = max(1.0, float(expected.abs().max()))
        limit = roundings(coarser) * torch.finfo(coarser).eps * size
        gap = float((expected - got).abs().max()) if expected.shape == got.shape else math.inf
        if not gap <= limit:
            raise InputError(
                f"expected a model that is the same after it is saved and loaded; {kind_of(model)} is not: its "
                f"logits differ by {gap:.2g} (at most {limit:.2g}); its class or its hooks change what it does"
            )
