"""Silence transformers' own messages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as library_logging


@contextmanager
def quiet() -> Iterator[None]:
    """Hide transformers' progress bars and log its errors only within the block."""
    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity(logging.ERROR)
    library_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
