"""The templates of every HTML page, in which all inserted text is escaped, with the nouns of a run."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.lexer import Token
from markupsafe import Markup

from heedmap.nouns import TEXTS, Nouns
from heedmap.report.alternatives import alternative
from heedmap.report.scripts import policy, safe_json

# Control characters become visible symbols: a page printed in a terminal must not control it.
_PICTURES = {c: 0x2400 + c for c in range(32) if chr(c) not in "\t\n\r"} | {127: 0x2421}


# Of HTML: attributes that nobody reads. A value may go on after what a template inserts.
_UNREAD = re.compile(r"\b(?!title=|aria-label=|placeholder=)[\w-]+=\"[^\"]*\"?|<[\w/-]+")


class _Rewording(Extension):
    """Put the environment's nouns into what templates say themselves; what they insert stays as it is."""

    def filter_stream(self, stream: Iterable[Token]) -> Iterator[Token]:
        nouns = self.environment.globals["nouns"]
        assert isinstance(nouns, Nouns)
        for token in stream:
            if token.type == "data" or (token.type == "string" and " " in token.value):
                yield Token(token.lineno, token.type, _read_aloud(token.value, nouns))
            else:
                yield token


def _read_aloud(html: str, nouns: Nouns) -> str:
    """Reword what a reader sees of a piece of a template."""
    unread = [match[0] for match in _UNREAD.finditer(html)]
    seen = [nouns.reword(part) for part in _UNREAD.split(html)]
    return "".join(part for pair in zip(seen, [*unread, ""], strict=True) for part in pair)


@lru_cache(maxsize=8)
def environment(nouns: Nouns = TEXTS) -> Environment:
    """Return the template environment of this package, with its styles; everything inserted is escaped.

    `nouns` are put into the templates' own sentences.
    """
    environment = Environment(
        loader=PackageLoader("heedmap", "report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=[] if nouns == TEXTS else [_Rewording],
    )
    environment.globals["nouns"] = None if nouns == TEXTS else nouns
    environment.globals["style"] = Markup(
        files("heedmap.report").joinpath("style.css").read_text("utf-8")
    )
    environment.globals["policy"] = policy
    environment.filters["alternative"] = alternative
    environment.filters["reword"] = nouns.reword
    environment.filters["safe_json"] = safe_json
    environment.filters["shade"] = lambda x: f"{x:z.3f}".rstrip("0").rstrip(".")
    environment.filters["slug"] = lambda level: level.replace(" ", "-")
    environment.filters["weight"] = lambda x: f"{x:z.4g}"
    return environment


def _visible(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(_PICTURES)
    return value
