"""The documentation site: `make docs` builds it offline. Its front page is docs/index.md."""

import re
from posixpath import dirname, normpath

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

from heedmap import __version__

logger = getLogger(__name__)

project = "heedmap"
author = project_copyright = "The heedmap developers"
version = release = __version__
REPOSITORY = "https://github.com/heedmap/heedmap"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]  # GitHub draws these too
myst_heading_anchors = 4
nitpicky = True
# Other libraries' types are not looked up, since a build needs no network, nor our own that no page is about.
nitpick_ignore_regex = [("py:.*", ".*")]
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # of options they are pydantic's, and long
default_role = "code"  # `x` in docstrings

html_theme = "furo"
html_title = "heedmap"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}


def lead_out(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead the links that leave docs/, which work on GitHub and in a checkout, to the repository."""

    def replace(found: re.Match[str]) -> str:
        path = normpath(f"docs/{dirname(page)}/{found[1]}")
        inside = path.startswith("docs/")
        return found[0] if inside else f"]({REPOSITORY}/blob/main/{path}"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]*)", replace, source[0])


def mark_options(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Mark the options of the command line in docstrings as code, so that they keep their dashes."""
    pattern = r"(`+[^`]+`+)|(?<![\w-])(--[a-z][\w-]*)"  # not what is code already
    lines[:] = [re.sub(pattern, lambda x: x[1] or f"``{x[2]}``", line) for line in lines]


def write_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw themselves, without scripts or a network."""
    block = isinstance(node, nodes.math_block)
    # docutils would set the index of an accented letter under the letter.
    tex = re.sub(r"(\\(?:hat|bar)\s*(?:\\[a-z]+|[a-z]))_", r"\1{}_", node.astext())
    try:
        formula = tex2mathml(tex, as_block=block)
    except MathError as error:
        logger.warning("formula: %s", error, location=node)
        raise nodes.SkipNode from error
    self.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the three."""
    app.connect("source-read", lead_out)
    app.connect("autodoc-process-docstring", mark_options)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
