"""The numbers of a data set's cells, kept in OUT/DATA/numbers.json: of one call, or of several made alike."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import vectors_hash
from heedmap.errors import InputError
from heedmap.files.storage import write_atomically
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import SCORES
from heedmap.papers.jain_wallace.measures import Cell, Measured
from heedmap.papers.jain_wallace.sizes import Size, usual_epochs
from heedmap.report.phrases import plural

NUMBERS = "numbers.json"


@dataclass
class DatasetNumbers:
    """One data set's numbers so far, how its sizes compare with the published ones, what is still to be run.

    `basis` is what all its cells have in common, `made` in what it differs from the paper's own run, in
    words; `log_odds` is `frozen.text_by_text`, a seed.
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
    """What all cells of a data set have in common; `options` of the training."""
    data, vectors = corpus.settings, options["vectors"]
    return {
        "texts": corpus.fingerprint(),
        "rules": data.rules,
        "epochs": str(options["epochs"] or usual_epochs(data.dataset or data.source)),
        "vectors": "none" if vectors is None else vectors_hash(Path(vectors)),
        "instances": str(instances),
    }


def save(out: Path, new: DatasetNumbers) -> list[DatasetNumbers]:
    """Keep one data set's numbers beside those of earlier calls; gives those of all data sets.

    Raises:
        InputError: what stands there is damaged, or the place cannot be written.
    """
    joint = joined(kept(out, new.dataset) or new, new)
    text = json.dumps(asdict(joint), indent=1, ensure_ascii=False)
    write_atomically(out / new.dataset / NUMBERS, text)
    return read(out)


def read(out: Path) -> list[DatasetNumbers]:
    """The numbers of all data sets that stand in a folder.

    Raises:
        InputError: one is damaged.
    """
    return [_read(path) for path in sorted(out.glob(f"*/{NUMBERS}"))]


def kept(out: Path, dataset: str) -> DatasetNumbers | None:
    """The numbers of one data set that stand in a folder, if there are any.

    Raises:
        InputError: it is damaged.
    """
    path = out / dataset / NUMBERS
    return _read(path) if path.exists() else None


def check_alike(out: Path, new: DatasetNumbers, overwrite: bool) -> None:
    """Whether what stands in a folder was made like the new cells, so that they can stand beside it.

    Raises:
        InputError: it was not (the differences are named) and is not to be replaced; or it is damaged.
    """
    old = kept(out, new.dataset)
    if overwrite or old is None or not old.basis:
        return
    if changed := _differences(old, new):
        raise InputError(
            f"{out / new.dataset}: holds models that were made otherwise ({changed}); choose another --out, "
            "or insist with --overwrite"
        )


def joined(old: DatasetNumbers, new: DatasetNumbers) -> DatasetNumbers:
    """What an earlier call found of other models, beside the new numbers; only where it was made alike."""
    finished = {one.cell for one in new.numbers}
    before = [one for one in old.numbers if one.cell not in finished]
    if old.basis != new.basis:
        gone = len({one.cell for one in before} - {*new.missing})
        if gone:
            warnings.warn(
                f"{new.dataset}: what an earlier call found of {plural(gone, 'other model')} is not in the "
                f"result; it was made otherwise ({_differences(old, new)})",
                stacklevel=2,
            )
        return new
    finished |= {one.cell for one in before}
    missing = dict.fromkeys([*new.missing, *old.missing])
    return replace(
        new,
        numbers=sorted([*before, *new.numbers], key=_place),
        missing=[cell for cell in missing if cell not in finished],
        baselines=_by_seed(old.baselines, new.baselines),
        log_odds=_by_seed(old.log_odds, new.log_odds),
    )


def _differences(old: DatasetNumbers, new: DatasetNumbers) -> str:
    return "; ".join(
        f"other {name}"
        if name in ("texts", "vectors")  # known by a hash, which says nothing
        else f"{name}: {old.basis.get(name, 'not known')} -> {value}"
        for name, value in new.basis.items()
        if old.basis.get(name) != value
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


def _read(path: Path) -> DatasetNumbers:
    try:
        found = TypeAdapter(DatasetNumbers).validate_python(
            json.loads(path.read_text(encoding="utf-8"))
        )
        cells = [*(one.cell for one in found.numbers), *found.missing]
        if {found.dataset, *(cell.dataset for cell in cells)} != {path.parent.name} or not all(
            cell.encoder in ENCODERS and cell.score in SCORES for cell in cells
        ):
            raise ValueError("other models than the folder is for")
        return found
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged; delete it and run the reproduction again") from error
