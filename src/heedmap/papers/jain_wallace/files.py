"""What a reproduction leaves in its folder, beside the cells' own run folders.

OUT/DATA/ENCODER-SCORE-SEED/   a run with its report
OUT/DATA/numbers.json          the numbers of the data set's cells
OUT/result.md .csv .tex        a function of all numbers.json
"""

import json
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from heedmap.errors import InputError
from heedmap.papers.jain_wallace.grid import Result
from heedmap.papers.jain_wallace.page import page
from heedmap.papers.jain_wallace.tables import csv_text
from heedmap.papers.jain_wallace.telling import latex, markdown
from heedmap.storage import write_atomically

NUMBERS = "numbers.json"


def write(out: Path, result: Result) -> None:
    """Keep one data set's numbers, and tell those of all data sets in the folder anew."""
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
    write_atomically(out / result.dataset / NUMBERS, text)
    results = read(out)
    write_atomically(out / "result.html", page(results))
    write_atomically(out / "result.md", markdown(results))
    write_atomically(out / "result.csv", csv_text(results))
    write_atomically(out / "result.tex", latex(results))


def read(out: Path) -> list[Result]:
    """The results that stand in a folder.

    Raises:
        InputError: one is damaged.
    """
    return [_read(path) for path in sorted(out.glob(f"*/{NUMBERS}"))]


def _read(path: Path) -> Result:
    try:
        return TypeAdapter(Result).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged; delete it and run the reproduction again") from error
