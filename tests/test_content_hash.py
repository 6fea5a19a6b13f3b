"""The hash of tables is of their values: not of how they are kept, and of nothing less."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from heedmap.files.content_hash import tables_hash

COLUMNS = {
    "number": [1.5, None, -0.0],
    "count": [1, 2, 3],
    "flag": [True, None, False],
    "text": ["a", "bc", None],
    "words": [["x", "y"], None, []],
    "maps": [[[0.5, 0.5], []], None, [[1.0]]],
    "nothing": [None, None, None],
}
TABLE = pa.table(COLUMNS)


def changed(**columns):
    return tables_hash({"t": pa.table({**COLUMNS, **columns})})


def test_files_slices_and_chunks_of_equal_values_have_one_hash():
    buffer = io.BytesIO()
    pq.write_table(TABLE, buffer)
    whole = tables_hash({"t": TABLE})
    assert len(whole) == 64
    assert tables_hash({"t": pq.read_table(buffer)}) == whole
    parts = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    assert tables_hash({"t": parts}) == whole
    longer = pa.concat_tables([TABLE, TABLE])
    assert tables_hash({"t": longer.slice(3)}) == whole


def test_every_value_name_type_and_gap_counts():
    hashes = [
        tables_hash({"t": TABLE}), tables_hash({"u": TABLE}), tables_hash({}),
        tables_hash({"t": TABLE.slice(1)}),
        changed(number=[1.5, 0.0, -0.0]), changed(number=[1.5, None, 0.0]), changed(count=[1.0, 2.0, 3.0]),
        changed(text=["ab", "c", None]), changed(text=["a", "bc", ""]), changed(words=[["x"], ["y"], []]),
        changed(words=[["x", "y"], [], []]), changed(maps=[[[0.5], [0.5]], None, [[1.0]]]),
    ]  # fmt: skip
    assert len(set(hashes)) == len(hashes)


def test_the_order_of_the_tables_does_not_count():
    other = pa.table({"a": [1]})
    assert tables_hash({"t": TABLE, "o": other}) == tables_hash({"o": other, "t": TABLE})
