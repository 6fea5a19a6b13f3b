"""What one audit has to go on: the model, the texts, their traces, and the tables so far."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Batch, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.texts import Text
from heedmap.experiments.registry import registered
from heedmap.files.table_folder import TableFolder
from heedmap.models.trace import Model, Trace
from heedmap.settings import AuditSettings

KEPT = 1 << 28  # bytes of traces that are kept for the next experiment; more are made again

Announce = Callable[[str], None]


class Evidence:
    """Tables by name, computed when first asked for, kept in `folder` if there is one.

    An experiment is a function of this to a table; it may ask for other tables and for the traces, and
    knows nothing of the model's family. A table that the folder holds is read, not computed again, if the
    files that its experiment keeps beside it are there too.
    """

    def __init__(
        self,
        model: Model,
        split: Split,
        settings: AuditSettings,
        folder: TableFolder | None = None,
        announce: Announce = lambda name: None,
    ) -> None:
        self.model = model
        self.split = split
        self.settings = settings
        self.folder = folder
        self._announce = announce
        self._tables: dict[str, pa.Table] = {}
        self._traces: dict[int, Trace] = {}
        self._bytes = 0
        self.kept: dict[str, bytes] = {}
        """Files beside the tables, where there is no folder to keep them in."""

    def table(self, name: str) -> pa.Table:
        """The table of one experiment."""
        if name not in self._tables:
            made = self._kept_before(name)
            if made is None:
                self._announce(name)
                made = registered()[name].run(self).replace_schema_metadata(self._company())
                if self.folder is not None:
                    self.folder.keep(name, made)
            self._tables[name] = made
        return self._tables[name]

    def _company(self) -> dict[str, str]:
        """What the last digits of a table depend on: kept in it, for a stopped audit may go on with others."""
        bounds = {"threads": torch.get_num_threads(), "batch_tokens": self.model.tokens_at_once}
        return {name: str(value) for name, value in bounds.items()}

    def done(self, name: str) -> bool:
        """Whether a table stands already."""
        if self.folder is None:
            return name in self._tables
        files = [f"{name}.parquet", *self._beside(name)]
        return name in self._tables or all(map(self.folder.holds, files))

    def keep(self, file: str, content: bytes) -> None:
        """Write a file beside the tables; before its table, which says that the experiment is done."""
        if self.folder is None:
            self.kept[file] = content
        else:
            self.folder.put(file, content)

    def _kept_before(self, name: str) -> pa.Table | None:
        if self.folder is None or any(self.folder.get(file) is None for file in self._beside(name)):
            return None
        return self.folder.table(name)

    def _beside(self, name: str) -> Sequence[str]:
        return registered()[name].files(self.model)

    def batches_of(self, rows: Sequence[int] | NDArray[np.int64], shares: int = 1) -> list[Batch]:
        """Batches of some texts, similar lengths together, with a `shares`-th of the usual positions."""
        rows = np.asarray(rows, dtype=np.int64)
        tokens = max(1, self.model.tokens_at_once // shares)
        return [
            self.model.batch([self.texts[i] for i in some], some.tolist())
            for some in (rows[part] for part in sorted_batches(self.lengths[rows], tokens))
        ]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Positions that the model reads for each text."""
        return self.model.lengths(self.texts)

    @cached_property
    def texts(self) -> Sequence[Text]:
        """What the model reads: tokens, or pairs of texts."""
        return self.split.texts

    def sample(self, name: str, count: int) -> NDArray[np.int64]:
        """The rows of a seeded sample of at most `count` texts, in order."""
        return self.split.drawn(self.generator(name), count)

    @cached_property
    def batches(self) -> list[Batch]:
        """All texts, those of similar length together."""
        return self.batches_of(range(len(self.split)))

    def passes(self) -> Iterator[tuple[Batch, Trace]]:
        """One forward pass over all texts, batch by batch; small traces are kept for the next one."""
        for i, batch in enumerate(self.batches):
            trace = self._traces.get(i)
            if trace is None:
                trace = self.model.trace(batch)
                size = trace.attention.nbytes * 4
                if trace.readout is not None:
                    size = max(size, trace.readout.relevance.nbytes)
                if trace.state is None and self._bytes + size <= KEPT:
                    self._traces[i] = trace
                    self._bytes += size
            yield batch, trace

    @property
    def traces(self) -> Iterator[Trace]:
        """The traces of `passes`."""
        return (trace for _, trace in self.passes())

    def torch_generator(self, name: str) -> torch.Generator:
        """The same for torch."""
        return _for_torch(self.generator(name))

    def torch_generators(self, name: str, rows: Int[Tensor, " B"]) -> list[torch.Generator]:
        """The same for torch."""
        return [_for_torch(generator) for generator in self.generators(name, rows)]

    def generators(self, name: str, rows: Int[Tensor, " B"]) -> list[np.random.Generator]:
        """A generator for each text of an experiment: its own, whatever batch it is read in."""
        return [
            np.random.default_rng([self.settings.seed, *name.encode(), row])
            for row in rows.tolist()
        ]

    def generator(self, name: str) -> np.random.Generator:
        """The generator of one experiment: its own, whatever else is run."""
        return np.random.default_rng([self.settings.seed, *name.encode()])


def _for_torch(generator: np.random.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(generator.integers(2**62)))
