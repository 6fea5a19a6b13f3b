"""The records that take seconds: tiny audits, planted models set by hand, and what comes with heedmap."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from golden.audits import AUDITS
from golden.record import Record, record_of
from golden.trainings import plants_record

import heedmap

PACKAGE = Path(heedmap.__file__).parent
SUPPORT = Path(__file__).parents[2] / "docs" / "support.md"


def packaged() -> Record:
    """Return the rates that come with heedmap, its families and thresholds, and the supported architectures."""
    content = (PACKAGE / "experiments" / "rates.json").read_bytes()
    rates = json.loads(content)
    rows = [line for line in SUPPORT.read_text().splitlines() if line.startswith("|")]
    return {
        "rates/sha256": [hashlib.sha256(content).hexdigest()],
        "rates/thresholds": [*rates["thresholds"].items()],
        **{f"rates/families/{kind}": [*one["families"]] for kind, one in rates["kinds"].items()},
        "support": rows,
    }


def of_audit(name: str) -> Callable[[Path], tuple[Record, Record]]:
    """Return what makes the record of a tiny audit in a folder."""
    return lambda folder: record_of(AUDITS[name](folder), folder)


RECORDS: dict[str, Callable[[Path], tuple[Record, Record]]] = {
    **{name: of_audit(name) for name in AUDITS},
    "packaged": lambda _: (packaged(), {}),
    "plants": lambda _: (plants_record("by hand"), {}),
}
