"""Figures of many runs: one bar a data set and series, the spread over seeds drawn as what it is."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import altair as alt

from heedmap.errors import InputError
from heedmap.report.charts import (
    PALETTE,
    TEXT,
    Drawing,
    Figure,
    Key,
    colour,
    rows,
    specification,
    vertical,
)

if TYPE_CHECKING:
    import pandas as pd

Given = Iterable[Mapping[str, Any]]
NAMED = 6  # cells that a note names one by one


@dataclass
class _Cell:
    """The runs of one data set and series; `undefined` counts those without a value."""

    dataset: str
    series: str
    values: dict[str, float] = field(default_factory=dict)  # by seed
    undefined: int = 0

    @property
    def name(self) -> str:
        return f"{self.dataset} {self.series}"


def bars(
    runs: "Given | pd.DataFrame",
    *,
    key: str,
    title: str,
    measure: str,
    none: str = "no relation",
    caption: str = "",
    published: "Given | pd.DataFrame" = (),
    unit: str = "runs",
) -> Figure:
    """Mean of a number over seeds, by data set and series; data sets and series in the order they come.

    The line on a bar goes from the smallest seed to the largest: not an interval, and not there for one
    seed. Jain & Wallace's bars of mean τ (LSTM beside average) have error bars drawn from two numbers made
    up to fit a stored mean and standard deviation, so this figure is like theirs in the bars only.

    Args:
        runs: one per row: `dataset`, `series`, `seed`, `value` (None or NaN where it is undefined).
        key, title, caption: of the figure.
        measure: what the value is, on the axis; `none` what 0 of it means.
        published: numbers to put beside them as hollow marks: `dataset`, `series`, `value`, `source`.
        unit: what the rows are, where one run has several.

    Raises:
        InputError: no rows, a row without one of these, a value that is no number, a seed given twice, more
            series than colours.
    """
    given = _records(runs, ("dataset", "series", "seed", "value"), "runs")
    cells = _cells(given)
    if not any(cell.values for cell in cells):
        raise InputError("runs: expected rows with a value, got none")
    theirs = _records(published, ("dataset", "series", "value", "source"), "published")
    datasets = list(dict.fromkeys(row["dataset"] for row in given))
    series = list(dict.fromkeys(row["series"] for row in given))
    if len(series) > len(PALETTE):
        raise InputError(f"runs: {len(series)} series, expected at most {len(PALETTE)}")
    marks = [
        row
        for row in theirs
        if row["dataset"] in datasets and row["series"] in series and math.isfinite(row["value"])
    ]
    drawn = [cell for cell in cells if cell.values]
    keys = [Key(name, PALETTE[i]) for i, name in enumerate(series)]
    if any(len(cell.values) > 1 for cell in drawn):
        keys.append(Key("smallest to largest seed", TEXT, "solid"))
    keys += [Key(source, TEXT, "hollow") for source in dict.fromkeys(m["source"] for m in marks)]
    return Figure(
        key=key,
        title=title,
        n=_n(cells, unit),
        caption=" ".join([*([caption] if caption else []), CAPTION]),
        spec=specification(
            _chart(drawn, marks, datasets, series, measure, none),
            len(datasets) * (14 * len(series) + 12),
        ),
        keys=keys,
        notes=_notes(cells, datasets, series, len(theirs) - len(marks)),
    )


CAPTION = (
    "A bar is the mean over seeds, the line on it goes from the smallest seed to the largest; a bar of one "
    "seed has none."
)


def _records(
    given: "Given | pd.DataFrame", names: tuple[str, ...], what: str
) -> list[dict[str, Any]]:
    listed: Any = given.to_dict("records") if hasattr(given, "to_dict") else given
    found = []
    for i, row in enumerate(listed):
        if missing := [name for name in names if name not in row]:
            raise InputError(f"{what}: row {i} has no {', '.join(missing)}")
        value = row["value"]
        try:
            value = math.nan if value is None else float(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{what}: row {i}: value {value!r} is not a number") from error
        texts = {name: str(row[name]) for name in names if name != "value"}
        found.append({**texts, "value": value})
    return found


def _cells(given: list[dict[str, Any]]) -> list[_Cell]:
    cells: dict[tuple[str, str], _Cell] = {}
    seen = set()
    for row in given:
        of = (row["dataset"], row["series"])
        cell = cells.setdefault(of, _Cell(*of))
        if (of, row["seed"]) in seen:
            raise InputError(f"runs: {cell.name}, seed {row['seed']}: given twice")
        seen.add((of, row["seed"]))
        if math.isfinite(row["value"]):
            cell.values[row["seed"]] = row["value"]
        else:
            cell.undefined += 1
    return list(cells.values())


def _n(cells: list[_Cell], unit: str) -> str:
    counts = [len(cell.values) for cell in cells if cell.values]
    least, most = min(counts), max(counts)
    seeds = f"{most} seed{'s' if most > 1 else ''}" if least == most else f"{least} to {most} seeds"
    undefined = sum(cell.undefined for cell in cells)
    return f"n = {sum(counts)} {unit}, {seeds} a bar" + (
        f", {undefined} {unit} without a value left out" if undefined else ""
    )


def _notes(cells: list[_Cell], datasets: list[str], series: list[str], undrawn: int) -> list[str]:
    """Which seeds are behind which bars, and what is not there."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        groups.setdefault(tuple(sorted(cell.values, key=_by_number)), []).append(cell.name)
    usual = max(groups, key=lambda seeds: len(groups[seeds]) if seeds else 0)
    notes = []
    for seeds, names in sorted(groups.items(), key=lambda group: group[0] != usual):
        if not seeds:
            notes.append(f"no value: {_named(names)}")
            continue
        told = (
            f"seeds {', '.join(seeds)}"
            if len(seeds) > 1
            else f"one seed only ({seeds[0]}), no line"
        )
        rest = " where no others are named" if sum(map(bool, groups)) > 1 else ""
        notes.append(told + rest if seeds == usual else f"{told}: {_named(names)}")
    there = {(cell.dataset, cell.series) for cell in cells}
    if absent := [f"{d} {s}" for d in datasets for s in series if (d, s) not in there]:
        notes.append(f"no run: {_named(absent)}")
    if undrawn:
        notes.append(f"published numbers without a bar here, not drawn: {undrawn}")
    return notes


