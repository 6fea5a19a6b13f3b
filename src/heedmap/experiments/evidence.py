"""What one audit has to go on: the model, the texts, their traces, and the tables so far."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.batches import Batch, sorted_batches
from heedmap.data.corpus import Split
from heedmap.models.trace import Model, Trace
from heedmap.settings import AuditSettings
from heedmap.tables import read_table, write_table

TOKENS = 16_384  # of a batch

Experiment = Callable[["Evidence"], pa.Table]
Announce = Callable[[str], None]


class Evidence:
    """Tables by name, computed when first asked for, kept in `folder` if there is one.

    An experiment is a function of this to a table; it may ask for other tables and for the traces, and
    knows nothing of the model's family. A table that stands in the folder is read, not computed again.
    """

    def __init__(
        self,
        model: Model,
        split: Split,
        settings: AuditSettings,
        experiments: dict[str, Experiment],
        folder: Path | None = None,
        announce: Announce = lambda name: None,
    ) -> None:
        self.model = model
        self.split = split
        self.settings = settings
        self.folder = folder
        self._experiments = experiments
        self._announce = announce
        self._tables: dict[str, pa.Table] = {}

    def table(self, name: str) -> pa.Table:
        """The table of one experiment."""
        if name not in self._tables:
            path = None if self.folder is None else self.folder / f"{name}.parquet"
            if path is not None and path.exists():
                self._tables[name] = read_table(path)
            else:
                self._announce(name)
                made = self._experiments[name](self)
                if path is not None:
                    write_table(path, made)
                self._tables[name] = made
        return self._tables[name]

    def batches_of(
        self, rows: Sequence[int] | NDArray[np.int64], tokens: int = TOKENS
    ) -> list[Batch]:
        """Batches of some texts of about `tokens` tokens, those of similar length together."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = np.array([len(self.split.tokens[i]) for i in rows], dtype=np.int64)
        return [
            self.model.batch([self.split.tokens[i] for i in some], some.tolist())
            for some in (rows[part] for part in sorted_batches(lengths, tokens))
        ]

    @cached_property
    def batches(self) -> list[Batch]:
        """All texts, those of similar length together."""
        return self.batches_of(range(len(self.split)))

    @cached_property
    def traces(self) -> list[Trace]:
        """One forward pass over all texts, batch by batch."""
        return [self.model.trace(batch) for batch in self.batches]

    def generator(self, name: str) -> np.random.Generator:
        """The generator of one experiment: its own, whatever else is run."""
        return np.random.default_rng([self.settings.seed, *name.encode()])
