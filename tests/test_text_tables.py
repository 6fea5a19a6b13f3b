"""Columns of the tables of questions that ask some of the texts."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import small_corpus, small_model

from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.experiments.text_tables import SampledColumn, text_table
from heedmap.files import tables
from heedmap.files.table_folder import TableFolder
from heedmap.settings.audit import AuditSettings


@pytest.mark.parametrize("total", [0, 1, 2, 50])
@pytest.mark.parametrize("seed", range(3))
def test_texts_that_were_not_asked_are_null_in_a_column(total, seed):
    rng = np.random.default_rng(seed)
    asked = rng.permutation(total)[: int(rng.integers(total + 1))]
    by_row = {int(row): float(rng.normal()) for row in asked}
    column = SampledColumn(by_row).of_rows(0, total)
    assert column.to_pylist() == [by_row.get(row) for row in range(total)]
    assert column.type == pa.float64()
    lists = {row: [value] * int(rng.integers(3)) for row, value in by_row.items()}
    column = SampledColumn(lists, pa.list_(pa.float64()))
    whole = [lists.get(row) for row in range(total)]
    assert column.of_rows(0, total).to_pylist() == whole
    for start, end in ((0, total // 2), (total // 2, total), (total, total)):
        assert column.of_rows(start, end).to_pylist() == whole[start:end]


def test_a_number_that_is_none_is_null_in_a_column_of_numbers():
    column = SampledColumn.of_numbers({0: 1.5, 2: float("nan")}).of_rows(0, 4)
    assert column.to_pylist() == [1.5, None, None, None]


def test_a_column_of_no_text_that_was_asked_is_null():
    assert SampledColumn({}, pa.int64()).of_rows(0, 3).to_pylist() == [None] * 3


@pytest.mark.parametrize("group", [1, 4, 20, 100])
def test_a_wide_table_is_made_in_groups_of_rows_and_kept_as_it_is(group, monkeypatch, tmp_path):
    split = small_corpus().splits["test"]
    context = AuditContext(small_model(), split, AuditSettings(), registered())
    columns = {
        "amount": np.arange(len(split)) / 3,
        "word": [text[0] for text in split.tokens],
        "same": 1.5,
        "some": SampledColumn({3: 1, 0: 2}, pa.int64()),
        "lists": SampledColumn({3: [0.5], 19: []}, pa.list_(pa.float64())),
    }
    whole = text_table(context, columns, copied=["predicted"])
    monkeypatch.setattr(tables, "WIDE", 0)
    monkeypatch.setattr(tables, "GROUP", group)
    wide = text_table(context, columns, copied=["predicted"])
    assert wide.schema == whole.schema
    assert wide.to_pylist() == whole.to_pylist()
    assert wide["some"].num_chunks == -(-len(split) // group)
    kept = TableFolder(tmp_path / "tables", "one")
    kept.keep("wide", wide)
    assert kept.table("wide").to_pylist() == whole.to_pylist()
    file = pq.ParquetFile(tmp_path / "tables/wide.parquet")
    assert file.num_row_groups == -(-len(split) // group)
