"""The settings in which rows differ, and only those."""

from collections.abc import Sequence
from typing import NamedTuple

from heedmap.comparisons.seed_rows import Row
from heedmap.comparisons.sources import NamedAudit
from heedmap.files.identity import PLACES
from heedmap.report.wording import source_text

HASHES = {"fingerprint": "data texts (hash)", "model.weights": "model weights (hash)"}
UNSHOWN = ("version",)
SHORT = 8  # letters of a hash
LISTED = 3  # different values of one row's seeds


class DifferingSetting(NamedTuple):
    """A setting, with the text of its value in each row."""

    name: str
    values: tuple[str, ...]


def differing_settings(rows: Sequence[Row]) -> list[DifferingSetting]:
    """Return every setting that differs among the runs, in the order of data, model, training and audit."""
    flat = [[_described(run) for run in row.runs] for row in rows]
    names = dict.fromkeys(name for row in flat for run in row for name in run)
    differing = []
    for name in sorted(names, key=_section):
        values = [[run.get(name, "–") for run in row] for row in flat]
        if len({value for row in values for value in row}) > 1:
            differing.append(DifferingSetting(name, tuple(map(_together, values))))
    return differing


def _described(run: NamedAudit) -> dict[str, str]:
    """Return all settings as texts, and the facts that say what was audited."""
    audit, described = run.audit, {}
    for name, value in audit.settings.flat().items():
        if name in UNSHOWN or value is None:
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if name in PLACES:
            text = source_text(text)
        shown = HASHES.get(name, name.replace(".", " ", 1).replace("_", " "))
        described[shown] = text[:SHORT] if name in HASHES else text
    described["data classes"] = ", ".join(run.classes)
    described["audit texts"] = str(audit.about.get("audited", "–"))
    return described


def _section(name: str) -> tuple[int, bool]:
    sections = ("data", "model", "train", "audit")
    first = name.split(maxsplit=1)[0]
    # Where the texts are from is what a reader looks for first.
    return (sections.index(first) if first in sections else len(sections), name != "data source")


def _together(values: Sequence[str]) -> str:
    """Return the value of a row's seeds, or their values where they differ."""
    different = list(dict.fromkeys(values))
    if len(different) <= LISTED:
        return "; ".join(different)
    return f"{'; '.join(different[:LISTED])} and {len(different) - LISTED} more"
