"""Rows of a CSV file that are no rows, or have other fields than the header."""

import pytest
from wording import refused, warned

from heedmap.data.load import load
from heedmap.data.readers import read_rows

ROWS = [("Good, I say", "pos"), ("Bad, I say", "neg")] * 20


def quoted(*values, by=","):
    return by.join(f'"{value}"' for value in values)


def table(by=",", end="", header=("text", "label")):
    return "\n".join([by.join(header), *(quoted(*row, by=by) + end for row in ROWS)]) + "\n"


@pytest.mark.parametrize("by", [",", ";", "\t", "|"])
def test_the_row_names_of_r_are_ids(tmp_path, by):
    rows = [quoted(i, *row, by=by) for i, row in enumerate(ROWS, 1)]
    (tmp_path / "a.csv").write_text("\n".join([quoted("text", "label", by=by), *rows]))
    rows = read_rows(tmp_path / "a.csv")
    assert rows.columns == ["id", "text", "label"]
    assert (rows.values("id")[1], rows.values("text")[1]) == ("2", "Bad, I say")
    assert rows.notes[0].startswith("rows have one field more than the header: the first, a number")


@pytest.mark.parametrize("names", [["1"] * 40, [f"r{i}" for i in range(40)]])
def test_other_first_fields_are_no_names_of_rows_and_the_causes_are_said(tmp_path, names):
    rows = [quoted(name, *row) for name, row in zip(names, ROWS, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join([quoted("text", "label"), *rows]))
    with refused("line 2", "(2)", "got 3", "R", "(text, label)"):
        read_rows(tmp_path / "a.csv")


@pytest.mark.parametrize(("by", "end"), [(";", ";"), (",", ",,"), ("\t", "\t")])
def test_separators_at_the_end_of_rows_are_not_read(tmp_path, by, end):
    (tmp_path / "a.csv").write_text(table(by, end))
    with warned("40 (first: line 2)"):
        assert load(tmp_path / "a.csv").classes == ["neg", "pos"]


@pytest.mark.parametrize("by", [",", ";", "|"])
def test_a_tsv_file_without_tabs_is_read_by_the_separator_that_is_found(tmp_path, by):
    (tmp_path / "a.tsv").write_text(table(by))
    with warned("a.tsv", "tabs", ".tsv", {",": "commas", ";": "semicolons", "|": "bars"}[by]):
        assert load(tmp_path / "a.tsv").classes == ["neg", "pos"]
    with refused("tabs", f"text{by}label", "--separator"):
        load(tmp_path / "a.tsv", separator="tab")


def test_a_tsv_file_with_a_separator_in_its_texts_is_read_by_its_tabs(tmp_path):
    (tmp_path / "a.tsv").write_text("a,b\tlabel\n" + "x,y\t1\nz,w\t0\n" * 20)
    assert read_rows(tmp_path / "a.tsv").columns == ["a,b", "label"]
    (tmp_path / "a.tsv").write_text("label\n" + "1\n0\n" * 20)
    with refused("text column", "label (read as UTF-8 with tabs"):
        load(tmp_path / "a.tsv")


@pytest.mark.parametrize("by", [",", ";"])
@pytest.mark.parametrize("above", ["My survey\n", "My survey\n\n", "# one\n# two\n"])
def test_a_title_above_the_header_is_said_to_be_the_cause(tmp_path, above, by):
    (tmp_path / "a.csv").write_text(above + table(by))
    first = above.split("\n")[0]
    with refused("got 2", f"({first})", "delete"):
        load(tmp_path / "a.csv")


def test_a_comment_with_separators_above_the_header_is_said_to_be_the_cause(tmp_path):
    (tmp_path / "a.csv").write_text("# made in May, 2020\n" + table())
    with refused("# made in May, 2020", "comment"):
        load(tmp_path / "a.csv")


def test_a_column_of_texts_with_separators_is_one_column(tmp_path):
    (tmp_path / "a.csv").write_text("text\nGood; yes\nBad; no\nSo so\n")
    assert read_rows(tmp_path / "a.csv").values("text") == ["Good; yes", "Bad; no", "So so"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_that_were_joined_are_read_without_the_headers_and_marks_within(tmp_path, encoding):
    files = "\ufeff".join([table()] * 3)
    (tmp_path / "a.csv").write_bytes(files.encode(encoding))
    with pytest.warns() as warned:
        corpus = load(tmp_path / "a.csv")
    said = [str(one.message) for one in warned]
    assert any(
        "at the beginning of lines, where files were joined: 2; they are" in one for one in said
    )
    assert any("rows that repeat the header: 2 (first: line 42); they are" in one for one in said)
    assert not any("look like a row" in one for one in said)
    assert (corpus.classes, sum(map(len, corpus.splits.values()))) == (["neg", "pos"], 120)


def test_two_marks_at_the_beginning_are_no_part_of_a_name(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeff\ufeff" + table())
    assert read_rows(tmp_path / "a.csv").columns == ["text", "label"]


def test_a_file_of_headers_alone_has_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n" * 3)
    with refused("a.csv", "no rows"):
        load(tmp_path / "a.csv")
