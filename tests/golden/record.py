"""What the golden record holds of an audit, and how two records are compared.

A record is a dictionary of lists: `tables/QUESTION/COLUMN` has a value for each row, `findings/KEY/FIELD`
a finding's number or decision, `answer/...` the bottom line, `page/...` what the page's script is given.
Numbers and decisions are apart from sentences, which say the same things in prose.
"""

import base64
import json
import math
import re
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Record = dict[str, list[Any]]
# How far two machines' numbers may be apart, as a share of the largest of their column: some are found by steps
# or are shares of small differences, the page has four digits, and findings are means of differences.
CLOSE = 1e-5
FURTHER = {
    "adversary|freedom|mixture|mixed|jsd_share|better_maps|relative/|tried/|completeness_error": 5e-2,
    "^page/": 1e-3,
    "^findings/|/logits$|/weights/": 1e-4,
}
ROUNDING = 2e-5  # what single precision leaves of the difference of two equal log-odds
# Decided by rounding: whether a search has reached its bound, and the sign of an effect that there is not.
ROUNDED = re.compile(
    "facts/(largest JSD|at most)|opposing_mass|against_shuffled|against the answer"
)
SENTENCES = {
    "question", "topic", "measure", "meaning", "reading", "sentence", "because", "advice", "steps",
    "no_interval", "title", "reason", "instead", "measured", "not_tested", "rates", "trainings",
}  # fmt: skip


def record_of(audit: Any, folder: Path) -> tuple[Record, Record]:
    """Return the numbers and decisions of an audit, and its sentences.

    Args:
        audit: what `heedmap.audit` returns.
        folder: an empty one, for the page.
    """
    values: dict[str, Any] = {
        f"tables/{question}/{name}": column.to_pylist()
        for question, table in audit.tables.items()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    page = folder / "report.html"
    audit.save(page)
    parts = {
        "findings": {finding.key: _fields(finding) for finding in audit.findings},
        "answer": audit.bottom_line.to_json(),
        "page": _page_data(page.read_text("utf-8")),
    }
    values |= dict(_leaves(parts, ""))
    numbers, sentences = {}, {}
    for key, value in values.items():
        is_prose = SENTENCES & {*key.split("/")}
        (sentences if is_prose else numbers)[key] = value if isinstance(value, list) else [value]
    return numbers, sentences


def _fields(finding: Any) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in finding.__dataclass_fields__}


