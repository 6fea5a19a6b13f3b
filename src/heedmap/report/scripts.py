"""The page's JavaScript: Vega, our own bundles, and a policy that forbids everything else."""

import base64
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import vl_convert
from markupsafe import Markup


@lru_cache(maxsize=1)
def bundle() -> Markup:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the vl-convert package: no network."""
    return _inside_an_element(
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), "the bundle of vl-convert"
    )


@lru_cache
def own_script(name: str) -> Markup:
    """Return one of our own bundles, which `make page` builds from `page/`."""
    text = files("heedmap.report").joinpath(name).read_text("utf-8")
    return _inside_an_element(text, name)


def _inside_an_element(script: str, name: str) -> Markup:
    lower = script.lower()
    if "</script" in lower or "<!--" in lower or "\r" in script:
        raise AssertionError(f"{name} cannot stand inside a script element")
    return Markup(script)


def policy(*scripts: str, style: str) -> str:
    """Return a Content-Security-Policy that allows these scripts, this style sheet, and no network."""
    allowed = " ".join(map(_sha256, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_sha256(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def safe_json(value: dict[str, Any]) -> Markup:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
