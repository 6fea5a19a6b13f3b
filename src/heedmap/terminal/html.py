"""Small tables for notebooks: no script and no colours of their own, and every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from heedmap.terminal.output import printable

_CELL = "text-align:left;vertical-align:top;white-space:normal"


def escaped(text: object) -> str:
    """Make a text one line of HTML, without control characters."""
    return escape(printable(text))


def html_table(
    rows: Iterable[Sequence[object]],
    head: Sequence[object] = (),
    title: object = "",
    marks: Sequence[str] = (),
) -> str:
    """Return a table of numbers and texts as HTML, escaped.

    `marks` are colours beside the rows; the first cell of a marked row is not wrapped.
    """
    lines = [_line(head, "th")] if head else []
    for i, row in enumerate(rows):
        lines.append(
            _line(
                row, "td", f";border-left:4px solid {marks[i]};white-space:nowrap" if marks else ""
            )
        )
    above = f"<div><b>{escaped(title)}</b></div>" if title else ""
    return f'{above}<table style="margin:4px 0">{"".join(lines)}</table>'


def _line(cells: Sequence[object], tag: str, mark: str = "") -> str:
    parts = [
        f'<{tag} style="{_CELL}{mark if not i else ""}">{escaped(cell)}</{tag}>'
        for i, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"
