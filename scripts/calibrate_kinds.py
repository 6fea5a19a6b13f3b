"""Measure kinds of models that chose no threshold, and add them to the rates that come with heedmap.

    python scripts/calibrate_kinds.py runs/calibration-kinds             # all of them
    python scripts/calibrate_kinds.py runs/calibration-kinds pictures    # only these

The rates of all other kinds stay as they are; `make calibration` measures everything.
"""

import sys
from pathlib import Path

import pyarrow as pa

from heedmap.calibration.calibrate import calibrate_kinds
from heedmap.calibration.choice import LATER, from_table, known, to_table
from heedmap.calibration.page import with_later_kinds_on
from heedmap.experiments.rates import packaged_rates
from heedmap.files.manifest import write
from heedmap.files.tables import parquet, read_table

ROOT = Path(__file__).parents[1]
RATES = ROOT / "src" / "heedmap" / "experiments" / "rates.json"
PAGE = ROOT / "docs" / "calibration.md"
SCORES = ROOT / "docs" / "calibration" / "plants.parquet"

if __name__ == "__main__":
    out, *kinds = sys.argv[1:]
    kinds = kinds or list(LATER)
    rates, measured = calibrate_kinds(out, packaged_rates(), kinds=kinds)
    stays = [case for case in from_table(read_table(SCORES)) if case.kind not in kinds]
    scores: pa.Table = to_table([*stays, *known(measured)])
    write(RATES, rates.to_json())
    write(PAGE, with_later_kinds_on(PAGE.read_text("utf-8"), rates, measured))
    write(SCORES, parquet(scores))
