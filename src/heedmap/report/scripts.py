"""The page's JavaScript: Vega, our own few lines, and a policy that forbids everything else."""

import base64
import hashlib
import json
from functools import lru_cache
from typing import Any

import vl_convert
from markupsafe import Markup

# `ast` draws without eval, which the policy forbids. Charts take text and line colours from the
# page, and are redrawn when the system switches between dark and light.
DRAW = """
(() => {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const config = () => ({
    background: "transparent",
    font: "system-ui, sans-serif",
    view: {stroke: null},
    axis: {
      labelColor: colour("--text"), titleColor: colour("--text"), titleFontWeight: "normal",
      gridColor: colour("--line"), domainColor: colour("--quiet"), tickColor: colour("--quiet"),
      labelFontSize: 11, titleFontSize: 12, tickCount: 5
    },
    text: {color: colour("--text")}, rule: {color: colour("--text")}, point: {color: colour("--text")},
    aria: true
  });
  const draw = () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
      vegaEmbed(place, spec, {
        ast: true, actions: false, renderer: "svg", config: config(),
        tooltip: {theme: scheme.matches ? "dark" : "light"}
      }).catch(error => { place.textContent = "This figure could not be drawn: " + error; });
    }
  };
  scheme.addEventListener("change", draw);
  draw();
})();
"""


@lru_cache(maxsize=1)
def bundle() -> Markup:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the vl-convert package: no network."""
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    lower = script.lower()
    if "</script" in lower or "<!--" in lower or "\r" in script:
        raise AssertionError("the bundle of vl-convert cannot stand inside a script element")
    return Markup(script)


def policy(*scripts: str) -> str:
    """Return a Content-Security-Policy that allows these scripts and the page's styles, and no network."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() + "'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def safe_json(value: dict[str, Any]) -> Markup:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
