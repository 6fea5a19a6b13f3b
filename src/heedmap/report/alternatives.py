"""A figure in one paragraph of text, for those who cannot see it."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedmap.report.charts import Figure

END = {"x": "x2", "y": "y2"}
LISTED = 12  # numbers that are read out one by one


def alternative(figure: "Figure") -> str:
    """Say what a figure draws, of how many texts, between which numbers, and what its legend says."""
    said = [f"{figure.title.rstrip('.')}{'' if figure.title.endswith('?') else '.'} {figure.n}."]
    ranges = _ranges(figure.spec)
    if ranges:
        said.append(f"{'; '.join(f'{name} {span}' for name, span in ranges.items())}.")
    said += [f"{name}: {', '.join(numbers)}." for name, numbers in _labels(figure.spec).items()]
    if figure.keys:
        said.append(f"Legend: {'; '.join(key.label for key in figure.keys)}.")
    return " ".join(said)


def _ranges(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the smallest and the largest number that is drawn, by the title of its axis."""
    values: dict[str, list[float]] = {}
    for layer, data in _layers(spec):
        for channel, end in END.items():
            encoding = layer.get("encoding", {})
            title = _title(encoding.get(channel, {}))
            if not title:
                continue
            for name in (encoding[channel].get("field"), encoding.get(end, {}).get("field")):
                values.setdefault(title, []).extend(
                    datum[name] for datum in data if _is_number(datum.get(name))
                )
    return {
        title: f"from {_number(min(numbers))} to {_number(max(numbers))}"
        for title, numbers in values.items()
        if numbers
    }


def _labels(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the texts that are drawn in rows or cells, by the name of the row."""
    labels: dict[str, list[str]] = {}
    for layer, data in _layers(spec):
        mark, encoding = layer.get("mark"), layer.get("encoding", {})
        kind = mark.get("type") if isinstance(mark, Mapping) else mark
        x, y, text = (encoding.get(name, {}) for name in ("x", "y", "text"))
        if kind != "text" or y.get("type") != "nominal" or text.get("type") != "nominal":
            continue
        for datum in data:
            column = datum.get(x.get("field")) if x.get("type") == "nominal" else None
            value = str(datum.get(text["field"]))
            labels.setdefault(str(datum.get(y["field"])), []).append(
                value if column is None else f"{column} {value}"
            )
    return {name: numbers for name, numbers in labels.items() if len(numbers) <= LISTED}


def _layers(
    spec: Mapping[str, Any], datasets: Mapping[str, Any] | None = None
) -> Iterator[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
    """Yield each mark of a specification with its data."""
    known = spec.get("datasets", {}) if datasets is None else datasets
    for layer in spec.get("layer", []):
        yield from _layers({**{k: spec[k] for k in ("data",) if k in spec}, **layer}, known)
    if "mark" in spec:
        source = spec.get("data", {})
        data = source.get("values", known.get(source.get("name"), []))
        yield spec, [datum for datum in data if isinstance(datum, dict)]


def _title(channel: Mapping[str, Any]) -> str:
    if channel.get("type") != "quantitative" or not channel.get("title"):
        return ""
    title = channel["title"]
    return " ".join(title) if isinstance(title, list) else str(title)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
