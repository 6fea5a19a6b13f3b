"""Make the plants, ask them, choose the thresholds, and write the rates and what they are made of."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from heedmap.calibration.choice import LATER, choose, kind_of, known, to_table, with_later_kinds
from heedmap.calibration.families import plants
from heedmap.calibration.measure import Measured, is_measured, measure
from heedmap.calibration.page import page
from heedmap.calibration.plants import Plant, check_texts
from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.experiments.rates import FILE, TOO_FEW, Rates, read_rates
from heedmap.files.identity import source_identity
from heedmap.files.locking import writing
from heedmap.files.manifest import Manifest, write
from heedmap.files.tables import parquet
from heedmap.terminal.output import remark
from heedmap.terminal.progress import working
from heedmap.training.jobs import run_jobs
from heedmap.training.remote import takes_executor

SEEDS = 6  # of each family and encoder
NUMBERS = "numbers"
PAGE = "calibration.md"
SCORES = "plants.parquet"


@takes_executor
def calibrate(
    out: str | Path,
    corpora: Sequence[Corpus] = (),
    *,
    families: Sequence[str] | None = None,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: bool = True,
) -> Rates:
    """Calibrate the rule of the bottom line; what is finished in `out` is read, not made again.

    Args:
        out: the folder for the numbers of each plant, `plants.parquet` with those by class, from which the
            thresholds are chosen, `rates.json`, and `calibration.md`.
        corpora: texts to plant on, too: the training texts of LEAST_WORDS words or more, cut at LONGEST_TEXT.
            The rates with one corpus are used by later audits of it.
        families: names of those to plant; by default all.
        seeds: plants of each family and encoder; of some families a multiple of it.
        workers: see `run_jobs`.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    Raises:
        InputError: a corpus too small to plant on, families of `LATER` kinds alone, another process that
            writes in `out`, or a run or a larger calibration that is there.
    """
    out = Path(out)
    for corpus in corpora:
        check_texts(corpus.splits["train"], corpus.settings.source)
    hosts = {corpus.name: corpus for corpus in corpora}
    identities = {corpus.name: source_identity(corpus.settings.source) for corpus in corpora}
    data = identities[corpora[0].name] if len(corpora) == 1 else None
    cells = plants(seeds, hosts, families)
    if all(kind_of(plant) in LATER for plant in cells):
        raise InputError(
            f"families: expected some that thresholds are chosen on, got {', '.join(families or ())}; measure "
            f"models of {', '.join(LATER)} alone with `calibrate_kinds`"
        )
    with working("calibrate", progress), writing(out):
        _check_place(out, data, seeds, len(cells))
        Manifest(out).start()
        folders = {
            name: out / NUMBERS / identity for name, identity in {"": "drawn", **identities}.items()
        }
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        measured = measured_plants(cells, out, folders, hosts, workers)
        admitted = known(measured)
        *leading, final = ["synthetic texts", *hosts]
        texts = f"{', '.join(leading)} and {final}" if leading else final
        rates = choose(admitted, texts, data)
        write(out / SCORES, parquet(to_table(admitted)))
        write(out / PAGE, page(rates, measured))
        write(out / FILE, rates.to_json())
        Manifest(out).settle()
    if not rates.decides:
        remark(f"{out / FILE}: {rates.plants} planted models are {TOO_FEW}")
    return rates


def measured_plants(
    cells: Sequence[Plant],
    out: Path,
    folders: Mapping[str, Path],
    hosts: Mapping[str, Corpus],
    workers: int | None = None,
) -> list[Measured]:
    """Return the numbers of plants in their order, each kept in the folder of its host; see `calibrate`."""
    measured: list[Measured] = []
    run_jobs(
        cells,
        partial(_measure, folders=folders, hosts=hosts),
        lambda plant, numbers: measured.append(numbers),
        folder=out,
        is_finished=lambda plant: is_measured(plant, folders[plant.host]),
        workers=workers,
    )
    return measured


def calibrate_kinds(
    out: str | Path,
    rates: Rates,
    *,
    kinds: Sequence[str] = LATER,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: bool = True,
) -> tuple[Rates, list[Measured]]:
    """Measure the plants of `LATER` kinds alone, and add them to the rates of a calibration.

    Args:
        out: the folder for the numbers of each plant; what is finished there is read.
        rates: their thresholds are those that the plants are judged by; all other numbers stay.
        kinds: of models.
        seeds: as `calibrate`.
        workers: see `run_jobs`.
        progress: as `calibrate`.

    Returns:
        The rates with these kinds, and the numbers of the plants.
    """
    out = Path(out)
    cells = [plant for plant in plants(seeds) if kind_of(plant) in kinds]
    folder = out / NUMBERS / "drawn"
    with working("calibrate", progress), writing(out):
        Manifest(out).start()
        folder.mkdir(parents=True, exist_ok=True)
        measured = measured_plants(cells, out, {"": folder}, {}, workers)
        Manifest(out).settle()
    return with_later_kinds(rates, known(measured)), measured


def _check_place(out: Path, data: str | None, seeds: int, count: int) -> None:
    if (out / "settings.toml").exists():
        raise InputError(f"{out}: holds a run; give the calibration a folder of its own, beside it")
    path = out / FILE
    if path.exists():
        _refuse_smaller(out, data, seeds, count)
    Manifest(out).refuse_taken([NUMBERS, PAGE, SCORES, FILE])


def _refuse_smaller(out: Path, data: str | None, seeds: int, count: int) -> None:
    """Raise InputError if a larger calibration of the same texts is there."""
    try:
        rates = read_rates(out / FILE)
    except InputError:
        return  # damaged, or of older rules: made again
    if rates.data == data and rates.plants > count:
        raise InputError(
            f"{out}: holds a calibration of {rates.plants} planted models, more than the {count} of {seeds} "
            "seeds; give more --seeds, or another --out"
        )


def _measure(plant: Plant, folders: Mapping[str, Path], hosts: Mapping[str, Corpus]) -> Measured:
    return measure(plant, folders[plant.host], hosts)
