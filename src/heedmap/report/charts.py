"""The parts of every figure: its texts, its legend, and its Vega-Lite specification.

On the page, titles, captions and legends are HTML outside the chart, so that they wrap on a phone and follow
the page's colours; in files and notebooks Vega-Lite draws them (`labelled_charts`). Charts take their
colours for text and lines from the page when they are drawn.

What a chart draws of texts has their row numbers in the field `rows` of its data: one of a point, many of a
bar. A shape of many texts, such as a curve, has them at its first point, with their values in `xs` and,
if it has a place of its own, that in `ys`. The page's scripts link these marks with the table of texts.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any, Self

import altair as alt
from altair.utils import schemapi

from heedmap.nouns import TEXTS, Nouns

# Readable on white and on black; the first two differ in every common kind of colour blindness.
PALETTE = (
    "#3b7dd8", "#e0752d", "#2a9d6f", "#b65fcf", "#c29b1f",
    "#d6456b", "#3fa7b5", "#8f6f50", "#7d84b2", "#7fa33a",
)  # fmt: skip
QUIET = "#8a8f98"  # guides, for example limits
TEXT = "currentColor"  # in legends; rules and points of a chart have this colour by default

Drawing = alt.Chart | alt.LayerChart | alt.FacetChart  # return types of alt.layer


@dataclass(frozen=True)
class Key:
    """One entry of a legend; `line` is solid, dashed, dotted or hollow, or empty for a filled swatch."""

    label: str
    colour: str
    line: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of the report: `n` states the number of instances, `caption` how to read it."""

    key: str
    title: str
    n: str
    caption: str
    spec: dict[str, Any]
    keys: list[Key] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def reworded(figure: Figure, nouns: Nouns, names: Sequence[str]) -> Figure:
    """Return a figure with these nouns for texts and words in all that heedmap writes.

    `names` are those of classes, which stay as they are.
    """
    if nouns == TEXTS:
        return figure
    return replace(
        figure,
        title=nouns.reword(figure.title, names),
        n=nouns.reword(figure.n),
        caption=nouns.reword(figure.caption, names),
        keys=[replace(key, label=nouns.reword(key.label, names)) for key in figure.keys],
        notes=[nouns.reword(note, names) for note in figure.notes],
        spec=_reworded_spec(figure.spec, nouns, names),
    )


# What a chart calls its series, rows and columns: heedmap's words, or a class.
_WRITTEN = ("series", "ranking", "what", "map", "score", "texts", "measure", "side", "of")


def _reworded_spec(spec: dict[str, Any], nouns: Nouns, names: Sequence[str]) -> dict[str, Any]:
    """Return a specification with other nouns in its titles, and in the names of series, rows and columns."""

    def reword(written: str) -> str:
        return nouns.reword(written, names)

    values = {
        row[name]
        for data in spec.get("datasets", {}).values()
        for row in data
        for name in _WRITTEN
        if isinstance(row.get(name), str)
    }
    changed = {value: said for value in values if (said := reword(value)) != value}

    def reworded_part(part: Any, key: str = "") -> Any:
        if isinstance(part, str):
            if key in ("title", "labelExpr"):
                return reword(part)
            if key in ("test", "filter"):
                return _with_names(part, changed)
            return part if key == "field" else changed.get(part, part)
        if isinstance(part, list):
            return [reworded_part(entry, key) for entry in part]
        if not isinstance(part, dict):
            return part
        said = {
            name: reworded_part(entry, name) for name, entry in part.items() if name != "datasets"
        }
        # Vega-Lite's own title of a channel is the name of its field.
        field_name = said.get("field")
        if "type" in said and isinstance(field_name, str) and reword(field_name) != field_name:
            said.setdefault("title", reword(field_name))
        return said

    result: dict[str, Any] = reworded_part(spec)
    if "datasets" in spec:
        result["datasets"] = {
            name: [
                {k: changed.get(v, v) if k in _WRITTEN else v for k, v in row.items()}
                for row in data
            ]
            for name, data in spec["datasets"].items()
        }
    return result


def _with_names(expression: str, changed: Mapping[str, str]) -> str:
    """Return a Vega expression with other names in its quotation marks."""
    for written, said in changed.items():
        expression = expression.replace(f"'{written}'", f"'{said}'")
        expression = expression.replace(json.dumps(written), json.dumps(said))
    return expression


class _Named(str):
    """The name of a chart's data, with the data: Altair copies data for every layer, and passes on a name."""

    __slots__ = ("values",)
    values: list[dict[str, Any]]