def _page_data(html: str) -> dict[str, Any]:
    """Return what the page's script reads: the index of the texts, and the sizes of the blocks of maps."""
    (index,) = re.findall(r'<script type="application/json" id="texts-index">"([^"]*)"', html)
    blocks = re.findall(r'<script type="application/json" class="[a-z-]*block">"([^"]*)"', html)
    sizes = [len(zlib.decompress(base64.b64decode(block))) for block in blocks]
    read = json.loads(zlib.decompress(base64.b64decode(index)))
    read["facts"] = {fact.pop("name"): fact for fact in read["facts"]}  # in any order
    return {"index": read, "block sizes": sizes}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the lists and single values in nested dictionaries, with the way to each."""
    if hasattr(value, "__dataclass_fields__"):
        value = _fields(value)
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, f"{path}/{name}" if path else str(name))
    elif isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value):
            yield from _leaves(part, f"{path}/{number}")
    else:
        yield path, [*value] if isinstance(value, list | tuple) else value


def write_record(path: Path, record: Record, digits: int) -> None:
    """Write a record, a line for each key, with so many digits of each number."""
    lines = [
        f"{json.dumps(key)}: {json.dumps(_rounded(values, digits))}"
        for key, values in sorted(record.items())
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read_record(path: Path) -> Record:
    """Read a record; numbers that are undefined are NaN."""
    record: Record = json.loads(path.read_text())
    return record


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list | tuple):
        return [_rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float | np.floating) else value


class Changes:
    """The differences that are meant, from changes.toml: each with the reason, none that is not needed.

    * `renamed`: `old` and `new` key.
    * `removed`: `keys`, and `because`, the line that decides it.
    * `changed`: a `key`, and the `old` and the `new` list.

    Keys may end in `*`. `audits` names those that an entry is about [all].
    """

    def __init__(self, entries: Mapping[str, list[dict[str, Any]]]) -> None:
        self.renamed = entries.get("renamed", [])
        self.removed = entries.get("removed", [])
        self.changed = entries.get("changed", [])
        for entry in (*self.removed, *self.changed):
            if not entry.get("because"):
                raise ValueError(f"{entry}: expected because = '...', the reason of the change")

    @classmethod
    def read(cls, path: Path) -> "Changes":
        """Read changes.toml."""
        return cls(tomllib.loads(path.read_text()))

    def differences(self, audit: str, old: Record, new: Record, close: float = CLOSE) -> list[str]:
        """Return a line for each difference that is not listed, and for each listed one that there is not."""
        found: list[str] = []
        old, new = {**old}, {**new}
        for entry in self._of(audit, self.renamed):
            if entry["old"] in old:
                old[entry["new"]] = old.pop(entry["old"])
        for entry in self._of(audit, self.removed):
            for key in [key for key in old if matches(key, entry["keys"])]:
                del old[key]
                if new.pop(key, None) is not None:
                    found.append(f"{key}: listed as removed, and is there")
        for entry in self._of(audit, self.changed):
            for key in [key for key in old if matches(key, entry["key"])]:
                if not same(old[key], entry["old"], closeness(key, close)):
                    found.append(
                        f"{key}: listed as changed from {entry['old']!r:.80}, was {old[key]!r:.80}"
                    )
                old[key] = entry["new"]
        if close:
            old, new = (
                {k: v for k, v in one.items() if not ROUNDED.search(k)} for one in (old, new)
            )
        found += [f"{key}: is gone" for key in old.keys() - new.keys()]
        found += [f"{key}: is new" for key in new.keys() - old.keys()]
        for key in old.keys() & new.keys():
            if not same(old[key], new[key], closeness(key, close)):
                found.append(
                    f"{key}: {first_difference(old[key], new[key], closeness(key, close))}"
                )
        return sorted(found)

    def unneeded(self, records: Mapping[str, Record]) -> list[str]:
        """Return a line for each entry that is about no recorded key."""
        named = [(entry, entry["old"]) for entry in self.renamed]
        named += [(entry, entry["keys"]) for entry in self.removed]
        named += [(entry, entry["key"]) for entry in self.changed]
        return [
            f"{pattern}: no record has it"
            for entry, pattern in named
            if not any(
                matches(key, pattern)
                for audit, record in records.items()
                if audit in entry.get("audits", [audit])
                for key in record
            )
        ]

    @staticmethod
    def _of(audit: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [entry for entry in entries if audit in entry.get("audits", [audit])]


def matches(key: str, pattern: str) -> bool:
    """Return whether a key is the pattern, or begins as one with a `*` at its end."""
    return key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern


def closeness(key: str, close: float = CLOSE) -> float:
    """Return how far the numbers of a key may be apart, as a share of the largest beside them."""
    if close == 0.0:
        return 0.0
    return next((share for keys, share in FURTHER.items() if re.search(keys, key)), close)


def same(old: Any, new: Any, close: float) -> bool:
    """Return whether two values are the same: numbers up to rounding, all else exactly.

    Numbers of a list, and of lists in it, may differ by `close` of the largest of them: single precision rounds
    the numbers that a small one is the difference of.
    """
    largest = max(map(abs, _numbers(old)), default=0.0)
    return _same(old, new, max(close * largest, ROUNDING if close else 0.0))


def _same(old: Any, new: Any, apart: float) -> bool:
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_same(a, b, apart) for a, b in pairs)
    if type(old) is not float or type(new) is not float:
        return type(old) is type(new) and bool(old == new)
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return math.isclose(old, new, rel_tol=0.0, abs_tol=apart)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, float) and math.isfinite(value):
        yield value


def first_difference(old: Any, new: Any, close: float) -> str:
    """Return where two values differ first, and what they are there."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{len(old)} values, now {len(new)}"
        for row, (was, is_now) in enumerate(zip(old, new, strict=True)):
            if not same(was, is_now, close):
                return f"row {row}: {first_difference(was, is_now, close)}"
    return f"{old!r:.100}, now {new!r:.100}"
