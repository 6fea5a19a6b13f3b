"""Open a classifier with its tokenizer or image processor that are loaded already, as objects or in a pipeline.

What is put on trial is a copy, which is saved and loaded as any other model and then compared with the user's
own on a few texts or pictures. The user's objects stay as they are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy, deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformers import (
    ImageClassificationPipeline,
    Pipeline,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TextClassificationPipeline,
)
from transformers.image_processing_utils import BaseImageProcessor

from heedmap.errors import InputError, KindError, running_model
from heedmap.files.naming import kind_of
from heedmap.huggingface.classification_head import check_head
from heedmap.huggingface.copies import compare_pictures, compare_texts
from heedmap.huggingface.limits import longest
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.one_output import gives_number, is_relevance
from heedmap.huggingface.opening import open_classifier
from heedmap.huggingface.peft_merging import is_wrapped, merged_copy
from heedmap.huggingface.picture_classifier import PictureClassifier
from heedmap.huggingface.picture_loading import PROCESSOR
from heedmap.huggingface.placement import device_of
from heedmap.huggingface.refusals import first_line
from heedmap.huggingface.sample_texts import SENTENCES
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import MODEL_IN_MEMORY, TransformerSettings

Reader = PreTrainedTokenizerBase | BaseImageProcessor
Loaded = tuple[PreTrainedModel, Reader] | TextClassificationPipeline | ImageClassificationPipeline
WHAT = "the model in memory"
_SET_LATER = ("truncation_side", "padding_side", "split_special_tokens", "model_input_names")


def loaded_parts(source: object, *, pairs: bool = False) -> tuple[PreTrainedModel, Reader] | None:
    """Return the model and its tokenizer or image processor of a pair or a pipeline; None for what is neither.

    Of a model that peft has wrapped with an adapter it is a merged copy. `pairs` are what it is asked to read.

    Raises:
        KindError: a part of them alone, a pair or pipeline of something else, or parts of which one reads texts
            and the other pictures.
        InputError: an adapter that cannot be merged, or settings of a pipeline that cannot be followed.
    """
    if isinstance(source, TextClassificationPipeline | ImageClassificationPipeline):
        _check_scores(source)
    if isinstance(source, TextClassificationPipeline):
        parts: tuple[object, ...] = (source.model, _tokenizer_of(source, pairs))
    elif isinstance(source, ImageClassificationPipeline):
        parts = (source.model, source.image_processor)
    elif isinstance(source, Pipeline):
        raise KindError(
            "expected a pipeline of text-classification or image-classification, got one of "
            f"{source.task}; give the model and the tokenizer of a token classifier or a masked language "
            "model, as a pair"
        )
    elif isinstance(source, tuple | list) and any(map(_is_part, source)):
        parts = tuple(source)
    elif _is_part(source):
        raise KindError(
            f"expected (model, tokenizer) or (model, image processor), got {kind_of(source)} alone; give both, "
            "as a pair"
        )
    else:
        return None
    match parts:
        case (
            PreTrainedModel() as model,
            PreTrainedTokenizerBase() | BaseImageProcessor() as reader,
        ):
            if getattr(model, "_hf_peft_config_loaded", False):
                raise KindError(
                    f"expected a model without adapters, got {kind_of(model)} with an adapter that "
                    "transformers has put into it (load_adapter), which is not merged; give the adapter's "
                    "folder, or the model of peft.PeftModel.from_pretrained"
                )
            _check_reads_the_same(model, reader)
            return model, reader
        case (torch.nn.Module() as wrapped, PreTrainedTokenizerBase() as tokenizer) if is_wrapped(
            wrapped
        ):
            return merged_copy(wrapped, tokenizer, WHAT), tokenizer
        case (torch.nn.Module() as wrapped, BaseImageProcessor()) if is_wrapped(wrapped):
            raise KindError(
                f"expected a classifier of pictures without adapters, got {kind_of(wrapped)}, which is merged "
                "for texts alone; give `peft_model.merge_and_unload()` in its place"
            )
        case (PreTrainedTokenizerBase() | BaseImageProcessor() as reader, PreTrainedModel()):
            name = "image processor" if isinstance(reader, BaseImageProcessor) else "tokenizer"
            raise KindError(f"expected (model, {name}), got ({name}, model); swap them")
    kinds = ", ".join(map(kind_of, parts))
    raise KindError(
        f"expected (model, tokenizer) or (model, image processor) of transformers, got ({kinds}); a model of "
        "another library, or wrapped by one, cannot be opened: save what it wraps with `save_pretrained` and "
        "give the folder"
    )


def _check_scores(pipeline: Pipeline) -> None:
    """Raise InputError if a pipeline's scores are not the numbers that the configuration stands for."""
    config = pipeline.model.config
    several = check_head(config.to_dict(), WHAT) or is_relevance(config)
    expected = "none" if gives_number(config) else "sigmoid" if several else "softmax"
    default = "sigmoid" if config.num_labels == 1 and config.problem_type is None else expected
    function = pipeline._postprocess_params.get("function_to_apply")
    if (got := default if function is None else function.value) != expected:
        raise InputError(
            f"expected a pipeline with function_to_apply = {expected!r}, for which its model's configuration "
            f"stands, got {got!r}; set function_to_apply, or model.config.problem_type to what the outputs are"
        )


