"""All audited texts with their maps, packed for the page's own JavaScript.

The page holds one index and blocks of maps, each compressed (zlib) and in base64. The index is JSON. A block
holds the maps of BLOCK texts: for each map and text, in this order, a little-endian float32, the largest weight
(NaN where the text has no such map); then for each map and text that has it one int8 per token, its weight in
127ths of the largest. So a weight is known within 1/254 of the largest of its map.
"""

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.text_names import text_name
from heedmap.errors import NamedOnce
from heedmap.experiments.registry import HeatMap, Row, registered
from heedmap.experiments.rounding import significant
from heedmap.experiments.text_levels import text_levels
from heedmap.experiments.text_tables import answer_probabilities
from heedmap.report.examples import Example
from heedmap.report.fact_meanings import meaning_of
from heedmap.report.pair_tokens import shown_tokens
from heedmap.report.what_if_data import pack_read_outs, what_if_index

BLOCK = 250  # texts whose maps are unpacked together
MOST = 5000  # texts on a page
STEPS = 127  # of a weight, from 0 to the largest
MARKS = "people's marks"


@dataclass(frozen=True)
class PackedTexts:
    """The texts of a page: the index, blocks of maps and of read-outs, and which rows they are of how many."""

    index: str
    blocks: list[str]
    read_outs: list[str]
    rows: list[int]
    total: int


class _Rows(Mapping[str, Any]):
    """One text's row of each table, read only where an experiment asks for it."""

    def __init__(self, tables: "_Tables", row: int) -> None:
        self.tables, self.row = tables, row

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self.tables.row(name, self.row)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables.names)

    def __len__(self) -> int:
        return len(self.tables.names)


