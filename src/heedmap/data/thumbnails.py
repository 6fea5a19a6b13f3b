"""Small pictures as data URIs, for tables and pages."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.errors import check_installed

LARGEST = 160  # pixels of the longer side
LOSSLESS = 64  # up to as many a picture is a PNG, else a JPEG


def thumbnail(colours: NDArray[np.uint8]) -> str:
    """Return a picture (height, width, 3) as a data URI, no larger than a page shows it."""
    picture = pillow().fromarray(colours)
    picture.thumbnail((LARGEST, LARGEST))
    kind = "PNG" if max(colours.shape) <= LOSSLESS else "JPEG"
    file = io.BytesIO()
    picture.save(file, format=kind)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def pillow() -> Any:
    """Return Pillow's module of pictures.

    Raises:
        InputError: it is not installed.
    """
    check_installed("PIL", "images", "pictures: Pillow")
    from PIL import Image

    return Image
