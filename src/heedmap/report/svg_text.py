"""The text around a chart as SVG: title, n, legend and notes, wrapped to the width."""

import re
import unicodedata
from dataclasses import dataclass
from html import escape

from heedmap.report.charts import QUIET, TEXT, Figure, Key

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # the first comes with vl-convert
INK, SOFT = "#1c1d20", "#5c6068"
MARK, GAP = 18, 5  # a legend's mark, and the space after it

# Widths of the font's letters in thousandths of its size; 700 for all others.
_WIDTHS = {
    letter: width
    for letters, width in {
        "'ijl": 222, "|": 260, " !,./:;I[\\]ft": 278, "()-`r": 333, '"': 355, "*": 389, "^": 469,
        "Jckvxsyz": 500, "#$?_0123456789Labdeghnopquτε": 556, "+<=>~−×": 584, "FTZ": 611,
        "&ABEKPSVXY": 667, "CDHNRUw": 722, "GOQ": 778, "Mm": 833, "%": 889, "W": 944, "@—": 1015,
    }.items()
    for letter in letters
}  # fmt: skip
_BOLD = 1.05


@dataclass(frozen=True)
class SvgText:
    """A piece of SVG and its height."""

    svg: str
    height: float


def above(figure: Figure, width: float) -> SvgText:
    """Draw title, n and legend."""
    if not (figure.title or figure.n or figure.keys):
        return SvgText("", 0)
    top = _text(figure.title, width, 0, size=11.5, bold=True)
    n = _text(figure.n, width, top.height, size=9.5, colour=SOFT)
    legend = _legend(figure.keys, width, top.height + n.height + 3)
    return SvgText(top.svg + n.svg + legend.svg, top.height + n.height + legend.height + 7)


def below(figure: Figure, width: float) -> SvgText:
    """Draw the notes."""
    if not figure.notes:
        return SvgText("", 0)
    return _text(f"Note: {'; '.join(figure.notes)}.", width, 4, size=9.5, colour=SOFT)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Estimate the width of a line, rather too wide than too narrow."""
    wide = sum(_letter(letter) for letter in text) / 1000 * size
    return wide * _BOLD if bold else wide


def _letter(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1000
    return _WIDTHS.get(letter, 700)


def lines(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Wrap a text to lines no wider than `width`; a wider word is cut.

    >>> lines("how different may it be", 60, 10)
    ['how different', 'may it be']
    """
    wrapped = [""]
    for word in text.split():
        longer = f"{wrapped[-1]} {word}".lstrip()
        if text_width(longer, size, bold) <= width:
            wrapped[-1] = longer
            continue
        pieces = _cut(word, width, size, bold)
        wrapped = [line for line in [*wrapped, *pieces] if line]
    return wrapped


def _cut(word: str, width: float, size: float, bold: bool) -> list[str]:
    pieces = [""]
    for letter in word:
        if pieces[-1] and text_width(pieces[-1] + letter, size, bold) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _text(
    text: str, width: float, y: float, *, size: float, colour: str = INK, bold: bool = False
) -> SvgText:
    step = round(size * 1.28, 2)
    drawn = [
        _line(line, 0, y + size + i * step, size=size, colour=colour, bold=bold)
        for i, line in enumerate(lines(text, width, size, bold))
        if line
    ]
    return SvgText("".join(drawn), len(drawn) * step + 1 if drawn else 0)


def _line(text: str, x: float, y: float, *, size: float, colour: str, bold: bool = False) -> str:
    # Stroked instead of a bold font: a PDF lists several fonts in random order.
    stroke = f' stroke="{colour}" stroke-width="{size / 30:.2g}" letter-spacing="{size / 50:.2g}"'
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{FONT}" font-size="{size:g}px"{stroke if bold else ""} '
        f'fill="{colour}">{clean(text)}</text>'
    )


def _legend(keys: list[Key], width: float, top: float, size: float = 9.5) -> SvgText:
    """Draw entries side by side while they fit; an entry too long for a line is wrapped."""
    step, x, y, drawn = 13.0, 0.0, top, []
    for key in keys:
        label = lines(key.label, width - MARK - GAP, size)
        length = MARK + GAP + max(text_width(line, size) for line in label)
        if x and x + length > width:
            x, y = 0.0, y + step
        drawn.append(_mark(key, x, y + 6.5))
        drawn += [
            _line(line, x + MARK + GAP, y + 10 + i * step, size=size, colour=INK)
            for i, line in enumerate(label)
        ]
        y += (len(label) - 1) * step
        x += length + 12
    return SvgText("".join(drawn), y + step - top if keys else 0)


def _mark(key: Key, x: float, middle: float) -> str:
    own = INK if key.colour == TEXT else key.colour
    colour, strength = own[:7], int(own[7:9] or "ff", 16) / 255
    if key.line == "hollow":
        return (
            f'<path d="M{x + MARK / 2:g},{middle - 5:g}l5,5l-5,5l-5,-5z" fill="none" '
            f'stroke="{colour}" stroke-width="1.5"/>'
        )
    if key.line:
        dash = {"solid": "", "dashed": "5,3", "dotted": "2,2"}[key.line]
        return (
            f'<path d="M{x:g},{middle:g}h{MARK}" stroke="{colour}" stroke-width="2.5" '
            f'stroke-opacity="{strength:g}"'
            + (f' stroke-dasharray="{dash}"' if dash else "")
            + "/>"
        )
    return (
        f'<rect x="{x:g}" y="{middle - 4:g}" width="{MARK}" height="8" rx="1.5" fill="{colour}" '
        f'fill-opacity="{0.8 * strength:.3g}" stroke="{QUIET}" stroke-width="0.3"/>'
    )


def clean(text: str) -> str:
    """Escape a text for SVG; characters that XML forbids are replaced."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text))
