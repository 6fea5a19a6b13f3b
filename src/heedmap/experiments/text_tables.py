"""Write the tables of the questions: a row per audited text, or per text and heat map."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.context import AuditContext
from heedmap.files.tables import groups_of, is_wide, mapped, table
from heedmap.models.layered import Map

MAP_FACTS = ("predicted", "n_tokens", "max_attention")
"""Columns of `instances` that are repeated where figures group the texts by them."""


@dataclass(frozen=True)
class SampledColumn:
    """A column with the numbers or lists of some texts, by row; it is null for the others."""

    by_row: Mapping[int, object]
    kind: pa.DataType = field(default_factory=pa.float64)

    @classmethod
    def of_numbers(cls, by_row: Mapping[int, float]) -> "SampledColumn":
        """Return a column of numbers, of which NaN is null too."""
        return cls({row: number for row, number in by_row.items() if not math.isnan(number)})

    def of_rows(self, start: int, end: int) -> pa.Array:
        """Return the column of the texts from one row up to another one."""
        places = np.zeros(end - start, dtype=np.int32)
        is_known = np.zeros(end - start, dtype=np.bool_)
        rows = [row for row in self.by_row if start <= row < end]
        shifted = np.array(rows, dtype=np.int64) - start
        places[shifted], is_known[shifted] = np.arange(len(rows)), True
        values = pa.array([self.by_row[row] for row in rows], self.kind)
        return values.take(pa.array(places, mask=~is_known))


def text_table(
    context: AuditContext, columns: Mapping[str, object], copied: Sequence[str] = ()
) -> pa.Table:
    """Return a table with a row per text: its number, the `copied` columns of `instances`, and `columns`.

    A single value stands for a column of it. A wide table is made in groups of rows, and is not in memory.
    """
    total = len(context.split)
    # The table `instances` is written here, too, and cannot ask for itself.
    instances = context.table("instances") if copied else None
    of_all = table(
        {
            "row": range(total),
            **{name: instances[name] for name in copied if instances is not None},
            **{
                name: [column] * total if isinstance(column, str | int | float) else column
                for name, column in columns.items()
                if not isinstance(column, SampledColumn)
            },
        }
    )
    names = dict.fromkeys(["row", *copied, *columns])

    def rows(start: int, end: int) -> pa.Table:
        columns_of_all = of_all.slice(start, end - start)
        return table(
            {
                name: column.of_rows(start, end)
                if isinstance(column := columns.get(name), SampledColumn)
                else columns_of_all[name]
                for name in names
            }
        )

    if not is_wide(total, len(names)):
        return rows(0, total)
    groups = (
        batch
        for start, end in groups_of(total)
        for batch in rows(start, end).combine_chunks().to_batches()
    )
    return mapped(rows(0, 0).schema, groups)


def answer_probabilities(instances: pa.Table) -> NDArray[np.float64]:
    """Return the probability of each text's answer, the likeliest class, from the table of instances.

    Of a model that gives a number it is that number.
    """
    shares = instances["probabilities"].combine_chunks()
    if not len(shares):
        return np.zeros(0)
    return np.asarray(shares.flatten().to_numpy().reshape(len(shares), -1).max(1))


def outputs_of_texts(instances: pa.Table) -> NDArray[np.float64]:
    """Return the output of each text, from the table of instances of a model that gives a number."""
    return np.asarray(instances["probabilities"].combine_chunks().flatten().to_numpy())


def map_table(rows: Sequence[int], maps: Sequence[Map], columns: Mapping[str, object]) -> pa.Table:
    """Return a table with a row per text and map of a transformer; `columns` have a text's maps together."""
    count = len(rows)
    return table(
        {
            "row": np.repeat(np.array(rows, dtype=np.int64), len(maps)),
            "view": [m.view for m in maps] * count,
            "layer": [m.layer for m in maps] * count,
            # Typed, for the mean over heads has no head, and all maps may be such means.
            "head": pa.array([m.head for m in maps] * count, pa.int64()),
            **columns,
        }
    )


def null_where_nan(columns: Mapping[str, NDArray[np.generic]]) -> dict[str, pa.Array]:
    """Return columns of numbers in which NaN, for a text without such a number, is null."""
    return {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
