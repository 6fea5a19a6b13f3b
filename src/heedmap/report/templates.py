"""The templates of every HTML page: one environment, in which all inserted text is escaped."""

from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedmap.report.alternatives import alternative
from heedmap.report.scripts import policy, safe_json

# Control characters become visible symbols: a page printed in a terminal must not control it.
_PICTURES = {c: 0x2400 + c for c in range(32) if chr(c) not in "\t\n\r"} | {127: 0x2421}


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the template environment of this package, with its styles; everything inserted is escaped."""
    environment = Environment(
        loader=PackageLoader("heedmap", "report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["style"] = Markup(
        files("heedmap.report").joinpath("style.css").read_text("utf-8")
    )
    environment.globals["policy"] = policy
    environment.filters["alternative"] = alternative
    environment.filters["safe_json"] = safe_json
    environment.filters["shade"] = lambda x: f"{x:z.3f}".rstrip("0").rstrip(".")
    environment.filters["slug"] = lambda level: level.replace(" ", "-")
    environment.filters["weight"] = lambda x: f"{x:z.4g}"
    return environment


def _visible(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(_PICTURES)
    return value
