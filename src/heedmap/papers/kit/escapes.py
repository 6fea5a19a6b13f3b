"""A user's words (labels, columns, paths) in Markdown and LaTeX: text there, one line, never a command."""

import re

from heedmap.terminal.output import printable

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#",
    "$": r"\$", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "–": "--",
})  # fmt: skip
# What opens something: code, emphasis, a table's cell, a tag, an entity, mathematics, the target of a link.
_MARKDOWN = re.compile(r"[\\`*~|<>$]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])|(?<=\])[(\[:]")


def markdown_text(text: str) -> str:
    r"""A text as Markdown of that very text.

    >>> markdown_text("<b> `a|b` [x](y)")
    '\\<b\\> \\`a\\|b\\` [x]\\(y)'
    """
    return _MARKDOWN.sub(lambda found: "\\" + found[0], printable(text))


def latex_text(text: str) -> str:
    r"""A text as LaTeX of that very text.

    >>> latex_text("\\input{x} 5%")
    '\\textbackslash{}input\\{x\\} 5\\%'
    """
    return printable(text).translate(_LATEX)
