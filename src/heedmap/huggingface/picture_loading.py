"""Load classifiers of pictures (ViT, DeiT, DINOv2) with the preprocessing that is saved beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import AutoImageProcessor, AutoModelForImageClassification, PreTrainedModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
)

from heedmap.data.pictures import Grid
from heedmap.errors import InputError
from heedmap.huggingface.checkpoints import Place, model_file
from heedmap.huggingface.configurations import written_config
from heedmap.huggingface.loading import load_trained
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.refusals import first_line

PROCESSOR = "preprocessor_config.json"
KINDS = (
    "vit",
    "deit",
    "dinov2",
    "dinov2_with_registers",
)  # of which `patch_model.HEADS` has the classes
_CAUSES = {
    "swin": "it attends within windows and merges the patches of each four between its layers, so that no row "
    "of weights is over the patches of a picture and none can be left out",
    "beit": "it biases its attention by the places of two patches, which it counts in a whole picture only",
}
_CAUSES |= {"swinv2": _CAUSES["swin"], "data2vec-vision": _CAUSES["beit"]}
_UNKNOWN = "heedmap does not know how it makes positions of patches, or it has none"
_CHANNELS = 3
_MADE_UP = 3  # pictures


@dataclass(frozen=True)
class Picturing:
    """How a model sees a picture: the pixels (3, height, width) that `pixels` makes of (h, w, 3) bytes.

    `processor` is the image processor of transformers that makes them.
    """

    pixels: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    height: int
    width: int
    grid: Grid
    processor: Any


def reads_pictures(source: object) -> bool:
    """Return whether a model's configuration is that of a classifier of pictures, or of its body alone.

    Raises:
        InputError: no such folder or name, or no model in it.
    """
    config = written_config(source)
    names, kind = config.get("architectures"), config.get("model_type")
    if isinstance(names, list) and any("ForImageClassification" in str(name) for name in names):
        return True
    return (
        kind in MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
        and kind not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
    )


def load_picture_model(
    source: object, dtype: str = "float32", device: str | None = None
) -> tuple[PreTrainedModel, Picturing]:
    """Load a trained classifier of pictures, frozen and in eval mode, and how it sees them.

    Raises:
        InputError: as `heedmap.huggingface.loading.load_classifier`; an architecture that is not in `KINDS`;
            no preprocessing beside the model, or pictures of a size that it does not read.
    """
    if (kind := str(written_config(source).get("model_type"))) not in KINDS:
        raise InputError(
            f"{source}: expected a model whose positions are the patches of a picture in every layer, got a "
            f"{kind}: {_CAUSES.get(kind, _UNKNOWN)}; choose a ViT, DeiT or DINOv2"
        )
    model, place = load_trained(
        source, dtype, device, AutoModelForImageClassification, "classifier of pictures"
    )
    return model, picturing(model, _processor(place), place.what)


def _processor(place: Place) -> Any:
    if model_file(place, PROCESSOR) is None:
        raise InputError(
            f"expected {PROCESSOR} in {place.what}, which says how pictures are resized and scaled; it is not "
            "there: save the model's image processor beside it (`processor.save_pretrained`)"
        )
    with quiet():
        try:
            return AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                place.source, local_files_only=place.local, trust_remote_code=False
            )
        except Exception as error:  # the file is bad, or Pillow is missing
            raise InputError(
                f"expected an image processor that transformers can load in {place.what}; {first_line(error)}; "
                f'correct its {PROCESSOR}, or: pip install "heedmap[images]"'
            ) from error


def picturing(model: PreTrainedModel, processor: Any, what: str) -> Picturing:
    """Return how a model sees pictures that a processor of transformers has made ready for it.

    Raises:
        InputError: a model of other than three channels, or a processor that makes another size than it reads.
    """
    own: Any = model.base_model.get_submodule("embeddings.patch_embeddings")
    if own.num_channels != _CHANNELS:
        raise InputError(
            f"expected a model of pictures of {_CHANNELS} channels in {what}, got one of {own.num_channels}; "
            "choose another model"
        )

    def pixels(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        with quiet():
            made = processor(picture, return_tensors="np", input_data_format="channels_last")
        return np.asarray(made["pixel_values"][0], dtype=np.float32)

    image_height, image_width = own.image_size
    height, width = pixels(np.zeros((image_height, image_width, _CHANNELS), np.uint8)).shape[1:]
    fixed = not type(model).__name__.startswith("Dinov2")  # which interpolates its positions
    if fixed and (height, width) != (image_height, image_width):
        raise InputError(
            f"expected a {PROCESSOR} that makes pictures of {image_height} × {image_width} pixels, as the "
            f"model in {what} reads them, got {height} × {width}; correct its size"
        )
    down, across = own.patch_size
    rows, columns = height // down, width // across

    def cut(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        made = pixels(picture)
        if made.shape != (_CHANNELS, height, width):
            raise InputError(
                f"expected a picture that becomes {height} × {width} pixels, as the others, got "
                f"{made.shape[1]} × {made.shape[2]}: the model's {PROCESSOR} does not bring all to one size; "
                "crop or resize the pictures"
            )
        made = made[:, : rows * down, : columns * across]
        patches = made.reshape(_CHANNELS, rows, down, columns, across).transpose(1, 3, 0, 2, 4)
        return patches.reshape(rows * columns, -1)

    def shown(patches: NDArray[np.float32]) -> NDArray[np.uint8]:
        parts = patches.reshape(rows, columns, _CHANNELS, down, across).transpose(0, 3, 1, 4, 2)
        colours = parts.reshape(rows * down, columns * across, _CHANNELS)
        if processor.do_normalize:
            colours = colours * np.array(processor.image_std) + np.array(processor.image_mean)
        if processor.do_rescale:
            colours = colours / processor.rescale_factor
        return np.clip(np.round(colours), 0, 255).astype(np.uint8)

    width_of_patch = down * across * _CHANNELS
    # The mean colour, by which pictures are centred; else the middle of all bytes.
    grey = np.zeros(width_of_patch, dtype=np.float32)
    if not processor.do_normalize:
        middle = np.full((image_height, image_width, _CHANNELS), 128, np.uint8)
        grey = cut(middle)[0]
    grid = Grid(rows, columns, width_of_patch, cut, shown, grey, processor.to_json_string())
    return Picturing(pixels, height, width, grid, processor)


def made_up_pictures(picturing: Picturing) -> list[NDArray[np.uint8]]:
    """Return pictures of random colours, always the same, by which a model is tried."""
    shape = (_MADE_UP, picturing.height, picturing.width, _CHANNELS)
    return list(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
