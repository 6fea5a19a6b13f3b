"""The engine of all papers: cells, each run once or read, and the result of those that are finished.

A paper says what its `Cell`s are and computes one (`Compute`). Its `Experiment` runs those that are missing,
keeps their rows in the folder, and writes the result files anew after each. Its subclass of `Reproduction` says
how this run differs from the paper and which models have learned, and makes the `Result` from the rows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import pandas as pd
import pyarrow as pa
from torch import nn

from heedmap.errors import InputError
from heedmap.files.manifest import remove
from heedmap.files.tables import read_table, write_table
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.parts import (
    ABOUT,
    PARTS,
    Row,
    S,
    read_about,
    read_settings,
    reserved,
    write_about,
)
from heedmap.papers.kit.render import write
from heedmap.papers.kit.result import Claim, Result, Table, unfinished, unlike, with_unlike
from heedmap.report.charts import Figure
from heedmap.runs.run_paths import Out
from heedmap.training.jobs import checkpoints_of, run_jobs, save_part
from heedmap.training.shards import current_shard

Modules = Mapping[str, nn.Module]
Outcome: TypeAlias = list[Row] | pa.Table


@dataclass(frozen=True)
class Cell:
    """A training, or whatever a paper runs by itself: the name of its files, and what all of its rows share."""

    name: str
    columns: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]


Compute = Callable[[Cell, Path], tuple[Outcome, Modules]]
"""Computes a cell: its rows and what was trained, which are kept. The path is a folder for checkpoints."""


@dataclass(frozen=True)
class Reproduction(Generic[S]):
    """What is in a reproduction's folder: what the data are called, the settings, and notes on the data."""

    name: str
    settings: S
    notes: list[str]
    folder: Path

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's own run, in words."""
        return []

    @property
    def missing(self) -> int:
        """How many models are still to be run."""
        return 0

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned; the claims count no others."""
        return Learned({})

    def failed_in(self, figure: Figure) -> list[str]:
        """Return the models in a figure that have not learned."""
        return [*self.learned.failed]

    def make_result(
        self,
        title: str,
        sections: Sequence[Table | Claim],
        *,
        figures: Sequence[Figure],
        rows: pd.DataFrame,
        columns: Mapping[str, str],
        notes: Sequence[str] = (),
        summary: Table | None = None,
        latex: Table | None = None,
        reports: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (),
    ) -> Result:
        """Make the result from a paper's tables, claims and figures; the first table is the summary."""
        remarks = (*self.notes, *notes, unlike(self.differences), unfinished(self.missing))
        first_table = next(part for part in sections if isinstance(part, Table))
        return Result(
            title=title,
            notes=[note for note in remarks if note],
            summary=summary or first_table,
            sections=sections,
            figures=[
                with_unlike(figure, self.differences, self.failed_in(figure)) for figure in figures
            ],
            rows=rows,
            latex=latex or summary or first_table,
            columns=columns,
            reports=reports,
            not_learned=self.learned.sentence(),
        )


@dataclass(frozen=True)
class CellReproduction(Reproduction[S]):
    """A reproduction of independent cells: the rows of those that are finished, in the order of the cells."""

    rows: list[Any] = field(default_factory=list)


F = TypeVar("F", bound=CellReproduction[Any])


def rows_of(cell: Cell, table: pa.Table) -> list[Any]:
    """Return the rows of a cell's table, as they are."""
    rows: list[Row] = table.to_pylist()
    return rows


