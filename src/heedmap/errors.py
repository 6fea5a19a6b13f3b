"""The one error a user is meant to see, and the check for packages that are not always installed."""

import re
from importlib.util import find_spec

# What ends a line or moves the cursor: paths, columns and labels may hold it.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class InputError(ValueError):
    """Bad input: one line that says what was expected, what came and what to do.

    The command line prints it without a traceback and exits with code 2. Line breaks and other control
    characters in it are written as escapes.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_CONTROL.sub(lambda match: repr(match[0])[1:-1], message))


class MissingError(InputError, KeyError):
    """A name that there is not, of a table or a figure: the line lists those there are."""

    __str__ = Exception.__str__  # a KeyError's would put quotes around it


class KindError(InputError, TypeError):
    """An argument of another kind than the function takes."""


def check_installed(package: str, extra: str, purpose: str) -> None:
    """Check that an optional package is there, before anything is written.

    Args:
        package: the name that is imported.
        extra: the extra of heedmap that brings it.
        purpose: what needs it, as the message begins.

    Raises:
        InputError: it is not installed.
    """
    if find_spec(package) is None:
        raise InputError(
            f"{purpose} needs the package {package}, which is not installed; "
            f'pip install "heedmap[{extra}]"'
        )
