"""A result as a table for LaTeX: booktabs' rules, numbers aligned at the decimal point, caption and label."""

import re
from collections.abc import Sequence
from textwrap import wrap

import pandas as pd

from heedmap.papers.kit.result import Result
from heedmap.terminal.escapes import latex_text
from heedmap.terminal.output import printable

PACKAGES = "Packages: booktabs; longtable for more lines than a page has."
LONG = 40  # lines; a longer table goes over pages
BROAD, NARROW = 40, 12  # letters of names that are wrapped, and of a head of numbers
# A number at the start of a cell, and what follows it: an interval, a unit. 1e-05 is no such number.
_NUMBER = re.compile(r"(?P<sign>[-−]?)(?P<whole>\d*)(?P<rest>\.\d+|(?<=\d))(?![\d.eE])(?P<more>.*)")


def latex(result: Result) -> str:
    """Return result.tex: the remarks and the packages as comments, and one table that pdflatex compiles.

    Columns of numbers are two, r@{}l, that meet at the decimal point of a cell's first number. Letters that
    pdflatex does not know (of other scripts, in names of data) are named in a comment; lualatex has them.
    """
    table, is_long = result.latex, len(result.latex.lines) > LONG
    columns = [[line[i] for line in table.lines] for i in range(len(table.heads))]
    typeset = [
        _words(head, cells) if i < table.labels else _numbers(head, cells)
        for i, (head, cells) in enumerate(zip(table.heads, columns, strict=True))
    ]
    frame = pd.DataFrame({head: cells for _, head, cells in typeset})
    words = [f"{table.title}.", table.note, result.not_learned if table.is_marked else ""]
    caption = " ".join(" ".join(words).replace("`", "").split())
    text = frame.style.hide(axis="index").to_latex(
        hrules=True,
        column_format="".join(kind for kind, *_ in typeset),
        caption=latex_text(caption),
        label=f"tab:{re.sub('[^a-z0-9]+', '-', result.title.lower()).strip('-')}",
        position_float=None if is_long else "centering",
        environment="longtable" if is_long else None,
    )
    size = "\\footnotesize\\setlength{\\tabcolsep}{3pt}"
    if is_long:
        again = rf"\caption[]{{{latex_text(table.title)}, continued}}"
        text = text.replace(rf"\caption[]{{{latex_text(caption)}}}", again)
        text = f"{{{size}\n{text}}}\n"
    else:  # a float forgets the size around it
        text = text.replace("\\centering", f"\\centering\n{size}", 1)
    unknown = "".join(sorted({letter for letter in text if ord(letter) > 0x17F}))
    comments = [*result.remarks, PACKAGES]
    comments += [f"Not for pdflatex, for lualatex: {unknown}"] if unknown else []
    return "".join(f"% {printable(line)}\n" for line in comments) + text


def _words(head: str, cells: Sequence[str]) -> tuple[str, str, list[str]]:
    # After the end of a line LaTeX takes a bracket or a star for an option: {} goes between.
    body = ["{}" * text.startswith(("[", "*")) + latex_text(text) for text in cells]
    wraps = max(map(len, cells), default=0) > BROAD
    return r"p{.3\linewidth}" if wraps else "l", latex_text(head), body


def _numbers(head: str, cells: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return column type, head and cells: two columns that meet at the decimal point."""
    stacked = r" \\{} ".join(map(latex_text, wrap(head, NARROW)))
    head = _across(rf"\shortstack{{{stacked}}}" if len(head) > NARROW else latex_text(head))
    return "r@{}l", head, [_cell(text) for text in cells]


def _across(text: str) -> str:
    return rf"\multicolumn{{2}}{{c}}{{{text}}}"


def _cell(text: str) -> str:
    number = _NUMBER.fullmatch(text)
    if number is None:
        return _across(latex_text(text))
    rest = latex_text(re.sub(r"(?<!\w)-(?=[\d.])", "−", number["more"]))
    return f"{'$-$' if number['sign'] else ''}{number['whole']} & {number['rest']}{rest}"
