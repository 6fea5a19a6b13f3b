"""Tables as files: what is written is read back, whatever the texts hold, and nothing is cut in silence."""

import csv
import io
import json
import math
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from wording import refused

from heedmap.report import workbook as workbooks
from heedmap.report.table_formats import csv_file, jsonl_file, parquet_file
from heedmap.report.workbook import LONGEST_CELL, workbook

HARMFUL = [
    "plain", "a,b", 'say "no"', "two\nlines", "a\tb", "=1+1", "+x", "-y", "@z", "#REF!", "größe", "日本語",
    "😀", "\x1b[31mred", "\u202eright", "'quoted", "", "null", "１", "\uffff",
]  # fmt: skip
TABLE = pa.table({
    "text": HARMFUL,
    "number": [math.nan if i == 0 else i / 8 for i in range(len(HARMFUL))],
    "short": pa.array([0.1, None, math.inf, *[0.7] * (len(HARMFUL) - 3)], pa.float32()),
    "count": pa.array([None, *range(len(HARMFUL) - 1)], pa.int64()),
    "mark": pa.array([i % 2 == 0 for i in range(len(HARMFUL))]),
    "list": pa.array([[0.1, None, math.nan]] * (len(HARMFUL)), pa.list_(pa.float32())),
    "words": [["a", "=b", '"', "\u2028"]] * (len(HARMFUL)),
})  # fmt: skip


def sheets(content):
    """The sheets of a workbook, each as rows of values."""
    book = openpyxl.load_workbook(io.BytesIO(content))
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


def test_csv_has_a_line_per_row_and_no_formula():
    content = csv_file(TABLE).decode("utf-8")
    assert "\x1b" not in content
    assert "\u202e" not in content
    rows = list(csv.DictReader(io.StringIO(content)))
    assert len(content.splitlines()) == len(rows) + 1 == TABLE.num_rows + 1
    assert [row["text"] for row in rows[:9]] == [
        "plain", "a,b", 'say "no"', "two\\nlines", "a\\tb", "'=1+1", "'+x", "'-y", "'@z",
    ]  # fmt: skip
    assert rows[0] | {"text": "", "words": ""} == {
        "text": "", "number": "", "short": "0.1", "count": "", "mark": "true", "list": "[0.1, null, null]",
        "words": "",
    }  # fmt: skip
    assert (rows[1]["number"], rows[2]["short"], rows[1]["mark"]) == ("0.125", "", "false")
    assert json.loads(rows[0]["words"]) == ["a", "=b", '"', "\u2028"]


def test_pandas_reads_the_csv_back():
    frame = pd.read_csv(
        io.BytesIO(csv_file(TABLE)), keep_default_na=False, na_values={"number": ""}
    )
    assert np.allclose(frame["number"], TABLE["number"].to_numpy(), equal_nan=True)
    assert frame["text"][17] == "null"


def test_jsonl_has_the_very_texts():
    lines = jsonl_file(TABLE).decode("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["text"] for row in rows] == TABLE["text"].to_pylist()
    assert (rows[0]["number"], rows[0]["short"], rows[2]["short"]) == (None, 0.1, None)
    assert rows[0]["list"] == [0.1, None, None]
    assert rows[0]["words"] == ["a", "=b", '"', "\u2028"]


def test_a_sheet_has_texts_as_texts_and_numbers_as_numbers():
    content, notes = workbook({"tables/made": TABLE})
    assert notes == []
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["made"]
    sheet = book["made"]
    assert sheet.freeze_panes == "A2"
    cells = [row[0] for row in sheet.iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells if cell.value is not None} == {"s"}
    assert [cell.value for cell in cells][:10] == [
        "plain", "a,b", 'say "no"', "two\\nlines", "a\\tb", "=1+1", "+x", "-y", "@z", "#REF!",
    ]  # fmt: skip
    assert [cell.value for cell in cells][-1] == "\\uffff"
    first = [cell.value for cell in sheet[2]]
    assert first[1:6] == [None, 0.1, None, True, "[0.1, null, null]"]
    assert b"<f>" not in zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml")


def test_the_same_tables_give_the_same_bytes(monkeypatch):
    import datetime

    import openpyxl.writer.excel as writer

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2031, 5, 6, tzinfo=tz)

    once = workbook({"a": TABLE})
    monkeypatch.setattr(writer.datetime, "datetime", Later)
    assert workbook({"a": TABLE}) == once
    assert csv_file(TABLE) == csv_file(TABLE)


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_row_and_of_one_keep_their_head(rows):
    table = TABLE.slice(0, rows)
    assert csv_file(table).count(b"\n") == rows + 1
    assert jsonl_file(table).count(b"\n") == rows
    made = sheets(workbook({"made": table})[0])["made"]
    assert (made[0], len(made)) == (TABLE.column_names, rows + 1)


