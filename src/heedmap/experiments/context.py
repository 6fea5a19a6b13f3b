"""The input of the experiments: the model, the texts, their traces, and the tables so far."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Batch, scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.texts import Text
from heedmap.errors import InputError, running_model
from heedmap.experiments.generators import named_generator
from heedmap.experiments.output_spread import OutputSpread, spread_of
from heedmap.experiments.variants import Retraining
from heedmap.files.table_folder import TableFolder
from heedmap.measures import predictions
from heedmap.models.trace import Model, Trace
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.progress import step, track

KEPT = 1 << 28  # bytes of traces cached for the next experiment; others are recomputed


@runtime_checkable
class TableMaker(Protocol):
    """An experiment as a context sees it: how its table is made, and what is kept beside it.

    The registry's `Experiment` is one. The context does not know that class, because an experiment's functions
    take a context: the registry stands above both.
    """

    @property
    def run(self) -> "Callable[[AuditContext], pa.Table]":
        """Return the function that computes the table."""

    @property
    def files(self) -> Callable[[Model], Sequence[str]]:
        """Return the function that names the files beside the table."""

    @property
    def variants(self) -> object | None:
        """Return what lists the further trainings; None if it takes none."""

    def can_ask(self, model: Model, split: Split) -> bool:
        """Return whether the experiment applies to a model and texts, and the model can do what it needs."""

    @property
    def in_chunks(self) -> bool:
        """Return whether it asks each text by itself, so that some texts can be asked without the others."""

    @property
    def before_chunks(self) -> bool:
        """Return whether those that ask each text by itself read its table, which is of all texts."""


class AuditContext:
    """Tables by name, computed on first use and kept in `folder` if there is one.

    An experiment maps this to a table. It may use other tables and the traces, and does not depend on the
    kind of model. `experiments` are those whose tables may be asked for, by name. A table in the folder is
    read instead of computed if the files that its experiment keeps beside it are there too. `other_seeds`: the
    same model from other trainings by their names, such as `seed_1`, if there are any. `retraining` trains
    further models for the experiments in `requested`, whose tables are made anew: what is trained is kept.
    `recorded` is what was recorded while the model was trained, if anything was. `first_row`: the texts are
    those from this row on of an audit, and draw the random numbers that they have there. `whole`: the texts of
    that audit, where these are one of its chunks: samples are drawn from all of them.
    """

    def __init__(
        self,
        model: Model,
        split: Split,
        settings: AuditSettings,
        experiments: Mapping[str, TableMaker],
        folder: TableFolder | None = None,
        other_seeds: Mapping[str, Model] | None = None,
        retraining: Retraining | None = None,
        requested: Collection[str] = (),
        recorded: pa.Table | None = None,
        first_row: int = 0,
        whole: Split | None = None,
    ) -> None:
        self.model = model
        self._first_row, self._whole = first_row, whole
        self.recorded = recorded
        self.other_seeds = other_seeds or {}
        self.retraining, self._requested = retraining, requested
        self.split = split
        self.settings = settings
        self.experiments = experiments
        self.folder = folder
        self._tables: dict[str, pa.Table] = {}
        self._traces: dict[int, Trace] = {}
        self._bytes = 0
        self.kept: dict[str, bytes] = {}
        """Files beside the tables, by name, where there is no folder."""

    def table(self, name: str) -> pa.Table:
        """Return the table of one experiment.

        Raises:
            InputError: it was changed or damaged, and takes further trainings to make again.
        """
        if name not in self._tables:
            # What is requested is asked anew, even if the folder has a table of an earlier request.
            table = None if name in self._requested else self._stored_table(name)
            if table is None:
                if self.experiments[name].variants is not None and self.retraining is None:
                    raise InputError(
                        f"the table {name} of this run was changed or damaged, and takes further trainings to "
                        f"make again: run `heedmap retrain {name} --run RUN`"
                    )
                table = self._make(name)
            self._tables[name] = table
        return self._tables[name]

    def _make(self, name: str) -> pa.Table:
        """Compute a table, and keep it."""
        with step(name), running_model(self.model, name):
            table = self.experiments[name].run(self).replace_schema_metadata(self._metadata())
            if self.folder is not None:
                self.folder.keep(name, table)
        return table

    def planned(self, costs: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of the steps that are shown, from those of the questions."""
        return dict(costs)

    def _metadata(self) -> dict[str, str]:
        """Return what a table's rounding depends on. Kept per table: it may change when an audit resumes."""
        bounds = {"threads": torch.get_num_threads(), "batch_tokens": self.model.tokens_at_once}
        return {name: str(value) for name, value in bounds.items()}

    def done(self, name: str) -> bool:
        """Return whether an experiment's table is there."""
        if self.folder is None:
            return name in self._tables
        files = [f"{name}.parquet", *self._files(name)]
        return name in self._tables or all(map(self.folder.holds, files))

    def is_kept(self, name: str) -> bool:
        """Return whether an experiment's table need not be computed."""
        return name not in self._requested and self.done(name)

    def has(self, name: str) -> bool:
        """Return whether an experiment is asked for, or its table is there."""
        return name in self._requested or self.done(name)

    def keep(self, file: str, content: bytes) -> None:
        """Write a file beside the tables. It comes before its table, which marks the experiment as done."""
        if self.folder is None:
            self.kept[file] = content
        else:
            self.folder.put(file, content)

    def _stored_table(self, name: str) -> pa.Table | None:
        if self.folder is None or any(self.folder.get(file) is None for file in self._files(name)):
            return None
        return self.folder.table(name)

    def _files(self, name: str) -> Sequence[str]:
        return self.experiments[name].files(self.model)

    def batches_of(
        self, rows: Sequence[int] | NDArray[np.int64], shares: int = 1
    ) -> Iterator[Batch]:
        """Yield batches of some texts, similar lengths together, of 1/`shares` of the usual positions."""
        parts = self._parts(rows, shares)
        for part in track(parts, [float(self.lengths[part].sum()) for part in parts]):
            yield self._batch(part)

    def _parts(
        self, rows: Sequence[int] | NDArray[np.int64], shares: int = 1
    ) -> list[NDArray[np.int64]]:
        rows = np.asarray(rows, dtype=np.int64)
        tokens = max(1, self.model.tokens_at_once // shares)
        return [rows[part] for part in sorted_batches(self.lengths[rows], tokens)]

    def _batch(self, part: NDArray[np.int64]) -> Batch:
        return self.model.batch([self.texts[i] for i in part], part.tolist())

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of positions that the model reads for each text."""
        return self.model.lengths(self.texts)

    @property
    def lenders(self) -> Sequence[Text]:
        """Return the texts whose words may replace others': of a part, those of the whole audit."""
        return self.texts if self._whole is None else self._whole.texts

    @cached_property
    def texts(self) -> Sequence[Text]:
        """Return the model's input, which is tokens or pairs of texts."""
        return self.split.texts

    def sample(self, name: str, count: int) -> NDArray[np.int64]:
        """Return the rows of a seeded sample of at most `count` texts, in order.

        Of a chunk these are its rows of the sample of all texts.
        """
        if self._whole is None:
            return self.split.drawn(self.generator(name), count)
        rows = self._whole.drawn(named_generator(self.settings.seed, name), count)
        last_row = self._first_row + len(self.split)
        return rows[(rows >= self._first_row) & (rows < last_row)] - self._first_row

    @cached_property
    def batches(self) -> list[Batch]:
        """Return batches of all texts, similar lengths together."""
        return [self._batch(part) for part in self._parts(range(len(self.split)))]

    def passes(self) -> Iterator[tuple[Batch, Trace]]:
        """Yield batches and traces of a forward pass over all texts; small traces are cached."""
        sizes = [float(batch.mask.numel()) for batch in self.batches]
        for i, batch in enumerate(track(self.batches, sizes)):
            trace = self._traces.get(i)
            if trace is None:
                trace = self.model.trace(batch)
                size = trace.attention.nbytes * 4
                if trace.readout is not None:
                    size = max(size, trace.readout.relevance.nbytes)
                # What a model keeps of its pass may be large: such traces are computed again instead.
                if trace.state is None and self._bytes + size <= KEPT:
                    self._traces[i] = trace
                    self._bytes += size
            yield batch, trace

    @cached_property
    def output_spread(self) -> OutputSpread:
        """Return how the outputs of all texts are spread, of a model that gives a number."""
        batches = self.batches_of(range(len(self.split)))
        outputs = {batch.rows: self.model.trace(batch).logits for batch in batches}
        by_row = predictions(scatter_rows([*outputs], [*outputs.values()]))
        return spread_of(by_row[:, 0].numpy(force=True), self.split.text_of)

    @property
    def traces(self) -> Iterator[Trace]:
        """Yield the traces of `passes`."""
        return (trace for _, trace in self.passes())

    def torch_generator(self, name: str) -> torch.Generator:
        """Return `generator` for torch."""
        return _for_torch(self.generator(name))

    def torch_generators(self, name: str, rows: Int[Tensor, " B"]) -> list[torch.Generator]:
        """Return `generators` for torch."""
        return [_for_torch(generator) for generator in self.generators(name, rows)]

    def generators(self, name: str, rows: Int[Tensor, " B"]) -> list[np.random.Generator]:
        """Return a generator per text of an experiment, independent of the batches."""
        return [self.text_generator(name, row) for row in rows.tolist()]

    def text_generator(self, name: str, row: int) -> np.random.Generator:
        """Return the generator of one text of an experiment."""
        return named_generator(self.settings.seed, name, self._first_row + row)

    def generator(self, name: str) -> np.random.Generator:
        """Return the generator of one experiment, independent of the other experiments.

        Chunks draw other numbers; the first one draws those of an audit without chunks.
        """
        number = () if self._whole is None or self._first_row == 0 else (self._first_row,)
        return named_generator(self.settings.seed, name, *number)


def _for_torch(generator: np.random.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(generator.integers(2**62)))
