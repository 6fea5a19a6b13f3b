"""The head of the verdict card as a file for slides and papers: SVG, PNG, Markdown or LaTeX."""

import re
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from heedmap.errors import InputError
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.levels import COLOURS
from heedmap.files.storage import encoded
from heedmap.report.card_content import (
    TITLE,
    CardContent,
    Question,
    card_content,
)
from heedmap.report.drawing import draw_with
from heedmap.report.labelled_charts import FONT, INK, SOFT, wrapped
from heedmap.terminal.output import printable

FORMATS = ("svg", "png", "md", "tex")
WIDTH, MARGIN, GAP = 960, 32, 14  # of the picture, in its units
LEVEL_WIDTH, NUMBER_WIDTH = 160, 330  # of the questions' first and last column
SENTENCE, DETAIL, FACT = 21, 15, 13  # sizes of letters
LEADING = 1.35  # from line to line, of the letters' size
MARK = 11  # the square of a level's colour
SCALE = 2  # pixels of a PNG per unit of the picture

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~$#&!])")
_ITEM = re.compile(r"^(\d*)(?=[-+=.)](?:\s|$))")  # would begin a list
_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "-": "-{}", "−": "$-$", "–": "--",
    "—": "---", "“": "``", "”": "''", "‘": "`", "’": "'", "×": r"$\times$", "±": r"$\pm$", "·": r"$\cdot$",
    "…": r"\dots{}", "≤": r"$\le$", "≥": r"$\ge$", "ε": r"$\varepsilon$", "τ": r"$\tau$", "½": r"$\frac12$",
}  # fmt: skip


def format_of(path: Path, file_format: str | None = None) -> str:
    """Return the format of a card's file, which its name ends in.

    Raises:
        InputError: the name ends otherwise.
    """
    ending = path.suffix.lower().removeprefix(".")
    expected = FORMATS if file_format is None else (file_format,)
    if ending not in expected:
        endings = ", ".join(f".{name}" for name in expected)
        raise InputError(f"{path}: expected a name that ends in {endings}; rename it")
    return ending


def card_file(audit: AuditResult, file_format: str) -> bytes:
    """Return the card's head in one of FORMATS; the same audit gives the same bytes."""
    content = card_content(audit)
    if file_format == "md":
        return encoded(markdown(content))
    if file_format == "tex":
        return encoded(latex(content))
    picture = svg(content)
    if file_format == "svg":
        return encoded(picture)
    pixels: bytes = draw_with("svg_to_png", picture, scale=SCALE)
    return pixels


def markdown(card: CardContent) -> str:
    """Return the card as Markdown, in which no text of the data is markup."""
    paragraphs = [f"**{TITLE}**", f"**{_markdown(card.sentence)}**", *map(_markdown, card.details)]
    if card.questions:
        rows = [
            ("level", "question", "number"),
            ("---",) * 3,
            *(
                tuple(map(_markdown, (question.words, question.topic, _numbers(question))))
                for question in card.questions
            ),
        ]
        paragraphs.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    paragraphs.append("\n".join(f"* {name}: {_markdown(value)}" for name, value in card.facts))
    paragraphs.append(f"*{_markdown(f'{card.source}. {card.intervals}.')}*")
    return "\n\n".join(paragraphs) + "\n"


def _markdown(text: str) -> str:
    return _ITEM.sub(r"\1\\", _MARKDOWN.sub(r"\\\1", printable(text)))


def _numbers(question: Question) -> str:
    return f"{question.number}, {question.n}"


def latex(card: CardContent) -> str:
    r"""Return the card as LaTeX that needs no package: paragraphs, and a table as wide as the line."""
    columns = r"@{}l@{\quad}p{0.42\linewidth}@{\quad}p{0.34\linewidth}@{}"
    rows = [
        f"{tex(question.words)} & {tex(question.topic)} & {tex(_numbers(question))} \\\\"
        for question in card.questions
    ]
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", *rows, r"\hline", r"\end{tabular}"]
    described = "; ".join(f"{name}: {value}" for name, value in card.facts)
    paragraphs = [
        rf"\noindent\textbf{{{tex(card.sentence)}}}",
        *(tex(detail) for detail in card.details),
        *([r"\noindent" + "\n".join(table)] if rows else []),
        rf"\noindent{{\footnotesize {tex(f'{described}. {card.source}. {card.intervals}.')}\par}}",
    ]
    return "\n\n".join(paragraphs) + "\n"


