"""Silence transformers' own messages, and take a panic of the tokenizers library for what it is."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as library_logging

from heedmap.errors import InputError


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


@contextmanager
def without_panic(name: str) -> Iterator[None]:
    """Raise InputError where the library of a tokenizer panics in the block, with what is no `Exception`."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(
            f"expected a tokenizer that reads every text in {name}; it stops ({error}); choose another model"
        ) from error