def _by_number(seed: str) -> tuple[int, str]:
    return (int(seed), "") if seed.isdecimal() else (0, seed)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _chart(
    cells: list[_Cell],
    marks: list[dict[str, Any]],
    datasets: list[str],
    series: list[str],
    measure: str,
    none: str,
) -> Drawing:
    data = [
        {
            "dataset": cell.dataset,
            "series": cell.series,
            "mean": sum(cell.values.values()) / len(cell.values),
            "low": min(cell.values.values()),
            "high": max(cell.values.values()),
            "seeds": len(cell.values),
        }
        for cell in cells
    ]
    x = alt.X("mean:Q", title=measure)
    # The data sets from top to bottom in their order, and in each the series.
    y = alt.Y(
        "dataset:N", title=None, sort=datasets, scale=alt.Scale(domain=datasets, paddingInner=0.25)
    )
    offset = alt.YOffset("series:N", scale=alt.Scale(domain=series))
    hint = ["dataset:N", "series:N", "mean:Q", "low:Q", "high:Q", "seeds:Q"]
    shown = alt.Chart(rows(data)).encode(y=y, yOffset=offset, tooltip=hint)
    spread = alt.Chart(rows([row for row in data if row["seeds"] != 1]))
    layers: list[alt.Chart] = [
        shown.mark_bar(fillOpacity=0.8).encode(x=x, color=colour(series)),
        spread.mark_rule(strokeWidth=1.5).encode(
            x=alt.X("low:Q", title=measure), x2="high:Q", y=y, yOffset=offset, tooltip=hint
        ),
        vertical(0, none),
    ]
    if marks:
        hollow = alt.Chart(rows(marks)).mark_point(
            shape="diamond", filled=False, size=46, strokeWidth=1.5, opacity=1
        )
        layers.append(
            hollow.encode(
                x=alt.X("value:Q", title=measure),
                y=y,
                yOffset=offset,
                tooltip=["dataset:N", "series:N", "value:Q", "source:N"],
            )
        )
    return alt.layer(*layers)