@dataclass(frozen=True)
class Experiment(Generic[S, F]):
    """Cells that a paper runs, and how their result is made.

    `schema` is that of a cell's table, or the names of columns that it must have. `files` are written in the
    folder besides, `joint` is the one among them that has all rows. If it `needs_all` cells, the result is
    written after the last one alone.
    """

    settings: type[S]
    kind: type[F]
    cells: Callable[[S], Sequence[Cell]]
    schema: pa.Schema | Collection[str]
    result: Callable[[F], Result]
    files: Sequence[str] = ()
    joint: str | None = None
    rows_of: Callable[[Cell, pa.Table], list[Any]] = rows_of
    needs_all: bool = False

    @contextmanager
    def opened(
        self,
        out: Out,
        settings: S,
        *,
        overwrite: bool = False,
        name: str = "",
        notes: Sequence[str] = (),
    ) -> Iterator[F]:
        """Reserve the folder `out` and give the reproduction in it, without rows.

        `overwrite` replaces a reproduction with other settings, and restarts unfinished cells.

        Raises:
            InputError: the folder holds another reproduction, or another process writes there.
        """
        with reserved(out, settings, overwrite=overwrite, files=self.files) as folder:
            if ABOUT in self.files:
                write_about(folder, name, notes)
            yield self.kind(name, settings, [*notes], folder)

    def run(
        self,
        reproduction: F,
        compute: Compute,
        *,
        cells: Sequence[Cell] | None = None,
        workers: int | None = None,
        more: bool = False,
        here: bool = False,
    ) -> F:
        """Run the cells that are missing, read the others, and write the result; return it with their rows.

        Args:
            reproduction: as `opened` gives it, or with the rows of other cells.
            compute: a partial of a module's function, since workers receive it pickled.
            cells: a part of them; all by default.
            workers: how many processes; one per core by default. The numbers do not depend on it.
            more: whether further cells need these.
            here: whether the cells are brief and run in this process.

        Raises:
            InputError: a part is damaged, or what `compute` raises.
        """
        rows = [*reproduction.rows]

        def keep(cell: Cell, table: pa.Table) -> None:
            rows.extend(self.rows_of(cell, table))
            if current_shard() is not None:
                return
            if self.joint is not None:
                write_table(
                    reproduction.folder / self.joint, pa.Table.from_pylist(rows, schema=self.schema)
                )
            if not self.needs_all:
                # A new object: what the last one has cached is without the new rows.
                write(reproduction.folder, self.result(replace(reproduction, rows=rows)))

        run_jobs(
            self.cells(reproduction.settings) if cells is None else cells,
            partial(run_cell, compute=compute, folder=reproduction.folder, schema=self.schema),
            keep,
            folder=reproduction.folder,
            is_finished=lambda cell: part_path(reproduction.folder, cell).exists(),
            workers=workers,
            more=more,
            here=here,
        )
        finished = replace(reproduction, rows=rows)
        if self.needs_all:
            write(reproduction.folder, self.result(finished))
        return finished

    def read(self, folder: Path) -> F | None:
        """Read what is finished in a folder; return None where there is no reproduction with such settings.

        Raises:
            InputError: a part is damaged.
        """
        if not (folder / PARTS).is_dir():
            return None
        name = ""
        notes: list[str] = []
        if ABOUT in self.files:
            if (data_notes := read_about(folder, self.settings)) is None:
                return None
            settings, name, notes = data_notes
        else:
            try:
                settings = read_settings(folder, self.settings)
            except InputError:
                return None  # another paper's
        rows: list[Any] = []
        for cell in self.cells(settings):
            if (path := part_path(folder, cell)).exists():
                rows += self.rows_of(cell, read_part(path, self.schema, cell))
        return self.kind(name, settings, notes, folder, rows) if rows else None


def run_cell(
    cell: Cell, *, compute: Compute, folder: Path, schema: pa.Schema | Collection[str]
) -> pa.Table:
    """Return the table of one cell: read if it is finished, else computed and kept."""
    path = part_path(folder, cell)
    if not path.exists():
        outcome, modules = compute(cell, checkpoints_of(path))
        if not isinstance(outcome, pa.Table):
            rows = [{**cell.columns, **row} for row in outcome]
            outcome = pa.Table.from_pylist(rows, schema=schema)
        if modules:
            save_part(path, outcome, modules)
        else:
            write_table(path, outcome)
    remove(checkpoints_of(path))
    return read_part(path, schema, cell)


def check_distinct(option: str, names: Sequence[str]) -> None:
    """Check that something is named, and nothing twice.

    Raises:
        InputError: nothing is named, or something twice.
    """
    if not names or len(set(names)) != len(names):
        raise InputError(f"{option}: expected each at most once; got {', '.join(names)}")


def part_path(folder: Path, cell: Cell) -> Path:
    """Return the path of a cell's table."""
    return folder / PARTS / f"{cell}.parquet"


def read_part(path: Path, schema: pa.Schema | Collection[str], cell: Cell) -> pa.Table:
    """Read the table of a finished cell and check that all of its rows are the cell's.

    Raises:
        InputError: it is damaged, or of another cell.
    """
    table = read_table(path)
    if isinstance(schema, pa.Schema):
        is_readable = table.schema.equals(schema) and len(table) > 0
    else:
        is_readable = {*schema, *cell.columns} <= set(table.column_names)
    if not is_readable or any(
        set(table[name].to_pylist()) != {value} for name, value in cell.columns.items()
    ):
        raise InputError(
            f"{path}: not the rows of this part; delete it and run the reproduction again"
        )
    return table
