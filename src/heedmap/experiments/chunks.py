"""Ask questions of a large audit's texts in chunks, so that the memory holds one chunk at a time.

The first of those questions that ask each text by itself has all of them asked, chunk after chunk; the tables
of the chunks then become one, a group of rows for each. Chunks have a fixed size and order, so that the tables
have the same bytes wherever an audit was stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.output_spread import OutputSpread
from heedmap.files.memory import return_freed_memory
from heedmap.files.tables import release_mapped, renumbered
from heedmap.models.layered import Layered
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.terminal.progress import in_job, plan, step, track

TEXTS, WORDS = 10_000, 1 << 20  # of a chunk, at most; a longer text is one by itself
FOLDER = "chunks"  # of the tables of chunks, until they are one
STEP = "texts in chunks"


@dataclass(frozen=True)
class Chunk:
    """A range of an audit's texts; chunks are numbered from 0."""

    number: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"texts {self.start + 1} to {self.end}"

    @property
    def size(self) -> int:
        """Return how many texts it has."""
        return self.end - self.start

    @property
    def folder(self) -> str:
        """Return the folder of its tables, in that of the audit's."""
        return f"{FOLDER}/{self.number:05d}"


def chunks_of(split: Split) -> list[Chunk]:
    """Return the chunks of the texts, in order."""
    chunks: list[Chunk] = []
    start = words = 0
    for row, tokens in enumerate(split.tokens):
        if row > start and (row - start == TEXTS or words + len(tokens) > WORDS):
            chunks.append(Chunk(len(chunks), start, row))
            start, words = row, 0
        words += len(tokens)
    return [*chunks, Chunk(len(chunks), start, len(split))]


def takes_chunks(model: Model, split: Split) -> bool:
    """Return whether an audit asks in chunks: of many texts, and a model of our own that reads single ones.

    Attention that is not read out linearly is searched, in a sample; its questions need all texts together.
    """
    return not isinstance(model, Layered | PairClassifier) and len(chunks_of(split)) > 1


class ChunkedContext(AuditContext):
    """The input of the experiments for many texts: those that ask each text by itself are asked in chunks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.chunks = chunks_of(self.split)
        self._in_memory: dict[int, dict[str, pa.Table]] = {}

    def table(self, name: str) -> pa.Table:
        """Return the table of one experiment; what was read of other tables leaves the memory first.

        A question of all texts asks for several tables, and has read of each what it needs when it asks for the
        next one.
        """
        release_mapped()
        return_freed_memory()
        return super().table(name)

    def _make(self, name: str) -> pa.Table:
        if not self.experiments[name].in_chunks:
            table = super()._make(name)
            # Read again, a table of as many texts may stay on the disk.
            read = None if self.folder is None else self.folder.table(name)
            return table if read is None else read
        # Whoever asks for this table found none that is as it was written, even if its file is there.
        names = [other for other in self._chunked() if other == name or not self.done(other)]
        sizes = [float(chunk.size) for chunk in self.chunks]
        with step(STEP):
            for chunk in track(self.chunks, sizes):
                self._ask(chunk, names)
        for chunked in names:
            if self.folder is None:
                self._tables[chunked] = pa.concat_tables(self._parts_of(chunked))
            else:
                self.folder.keep_parts(chunked, self._parts_of(chunked))
        self._in_memory.clear()
        if self.folder is None:
            return self._tables[name]
        self.folder.remove(FOLDER)
        table = self.folder.table(name)
        assert table is not None
        return table

    def _chunked(self) -> list[str]:
        return [
            name
            for name, experiment in self.experiments.items()
            if experiment.in_chunks and experiment.can_ask(self.model, self.split)
        ]

    def planned(self, costs: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of the steps: all questions that are asked in chunks are one."""
        steps: dict[str, float] = {}
        for name, seconds in costs.items():
            title = STEP if self.experiments[name].in_chunks else name
            steps[title] = steps.get(title, 0.0) + seconds
        return steps

    def unfinished(self) -> list[Chunk]:
        """Return the chunks of which tables are missing, by what the folder holds now."""
        assert self.folder is not None
        self.folder.refresh()
        files = [
            file
            for name in self._chunked()
            if not self.done(name)
            for file in (f"{name}.parquet", *self._files(name))
        ]
        folders = {chunk: self.folder.part(chunk.folder) for chunk in self.chunks}
        return [chunk for chunk in self.chunks if not all(map(folders[chunk].holds, files))]

    def prepare(self) -> None:
        """Make the tables of all texts that questions of chunks read."""
        for name, experiment in self.experiments.items():
            if experiment.before_chunks and experiment.can_ask(self.model, self.split):
                self.table(name)

    def ask(self, chunk: Chunk) -> None:
        """Ask the questions of one chunk, and keep its tables in the folder."""
        assert self.folder is not None
        self.folder.refresh()
        self._ask(chunk, [name for name in self._chunked() if not self.done(name)])

    def _ask(self, chunk: Chunk, names: Sequence[str]) -> None:
        """Ask the questions of a chunk, and keep its tables; without a folder they stay in memory."""
        context = _ChunkContext(self, chunk)
        missing = [name for name in names if not context.done(name)]
        with in_job(f"{chunk} of {len(self.split)}"):
            plan(dict.fromkeys(missing, 1.0))
            tables = {name: context.table(name) for name in missing}
        del context  # with the traces that it holds
        return_freed_memory()
        if self.folder is None:
            self._in_memory[chunk.number] = tables

    def _parts_of(self, name: str) -> Iterator[pa.Table]:
        """Yield the tables of the chunks as parts of one, which have the same types and count all rows."""
        schemas = [self._table_of(chunk, name).schema for chunk in self.chunks]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        for chunk in self.chunks:
            table = self._table_of(chunk, name)
            yield renumbered(table, "row", chunk.start).cast(
                schema.with_metadata(schemas[0].metadata)
            )

    def _table_of(self, chunk: Chunk, name: str) -> pa.Table:
        if self.folder is None:
            return self._in_memory[chunk.number][name]
        table = self.folder.part(chunk.folder).table(name)
        assert table is not None
        return table


class _ChunkContext(AuditContext):
    """The input of the experiments for one chunk; of what all texts are asked together it has its rows."""

    def __init__(self, whole: ChunkedContext, chunk: Chunk) -> None:
        folder = None if whole.folder is None else whole.folder.part(chunk.folder)
        super().__init__(
            whole.model,
            whole.split.take(range(chunk.start, chunk.end)),
            whole.settings,
            whole.experiments,
            folder,
            first_row=chunk.start,
            whole=whole.split,
        )
        self._of_all = whole

    @cached_property
    def output_spread(self) -> OutputSpread:
        """Return how the outputs of the texts of all chunks are spread."""
        return self._of_all.output_spread

    def _make(self, name: str) -> pa.Table:
        table = super()._make(name)
        # Else what each question has freed stays with the process in gaps, which hardly fit what the next one
        # needs, and adds to its peak.
        return_freed_memory()
        return table

    def table(self, name: str) -> pa.Table:
        """Return the table of one experiment for these texts."""
        if self.experiments[name].in_chunks:
            return super().table(name)
        if name not in self._tables:
            rows = self._of_all.table(name).slice(self._first_row, len(self.split))
            self._tables[name] = renumbered(rows, "row", -self._first_row)
        return self._tables[name]
