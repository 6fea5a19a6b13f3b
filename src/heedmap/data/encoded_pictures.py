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
CHANGES = "heedmap:changes"  # names the text in a PNG that says what of its picture was not read


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

    They are the way up that a file says, as transformers' own pipeline reads them (`image_utils.load_image`).

    Raises:
        ValueError: it is no such picture, or an empty one.
    """
    image = _image_of(thing)
    from PIL import ImageOps

    return np.asarray(ImageOps.exif_transpose(image).convert("RGB"), dtype=np.uint8)


def _image_of(thing: Any) -> Any:
    check_picture(thing)
    if not isinstance(thing, np.ndarray):
        return thing
    return pillow().fromarray(thing[:, :, 0] if thing.shape[2:] == (1,) else thing)


def changes_of(thing: Any) -> list[str]:
    """Say what of a picture (see `colours_of`) is not read as it is, or was not when it was encoded."""
    image = _image_of(thing)
    sayings = {
        "transparency (alpha), which is left out: every point has its colour": image.has_transparency_data,
        f"more than 8 bits (mode {image.mode}), clipped to 0 to 255 as by transformers' pipeline: all above is "
        "white; scale it to bytes": image.mode[0] in "IF",
        "several pages or frames, of which the first is read": getattr(image, "n_frames", 1) > 1,
        image.info.get(CHANGES): CHANGES in image.info,
    }
    return [said for said, is_so in sayings.items() if is_so]


def described(thing: object) -> str:
    """Say what was given in place of a picture: its kind, and of an array its shape and numbers."""
    shape, dtype = (getattr(thing, name, None) for name in ("shape", "dtype"))
    if shape and dtype is not None:
        kind = "an array" if isinstance(thing, np.ndarray) else kind_of(thing)
        return f"{kind} {tuple(shape)} of {dtype}"
    if is_image(thing):
        return "a PIL image of {} × {} pixels".format(*cast("Any", thing).size)
    return repr(thing[:60]) if isinstance(thing, str) else kind_of(thing)


def encoded(thing: Any) -> str:
    """Return the colours of a picture as text, with its changes (see `changes_of`); the same give the same.

    Raises:
        InputError: Pillow is not installed.
    """
    image = pillow().fromarray(colours_of(thing))
    from PIL.PngImagePlugin import PngInfo

    file, info = io.BytesIO(), PngInfo()
    if changes := changes_of(thing):
        info.add_text(CHANGES, "; ".join(changes))
    image.save(file, format="PNG", pnginfo=info)
    return base64.b64encode(file.getvalue()).decode()


def decoded(text: str) -> Any:
    """Return the PIL image that is written as text.

    Raises:
        ValueError, OSError: it is no picture.
    """
    return pillow().open(io.BytesIO(base64.b64decode(text, validate=True)))
