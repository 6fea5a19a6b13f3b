"""Read fastText's lines, `__label__sport The game was …`: labels, then the text, without a header."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from heedmap.data.columns import Rows
from heedmap.errors import InputError

PREFIX = "__label__"
_LABEL = re.compile(rf"(?:^|(?<=\s)){PREFIX}(\S+)\s*")
_FIRST = re.compile(rb"\s*__label__[^\s,;|]+(?:[ \t]|\r?\n|\Z)")


def is_fasttext(content: bytes) -> bool:
    """Tell whether a file begins with a label of fastText, and white space after it."""
    return _FIRST.match(content) is not None


def read_fasttext(path: Path, content: bytes, notes: Sequence[str]) -> Rows:
    """Read a line as a text and its label, which any of its words may be; a line without one has none.

    Raises:
        InputError: several labels in a line: such a text has no one class.
    """
    texts: list[str] = []
    labels: list[str | None] = []
    lines: list[int] = []
    several: list[int] = []
    for line, written in enumerate(content.split(b"\n"), 1):
        text = written.decode()
        if not text.strip():
            continue
        names = _LABEL.findall(text)
        texts.append(_LABEL.sub("", text).strip() if names else text.strip())
        labels.append(names[0] if names else None)
        lines.append(line)
        several += [line] * (len(names) > 1)
    if several:
        text = content.split(b"\n", several[0])[several[0] - 1].decode()
        raise InputError(
            f"{path}, line {several[0]}: expected one label for each text, got "
            f"{', '.join(islice(_LABEL.findall(text), 8))}; {len(several)} of {len(lines)} lines have several: "
            "keep one in each, or leave these lines out"
        )
    columns: dict[str, list[str | None]] = {
        "label": labels,
        "text": [text or None for text in texts],
    }
    return Rows(
        list(columns),
        len(lines),
        lambda name: list(columns[name]),
        place_of=lambda i: f"{path}, line {lines[i]}",
        read_as="read as fastText's lines",
        notes=notes,
    )
