"""The numbers of a data set's cells in OUT/DATA/numbers.json; later calls with equal settings add theirs."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import vectors_hash
from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import SCORES
from heedmap.papers.jain_wallace.measures import Cell, Measured
from heedmap.papers.jain_wallace.settings import dataset_of
from heedmap.papers.jain_wallace.sizes import Size, usual_epochs
from heedmap.report.wording import plural
from heedmap.terminal.output import remark

NUMBERS = "numbers.json"


@dataclass
class DatasetNumbers:
    """One data set's numbers so far, how its sizes compare with the published ones, what is still to be run.

    `basis` is what all its cells have in common, `made` says in words how it differs from the paper's own
    run; `log_odds` is `frozen.text_by_text` per seed.
    """

    dataset: str
    rules: str
    numbers: list[Measured] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    missing: list[Cell] = field(default_factory=list)
    baselines: list[dict[str, Any]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    log_odds: list[dict[str, Any]] = field(default_factory=list)
    basis: dict[str, str] = field(default_factory=dict)


def basis(corpus: Corpus, options: Mapping[str, Any], instances: int) -> dict[str, str]:
    """Return what all cells of a data set have in common; `options` are the training's."""
    data, vectors = corpus.settings, options["vectors"]
    return {
        "texts": corpus.fingerprint(),
        "rules": data.rules,
        "epochs": str(options["epochs"] or usual_epochs(dataset_of(data))),
        "vectors": "none" if vectors is None else vectors_hash(Path(vectors)),
        "instances": str(instances),
    }


def save(out: Path, new: DatasetNumbers) -> list[DatasetNumbers]:
    """Save one data set's numbers with those of earlier calls; return those of all data sets.

    Raises:
        InputError: a file there is damaged, or the place cannot be written.
    """
    joint = joined(read_dataset(out, new.dataset) or new, new)
    text = json.dumps(asdict(joint), indent=1, ensure_ascii=False)
    manifest.write(out / new.dataset / NUMBERS, text)
    return read(out)


def read(out: Path) -> list[DatasetNumbers]:
    """Read the numbers of all data sets in a folder.

    Raises:
        InputError: one is damaged.
    """
    return [_read(path) for path in sorted(out.glob(f"*/{NUMBERS}"))]


def read_dataset(out: Path, dataset: str) -> DatasetNumbers | None:
    """Read the numbers of one data set in a folder, if there are any.

    Raises:
        InputError: it is damaged.
    """
    path = out / dataset / NUMBERS
    return _read(path) if path.exists() else None


def check_alike(out: Path, new: DatasetNumbers, overwrite: bool) -> None:
    """Check that the numbers in a folder were made with the settings of the new cells.

    Raises:
        InputError: they were not (the differences are named) and may not be replaced; or they are damaged.
    """
    old = read_dataset(out, new.dataset)
    if overwrite or old is None or not old.basis:
        return
    if changed := _differences(old, new):
        raise InputError(
            f"{out / new.dataset}: holds models that were made otherwise ({changed}); choose another --out, "
            "or insist with --overwrite"
        )


def joined(old: DatasetNumbers, new: DatasetNumbers) -> DatasetNumbers:
    """Add an earlier call's numbers of other models to the new ones, if made with the same settings."""
    finished = {number.cell for number in new.numbers}
    earlier = [number for number in old.numbers if number.cell not in finished]
    if old.basis != new.basis:
        dropped = len({number.cell for number in earlier} - {*new.missing})
        if dropped:
            remark(
                f"{new.dataset}: what an earlier call found of {plural(dropped, 'other model')} is not in the "
                f"result; it was made otherwise ({_differences(old, new)})"
            )
        return new
    finished |= {number.cell for number in earlier}
    missing = dict.fromkeys([*new.missing, *old.missing])
    return replace(
        new,
        numbers=sorted([*earlier, *new.numbers], key=_sort_key),
        missing=[cell for cell in missing if cell not in finished],
        baselines=_by_seed(old.baselines, new.baselines),
        log_odds=_by_seed(old.log_odds, new.log_odds),
    )


def _differences(old: DatasetNumbers, new: DatasetNumbers) -> str:
    return "; ".join(
        f"other {name}"
        if name in ("texts", "vectors")  # a hash tells a reader nothing
        else f"{name}: {old.basis.get(name, 'not known')} -> {value}"
        for name, value in new.basis.items()
        if old.basis.get(name) != value
    )


def _sort_key(number: Measured) -> tuple[int, int, int]:
    """Return the sort key of a number: seed, encoder, score."""
    cell = number.cell
    return cell.seed, [*ENCODERS].index(cell.encoder), [*SCORES].index(cell.score)


def _by_seed(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new rows, and the old ones of other seeds."""
    seeds = {row["seed"] for row in new}
    return sorted(
        [*(row for row in old if row["seed"] not in seeds), *new], key=lambda row: int(row["seed"])
    )


def _read(path: Path) -> DatasetNumbers:
    try:
        numbers = TypeAdapter(DatasetNumbers).validate_python(json.loads(manifest.read(path)))
        cells = [*(number.cell for number in numbers.numbers), *numbers.missing]
        if {numbers.dataset, *(cell.dataset for cell in cells)} != {path.parent.name} or not all(
            cell.encoder in ENCODERS and cell.score in SCORES for cell in cells
        ):
            raise ValueError("other models than the folder is for")
        return numbers
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged; delete it and run the reproduction again") from error