def _tokenizer_of(pipeline: Pipeline, pairs: bool) -> PreTrainedTokenizerBase:
    """Return a copy of a pipeline's tokenizer, whose limit is the length to which the pipeline cuts texts.

    Raises:
        InputError: its settings change the tokens in another way.
    """
    settings, tokenizer = pipeline._preprocess_params, deepcopy(pipeline.tokenizer)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    length = min(settings.get("max_length") or 0, longest(pipeline.model, tokenizer))
    long, short = " ".join(SENTENCES * (1 + length // 16)), SENTENCES[1]
    for texts in ((long, short), (short, long)) if pairs else ((long, None), (short, None)):
        sample = dict(zip(("text", "text_pair"), texts, strict=True))
        expected = _tokens(tokenizer(**sample, return_tensors="pt", verbose=False))
        tokens = torch.empty(2, 0)
        with suppress(Exception), quiet():  # which the tokenizers library raises
            tokens = _tokens(pipeline.preprocess(sample, **settings))
        if 0 < tokens.shape[1] < expected.shape[1]:
            tokenizer.model_max_length = tokens.shape[1]
            expected = _tokens(tokenizer(**sample, return_tensors="pt", truncation=True))
        if not torch.equal(tokens, expected):
            listed = ", ".join(f"{name} = {value!r:.60}" for name, value in settings.items())
            raise InputError(
                "expected a pipeline that reads texts as its tokenizer does, or cut by truncation = True and "
                f"max_length, got one with {listed}; leave out what changes the tokens"
            )
    tokenizer("", verbose=False)  # it keeps the last limit, and would be saved with it
    return tokenizer


def _tokens(encoding: Mapping[str, Any]) -> Tensor:
    """Return the tokens and their types (2, N), without padding."""
    ids: Tensor = encoding["input_ids"]
    types = encoding.get("token_type_ids", torch.zeros_like(ids))
    real = encoding.get("attention_mask", torch.ones_like(ids))
    return torch.stack([ids, types])[:, real.bool()]


def _is_part(value: object) -> bool:
    return isinstance(value, torch.nn.Module | PreTrainedTokenizerBase | BaseImageProcessor)


def _check_reads_the_same(model: PreTrainedModel, reader: Reader) -> None:
    """Raise KindError unless model and reader are both for texts, or for pictures and their classes."""
    of_pictures = model.main_input_name == "pixel_values"
    if of_pictures != isinstance(reader, BaseImageProcessor):
        needed, what = ("image processor", "pictures") if of_pictures else ("tokenizer", "texts")
        raise KindError(
            f"expected (model, {needed}) of a model that reads {what}, got ({kind_of(model)}, "
            f"{kind_of(reader)}); give its {needed}: `transformers.Auto{needed.title().replace(' ', '')}"
            ".from_pretrained`"
        )
    if of_pictures and not any(
        "ForImageClassification" in kind.__name__ for kind in type(model).__mro__
    ):
        raise KindError(
            f"expected a classifier of pictures (...ForImageClassification), got {kind_of(model)}, which gives "
            "no classes; give a model with a trained classification head"
        )


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
    if (parts := loaded_parts(source, pairs=pairs)) is None:
        return None
    device = copy_device(parts[0]) if device is None else device
    with saved(*parts) as folder:
        settings = TransformerSettings.of(source=MODEL_IN_MEMORY, **options)
        model, settings = open_classifier(settings, folder, device, pairs=pairs)
    own_model, reader = parts
    with running_model(WHAT, "comparison with its copy"):
        if isinstance(model, PictureClassifier):
            compare_pictures(own_model, reader, model)
        else:
            assert isinstance(reader, PreTrainedTokenizerBase)
            compare_texts(own_model, reader, model)
    settings = settings.model_copy(update={"source": MODEL_IN_MEMORY + settings.weights[:16]})
    model.settings = settings
    return model, settings


def _without_folder(said: str, folder: Path) -> str:
    """Return what was said of a copy in a folder, as said of the user's own model."""
    of_pictures = said.replace(f"a {PROCESSOR} that", "an image processor that")
    in_memory = of_pictures.replace(f"in the folder {folder}", "in memory")
    return in_memory.replace(str(folder), WHAT)


def copy_device(model: PreTrainedModel) -> str | None:
    """Return where the copy of a model in memory runs: on the model's device, of which the CPU needs no name.

    Raises:
        InputError: the model is on several devices.
    """
    name = device_of(model)
    return None if name == "cpu" else name


@contextmanager
def saved(model: PreTrainedModel, reader: Reader) -> Iterator[Path]:
    """Save a classifier in a folder that is there within the block. The model's configuration stays as it is.

    Raises:
        InputError: they cannot be saved.
    """
    # `save_pretrained` writes both into the configuration of the user's own model.
    originals = {name: getattr(model.config, name, None) for name in ("dtype", "architectures")}
    if isinstance(reader, PreTrainedTokenizerBase):
        # It is saved with the options that it was made with alone, and forgets those that were set later.
        reader = copy(reader)
        reader.init_kwargs = {**dict.fromkeys(_SET_LATER), **reader.init_kwargs}
    with TemporaryDirectory(prefix="heedmap-") as folder:
        try:
            with quiet():
                model.save_pretrained(folder)
                reader.save_pretrained(folder)
        except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
            raise InputError(
                f"expected a model that can be saved, of which a copy is put on trial; {kind_of(model)} cannot "
                f"({first_line(error)})"
            ) from error
        finally:
            for name, value in originals.items():
                setattr(model.config, name, value)
        try:
            yield Path(folder)
        except InputError as error:
            raise type(error)(_without_folder(str(error), Path(folder))) from error
