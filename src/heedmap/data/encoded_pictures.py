"""Pictures as text: PNG in base64, from PIL images or arrays of colours, and back."""

import base64
import io
import sys
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heedmap.data.thumbnails import pillow


def is_picture(thing: object) -> bool:
    """Return whether this is a PIL image, or an array (height, width, 3) of bytes."""
    if isinstance(thing, np.ndarray):
        return thing.dtype == np.uint8 and thing.ndim == 3 and thing.shape[2] == 3
    library = sys.modules.get("PIL.Image")  # whoever has an image has imported it
    return library is not None and isinstance(thing, library.Image)


def encoded(picture: Any) -> str:
    """Return a picture (see `is_picture`) as text; the same colours give the same one.

    Raises:
        InputError: Pillow is not installed.
    """
    colours = picture if isinstance(picture, np.ndarray) else upright_colours(picture)
    file = io.BytesIO()
    pillow().fromarray(colours).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def decoded(text: str) -> NDArray[np.uint8]:
    """Return the colours (height, width, 3) of a picture that is written as text.

    Raises:
        ValueError: it is no picture.
        OSError: likewise.
    """
    with pillow().open(io.BytesIO(base64.b64decode(text, validate=True))) as picture:
        return np.asarray(picture.convert("RGB"), dtype=np.uint8)


def upright_colours(picture: Any) -> NDArray[np.uint8]:
    """Return the colours (height, width, 3) of a PIL image, the way up that its file says."""
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    if is_of_16_bit(
        upright.mode
    ):  # converted, all that is brighter than 255 of 65,535 would be white
        upright = pillow().fromarray((np.asarray(upright) // 257).astype(np.uint8))
    return np.asarray(cast("Any", upright).convert("RGB"), dtype=np.uint8)


def is_of_16_bit(mode: str) -> bool:
    """Return whether images of this mode of PIL have 16 bits for a colour."""
    return mode.startswith("I")
