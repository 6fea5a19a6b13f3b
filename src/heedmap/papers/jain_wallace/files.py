"""What a reproduction leaves in its folder, beside the cells' own run folders.

OUT/DATA/ENCODER-SCORE-SEED/   a run with its report
OUT/DATA/numbers.json          the numbers of the data set's cells, of one call or of several
OUT/result.md .csv .tex        a function of all numbers.json
"""

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from heedmap.errors import InputError
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import SCORES
from heedmap.papers.jain_wallace.grid import Result
from heedmap.papers.jain_wallace.measures import Measured
from heedmap.papers.jain_wallace.page import page
from heedmap.papers.jain_wallace.tables import csv_text
from heedmap.papers.jain_wallace.telling import latex, markdown
from heedmap.report.words import plural
from heedmap.storage import write_atomically

NUMBERS = "numbers.json"


def write(out: Path, result: Result) -> None:
    """Keep one data set's numbers beside those of earlier calls, and tell those of all data sets anew.

    Raises:
        InputError: what stands there is damaged, or the place cannot be written.
    """
    path = out / result.dataset / NUMBERS
    result = joined(_read(path) if path.exists() else result, result)
    write_atomically(path, json.dumps(asdict(result), indent=1, ensure_ascii=False))
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


def joined(old: Result, new: Result) -> Result:
    """What an earlier call found of other models, beside the new numbers; only where it was made alike."""
    cells = {*new.missing, *(one.cell for one in new.numbers)}
    before = [one for one in old.numbers if one.cell not in cells]
    if any(getattr(old, name) != getattr(new, name) for name in ("rules", "made", "sizes")):
        if before:
            warnings.warn(
                f"{new.dataset}: {plural(len({one.cell for one in before}), 'model')} of an earlier call, made "
                f"otherwise (by the {old.rules}'s rules, {'; '.join(old.made) or 'as the paper'}), not in the "
                "result",
                stacklevel=2,
            )
        return new
    return replace(
        new,
        numbers=sorted([*before, *new.numbers], key=_place),
        baselines=_by_seed(old.baselines, new.baselines),
        log_odds=_by_seed(old.log_odds, new.log_odds),
    )


def _place(one: Measured) -> tuple[int, int, int]:
    """Whatever was run first: by seed, encoder and score."""
    cell = one.cell
    return cell.seed, [*ENCODERS].index(cell.encoder), [*SCORES].index(cell.score)


def _by_seed(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new rows, and the old ones of other seeds."""
    seeds = {row["seed"] for row in new}
    return sorted(
        [*(row for row in old if row["seed"] not in seeds), *new], key=lambda row: int(row["seed"])
    )


def _read(path: Path) -> Result:
    try:
        return TypeAdapter(Result).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged; delete it and run the reproduction again") from error