class _Tables:
    """The tables with one row per text, as Python values: of each table one block of rows at a time.

    All rows of 20,000 texts would take 500 MB.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        self.experiments = [
            experiment
            for name, experiment in registered().items()
            if name in tables and experiment.per_text
        ]
        self._blocks: dict[str, tuple[int, list[dict[str, Any]]]] = {}

    @cached_property
    def names(self) -> list[str]:
        return [experiment.name for experiment in self.experiments]

    def row(self, name: str, row: int) -> Mapping[str, Any]:
        if name not in self.names:
            raise KeyError(name)
        start = row - row % BLOCK
        if name not in self._blocks or self._blocks[name][0] != start:
            self._blocks[name] = (start, self.tables[name].slice(start, BLOCK).to_pylist())
        return self._blocks[name][1][row - start]


def pack_texts(
    tables: Mapping[str, pa.Table],
    classes: Sequence[str],
    examples: Sequence[Example],
    why_not: str = "",
) -> PackedTexts:
    """Pack the texts of the report: of more than MOST, those of `chosen_rows`.

    `why_not` says why the page cannot compute predictions, where it cannot (`what_if_data.reason`).
    """
    return next(packed_pages(tables, classes, examples, why_not))


def packed_pages(
    tables: Mapping[str, pa.Table],
    classes: Sequence[str],
    examples: Sequence[Example],
    why_not: str = "",
) -> Iterator[PackedTexts]:
    """Pack the texts of the report, then those that it has no room for, MOST at a time in their order."""
    whole = _Tables(tables)
    row_facts = [_facts(whole, row) for row in range(tables["instances"].num_rows)]
    rows = _report_rows(tables, row_facts, [example.row for example in examples])
    yield _pack(whole, classes, rows, row_facts, examples, why_not)
    shown = {*rows}
    others = [row for row in range(len(row_facts)) if row not in shown]
    for i in range(0, len(others), MOST):
        yield _pack(whole, classes, others[i : i + MOST], row_facts, [], why_not)


def _report_rows(
    tables: Mapping[str, pa.Table], row_facts: Sequence[Mapping[str, float]], always: Sequence[int]
) -> list[int]:
    instances = tables["instances"]
    columns = [
        answer_probabilities(instances),
        instances["n_tokens"].to_numpy(),
        *(_floats([facts.get(name) for facts in row_facts]) for name in _names(row_facts)),
    ]
    return chosen_rows(columns, always)


def _names(row_facts: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for facts in row_facts for name in facts))


def _pack(
    whole: _Tables,
    classes: Sequence[str],
    rows: Sequence[int],
    row_facts: Sequence[Mapping[str, float]],
    examples: Sequence[Example],
    why_not: str,
) -> PackedTexts:
    maps = [_maps(whole, row) for row in rows]
    heads = _heads(maps)
    confidence = whole.tables["instances"]["probabilities"].take(pa.array(rows, pa.int64()))
    index = {
        "classes": list(classes),
        **({"unit": classes[0]} if len(classes) == 1 else {}),
        "block": BLOCK,
        "total": len(row_facts),
        "maps": [
            {"name": name, "kind": kind, "signed": signed} for name, (kind, signed) in heads.items()
        ],
        **_texts(whole.tables, rows),
        # With more digits: many texts have nearly 1, and are sorted by it.
        "confidence": [significant(max(p), 7) for p in confidence.to_pylist()],
        "facts": [
            {
                "name": name,
                "meaning": meaning_of(name),
                "values": [significant(row_facts[row].get(name)) for row in rows],
            }
            for name in _names(row_facts)
        ],
        "own": _own_tokens(maps, list(heads)),
        **what_if_index(whole.tables, [_Rows(whole, row) for row in rows], rows, why_not),
        "examples": [
            {"row": rows.index(example.row), "title": example.title, "reason": example.reason}
            for example in examples
        ],
    }
    blocks = [_block(maps[i : i + BLOCK], list(heads)) for i in range(0, len(maps), BLOCK)]
    text = json.dumps(index, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    read_outs = [_packed(block) for block in pack_read_outs(whole.tables, rows, BLOCK)]
    return PackedTexts(_packed(text.encode()), blocks, read_outs, [*rows], len(row_facts))


def chosen_rows(columns: Sequence[NDArray[np.float64]], always: Sequence[int]) -> list[int]:
    """Return the rows that a page shows: all, or of more than MOST the extremes and an even sample.

    The extremes are the `always` and, of each column, as many smallest and largest as fill a fifth of the page
    together. The others are evenly spaced in the order of the data.
    """
    total = len(columns[0])
    if total <= MOST:
        return list(range(total))
    each = MOST // (10 * len(columns))
    chosen = set(always)
    for values in columns:
        known = np.flatnonzero(np.isfinite(values))
        order = known[np.argsort(values[known], kind="stable")]
        chosen |= {*order[:each].tolist(), *order[len(order) - each :].tolist()}
    others = np.delete(np.arange(total), sorted(chosen))
    picks = np.linspace(0, len(others) - 1, MOST - len(chosen)).round().astype(int)
    return sorted(chosen | set(others[picks].tolist()))


def _texts(tables: Mapping[str, pa.Table], rows: Sequence[int]) -> dict[str, Any]:
    """Return the columns of the index that come from the table of instances."""
    instances = tables["instances"].take(pa.array(rows, pa.int64()))
    probabilities = instances["probabilities"].to_pylist()
    labels = instances["label"].to_pylist()
    keys = instances["key"].to_pylist()
    levels = text_levels(tables)
    columns: dict[str, Any] = {
        "key": keys,
        "name": [text_name(str(key)) for key in keys],
        "tokens": [
            shown_tokens(instance)
            for instance in instances.select(
                [
                    name
                    for name in ("tokens", "second", "target", "picture")
                    if name in instances.column_names
                ]
            ).to_pylist()
        ],
        "label": labels,
        "predicted": instances["predicted"].to_pylist(),
        "expected": [
            None if label is None else significant(p[label])
            for label, p in zip(labels, probabilities, strict=True)
        ],
        "level": None if levels is None else [levels[row] for row in rows],
    }
    for name in ("query", "candidates", "choices"):
        if name in instances.column_names:
            columns[name] = instances[name].to_pylist()
    return columns


def _facts(tables: _Tables, row: int) -> dict[str, float]:
    of_text = _Rows(tables, row)
    pairs = (fact for experiment in tables.experiments for fact in experiment.facts(of_text))
    facts = NamedOnce("facts of a text", pairs)
    return {name: float(x) for name, x in facts.items() if x is not None and math.isfinite(x)}


def _maps(tables: _Tables, row: int) -> dict[str, HeatMap]:
    """Return a text's maps by name, attention first, then what it is compared with, and people's marks."""
    of_text: Row = _Rows(tables, row)
    maps = [
        heat_map for experiment in tables.experiments for heat_map in experiment.heat_maps(of_text)
    ]
    maps.sort(key=lambda heat_map: heat_map.kind != "attention")
    if (marks := of_text["instances"].get("rationale")) is not None:
        maps.append(HeatMap(MARKS, "importance", [float(mark) for mark in marks]))
    return NamedOnce("heat maps of a text", ((heat_map.name, heat_map) for heat_map in maps))


def _heads(maps: Sequence[Mapping[str, HeatMap]]) -> dict[str, tuple[str, bool]]:
    """Return the kind of each map, and whether it has a sign: attention first, the marks last."""
    heads: dict[str, tuple[str, bool]] = {}
    for of_text in maps:
        for name, heat_map in of_text.items():
            signed = heads.get(name, ("", False))[1] or heat_map.against is not None
            heads[name] = ("marks" if name == MARKS else heat_map.kind, signed)
    places = ("attention", "importance", "marks")
    return dict(sorted(heads.items(), key=lambda head: places.index(head[1][0])))


def _own_tokens(
    maps: Sequence[Mapping[str, HeatMap]], names: Sequence[str]
) -> dict[str, list[Sequence[str] | None]]:
    """Return the tokens of the maps that are of other tokens than the text's, by the map's number."""
    columns = {
        str(i): [None if (m := of_text.get(name)) is None else m.tokens for of_text in maps]
        for i, name in enumerate(names)
    }
    return {i: column for i, column in columns.items() if any(t is not None for t in column)}


def _block(maps: Sequence[Mapping[str, HeatMap]], names: Sequence[str]) -> str:
    scales, steps = [], []
    for name in names:
        for of_text in maps:
            weights = _signed(of_text.get(name))
            if weights is None:
                scales.append(math.nan)
                continue
            scale = np.float32(np.abs(weights).max(initial=0.0))
            scales.append(float(scale))
            shares = weights / np.float64(scale) if scale > 0 else np.zeros_like(weights)
            steps.append((STEPS * shares).round().clip(-STEPS, STEPS).astype(np.int8))
    return _packed(np.array(scales, "<f4").tobytes() + b"".join(s.tobytes() for s in steps))


def _signed(heat_map: HeatMap | None) -> NDArray[np.float64] | None:
    """Return a map's weights, below 0 where they speak against the answer; None where any is undefined."""
    if heat_map is None or heat_map.weights is None:
        return None
    weights = np.array(heat_map.weights, dtype=np.float64)
    if not np.isfinite(weights).all():
        return None
    return weights if heat_map.against is None else np.where(heat_map.against, -weights, weights)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


def _floats(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in values])
