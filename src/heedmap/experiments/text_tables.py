"""Write the tables of the questions: a row per audited text, or per text and heat map."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.context import AuditContext
from heedmap.files.tables import table
from heedmap.models.layered import Map

MAP_FACTS = ("predicted", "n_tokens", "max_attention")
"""Columns of `instances` that are repeated where figures group the texts by them."""


def text_table(
    context: AuditContext, columns: Mapping[str, object], copied: Sequence[str] = ()
) -> pa.Table:
    """Return a table with a row per text: its number, the `copied` columns of `instances`, and `columns`.

    A single value stands for a column of it.
    """
    total = len(context.split)
    # The table `instances` is written here, too, and cannot ask for itself.
    instances = context.table("instances") if copied else None
    return table(
        {
            "row": range(total),
            **{name: instances[name] for name in copied if instances is not None},
            **{
                name: [value] * total if isinstance(value, str | int | float) else value
                for name, value in columns.items()
            },
        }
    )


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


def column_of(by_row: Mapping[int, object], total: int, kind: pa.DataType) -> pa.Array:
    """Return a column of so many texts from the numbers or lists of some, by row; it is null for the others."""
    places, is_known = np.zeros(total, dtype=np.int32), np.zeros(total, dtype=np.bool_)
    rows = np.fromiter(by_row, dtype=np.int64, count=len(by_row))
    places[rows], is_known[rows] = np.arange(len(rows)), True
    return pa.array([*by_row.values()], kind).take(pa.array(places, mask=~is_known))


def null_where_nan(columns: Mapping[str, NDArray[np.generic]]) -> dict[str, pa.Array]:
    """Return columns of numbers in which NaN, for a text without such a number, is null."""
    return {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
