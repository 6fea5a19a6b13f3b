"""Transformers' own messages, kept out of the way while we work with it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as chatter


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, transformers shows no progress bars and logs errors only."""
    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.ERROR)
    chatter.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()  # type: ignore[no-untyped-call]
