"""Decide by evidence what the quotes of a CSV file mean: the reading that gives consistent rows wins.

A program that quotes fields quotes those with a separator, a line break or a quote, and doubles the quotes
within, or puts a backslash before them. A file written without quoting (GLUE's are) has quotes as a text has
them; read as quoted, a field that begins with one swallows whole rows, up to a field that ends with one. What
gives that away is that the lines within such a field have the fields of a row.

DuckDB's sniffer reads 72 of the 120 rows of such a file, and a line `sep=;` of Excel's as the header; clevercsv
ends with "field larger than field limit" on texts of ordinary length.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from heedmap.data.csv_records import Dialect, LoneCarriageReturn, Quotes, Record, records

ROWS_PER_MISFIT = 4
"""Rows swallowed by quotes that weigh as much as one row that does not fit the header."""
_NEEDS_QUOTES = frozenset('\t"\r\n')
_MAY_NEED_QUOTES = frozenset(",;|")
"""Separators of other files: a program that quotes fields for one (Excel does for a comma) leaves none bare."""


@dataclass
class _Tally:
    """What speaks against one reading of a file, in rows and fields, and the lines where that is first seen."""

    misfits: int = 0  # rows of another number of fields than the header
    swallowed: int = 0  # lines within a row that have the fields of a row
    row_like: int = 0  # rows with such lines
    enclosed: int = 0  # fields in quotes
    needless: int = (
        0  # of these, the ones that have nothing to protect, beside others without quotes
    )
    meant: int = 0  # fields that are in quotes beyond doubt
    bare: int = 0  # fields with quotes that enclose nothing
    unclosed: int = 0  # of these, the ones that begin with a quote
    first_lines: dict[str, int] = field(default_factory=dict)

    def see(self, count: str, line: int) -> None:
        """Count one more, and remember the line of the first."""
        setattr(self, count, getattr(self, count) + 1)
        self.first_lines.setdefault(count, line)


def choose_quotes(
    content: bytes, separator: str, named: str | None = None
) -> tuple[Quotes, list[str]]:
    """Return what the quotes of a file mean, and notes on what a user should look at.

    Args:
        content: of the whole file, in UTF-8.
        separator: between its fields.
        named: `none` or `double`, where the user says it: a backslash before quotes is still found.

    Raises:
        LoneCarriageReturn: whatever the quotes mean.
    """
    has_quotes, escapes = b'"' in content, _count_escapes(content, separator)
    if named == "none" or not (has_quotes or escapes):
        return "none" if named == "none" else "double", []
    readings: list[Quotes] = ["double"] if named or not has_quotes else ["double", "none"]
    readings += ["backslash"] if escapes else []
    tallies: dict[Quotes, _Tally] = {}
    for quotes in readings:
        try:
            tallies[quotes] = _tally(content, Dialect(separator, quotes))
        except LoneCarriageReturn as error:
            refused = error
    if not tallies:
        raise refused
    double = tallies.get("double", _Tally())
    # With other separators people do put quotes around what needs none.
    needless = double.needless if separator == "\t" else 0
    losses: dict[Quotes, tuple[int, int]] = {}
    for quotes, tally in tallies.items():
        rows = ROWS_PER_MISFIT * tally.misfits + tally.swallowed
        if quotes == "double":
            losses[quotes] = rows, tally.bare + needless + escapes
        elif quotes == "backslash":
            losses[quotes] = rows, tally.bare
        else:  # a program that quotes leaves no quotes bare
            rows += ROWS_PER_MISFIT * max(0, double.meant - double.bare)
            losses[quotes] = rows, double.enclosed - needless + escapes
    best = min(losses, key=lambda quotes: losses[quotes])  # the first of equals
    return best, [] if named else _notes(best, tallies[best], double)


def _count_escapes(content: bytes, separator: str) -> int:
    """Count the backslashes that may escape a quote, a separator, a line end or a backslash.

    Where others stand before something else, those before backslashes and line ends prove nothing. One before
    two quotes that end no field is a character, and the quotes are one that is doubled, as in Yelp's reviews.
    """
    no_end = rb"[^\r\n" + re.escape(separator.encode()) + rb"]"
    escape = re.compile(rb'(?s)\\(?!""' + no_end + rb")(.)")
    followed = Counter(escape.findall(content)) if b"\\" in content else Counter()
    proofs, uncertain = {b'"', separator.encode()}, {b"\\", b"\n", b"\r"}
    if followed.keys() <= proofs | uncertain:
        proofs |= uncertain
    return sum(followed[sign] for sign in proofs)


def _tally(content: bytes, dialect: Dialect) -> _Tally:
    """Read a file in one dialect and count what speaks against it."""
    tally = _Tally()
    width, every_line_has_quotes = 0, True
    enclosed: Counter[int] = Counter()  # by column
    needless: Counter[tuple[int, frozenset[str]]] = Counter()  # and by the signs in the value
    needs, may_need = _NEEDS_QUOTES | {dialect.separator}, _MAY_NEED_QUOTES - {dialect.separator}
    bare_signs: set[str] = set()  # of `may_need`, those that stand in fields without quotes too
    mixed: set[int] = set()  # columns with a text that is not in quotes
    suspects: list[tuple[int, list[list[str]]]] = []
    for record in records(content, dialect):
        if not width:
            width = len(record.fields)  # the first gives the names of the columns
            continue
        if len(record.fields) != width:
            tally.see("misfits", record.line)
        if record.marks is None:
            every_line_has_quotes = False
            unseen = may_need - bare_signs
            bare_signs.update(sign for sign in unseen if sign.encode() in record.written)
            continue
        lines = record.written.count(b"\n")
        for column, (value, mark) in enumerate(zip(record.fields, record.marks, strict=True)):
            if mark == "enclosed":
                tally.see("enclosed", record.line)
                enclosed[column] += 1
                if needs.isdisjoint(value) and value.strip() == value:
                    needless[column, may_need.intersection(value)] += 1
                tally.meant += '"' in value and not lines
            elif mark == "bare":
                tally.see("bare", record.line)
                if value.lstrip().startswith('"'):
                    tally.see("unclosed", record.line)
            if mark != "enclosed":
                bare_signs |= may_need.intersection(value)
            if mark != "enclosed" and column not in mixed and value and not _is_number(value):
                mixed.add(column)
        if lines and width > 1 and (alike := _rows_within(record, width, dialect.separator)):
            suspects.append((record.line, alike))
    whole = enclosed.keys() - mixed if every_line_has_quotes else set()
    tally.meant += sum(enclosed[column] for column in whole if enclosed[column] > 1)
    tally.needless = sum(
        count
        for (column, signs), count in needless.items()
        if column not in whole and signs <= bare_signs
    )
    _count_swallowed(tally, suspects, content, dialect)
    return tally


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _rows_within(record: Record, width: int, separator: str) -> list[list[str]]:
    """Return the lines of a record that have as many fields as a row, if more than one has."""
    lines = record.written.decode().split("\n")
    rows = [[value.strip('"') for value in line.rstrip("\r").split(separator)] for line in lines]
    alike = [row for row in rows if len(row) == width]
    return alike if len(alike) > 1 else []


def _count_swallowed(
    tally: _Tally,
    suspects: Sequence[tuple[int, list[list[str]]]],
    content: bytes,
    dialect: Dialect,
) -> None:
    """Count the lines within quotes that are rows: a line of prose has a comma by chance, a row a label too.

    A value of a row is one that the column has in other rows, or a number where these are all numbers.
    """
    known_values = _known_values(suspects, content, dialect) if suspects else []
    for line, rows in suspects:
        count = sum(
            any(
                value and (value in values or (numeric and _is_number(value)))
                for value, (values, numeric) in zip(row, known_values, strict=True)
            )
            for row in rows
        )
        if count > 1:
            tally.swallowed += count - 1
            tally.see("row_like", line)


def _known_values(
    suspects: Sequence[tuple[int, list[list[str]]]], content: bytes, dialect: Dialect
) -> list[tuple[set[str], bool]]:
    """Return, by column, which of the suspects' values other rows have, and whether theirs are all numbers."""
    columns = [
        set(column) for column in zip(*(row for _, rows in suspects for row in rows), strict=True)
    ]
    values_in_rows: list[set[str]] = [set() for _ in columns]
    numeric, filled = [True] * len(columns), [False] * len(columns)
    for number, record in enumerate(records(content, dialect)):
        if not number or b"\n" in record.written or len(record.fields) != len(columns):
            continue
        for i, value in enumerate(record.fields):
            if value in columns[i]:
                values_in_rows[i].add(value)
            filled[i] = filled[i] or bool(value)
            numeric[i] = numeric[i] and (not value or _is_number(value))
    return [(values_in_rows[i], numeric[i] and filled[i]) for i in range(len(columns))]


def _notes(quotes: Quotes, tally: _Tally, double: _Tally) -> list[str]:
    notes = []
    if quotes == "none" and double.enclosed:
        notes.append(
            f"quotes are read as characters, not around fields: so the rows fit the header best (first: line "
            f"{double.first_lines['enclosed']}); if they do enclose fields, say --quotes double"
        )
    if quotes == "backslash":
        notes.append(
            "backslashes before quotes, separators and backslashes are read as escapes; if they are "
            "characters, say --quotes none"
        )
    if quotes != "none" and tally.row_like:
        notes.append(
            f"texts whose line breaks look like rows: {tally.row_like} (first: line "
            f"{tally.first_lines['row_like']}); if their quotes enclose no fields, say --quotes none"
        )
    if quotes != "none" and tally.unclosed:
        notes.append(
            f"fields that begin with a quote and do not end with one: {tally.unclosed} (first: line "
            f"{tally.first_lines['unclosed']}); read as they are written"
        )
    return notes
