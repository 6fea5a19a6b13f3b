"""Excel files as people have them."""

import gzip
import sys
import zipfile
from datetime import date

import pytest
from wording import refused, warned

from heedmap.data import streams
from heedmap.data.load import load
from heedmap.data.readers import read_rows

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("openpyxl.chart")
TABLE = [
    ["id", "text", "label"],
    *([f"r{i}", f"schön {i}\nund mehr", i % 2] for i in range(40)),
]


def written(path, rows=TABLE, sheets=()):
    book = openpyxl.Workbook()
    book.active.title = "Daten"
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name).append(["something else"])
    book.save(path)
    return path


def changed(path, to, before, after, part="sheet1.xml"):
    """Copy an Excel file with something else in one of its parts."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(part):
                assert before in content
                content = content.replace(before, after)
            new.writestr(name, content)
    return to


def values(path):
    rows = read_rows(path)
    return {name: rows.values(name) for name in rows.columns}


def test_a_sheet_is_read_as_the_same_csv_file_is(tmp_path):
    path = written(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text(
        "id,text,label\n" + "".join(f'{k},"{t}",{n}\n' for k, t, n in TABLE[1:])
    )
    packed = tmp_path / "a.xlsx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for each in (path, packed):
        corpus = load(each)
        assert corpus.fingerprint() == load(tmp_path / "a.csv").fingerprint()
        assert corpus.name == "a"


def test_cells_are_numbers_truth_values_dates_and_texts(tmp_path):
    rows = [["text", "label", 2024.0], ["x_x000D_y", 1.0, True], ["z", "1", date(2024, 5, 1)]]
    found = values(written(tmp_path / "a.xlsx", rows))
    assert found["text"] == ["x\ry", "z"]
    assert found["label"] == [1.0, "1"]
    assert found["2024"][0] is True
    assert str(found["2024"][1]) == "2024-05-01"
    rows = [["text", "label"], *([f"a {i}", [1.0, "1", 0][i % 3]] for i in range(40))]
    assert load(written(tmp_path / "b.xlsx", rows)).classes == ["0", "1"]


def test_empty_cells_and_errors_are_counted_and_rows_below_the_last_are_none(tmp_path):
    rows = [*TABLE, ["x", None, 1], ["y", "text", None], ["z", "text", "#N/A"], *[[None] * 3] * 9]
    corpus = load(written(tmp_path / "a.xlsx", rows))
    assert corpus.left_out == {"empty text": 1, "label missing": 2}


@pytest.mark.filterwarnings("ignore:.*sheets Sheet, other")
def test_hidden_rows_are_read_and_counted_and_empty_rows_are_none(tmp_path):
    book = openpyxl.Workbook()
    for row in TABLE:
        book.active.append(row)
        if row != TABLE[0]:
            book.active.append([])
    for number in (3, 4, 10):
        book.active.row_dimensions[number].hidden = True
    book.active.row_dimensions[12].height = 30
    book.create_sheet("other").row_dimensions[1].hidden = True
    book.save(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text(
        "id,text,label\n" + "".join(f'{k},"{t}",{n}\n' for k, t, n in TABLE[1:])
    )
    rows = read_rows(tmp_path / "a.xlsx")
    assert "rows that the sheet hides, as its filters do: 3; read like the others" in rows.notes
    assert rows.place_of(1) == f"{tmp_path / 'a.xlsx'}, row 4"
    with warned("a.xlsx", "3"):
        corpus = load(tmp_path / "a.xlsx")
    assert corpus.left_out == {}
    assert corpus.fingerprint() == load(tmp_path / "a.csv").fingerprint()


def test_what_is_not_read_is_said(tmp_path):
    path = written(tmp_path / "a.xlsx", [*TABLE, ["x", "y", 1, None, "a note"]], ["Pivot"])
    with pytest.warns() as warned:
        corpus = load(path)
    assert list(values(path)) == ["id", "text", "label"]
    assert corpus.notes[:2] == [
        "sheets Daten, Pivot: read the first alone; move another to the front to read that",
        "columns E: no name in the first row; not read",
    ]
    assert [str(one.message) for one in warned] == [f"{path}: {note}" for note in corpus.notes]


def test_formulas_are_their_stored_values(tmp_path):
    rows = [["text", "label"], *([f"a {i}", i % 2] for i in range(40)), ["new", "=1+1"]]
    path = written(tmp_path / "a.xlsx", rows)
    assert values(path)["label"][-1] is None
    (note,) = read_rows(path).notes
    assert note.startswith("formulas in B42: no value stored with them, read as empty; open")
    computed = changed(path, tmp_path / "b.xlsx", b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
    assert values(computed)["label"][-1] == 2
    empty = changed(path, tmp_path / "c.xlsx", b'<c r="B42"', b'<c t="str" r="B42"')  # ="" is empty
    assert values(empty)["label"][-1] is None


def test_errors_name_the_row_of_the_sheet(tmp_path):
    rows = [*TABLE[:7], ["x", "text", "two\nlines"], *TABLE[7:]]
    with refused("a.xlsx, row 8", "label = "):
        load(written(tmp_path / "a.xlsx", rows))


def test_what_cannot_be_read_is_one_clear_line(tmp_path):
    whole = written(tmp_path / "whole.xlsx").read_bytes()
    for content, named in (
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512), ("password", ".xls")),
        (whole[: len(whole) // 2], ("XLSX",)),
        (whole[:900] + bytes(40) + whole[940:], ()),
        (b"text,label\n", ("Excel", ".csv")),
        (b"", ("empty",)),
    ):
        (tmp_path / "a.xlsx").write_bytes(content)
        with refused("a.xlsx", *named):
            load(tmp_path / "a.xlsx")
    for rows, named in (
        ([["text", "text"], ["a", 1]], ("column text", "2")),
        (
            [[None], ["text", "label"]],
            ("header", "first row of Daten"),
        ),
        ([["text", "label"]], ("no rows",)),
    ):
        with refused("a.xlsx", *named):
            load(written(tmp_path / "a.xlsx", rows))


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "SMALL", 100_000)
    path = written(tmp_path / "a.xlsx")
    assert len(read_rows(path)) == 40
    end = b"</sheetData>"
    for name, more in (
        ("spaces", b" " * 2_000_000),
        ("far down", b'<row r="900000000"><c r="A900000000"><v>1</v></c></row>'),
        (
            "far right",
            b"".join(
                b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(50, 99)
            ),
        ),
    ):
        with refused(f"{name}.xlsx", "100 times", "0 MiB"):
            read_rows(changed(path, tmp_path / f"{name}.xlsx", end, more + end))
    cells = b"".join(
        b'<row r="%d"><c r="B%d" t="s"><v>0</v></c></row>' % (i, i) for i in range(50, 99)
    )
    many = changed(path, tmp_path / "many.xlsx", end, cells + end)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    named = f'<Override PartName="/xl/shared.xml" ContentType="{kind}"/></Types>'.encode()
    shared = changed(many, tmp_path / "shared.xlsx", b"</Types>", named, "[Content_Types].xml")
    with zipfile.ZipFile(shared, "a", zipfile.ZIP_DEFLATED) as archive:
        space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        archive.writestr(
            "xl/shared.xml", f'<sst xmlns="{space}"><si><t>{"long " * 9000}</t></si></sst>'
        )
    with refused("shared.xlsx", "100 times"):  # 45 kB, in 49 cells
        read_rows(shared)


def test_without_openpyxl_the_remedy_is_named(tmp_path, monkeypatch):
    path = written(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with refused("a.xlsx", "openpyxl", 'pip install "heedmap[excel]"'):
        load(path)


def test_numbers_are_as_their_cells_show_them(tmp_path):
    book = openpyxl.Workbook()
    for row in (["text", "label", "code"], [7.0, 1.1, 7], [7.5, -2, "007"]):
        book.active.append(row)
    for cell in book.active["B"][1:]:
        cell.number_format = "0.00"
    book.active["C2"].number_format = "000"
    book.save(tmp_path / "a.xlsx")
    assert [str(value) for value in values(tmp_path / "a.xlsx")["text"]] == ["7", "7.5"]
    assert values(tmp_path / "a.xlsx")["label"] == ["1.10", "-2.00"]
    assert values(tmp_path / "a.xlsx")["code"] == ["007", "007"]


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_numbers_of_many_digits_are_read_or_refused(tmp_path, digits):
    path = written(tmp_path / "a.xlsx", [["text", "label"], ["a", 12345], ["b", 0]])
    long = changed(path, tmp_path / "b.xlsx", b"<v>12345</v>", b"<v>" + b"9" * digits + b"</v>")
    if digits == 5000:
        with refused("b.xlsx", "XLSX", "5000 digits"):
            read_rows(long)
    else:
        assert str(values(long)["label"][0]) == "9" * digits


def test_sheets_of_charts_are_passed_over(tmp_path):
    book = openpyxl.Workbook()
    for row in TABLE:
        book.active.append(row)
    chart = openpyxl.chart.BarChart()
    book.create_chartsheet("Chart", 0).add_chart(chart)
    book.save(tmp_path / "a.xlsx")
    assert len(read_rows(tmp_path / "a.xlsx")) == 40
    del book["Daten" if "Daten" in book.sheetnames else "Sheet"]
    book.save(tmp_path / "b.xlsx")
    with refused("b.xlsx", "visible sheet", "hidden sheets"):
        read_rows(tmp_path / "b.xlsx")


@pytest.mark.parametrize("cells", [["=1+1", "=2"], ["a text", "=1+1"]])
def test_formulas_that_no_program_has_computed_are_the_cause(tmp_path, cells):
    path = written(tmp_path / "a.xlsx", [["text", "label"], *[cells] * 40])
    with refused("a.xlsx", "formulas", "B2"):
        load(path)


def test_a_header_of_formulas_without_values_is_named_as_the_cause(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(['="te"&"xt"', '="label"'])
    book.active.append(["good", 1])
    book.save(tmp_path / "a.xlsx")
    with refused("a.xlsx", "first row of Sheet", "formulas"):
        load(tmp_path / "a.xlsx")


def test_a_path_that_is_not_utf_8_is_refused_for_that_reason():
    with refused(r"d\udcff/a.csv", "UTF-8"):
        load("d\udcff/a.csv")
