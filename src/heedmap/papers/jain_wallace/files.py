"""What a reproduction leaves in its folder, beside the cells' own run folders.

OUT/DATA/ENCODER-SCORE-SEED/   a run with its report
OUT/DATA/numbers.json          the numbers of the data set's cells (results.py)
OUT/result.md .csv .tex .html  a function of all numbers.json
"""

import json
from dataclasses import asdict
from pathlib import Path

from heedmap.locking import writing
from heedmap.papers.jain_wallace.page import page
from heedmap.papers.jain_wallace.results import NUMBERS, Result, joined, kept, read
from heedmap.papers.jain_wallace.tables import csv_text
from heedmap.papers.jain_wallace.telling import latex, markdown
from heedmap.storage import write_atomically


def write(out: Path, result: Result) -> None:
    """Keep one data set's numbers beside those of earlier calls, and tell those of all data sets anew.

    Raises:
        InputError: what stands there is damaged, or the place cannot be written.
    """
    # Other data sets may be run into the same folder at the same time: each tells what all have found so far.
    with writing(out, wait=True):
        result = joined(kept(out, result.dataset) or result, result)
        text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
        write_atomically(out / result.dataset / NUMBERS, text)
        results = read(out)
        write_atomically(out / "result.html", page(results))
        write_atomically(out / "result.md", markdown(results))
        write_atomically(out / "result.csv", csv_text(results))
        write_atomically(out / "result.tex", latex(results))
