"""Columns of the tables of questions that ask some of the texts."""

import numpy as np
import pyarrow as pa
import pytest

from heedmap.experiments.text_tables import column_of


@pytest.mark.parametrize("total", [0, 1, 2, 50])
@pytest.mark.parametrize("seed", range(3))
def test_texts_that_were_not_asked_are_null_in_a_column(total, seed):
    rng = np.random.default_rng(seed)
    asked = rng.permutation(total)[: int(rng.integers(total + 1))]
    by_row = {int(row): float(rng.normal()) for row in asked}
    column = column_of(by_row, total, pa.float64())
    assert column.to_pylist() == [by_row.get(row) for row in range(total)]
    assert column.type == pa.float64()
    lists = {row: [value] * int(rng.integers(3)) for row, value in by_row.items()}
    kind = pa.list_(pa.float64())
    assert column_of(lists, total, kind).to_pylist() == [lists.get(row) for row in range(total)]


def test_a_column_of_no_text_that_was_asked_is_null():
    assert column_of({}, 3, pa.int64()).to_pylist() == [None] * 3
