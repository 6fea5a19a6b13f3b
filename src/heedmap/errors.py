"""The one error a user is meant to see."""

import re

# What ends a line or moves the cursor: paths, columns and labels may hold it.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class InputError(ValueError):
    """Bad input: one line that says what was expected, what came and what to do.

    The command line prints it without a traceback and exits with code 2. Line breaks and other control
    characters in it are written as escapes.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_CONTROL.sub(lambda found: repr(found[0])[1:-1], message))


class MissingError(InputError, KeyError):
    """A name that there is not, of a table or a figure: the line lists those there are."""

    __str__ = Exception.__str__  # a KeyError's would put quotes around it
