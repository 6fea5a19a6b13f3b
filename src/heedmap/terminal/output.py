"""What heedmap says on a terminal or pipe: a user's text is made harmless there, and nothing is unwritable."""

import codecs
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

WIDE = 200  # columns where there is no terminal: a log cuts nothing
# Control characters of both sets, what turns the direction of reading round, the other line ends, halves
# of characters (a path's undecodable bytes).
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# Our own marks in letters that every encoding has: a minus must not become a question mark.
_PLAIN = str.maketrans({
    "−": "-", "–": "-", "—": "-", "×": "x", "●": "*", "…": "...", "“": '"', "”": '"', "≤": "<=", "±": "+-",
    "ε": "epsilon", "τ": "tau", "λ": "lambda", "→": "->", "·": ".", "½": "1/2",
})  # fmt: skip


def printable(text: object) -> str:
    r"""A text as one line: characters that would move, colour or hide other text are written out.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def cell(text: object, style: str = "") -> "Text":
    """The same for rich: its brackets are text too, not markup."""
    from rich.text import Text

    return Text(printable(text), style=style)


def say(text: object, *, error: bool = False) -> None:
    """Print one line."""
    print(printable(text), file=sys.stderr if error else sys.stdout, flush=True)


def show(*content: "RenderableType", width: int | None = None) -> None:
    """Print cards or tables; `width` where it is no terminal, which has its own."""
    from rich.console import Console

    console = Console()
    if width is not None and not console.is_terminal:
        console = Console(width=width)
    with lenient():
        console.print(*content, sep="\n")


@contextmanager
def lenient() -> Iterator[None]:
    """For as long as it lasts, what stdout or stderr cannot write is replaced there, never fatal."""
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors=_REPLACED)
    try:
        yield
    finally:
        for stream, before in changed:
            stream.reconfigure(errors=before)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode(error.encoding, "backslashreplace"), error.end


_REPLACED = "heedmap.replaced"
codecs.register_error(_REPLACED, _replaced)