class _Chart(alt.Chart):
    """A chart that makes its channels itself: Altair searches its whole schema for each (30 ms)."""

    def encode(self, **channels: Any) -> Self:  # type: ignore[override]  # by name only
        """Return the chart with these channels, as Altair's own does."""
        return super().encode(**{name: _channel(name, x) for name, x in channels.items()})


def _channel(name: str, value: Any) -> Any:
    """Return the channel of a field or a value, or a list of them; of anything else Altair makes it."""
    kind = name[0].upper() + name[1:]
    if isinstance(value, list):
        return [_channel(name, entry) for entry in value]
    if isinstance(value, str):
        return getattr(alt, kind)(value)
    if isinstance(value, dict) and value.keys() == {"value"}:
        return getattr(alt, f"{kind}Value")(**value)
    return value


def plot(values: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of rounded rows, which keep the page small; `specification` adds them."""
    rounded = [{k: _rounded(v) for k, v in row.items()} for row in values]
    content = json.dumps(rounded, sort_keys=True, default=str)
    name = _Named(f"data-{hashlib.sha256(content.encode()).hexdigest()[:32]}")
    name.values = rounded
    return _Chart(alt.NamedData(name=name))


def _rounded(value: Any) -> Any:
    """Round floats, also in a list, to four decimals; below a tenth to three significant digits."""
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    if not isinstance(value, float):
        return value
    return round(value, 4) if abs(value) >= 0.1 else float(f"{value:.3g}")


def colour(domain: list[str]) -> alt.Color:
    """Return the colours of the series, without a legend of Vega-Lite's."""
    return alt.Color(
        "series:N",
        scale=alt.Scale(
            domain=domain, range=[PALETTE[i % len(PALETTE)] for i in range(len(domain))]
        ),
        legend=None,
    )


def in_lines(names: Sequence[str], longest: int) -> str:
    """Return the `labelExpr` of an axis of names, in lines of at most so many letters: a phone is narrow.

    Words longer than that stay whole.
    """
    return f"{json.dumps(_lines(names, longest), ensure_ascii=False)}[datum.label]"


def row_names(names: Sequence[str], longest: int) -> alt.Axis:
    """Return the left axis of a table, whose names stand in lines (`in_lines`) in the middle of their rows."""
    in_two = [name for name, lines in _lines(names, longest).items() if len(lines) > 1]
    test = f"indexof({json.dumps(in_two, ensure_ascii=False)}, datum.value) >= 0"
    offset = {"condition": {"test": test, "value": -5}, "value": 0}
    return alt.Axis(
        labelExpr=in_lines(names, longest), labelOffset=offset, domain=False, ticks=False
    )


def _lines(names: Sequence[str], longest: int) -> dict[str, list[str]]:
    return {name: wrap(name, longest, break_long_words=False) for name in names}


def specification(chart: Drawing, height: int) -> dict[str, Any]:
    """Return a chart's Vega-Lite specification, as wide as its container; no label of a tick is rounded."""
    sized = chart.properties(width="container", height=height)
    spec: dict[str, Any] = sized.to_dict(validate=schemapi.DEBUG_MODE)
    # The page configures all charts.
    spec.pop("config", None)
    spec["datasets"] = dict(_datasets(spec))
    _label_ticks_exactly(spec)
    return spec


def _datasets(part: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name and the rows of all data of a specification, from the outside in."""
    if isinstance(part, list):
        for entry in part:
            yield from _datasets(entry)
    elif isinstance(part, dict):
        if isinstance(name := part.get("data", {}).get("name"), _Named):
            yield str(name), name.values
        for key, entry in part.items():
            if key != "data":
                yield from _datasets(entry)


def _label_ticks_exactly(part: Any) -> None:
    """Give every axis with ticks of its own a number format that rounds none of them.

    Vega would round labels to the steps between the ticks that it had chosen itself: .25 would read 0.3.
    """
    if isinstance(part, list):
        for entry in part:
            _label_ticks_exactly(entry)
    elif isinstance(part, dict):
        axis = part.get("axis")
        if isinstance(axis, dict) and "values" in axis and "labelExpr" not in axis:
            axis.setdefault("format", ".6~g")
        for name, entry in part.items():
            if name not in ("data", "datasets"):
                _label_ticks_exactly(entry)


def vertical(value: float, title: str) -> alt.Chart:
    """Draw a thin vertical dashed line at a value."""
    guide = plot([{"at": value, "what": title}])
    rule: alt.Chart = guide.mark_rule(strokeDash=[3, 3], color=QUIET)
    return rule.encode(x="at:Q", tooltip="what:N")
