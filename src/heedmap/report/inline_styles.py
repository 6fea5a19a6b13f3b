"""The styles of single elements, as rules of one style sheet: the page's policy allows no style attributes."""

import re

from markupsafe import Markup

_DECLARATIONS = re.compile(r"[-\w]+:[-#.% \w]+(?:;[-\w]+:[-#.% \w]+)*")


class InlineStyles:
    """The style sheet of one page, which grows while its elements are rendered."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, declarations: str) -> Markup:
        """Return the attribute of an element with these declarations, such as "left:3%;width:2%"."""
        _check(declarations)
        number = self._numbers.setdefault(declarations, len(self._numbers))
        return Markup(f'data-s="{number}"')

    @property
    def sheet(self) -> Markup:
        """Return the rules of the elements so far."""
        return Markup(
            "".join(
                f'[data-s="{number}"]{{{declarations}}}\n'
                for declarations, number in self._numbers.items()
            )
        )


def style_attribute(declarations: str) -> Markup:
    """Return the attribute itself, for a notebook, which has no style sheet of ours."""
    _check(declarations)
    return Markup(f'style="{declarations}"')


def _check(declarations: str) -> None:
    if not _DECLARATIONS.fullmatch(declarations):
        raise ValueError(f"{declarations!r}: expected name:value;name:value")
