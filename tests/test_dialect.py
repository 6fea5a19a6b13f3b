"""CSV files as spreadsheets save them: separators and encodings that nobody names."""

import gzip

import pytest

from heedmap.data.corpus import load
from heedmap.data.readers import read_rows
from heedmap.errors import InputError

ROWS = [
    ("sehr schön, wirklich", "gut"),
    ('sagte "nein"; ging', "schlecht"),
    ("größe 38 | rot", "gut"),
]


def written(separator, end="\r\n", header=("text", "label")):
    lines = [header, *ROWS * 4]
    quoted = (separator.join('"' + f.replace('"', '""') + '"' for f in line) for line in lines)
    return "".join(line + end for line in quoted)


def read(path):
    rows = read_rows(path)
    return list(zip(*(rows.values(name) for name in rows.columns), strict=True))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_separator_and_encoding_are_found(tmp_path, separator, encoding, packed):
    mark = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    content = (mark + written(separator)).encode(encoding)
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read(path) == ROWS * 4
    assert load(path, max_tokens=20).classes == ["gut", "schlecht"]


def test_a_german_spreadsheet_is_read_with_a_word_of_warning(tmp_path):
    path = tmp_path / "Bewertungen.csv"
    path.write_bytes(written(";").encode("cp1252"))
    with pytest.warns(UserWarning, match=r"Bewertungen.csv: not UTF-8; read as Windows-1252"):
        assert read(path) == ROWS * 4


def test_a_header_without_quotes_and_rows_with_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text;label\n"a; b, c";x\nd, e;y\n')
    assert read(path) == [("a; b, c", "x"), ("d, e", "y")]


def test_commas_in_texts_do_not_make_them_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\n" + "good, really;x\nbad, really;y\n" * 3)
    assert read(path)[0] == ("good, really", "x")


def test_where_both_would_do_it_is_the_comma(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b,c\n1;2,3\n")
    assert read_rows(path).columns == ["a;b", "c"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\nschön,1\n".encode() + b"gr\xfcn,0\n", "line 3: not UTF-8"),  # both at once
        (b"text,label\nbad \x81,1\n", "line 2: not UTF-8"),  # no letter of Windows-1252 either
        (b"text,label\na\xe9\x00,1\n", "line 2: not UTF-8"),  # not text at all
        (b"text,label\ncut \xc3", "line 2: not UTF-8"),  # in the middle of a letter
        (b"\xff\xfet\x00e", "not UTF-16, as which it begins"),
    ],
)
def test_what_is_of_no_known_encoding_is_refused(tmp_path, content, said):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_rows(tmp_path / "a.csv")


def test_a_carriage_return_alone_is_refused_in_any_encoding(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,label\na\rb,1\nc,0\n".encode("utf-16"))
    with pytest.raises(InputError, match="expected lines that end in a line feed"):
        read_rows(tmp_path / "a.csv")


def test_long_files_are_judged_by_their_beginning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\n" + "".join(f"text {i}, long;{i % 2}\n" for i in range(20_000)))
    assert len(read(path)) == 20_000
