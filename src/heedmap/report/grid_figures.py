"""Figures of many runs: one bar per data set and series, with the range over seeds."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
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
    plot,
    specification,
    vertical,
)
from heedmap.report.wording import plural
from heedmap.terminal.output import some_of

if TYPE_CHECKING:
    import pandas as pd

Records = Iterable[Mapping[str, Any]]
TITLE = 40  # letters per line of an axis title: a phone is narrow
LISTED = 6  # cells that a note lists; of more, the first ones


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
    runs: "Records | pd.DataFrame",
    *,
    key: str,
    title: str,
    measure: str,
    none: str = "no relation",
    caption: str = "",
    published: "Records | pd.DataFrame" = (),
    unit: str = "run",
) -> Figure:
    """Draw the mean of a number over seeds, by data set and series, in the order of the rows.

    The line on a bar is the range over seeds, from the smallest value to the largest: not an interval, and
    absent for one seed. The error bars in Jain & Wallace's figure (mean τ, LSTM beside average) come from two
    made-up numbers that fit a stored mean and standard deviation, so only the bars are comparable.

    Args:
        runs: one per row: `dataset`, `series`, `seed`, `value` (None or NaN where it is undefined).
        key, title, caption: of the figure.
        measure: the axis title of the value; `none`: the meaning of 0.
        published: numbers to draw as hollow marks: `dataset`, `series`, `value`, `source`.
        unit: what a row is, where one run has several.

    Raises:
        InputError: no rows, a missing field, a value that is not a number, a repeated seed, or more series
            than colours.
    """
    records = _records(runs, ("dataset", "series", "seed", "value"), "runs")
    cells = _cells(records)
    if not any(cell.values for cell in cells):
        raise InputError("runs: expected rows with a value, got none")
    published_records = _records(published, ("dataset", "series", "value", "source"), "published")
    datasets = list(dict.fromkeys(row["dataset"] for row in records))
    series = list(dict.fromkeys(row["series"] for row in records))
    if len(series) > len(PALETTE):
        raise InputError(f"runs: {len(series)} series, expected at most {len(PALETTE)}")
    marks = [
        row
        for row in published_records
        if row["dataset"] in datasets and row["series"] in series and math.isfinite(row["value"])
    ]
    with_values = [cell for cell in cells if cell.values]
    keys = [Key(name, PALETTE[i]) for i, name in enumerate(series)]
    if any(len(cell.values) > 1 for cell in with_values):
        keys.append(Key("smallest to largest seed", TEXT, "solid"))
    keys += [Key(source, TEXT, "hollow") for source in dict.fromkeys(m["source"] for m in marks)]
    return Figure(
        key=key,
        title=title,
        n=_n(cells, unit),
        caption=" ".join([*([caption] if caption else []), CAPTION]),
        spec=specification(
            _chart(with_values, marks, datasets, series, measure, none),
            len(datasets) * (14 * len(series) + 12),
        ),
        keys=keys,
        notes=_notes(cells, datasets, series, len(published_records) - len(marks)),
    )


CAPTION = (
    "A bar is the mean over seeds, the line on it goes from the smallest seed to the largest; a bar of one "
    "seed has none."
)


def _records(
    table: "Records | pd.DataFrame", names: tuple[str, ...], argument: str
) -> list[dict[str, Any]]:
    rows: Any = table.to_dict("records") if hasattr(table, "to_dict") else table
    records = []
    for i, row in enumerate(rows):
        if missing := [name for name in names if name not in row]:
            raise InputError(f"{argument}: row {i} has no {', '.join(missing)}")
        value = row["value"]
        try:
            value = math.nan if value is None else float(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{argument}: row {i}: value {value!r} is not a number") from error
        texts = {name: str(row[name]) for name in names if name != "value"}
        records.append({**texts, "value": value})
    return records


def _cells(records: list[dict[str, Any]]) -> list[_Cell]:
    cells: dict[tuple[str, str], _Cell] = {}
    seen = set()
    for row in records:
        key = (row["dataset"], row["series"])
        cell = cells.setdefault(key, _Cell(*key))
        if (key, row["seed"]) in seen:
            raise InputError(f"runs: {cell.name}, seed {row['seed']}: given twice")
        seen.add((key, row["seed"]))
        if math.isfinite(row["value"]):
            cell.values[row["seed"]] = row["value"]
        else:
            cell.undefined += 1
    return list(cells.values())


def _n(cells: list[_Cell], unit: str) -> str:
    counts = [len(cell.values) for cell in cells if cell.values]
    fewest, largest = min(counts), max(counts)
    seeds = plural(largest, "seed") if fewest == largest else f"{fewest} to {largest} seeds"
    undefined = sum(cell.undefined for cell in cells)
    return f"n = {plural(sum(counts), unit)}, {seeds} per bar" + (
        f", {plural(undefined, unit)} without a value left out" if undefined else ""
    )


def _notes(cells: list[_Cell], datasets: list[str], series: list[str], undrawn: int) -> list[str]:
    """Return notes on the seeds of each bar, missing runs and published numbers not drawn."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        groups.setdefault(tuple(sorted(cell.values, key=_by_number)), []).append(cell.name)
    usual = max(groups, key=lambda seeds: len(groups[seeds]) if seeds else 0)
    notes = []
    for seeds, names in sorted(groups.items(), key=lambda group: group[0] != usual):
        if not seeds:
            notes.append(f"no value: {some_of(names, LISTED)}")
            continue
        text = (
            f"seeds {', '.join(seeds)}"
            if len(seeds) > 1
            else f"one seed only ({seeds[0]}), no line"
        )
        rest = " where no others are named" if sum(map(bool, groups)) > 1 else ""
        notes.append(text + rest if seeds == usual else f"{text}: {some_of(names, LISTED)}")
    present = {(cell.dataset, cell.series) for cell in cells}
    if absent := [f"{d} {s}" for d in datasets for s in series if (d, s) not in present]:
        notes.append(f"no run: {some_of(absent, LISTED)}")
    if undrawn:
        notes.append(f"published numbers without a bar here, not drawn: {undrawn}")
    return notes


def _by_number(seed: str) -> tuple[int, str]:
    return (int(seed), "") if seed.isdecimal() else (0, seed)


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
    title = wrap(measure, TITLE)
    x = alt.X("mean:Q", title=title)
    # Data sets from top to bottom, and within each the series.
    y = alt.Y(
        "dataset:N", title=None, sort=datasets, scale=alt.Scale(domain=datasets, paddingInner=0.25)
    )
    offset = alt.YOffset("series:N", scale=alt.Scale(domain=series))
    hint = ["dataset:N", "series:N", "mean:Q", "low:Q", "high:Q", "seeds:Q"]
    base = plot(data).encode(y=y, yOffset=offset, tooltip=hint)
    spread = plot([row for row in data if row["seeds"] != 1])
    layers: list[alt.Chart] = [
        base.mark_bar(fillOpacity=0.8).encode(x=x, color=colour(series)),
        spread.mark_rule(strokeWidth=1.5).encode(
            x=alt.X("low:Q", title=title), x2="high:Q", y=y, yOffset=offset, tooltip=hint
        ),
        vertical(0, none),
    ]
    if marks:
        hollow = plot(marks).mark_point(
            shape="diamond", filled=False, size=46, strokeWidth=1.5, opacity=1
        )
        layers.append(
            hollow.encode(
                x=alt.X("value:Q", title=title),
                y=y,
                yOffset=offset,
                tooltip=["dataset:N", "series:N", "value:Q", "source:N"],
            )
        )
    return alt.layer(*layers)
