"""Escape a user's words (labels, columns, paths) for Markdown and LaTeX: one line of text, no commands."""

import re

from heedmap.terminal.output import printable

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#",
    "$": r"\$", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "–": "--", "−": "$-$", "†": r"$^\dagger$",
    "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "∩": r"$\cap$", "‖": r"$\Vert$", "½": r"$\frac12$",
    "₀": "$_0$", "₁": "$_1$", "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "α": r"$\alpha$", "β": r"$\beta$",
    "δ": r"$\delta$", "ε": r"$\varepsilon$", "λ": r"$\lambda$", "ξ": r"$\xi$", "τ": r"$\tau$",
})  # fmt: skip
# Characters that start code, emphasis, a table cell, a tag, an entity, mathematics or the target of a link.
_MARKDOWN = re.compile(r"[\\`*~|<>$]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])|(?<=\])[(\[:]")


def markdown_text(text: str) -> str:
    r"""Escape a text for Markdown.

    >>> markdown_text("<b> `a|b` [x](y)")
    '\\<b\\> \\`a\\|b\\` [x]\\(y)'
    """
    return _MARKDOWN.sub(lambda match: "\\" + match[0], printable(text))


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> latex_text("\\input{x} 5%")
    '\\textbackslash{}input\\{x\\} 5\\%'
    """
    return printable(text).translate(_LATEX)
