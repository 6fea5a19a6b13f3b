"""Give back to the system what the C library keeps for later."""

import ctypes
import sys
from contextlib import suppress
from functools import cache


def return_freed_memory() -> None:
    """Give memory back to the system that the C library keeps of objects that are gone.

    It is much after many texts were read, or a large table was mapped. Only glibc is asked to; other C
    libraries do so by themselves, or cannot.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # musl has no such function
            _c_library().malloc_trim(0)


@cache  # opened again, it leaves classes behind that refer to each other
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
