"""What one audit has to go on: the model, the texts, their traces, and the tables so far."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from heedmap.data.batches import Batch, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.texts import Text
from heedmap.models.trace import Model, Trace
from heedmap.settings import AuditSettings
from heedmap.storage import write_atomically
from heedmap.tables import read_table, write_table

KEPT = 1 << 28  # bytes of traces that are kept for the next experiment; more are made again

Experiment = Callable[["Evidence"], pa.Table]
Announce = Callable[[str], None]


class Evidence:
    """Tables by name, computed when first asked for, kept in `folder` if there is one.

    An experiment is a function of this to a table; it may ask for other tables and for the traces, and
    knows nothing of the model's family. A table that stands in the folder is read, not computed again;
    `files` names the files that an experiment keeps beside its table, without which it does not stand.
    """

    def __init__(
        self,
        model: Model,
        split: Split,
        settings: AuditSettings,
        experiments: dict[str, Experiment],
        folder: Path | None = None,
        announce: Announce = lambda name: None,
        files: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.model = model
        self.split = split
        self.settings = settings
        self.folder = folder
        self._experiments = experiments
        self._announce = announce
        self._tables: dict[str, pa.Table] = {}
        self._traces: dict[int, Trace] = {}
        self._bytes = 0
        self._files = files or {}
        self.kept: dict[str, bytes] = {}
        """Files beside the tables, where there is no folder to keep them in."""

    def table(self, name: str) -> pa.Table:
        """The table of one experiment."""
        if name not in self._tables:
            if self.folder is not None and self._stands(self.folder, name):
                self._tables[name] = read_table(self.folder / f"{name}.parquet")
            else:
                self._announce(name)
                made = self._experiments[name](self)
                if self.folder is not None:
                    write_table(self.folder / f"{name}.parquet", made)
                self._tables[name] = made
        return self._tables[name]

    def done(self, name: str) -> bool:
        """Whether a table stands already."""
        return name in self._tables or (self.folder is not None and self._stands(self.folder, name))

    def keep(self, file: str, content: bytes) -> None:
        """Write a file beside the tables; before its table, which says that the experiment is done."""
        if self.folder is None:
            self.kept[file] = content
        else:
            write_atomically(self.folder / file, content)

    def _stands(self, folder: Path, name: str) -> bool:
        files = [f"{name}.parquet", *self._files.get(name, ())]
        return all((folder / file).exists() for file in files)

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
        """A seeded sample of at most `count` texts, in order."""
        drawn = self.generator(name).permutation(len(self.split))[:count]
        return np.asarray(np.sort(drawn))

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
        seed = int(self.generator(name).integers(2**62))
        return torch.Generator().manual_seed(seed)

    def generator(self, name: str) -> np.random.Generator:
        """The generator of one experiment: its own, whatever else is run."""
        return np.random.default_rng([self.settings.seed, *name.encode()])
