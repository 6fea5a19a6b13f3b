"""Split the content of a CSV file into records, in a known dialect.

Quotes enclose a field where they stand at both of its ends, blanks aside; anywhere else they are characters of
the text. So `"Titanic" is dull` keeps its quotes, and a quote that is never closed swallows no rows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

Quotes = Literal["double", "none", "backslash"]
"""`double`: quotes enclose fields, and one within is doubled. `none`: they are characters like all others.

`backslash`: as `double`, but one within, and a separator anywhere, has a backslash before it.
"""
Mark = Literal["enclosed", "plain", "bare"]
"""Of a field: in quotes, without any, or with some that do not enclose it."""


class Dialect(NamedTuple):
    """How fields are separated, one ASCII character, and what quotes mean."""

    separator: str
    quotes: Quotes = "double"


class Record(NamedTuple):
    """A row as the file has it: the line on which it begins, its bytes, and its fields without their quotes.

    `marks` say how each field is written; None where no character of the row has a meaning of its own.
    """

    line: int
    written: bytes
    fields: list[str]
    marks: Sequence[Mark] | None = None


class LoneCarriageReturn(ValueError):
    """A carriage return that ends no line, outside of quotes; `line` is where it stands."""

    def __init__(self, line: int) -> None:
        super().__init__(f"a carriage return alone in line {line}")
        self.line = line


def records(content: bytes, dialect: Dialect) -> Iterator[Record]:
    """Yield the records of a file in UTF-8, without those that are empty lines or white space.

    Raises:
        LoneCarriageReturn: outside of quotes, where it would be neither a line end nor a character.
    """
    separator = dialect.separator
    quotes, escapes = dialect.quotes != "none", dialect.quotes == "backslash"
    read_record = _reader(dialect)
    start, line = 0, 1
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        written = content[start:end]
        if (quotes and b'"' in written) or (escapes and b"\\" in written):
            fields, marks, end = read_record(content, start, line)
            written = content[start:end].removesuffix(b"\n").removesuffix(b"\r")
            yield Record(line, written, fields, marks)
            line += content.count(b"\n", start, end)
            start = end
            continue
        if b"\r" in written:
            written = written.removesuffix(b"\r")
            if b"\r" in written:
                raise LoneCarriageReturn(line)
        text = written.decode()
        fields = text.split(separator)
        if len(fields) > 1 or not (text == "" or text.isspace()):
            yield Record(line, written, fields)
        start, line = end + 1, line + 1


_Read = Callable[[bytes, int, int], tuple[list[str], list[Mark], int]]


def _reader(dialect: Dialect) -> _Read:
    """Return what reads a record in which quotes or backslashes may have a meaning.

    Of the content, the place where the record begins and its line, it returns the fields, how each is written,
    and where the record ends.
    """
    by = re.escape(dialect.separator).encode()
    blanks = b"" if dialect.separator == " " else b" *+"
    if dialect.quotes == "backslash":
        escaped = rb'(?:[%b"\\\n]|\r(?!\n))' % by
        inside_quotes = rb'(?:[^"\\]++|\\%b|\\)*+' % escaped
        outside_quotes = rb"(?:[^%b\\\r\n]++|\\%b|\\)*+" % (by, escaped)
        escape, meant = re.compile(rb"\\(%b)" % escaped), rb"\1"
    else:
        inside_quotes, outside_quotes = rb'(?:[^"]++|"")*+', rb"[^%b\r\n]*+" % by
        escape, meant = re.compile(rb'""'), rb'"'
    match_field = re.compile(
        rb'(?:%b"(%b)"%b(?=%b|\r?\n|\Z)|(%b))(?:(%b)|\r?\n|\Z)'
        % (blanks, inside_quotes, blanks, by, outside_quotes, by)
    ).match
    sign = b'"' if dialect.quotes == "double" else b"\\"  # begins an escape

    def read_record(content: bytes, start: int, line: int) -> tuple[list[str], list[Mark], int]:
        fields: list[str] = []
        marks: list[Mark] = []
        position, is_open = start, True
        while is_open:
            field = match_field(content, position)
            if field is None:
                raise LoneCarriageReturn(
                    line + content.count(b"\n", start, content.find(b"\r", position))
                )
            enclosed, plain = field.group(1), field.group(2)
            is_open = field.group(3) is not None
            if enclosed is not None:
                marks.append("enclosed")
                fields.append(
                    (escape.sub(meant, enclosed) if sign in enclosed else enclosed).decode()
                )
            elif sign == b"\\" and sign in plain:
                marks.append("bare" if b'"' in escape.sub(b"", plain) else "plain")
                fields.append(escape.sub(meant, plain).decode())
            else:
                marks.append("bare" if b'"' in plain else "plain")
                fields.append(plain.decode())
            position = field.end()
        return fields, marks, position

    return read_record