def tex(text: str) -> str:
    r"""Return a text as LaTeX typesets it: nothing in it is a command, and our own symbols need no package.

    >>> print(tex("50% of a_b, −1"))
    50\% of a\_b, $-$1
    """
    return "".join(_TEX.get(letter, letter) for letter in printable(text))


def svg(card: CardContent) -> str:
    """Return the card as a picture with a white ground and lines that are broken to its width."""
    picture = _Picture(COLOURS[card.level])
    picture.write([TITLE], FACT, SOFT)
    picture.skip(GAP / 2)
    picture.paragraph(card.sentence, SENTENCE, bold=True)
    picture.skip(GAP)
    for detail in card.details:
        picture.paragraph(detail, DETAIL)
        picture.skip(GAP / 2)
    picture.rule()
    for question in card.questions:
        picture.mark(COLOURS[question.level])
        picture.row(question.words, question.topic, _numbers(question))
    if card.questions:
        picture.rule()
    for name, value in card.facts:
        picture.paragraph(f"{name}: {value}", FACT, SOFT)
    picture.paragraph(f"{card.source}. {card.intervals}.", FACT, SOFT)
    return picture.text()


class _Picture:
    """A picture that grows line by line; `colour` is that of the bar at its left."""

    def __init__(self, colour: str) -> None:
        self.colour, self.top, self.parts = colour, float(MARGIN), list[str]()

    def skip(self, height: float) -> None:
        """Leave room."""
        self.top += height

    def paragraph(self, text: str, size: float, colour: str = INK, bold: bool = False) -> None:
        """Write a text over the whole width."""
        # Bold letters are wider than those that `wrapped` counts with.
        width = (WIDTH - 2 * MARGIN) * (0.94 if bold else 1)
        self.write(wrapped(text, width, size), size, colour, bold=bold)

    def mark(self, colour: str) -> None:
        """Draw a square before the next row: the colours of the levels are too light for letters."""
        top = self.top + DETAIL - MARK
        self.parts.append(
            f'<rect x="{MARGIN}" y="{top:g}" width="{MARK}" height="{MARK}" fill="{colour}"/>'
        )

    def row(self, *cells: str) -> None:
        """Write three texts beside one another, each within its column."""
        width = WIDTH - 2 * MARGIN
        starts = (MARK + 6, LEVEL_WIDTH, width - NUMBER_WIDTH, width + GAP)
        top, bottoms = self.top, []
        for text, start, end in zip(cells, starts, starts[1:], strict=False):
            self.top = top
            self.write(wrapped(text, end - start - GAP, DETAIL), DETAIL, start=MARGIN + start)
            bottoms.append(self.top)
        self.top = max(bottoms)

    def write(
        self,
        lines: Iterable[str],
        size: float,
        colour: str = INK,
        start: float = MARGIN,
        bold: bool = False,
    ) -> None:
        """Write lines below one another."""
        for line in lines:
            baseline = self.top + size
            style = ' font-weight="bold"' if bold else ""
            room = WIDTH - MARGIN - start
            if (
                size * sum(map(_advance, line)) > room
            ):  # of capitals, which `wrapped` takes for digits
                style += f' textLength="{room:g}" lengthAdjust="spacingAndGlyphs"'
            self.parts.append(
                f'<text x="{start:g}" y="{baseline:g}" font-size="{size:g}" fill="{colour}"{style}>'
                f"{_xml(line)}</text>"
            )
            self.top += LEADING * size

    def rule(self) -> None:
        """Draw a thin line across."""
        self.skip(GAP / 2)
        self.parts.append(
            f'<path d="M{MARGIN} {self.top:g}H{WIDTH - MARGIN}" stroke="#d8d8d4" stroke-width="1"/>'
        )
        self.skip(GAP)

    def text(self) -> str:
        """Return the whole picture."""
        height = round(self.top + MARGIN - FACT * (LEADING - 1))
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" role="img" '
                f'aria-label="{escape(TITLE)}">',
                f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
                f'<rect width="8" height="{height}" fill="{self.colour}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def _advance(letter: str) -> float:
    """Return the most that a letter takes, bold or not, as a share of its size."""
    if not letter.isascii() or letter in "MW@%":
        return 1.0
    return 0.75 if letter.isupper() or letter in "mw+=<>&" else 0.5


def _xml(text: str) -> str:
    return re.sub("[\ufffe\uffff]", "\ufffd", escape(text))
