"""A heat map laid over a picture, drawn with the elements of SVG alone: no scripts, no styles."""

from markupsafe import Markup, escape

from heedmap.experiments.rounding import number
from heedmap.report.explained_window import Picture
from heedmap.report.heatmaps import Row, Token

SIDE, OVER = 240, 0.75  # pixels of the longer side; opacity of the largest weight
COLOURS = {"attention": "#f08824", "importance": "#569ce6"}
AGAINST = "#d64038"


def over_picture(picture: Picture, row: Row) -> Markup:
    """Return the picture with a patch in colour for each token of a row: the larger its number, the stronger.

    A patch that is marked has a border.
    """
    across, down = max(picture.columns) + 1, max(picture.rows) + 1
    scale = SIDE / max(across, down)
    width, height = round(across * scale), round(down * scale)
    patches = [
        _patch(token, COLOURS[row.kind], column, line)
        for token, column, line in zip(
            row.tokens, picture.columns, picture.rows, strict=bool(row.tokens)
        )
    ]
    return Markup(
        f'<svg width="{width}" height="{height}" viewBox="0 0 {across} {down}" role="img">'
        f'<image href="{escape(picture.uri)}" width="{across}" height="{down}" preserveAspectRatio="none"/>'
        f"{''.join(patches)}</svg>"
    )


def _patch(token: Token, colour: str, column: int, line: int) -> str:
    fill = AGAINST if token.against else colour
    border = f' stroke="{AGAINST}" stroke-width="0.08"' if token.gold else ""
    name = f"{'against: ' if token.against else ''}{number(token.weight)}"
    return (
        f'<rect x="{column}" y="{line}" width="1" height="1" fill="{fill}" '
        f'fill-opacity="{token.shade * OVER:.2f}"{border}><title>{escape(token.text)}: {name}</title></rect>'
    )
