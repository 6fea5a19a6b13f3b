"""Pictures as text: PNG in base64, from PIL images or arrays of colours, and back."""

import base64
import io
import sys
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heedmap.data.thumbnails import pillow
from heedmap.files.naming import kind_of

EXPECTED = "a PIL image or an array (height, width, 3) of bytes (uint8)"
CHANNELS = (1, 3, 4)  # grey, colours, colours with transparency


def is_image(thing: object) -> bool:
    """Return whether this is a PIL image."""
    library = sys.modules.get("PIL.Image")  # whoever has an image has imported it
    return library is not None and isinstance(thing, library.Image)


def may_be_picture(thing: object) -> bool:
    """Return whether this is a PIL image, or an array of any library with two axes or more."""
    return is_image(thing) or (hasattr(thing, "dtype") and len(getattr(thing, "shape", ())) >= 2)


def is_single_picture(thing: object) -> bool:
    """Return whether this is meant to be one picture, and not a stack of them.

    Also one that is refused: of other numbers than bytes, or with its channels first.
    """
    if is_image(thing) or not may_be_picture(thing):
        return is_image(thing)
    shape: list[int] = [*getattr(thing, "shape", ())]
    if len(shape) == 2:
        return getattr(thing, "dtype", None) == np.uint8
    return len(shape) == 3 and (shape[2] in CHANNELS or shape[0] in CHANNELS)


def check_picture(thing: object) -> None:
    """Check that this is a PIL image or an array of bytes as `colours_of` reads them, with a pixel at least.

    Raises:
        ValueError: it is not.
    """
    if not is_image(thing):
        is_of_bytes = isinstance(thing, np.ndarray) and thing.dtype == np.uint8
        shape: list[int] = [*getattr(thing, "shape", ())]
        if not is_of_bytes or not (len(shape) == 2 or (len(shape) == 3 and shape[2] in CHANNELS)):
            raise ValueError(f"expected {EXPECTED}, got {described(thing)}")
    size = thing.shape if isinstance(thing, np.ndarray) else cast("Any", thing).size
    if 0 in size:
        raise ValueError(f"expected a picture of one pixel or more, got {described(thing)}")


def colours_of(thing: Any) -> NDArray[np.uint8]:
    """Return the colours (height, width, 3) of a PIL image or an array of bytes, without transparency.

    An array is (height, width, 3); or (height, width) or (height, width, 1) of grey, or (height, width, 4).

    Raises:
        ValueError: it is no such picture, or an empty one.
    """
    check_picture(thing)
    if not isinstance(thing, np.ndarray):
        return upright_colours(thing)
    if thing.shape[2:] == (3,):
        return thing
    return upright_colours(pillow().fromarray(thing[:, :, 0] if thing.shape[2:] == (1,) else thing))


def described(thing: object) -> str:
    """Say what was given in place of a picture: its kind, and of an array its shape and numbers."""
    shape, dtype = (getattr(thing, name, None) for name in ("shape", "dtype"))
    if shape and dtype is not None:
        kind = "an array" if isinstance(thing, np.ndarray) else kind_of(thing)
        return f"{kind} {tuple(shape)} of {dtype}"
    if is_image(thing):
        return "a PIL image of {} × {} pixels".format(*cast("Any", thing).size)
    return repr(thing[:60]) if isinstance(thing, str) else kind_of(thing)


def encoded(colours: NDArray[np.uint8]) -> str:
    """Return colours (height, width, 3) as text; the same ones give the same.

    Raises:
        InputError: Pillow is not installed.
    """
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
