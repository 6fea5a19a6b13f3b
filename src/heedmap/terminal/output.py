"""Output to a terminal or pipe: control characters are escaped, and any encoding can write it."""

import codecs
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

EXCERPT = 30  # characters of a text that a line quotes
WIDE = 200  # columns without a terminal, so that a log is not cut
# C0 and C1 control characters, line and paragraph separators, changes of the reading direction, and
# surrogates (a path's undecodable bytes).
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = ("=", "+", "-", "−", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+−-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Our own symbols in ASCII: a minus must not become a question mark.
_PLAIN = str.maketrans({
    "−": "-", "–": "-", "—": "-", "×": "x", "●": "*", "…": "...", "“": '"', "”": '"', "≤": "<=", "±": "+-",
    "ε": "epsilon", "τ": "tau", "λ": "lambda", "Σ": "sum", "→": "->", "·": ".", "½": "1/2", "─": "-",
    "█": "#", "░": "-",
})  # fmt: skip


def printable(text: object) -> str:
    r"""Make a text one line and escape characters that would move, colour or hide other text.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), str(text))


def csv_cell(text: str) -> str:
    r"""Make a text printable, and no formula for a spreadsheet that opens the file. Numbers stay.

    >>> csv_cell("=HYPERLINK(A1)"), csv_cell("-0.5"), csv_cell("a\tb")
    ("'=HYPERLINK(A1)", '-0.5', 'a\\tb')
    """
    if text[:1] in _FORMULA and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return printable(text)


def some_of(things: Sequence[object], limit: int = 8) -> str:
    """Name the first things and count the rest.

    >>> some_of(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    rest = f" and {len(things) - limit} more" if len(things) > limit else ""
    return ", ".join(map(str, things[:limit])) + rest


def quoted(text: str) -> str:
    r"""Quote a text, with what cannot be seen of it written out.

    >>> print(quoted("very\xa0good"), quoted("e\u0301"), quoted("x" * 40))
    'very\xa0good' 'e\u0301' 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    excerpt = text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
    return repr(excerpt) if unicodedata.is_normalized("NFC", excerpt) else ascii(excerpt)


def cell(text: object, style: str = "") -> "Text":
    """Make a text printable for rich, with brackets as text, not markup; laid out as it will be written."""
    return _cell_type()(printable(text), style=style)


@cache
def _cell_type() -> "type[Text]":
    from rich.measure import Measurement
    from rich.text import Text

    class Cell(Text):
        def __rich_console__(
            self, console: "Console", options: "ConsoleOptions"
        ) -> "Iterator[Segment]":
            yield from console.render(self._written(options), options)

        def __rich_measure__(self, console: "Console", options: "ConsoleOptions") -> Measurement:
            return Measurement.get(console, options, self._written(options))

        def _written(self, options: "ConsoleOptions") -> Text:
            """Replace what the console's encoding lacks: a line that grows later would break a table."""
            encoding = options.encoding
            plain = self.plain.encode(encoding, _REPLACED).decode(encoding)
            return Text(plain, style=self.style, end=self.end)

    return Cell


@dataclass(frozen=True)
class Either:
    """Content that is shown `wide` on at least so many `columns`, and `narrow` on fewer."""

    wide: "RenderableType"
    narrow: "RenderableType"
    columns: int

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        yield self.wide if options.max_width >= self.columns else self.narrow


class Note(UserWarning):
    """A warning about texts, a model or a result that the user should know about."""


def remark(text: str) -> None:
    """Issue a note as a warning, without a line of the caller's source: it is about the data, not the code."""
    warnings.warn_explicit(text, Note, "<heedmap>", 1)


def say(text: object, *, error: bool = False) -> None:
    """Print one line."""
    print(printable(text), file=sys.stderr if error else sys.stdout, flush=True)


def show(*content: "RenderableType", width: int | None = None) -> None:
    """Print cards or tables; `width` applies only without a terminal."""
    from rich.console import Console

    console = Console()
    if width is not None and not console.is_terminal:
        console = Console(width=width)
    with lenient():
        console.print(*content, sep="\n")


@contextmanager
def lenient() -> Iterator[None]:
    """Within the block, replace characters that stdout or stderr cannot encode instead of failing."""
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors=_REPLACED)
    try:
        yield
    finally:
        for stream, errors in changed:
            stream.reconfigure(errors=errors)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode(error.encoding, "backslashreplace"), error.end


_REPLACED = "heedmap.replaced"
codecs.register_error(_REPLACED, _replaced)