def test_a_table_without_columns_is_written_too():
    empty = pa.table({})
    assert csv_file(empty) == b"\n"
    assert jsonl_file(empty) == b""
    assert sheets(workbook({"made": empty})[0]) == {"made": []}


def test_a_text_longer_than_a_cell_is_cut_counted_and_said():
    long = [
        "x" * LONGEST_CELL,
        "x" * (LONGEST_CELL + 1),
        "😀" * LONGEST_CELL,
        "é" * (LONGEST_CELL // 2 + 9),
    ]
    table = pa.table({"text": long, "list": [["y" * LONGEST_CELL]] + [["y"]] * 3})
    content, notes = workbook({"made": table})
    assert len(notes) == 1
    assert "'made'" in notes[0]
    assert "32,767" in notes[0]
    assert ": 3;" in notes[0]
    made = sheets(content)
    assert made["notes"] == [["note"], notes]
    first, second, third, fourth = (row[0] for row in made["made"][1:])
    assert first == second == "x" * LONGEST_CELL
    assert third == "😀" * (LONGEST_CELL // 2)  # which have two units each; none is cut in half
    assert fourth == long[3]


def test_more_rows_than_a_sheet_has_go_on_in_further_sheets(monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_ROWS", 4)
    table = pa.table({"number": range(7)})
    content, notes = workbook({"tables/made": table, "small": table.slice(0, 3)})
    made = sheets(content)
    assert list(made) == ["made", "made 2", "made 3", "small", "notes"]
    assert [row[0] for name in ("made", "made 2", "made 3") for row in made[name][1:]] == [
        *range(7)
    ]
    assert all(made[name][0] == ["number"] for name in ("made", "made 2", "made 3"))
    assert notes == [note for (note,) in made["notes"][1:]]
    assert "'made 2': rows 4 to 6 of 7 of 'made'" in notes[0]


def test_names_of_sheets_fit_excel_and_differ():
    names = ["a" * 40, "a" * 41, "History", "notes", "x/y[z]:?*", "Maps", "maps", "\x01"]
    content, notes = workbook({name: TABLE.slice(0, 1) for name in names})
    made = list(sheets(content))
    assert len({name.casefold() for name in made}) == len(names) + 1 == len(made)
    assert max(map(len, made)) <= 31
    assert not [
        name for name in made if set(name) & set("[]:*?/\\") or name.casefold() == "history"
    ]
    assert len(notes) == len(names) - 1  # all but Maps were renamed


def test_more_columns_than_a_sheet_has_are_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_COLUMNS", 2)
    with refused("made", "2 columns", "got 3", "csv"):
        workbook({"made": pa.table({"a": [1], "b": [1], "c": [1]})})


def test_without_openpyxl_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr("heedmap.errors.find_spec", lambda name: None)
    with refused("an Excel file", "openpyxl", 'pip install "heedmap[excel]"'):
        workbook({"made": TABLE})


def test_parquet_keeps_the_values():
    read = pq.read_table(io.BytesIO(parquet_file(TABLE)))
    assert read.schema.types[:5] == TABLE.schema.types[:5]
    assert repr(read.to_pylist()) == repr(TABLE.to_pylist())  # a NaN is not equal to itself
    assert parquet_file(read) == parquet_file(TABLE)
