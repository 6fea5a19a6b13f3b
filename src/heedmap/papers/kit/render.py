"""A result as HTML, Markdown, CSV and LaTeX, and on the terminal; the same result gives the same bytes."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.files import manifest
from heedmap.papers.kit.latex import latex
from heedmap.papers.kit.registry import RESULT
from heedmap.papers.kit.result import Claim, Result, Table
from heedmap.report.inline_styles import InlineStyles
from heedmap.report.scripts import bundle, own_script, safe_json
from heedmap.report.templates import environment
from heedmap.terminal.escapes import markdown_text
from heedmap.terminal.output import cell, csv_cell

if TYPE_CHECKING:
    from rich.console import RenderableType

_HYPHEN = re.compile(r"(?<![\w.])-(?=[\d.])")  # of a negative number
FILES = (RESULT, "result.html", "result.csv", "result.tex")


def write(folder: Path, result: Result) -> None:
    """Write the result's files, each whole or not at all.

    Raises:
        InputError: the place cannot be written.
    """
    for name, render in zip(FILES, (markdown, page, csv_text, latex), strict=True):
        manifest.write(folder / name, render(result))


def page(result: Result) -> str:
    """Return result.html: figures, tables, claims, and links to the models' own reports."""
    template = environment().get_template("grid.html")
    return template.render(
        result=result,
        scripts=[bundle(), own_script("figures.js")],
        styled=InlineStyles(),
        figures=[(figure, safe_json(figure.spec)) for figure in result.figures],
        with_minus=with_minus,
    )


def with_minus(number: str) -> str:
    """Return a number with a minus sign in place of a hyphen."""
    return _HYPHEN.sub("−", number)


def markdown(result: Result) -> str:
    """Return result.md."""
    parts = [f"# {markdown_text(result.title)}", *map(markdown_text, result.remarks)]
    for part in result.parts:
        if isinstance(part, Claim):
            verdict = f"**{part.verdict.capitalize()}.** {markdown_text(part.basis)}".rstrip()
            parts += [f"## Claim: {markdown_text(part.text)}", verdict]
            parts += [f"The paper: {markdown_text(part.found)}"] if part.found else []
            parts.append("\n".join(f"* {markdown_text(number)}" for number in part.numbers))
        else:
            parts += [f"## {markdown_text(part.title)}", _pipes(part)]
            parts += [part.reading] if part.reading else []
    return "\n\n".join(parts) + "\n"


def _pipes(table: Table) -> str:
    # pandas writes Markdown with another package, and would pad the cells.
    rule = ["---" if i < table.labels else "---:" for i in range(len(table.heads))]
    lines = ([_linked(text, table.links) for text in line] for line in (table.heads, *table.lines))
    heads, *body = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([heads, "| " + " | ".join(rule) + " |", *body])


def _linked(text: str, links: Mapping[str, str]) -> str:
    escaped = markdown_text(text)
    return f"[{escaped}](<{links[text]}>)" if text in links else escaped


def csv_text(result: Result) -> str:
    """Return result.csv: one line per row, empty where there is no number."""
    harmless = result.rows.map(lambda value: csv_cell(value) if isinstance(value, str) else value)
    return harmless.to_csv(index=False, lineterminator="\n")


def terminal(result: Result) -> "Iterator[RenderableType]":
    """Yield the remarks, the summary and the claims, for the terminal."""
    from rich.table import Table as Grid

    yield from map(cell, result.remarks)
    summary = result.summary
    grid = Grid(title=cell(summary.title), box=None)
    for i, head in enumerate(summary.heads):
        side = "left" if i < summary.labels else "right"
        grid.add_column(cell(head), justify=side, overflow="fold")  # type: ignore[arg-type]
    for line in summary.lines:
        words, numbers = line[: summary.labels], line[summary.labels :]
        grid.add_row(*map(cell, words), *(cell(with_minus(text)) for text in numbers))
    yield grid
    for claim in result.claims:
        verdict = f"  {claim.verdict.upper()}. {claim.basis}".removesuffix(". ")
        found = [f"  The paper: {claim.found}"] if claim.found else []
        yield from map(cell, ("", f"Claim: {claim.text}", verdict, *found))
        yield from (cell(f"  - {number}") for number in claim.numbers)
