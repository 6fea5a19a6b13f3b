"""Draw texts, and ask them what the bottom line rests on, until it is certain or the time is over.

The texts stand in their drawing order and are asked in parts: from one of `drawing.stops` to the next. Their
tables are those of the same number of texts wherever an audit stopped.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Split
from heedmap.experiments.certainty import possible_answers
from heedmap.experiments.context import AuditContext
from heedmap.experiments.drawing import FIRST_LOOK, first_texts, looks, stops
from heedmap.experiments.output_spread import OutputSpread
from heedmap.experiments.pooling import TEXT, by_text
from heedmap.experiments.questions import (
    alternatives,
    highlights,
    importance,
    instances,
    permutation,
)
from heedmap.experiments.questions.instances import is_doubtful
from heedmap.experiments.rates import Rates
from heedmap.experiments.registry import Experiment, make_findings
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.rule import Answer, texts_of
from heedmap.experiments.scales import scale_of
from heedmap.files.table_folder import TableFolder
from heedmap.files.tables import parquet, read_table, renumbered
from heedmap.models.trace import Model
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.progress import doing, in_job, portion

FOLDER = "drawn"  # of the tables of the parts, in that of the audit's


def _highlights(context: AuditContext) -> pa.Table:
    return highlights.highlights_of(context, np.flatnonzero(highlights.long_enough(context)))


def _leave_one_out(context: AuditContext) -> pa.Table:
    return importance.leave_one_out_of(context, alternatives.rows_for_best_orders(context))


# What the bottom line rests on, asked of all texts of a part; leave-one-out only where it is needed for that.
ASKED: dict[str, Experiment] = {
    "instances": instances.EXPERIMENT,
    "highlights": replace(highlights.EXPERIMENT, run=_highlights),
    "permutation": permutation.EXPERIMENT,
    "leave_one_out": replace(importance.LEAVE_ONE_OUT_EXPERIMENT, run=_leave_one_out),
    "alternatives": replace(alternatives.EXPERIMENT, run=alternatives.best_orders),
}
KEPT = ("instances", "highlights", "permutation", "alternatives")


@dataclass(frozen=True)
class Reading:
    """What was read of the drawn texts.

    Attributes:
        texts: how many were drawn.
        total: how many there are to draw, after which the bottom line is that of an audit without a budget.
        answers: the answers that all texts may have, the likeliest first; empty if there was no look yet.
        tables: those of KEPT, of the drawn texts; `alternatives` without other maps.
        next_texts: after how many texts it would have looked at the answer next; None after all of them.
        next_seconds: about how long it takes to read on until then.
        all_seconds: about how long it takes to read all of them.
    """

    texts: int
    total: int
    answers: tuple[Answer, ...]
    tables: Mapping[str, pa.Table]
    next_texts: int | None = None
    next_seconds: float | None = None
    all_seconds: float | None = None

    @property
    def is_certain(self) -> bool:
        """Return whether the bottom line is certain: one answer is possible, or all texts were read."""
        return len(self.answers) == 1 or self.texts == self.total


class _PartContext(AuditContext):
    """The input of the experiments for one part; numbers are compared with those of the texts to draw."""

    def __init__(self, *args: Any, to_draw: AuditContext, **options: Any) -> None:
        super().__init__(*args, **options)
        self._to_draw = to_draw

    @cached_property
    def output_spread(self) -> OutputSpread:
        """Return how the outputs are spread of the texts that make the bottom line without a budget."""
        return self._to_draw.output_spread


class Reader:
    """Reads texts in their drawing order; parts that a folder has are not asked again.

    `drawing`: all texts that may be drawn. `total`: how many of them make the bottom line of an audit without a
    budget; no more are read.
    """

    def __init__(
        self,
        model: Model,
        drawing: Split,
        total: int,
        settings: AuditSettings,
        rates: Rates,
        folder: TableFolder | None = None,
    ) -> None:
        self.model, self.drawing, self.settings, self.rates = model, drawing, settings, rates
        self.total = min(total, drawing.whole_texts)
        self.folder = folder
        self._to_draw = AuditContext(model, first_texts(drawing, self.total), settings, ASKED)
        text_of = np.arange(len(drawing)) if drawing.text_of is None else drawing.text_of
        self._row_of_text = np.searchsorted(text_of, np.arange(drawing.whole_texts + 1))
        self._parts: list[dict[str, pa.Table]] = []
        self._seconds = self._rows = 0.0

    def read(self, drawn: int | None, seconds_left: Callable[[], float]) -> Reading:
        """Read until the bottom line is certain or there is no time for the next part; or `drawn` texts."""
        last = self.total if drawn is None else min(drawn, self.drawing.whole_texts)
        sizes = [size for size in stops(self.total) if size < last]
        start, answers = 0, tuple[Answer, ...]()
        for end in [*sizes, last]:
            if drawn is None and start and self._seconds_for(start, end) > seconds_left():
                break
            self._ask(start, end)
            start = end
            is_look = end in looks(self.total) if drawn is None else end == last
            if is_look and end >= min(FIRST_LOOK, self.total):
                answers = self._look(end)
            if len(answers) == 1 and drawn is None:
                break
        return self._reading(start, answers)

    def _reading(self, texts: int, answers: tuple[Answer, ...]) -> Reading:
        reading = Reading(texts, self.total, answers, self._tables())
        later = [size for size in looks(self.total) if size > texts]
        if not later:
            return reading
        seconds = {size: self._seconds_for(texts, size) for size in (later[0], self.total)}
        is_known = self._rows > 0
        return replace(
            reading,
            next_texts=later[0],
            next_seconds=seconds[later[0]] if is_known else None,
            all_seconds=seconds[self.total] if is_known else None,
        )

    def _ask(self, start: int, end: int) -> None:
        first, last = (int(self._row_of_text[text]) for text in (start, end))
        doing(f"text {end} of at most {self.total}")
        context = _PartContext(
            self.model,
            self.drawing.take(range(first, last)),
            self.settings,
            ASKED,
            None if self.folder is None else self.folder.part(f"{FOLDER}/{start:05d}-{end:05d}"),
            first_row=first,
            whole=self.drawing,
            to_draw=self._to_draw,
        )
        is_new = not all(context.done(name) for name in KEPT)
        began = time.monotonic()
        share = (last - first) / int(self._row_of_text[self.total])
        with portion(min(1.0, share)), in_job(f"texts {start + 1} to {end}"):
            tables = {name: context.table(name) for name in KEPT}
        if is_new:
            self._seconds += time.monotonic() - began
            self._rows += last - first
        self._parts.append(
            {name: _renumbered(table, first, start) for name, table in tables.items()}
        )

    def _seconds_for(self, start: int, end: int) -> float:
        """Return about how long it takes to read on, by what was read; 0 if nothing was."""
        if not self._rows:
            return 0.0
        rows = self._row_of_text[end] - self._row_of_text[start]
        return float(self._seconds / self._rows * rows)

    def _tables(self) -> dict[str, pa.Table]:
        return {name: _joined([part[name] for part in self._parts]) for name in KEPT}

    def _look(self, texts: int) -> tuple[Answer, ...]:
        """Return the possible answers, and `cannot tell` while it is in doubt whether the model predicts."""
        tables = by_text(self._tables())
        skill = make_findings(
            {"instances": tables["instances"]}, self.settings, self.model.classes
        )[0]
        if is_doubtful(skill) and skill.level == "against":
            return ("cannot tell",)
        clusters = text_numbers(tables["instances"])
        possible = possible_answers(
            texts_of(tables, scale_of(tables["instances"], self.model.classes).size),
            clusters,
            max(self.total, texts),
            self.rates.thresholds,
            self.settings.seed,
        )
        doubt: tuple[Answer, ...] = ("cannot tell",) if is_doubtful(skill) else ()
        return tuple(dict.fromkeys((*doubt, *possible)))


def _renumbered(table: pa.Table, first_row: int, first_text: int) -> pa.Table:
    """Return a part's table with its rows, and texts read in windows, numbered among all."""
    for name, first in (("row", first_row), (TEXT, first_text)):
        if name in table.column_names:
            table = renumbered(table, name, first)
    return table


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Return the tables of the parts as one; a column that is null in a part has the others' type.

    Each goes through a file first, as one of an earlier call did: the bytes that stand under nulls differ else.
    """
    tables = [read_table(Path(FOLDER), parquet(table)) for table in tables]
    schema = pa.unify_schemas(
        [table.schema.remove_metadata() for table in tables], promote_options="permissive"
    )
    return pa.concat_tables([table.cast(schema) for table in tables]).combine_chunks()
