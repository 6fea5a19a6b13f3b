"""Ask the questions that there is time for, of drawn texts of which the bottom line is known (`reading`).

What the time is too short for is left out, and so is what needs its table. The names stand in the settings, so
that the same audit is made again.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from heedmap.experiments.context import AuditContext, TableMaker
from heedmap.experiments.questions.alternatives import with_candidates_where_needed
from heedmap.experiments.reading import KEPT, Reading
from heedmap.experiments.registry import estimate, registered


class NotAskedError(Exception):
    """The time is too short for a question, or for one whose table it needs."""


class Clock:
    """The time that is left of some minutes, from now on."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def left(self) -> float:
        """Return the seconds that are left; below 0 when the time is over."""
        return self._end - time.monotonic()


class BudgetContext(AuditContext):
    """The input of the experiments for drawn texts.

    `unasked`: the names of the questions that are not asked; None to ask what there is time for.
    """

    def __init__(
        self,
        *args: Any,
        reading: Reading,
        clock: Clock,
        unasked: Sequence[str] | None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.reading, self._clock = reading, clock
        self.unasked: dict[str, float] = dict.fromkeys(unasked or (), 0.0)
        """The questions that are not asked, with the seconds that they would take."""
        self._is_timed = unasked is None
        self.experiments = {**self.experiments, **self._as_read()}

    def _as_read(self) -> dict[str, TableMaker]:
        """Return the experiments whose tables were made while the texts were drawn."""
        made = {name: replace(registered()[name], run=self._table_of(name)) for name in KEPT}
        made["alternatives"] = replace(registered()["alternatives"], run=self._alternatives)
        return {**made}

    def _table_of(self, name: str) -> Callable[[AuditContext], pa.Table]:
        return lambda context: self.reading.tables[name]

    def _alternatives(self, context: AuditContext) -> pa.Table:
        """Return `alternatives`, with the other maps if there is time for them."""
        best = self.reading.tables["alternatives"]
        try:
            self._require("alternatives")
            return with_candidates_where_needed(self, best)
        except NotAskedError:
            self.unasked["alternatives"] = self.costs.get("alternatives", 0.0)
            return best

    @cached_property
    def costs(self) -> dict[str, float]:
        """Return the forecast of the questions that were not asked while the texts were drawn, in seconds."""
        costs = estimate(self)
        return {name: cost for name, cost in costs.items() if name not in KEPT[:-1]}

    def _make(self, name: str) -> pa.Table:
        if name in KEPT:
            return super()._make(name)
        try:
            self._require(name)
            return super()._make(name)
        except NotAskedError:
            self.unasked[name] = self.costs.get(name, 0.0) if self._is_timed else 0.0
            raise

    def _require(self, name: str) -> None:
        """Raise NotAskedError if the time is too short for a question."""
        if name in self.unasked:
            raise NotAskedError(name)
        if self._is_timed and self.costs.get(name, 0.0) > self._clock.left():
            raise NotAskedError(name)

    def facts(self) -> dict[str, object]:
        """Return what card and page say of the budget."""
        reading = self.reading
        return {
            "texts": reading.texts,
            "of": reading.total,
            "certain": reading.is_certain,
            "answers": list(reading.answers),
            "next_texts": reading.next_texts,
            "next_seconds": reading.next_seconds,
            "all_seconds": reading.all_seconds,
            "unasked": self.unasked,
        }


def asked_tables(context: AuditContext, names: Sequence[str]) -> dict[str, pa.Table]:
    """Return the tables of the questions, without those that there is no time for."""
    tables = {}
    for name in names:
        with suppress(NotAskedError):
            tables[name] = context.table(name)
    return tables
