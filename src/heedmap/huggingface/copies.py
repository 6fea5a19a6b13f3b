"""Compare a classifier that a user has in memory with the copy of it that is put on trial."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.item_vectors import ItemVectors, held_bag
from heedmap.errors import InputError
from heedmap.files.naming import kind_of
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import roundings
from heedmap.huggingface.model_adapter import evaluating
from heedmap.huggingface.patch_tokens import PatchTokens
from heedmap.huggingface.picture_classifier import PictureClassifier
from heedmap.huggingface.sample_texts import SENTENCES
from heedmap.huggingface.transformer_classifier import TransformerClassifier

# Height and width of pictures as shares of what the model reads: resized up, down and in one direction.
_SIZES = ((1.0, 1.0), (2.5, 1.75), (0.5, 0.75), (1.0, 3.0))


@torch.no_grad()
def compare_texts(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, copy: TransformerClassifier
) -> None:
    """Check that the user's own model and tokenizer give what the copy gives, text by text.

    Raises:
        InputError: token ids or logits differ.
    """
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
            expected: Tensor = model(**encoding.to(model.device), return_dict=True).logits
        # Not by a call: hooks make other logits of these, of one label or of the position asked about.
        got = copy.model.forward(**copy_encoding.to(copy.model.device)).logits
        _check_same(model, expected, got, copy.precision)


@torch.no_grad()
def compare_pictures(model: PreTrainedModel, processor: Any, copy: PictureClassifier) -> None:
    """Check that the user's own model and image processor give what the copy gives, picture by picture.

    Raises:
        InputError: pixels or logits differ.
    """
    assert isinstance(copy.tokenizer, PatchTokens)
    picturing, pictures = copy.tokenizer.picturing, copy.tokenizer.pictures
    rng = np.random.default_rng(1)
    for down, across in _SIZES:
        height, width = round(down * picturing.height), round(across * picturing.width)
        picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        with quiet(), evaluating(model):
            prepared = processor(picture, return_tensors="pt", input_data_format="channels_last")
            pixels: Tensor = prepared["pixel_values"]
            expected: Tensor = model(
                pixel_values=pixels.to(model.device, model.dtype), return_dict=True
            ).logits
        if not np.array_equal(picturing.pixels(picture), pixels[0].numpy(force=True)):
            raise InputError(
                "expected an image processor that makes the same of a picture after it is saved and loaded; "
                f"{kind_of(processor)} does not, for example of {height} × {width} pixels; give that of "
                "`transformers.AutoImageProcessor.from_pretrained`"
            )
        if pixels.shape[2:] == (picturing.height, picturing.width):  # as all are, if it resizes
            _check_same(model, expected, _answer(copy, picture), copy.precision)
    copy.look_up(pictures)


def _answer(copy: PictureClassifier, picture: NDArray[np.uint8]) -> Tensor:
    """Return the logits (1, C) of a picture, the only one that the copy knows then."""
    bag = held_bag(copy.grid.cut(picture), "own")
    pictures = ItemVectors({"own": bag}, copy.grid.width, in_memory=True)
    copy.look_up(pictures)
    return copy.logits(copy.batch([pictures.names("own")], [0]))


def _check_same(
    model: PreTrainedModel, expected: Tensor, got: Tensor, precision: torch.dtype
) -> None:
    """Raise InputError if a user's own model gives other logits than its copy, which has this precision."""
    expected, got = expected.float().cpu(), got.float().cpu()
    coarser = max(model.dtype, precision, key=lambda dtype: torch.finfo(dtype).eps)
    size = max(1.0, float(expected.abs().max()))
    limit = roundings(coarser) * torch.finfo(coarser).eps * size
    gap = float((expected - got).abs().max()) if expected.shape == got.shape else math.inf
    if not gap <= limit:
        raise InputError(
            f"expected a model that is the same after it is saved and loaded; {kind_of(model)} is not: its "
            f"logits differ by {gap:.2g} (at most {limit:.2g}); its class or its hooks change what it does"
        )
