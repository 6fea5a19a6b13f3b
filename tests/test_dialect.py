"""CSV files as spreadsheets save them: separators and encodings that nobody names."""

import gzip

import pytest
from wording import refused, warned

from heedmap.data.load import load, load_corpus
from heedmap.data.readers import read_rows
from heedmap.files.identity import identity
from heedmap.runs.comparison import differences
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings

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
    with warned("Bewertungen.csv", "Windows-1252", "--encoding"):
        corpus = load(path)
    assert corpus.notes[0].startswith(
        "not UTF-8; read as Windows-1252 (Western Europe): look whether"
    )
    assert read(path) == ROWS * 4


def test_the_files_of_several_splits_are_named_in_their_notes(tmp_path):
    def notes(folder):
        read = load_corpus(DataSettings(source=str(folder))).notes
        return [note.split("; read as")[0] for note in read if "UTF-8" in note]

    for name in ("train", "dev", "test"):
        content = "text,label\nschön,1\ngut,0\n".encode("utf-8" if name == "dev" else "cp1252")
        (tmp_path / f"{name}.csv").write_bytes(content)
        (tmp_path / "clone" / "data").mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / "data" / f"{name}-0.csv").write_bytes(content)
    assert notes(tmp_path) == ["test: not UTF-8", "train: not UTF-8"]
    named = ["test: data/test-0.csv: not UTF-8", "train: data/train-0.csv: not UTF-8"]
    assert sorted(notes(tmp_path / "clone")) == named


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_text_file_that_is_a_table_is_read_as_one(tmp_path, separator):
    path = tmp_path / "Bewertungen.txt"  # as Excel saves "Unicode Text"
    path.write_bytes(written(separator).encode("utf-16"))
    assert read(path) == ROWS * 4
    corpus = load(path)
    assert (corpus.name, corpus.classes) == ("Bewertungen", ["gut", "schlecht"])
    path.write_text("text^label\nschön^1\n", encoding="utf-8")
    with refused("Bewertungen.txt", "commas, semicolons, tabs, bars", "--separator"):
        load(path)
    assert read_rows(path, "^").columns == ["text", "label"]


def test_text_files_in_a_folder_are_no_tables(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.txt").write_text(written(","))
    with refused("train.csv", "test.txt, train.txt"):
        load(tmp_path)


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "^"])
def test_a_first_line_that_says_the_separator_is_no_row(tmp_path, encoding, separator):
    path = tmp_path / "a.csv"
    lines = [f"text{separator}label", f"good | fine{separator}1", "two"]
    path.write_bytes("\r\n".join([f"sep={separator}", *lines[:2]]).encode(encoding))
    assert read(path) == [("good | fine", "1")]
    path.write_text("\n".join([f'"sep={separator}"', *lines[:2], f'"two\nlines"{separator}"a\nb"']))
    with refused("line 4", r"label = 'a\nb'", "--label-column"):
        load(path)


def test_one_row_of_too_many_fields_does_not_hide_the_separator(tmp_path):
    path = tmp_path / "a.csv"
    rows = ['"a text\nof two lines";good', "prima; wirklich;good", *["prima, ja;bad"] * 9]
    for odd in (rows, rows[1:]):
        path.write_text("\n".join(["text;label", *odd]))
        line = 2 + 2 * (odd is rows)
        with refused(f"a.csv, line {line}", "2", "3", "semicolons", "--separator"):
            read_rows(path)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("text,label\nschön,1\n".encode() + b"gr\xfcn,0\n", ("line 3", "UTF-8")),  # both at once
        (b"text,label\nbad \x81,1\n", ("line 2", "UTF-8")),  # no letter of Windows-1252 either
        (b"text,label\na\xe9\x00,1\n", ("line 2", "UTF-8")),  # not text at all
        (b"text,label\ncut \xc3", ("line 2", "UTF-8")),  # in the middle of a letter
        (b"\xff\xfet\x00e", ("line 1", "UTF-16", "65")),
    ],
)
def test_what_is_of_no_known_encoding_is_refused(tmp_path, content, named):
    (tmp_path / "a.csv").write_bytes(content)
    with refused("a.csv", *named, "--encoding"):
        read_rows(tmp_path / "a.csv")


def test_a_carriage_return_alone_is_refused_in_any_encoding(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,label\na\rb,1\nc,0\n".encode("utf-16"))
    with refused("line 2", "carriage return"):
        read_rows(tmp_path / "a.csv")


def test_long_files_are_judged_by_their_beginning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\n" + "".join(f"text {i}, long;{i % 2}\n" for i in range(20_000)))
    assert len(read(path)) == 20_000


@pytest.mark.parametrize("order", ["le", "be"])
def test_utf_16_without_its_mark_is_refused_with_what_to_say(tmp_path, order):
    path = tmp_path / "a.csv"
    path.write_bytes("text;label\r\nschön;1\r\n".encode(f"utf-16-{order}"))
    with refused("a.csv", "UTF-8", "--encoding utf-16-le", "utf-16-be"):
        read_rows(path)
    assert read_rows(path, encoding=f"utf-16-{order}").values("text") == ["schön"]


def test_half_a_character_of_a_named_encoding_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\n\\ud83d,1\n")
    with refused("line 2", "RAW_UNICODE_ESCAPE", "half a character"):
        read_rows(path, encoding="raw_unicode_escape")


def test_a_file_from_an_old_mac_is_read(tmp_path):
    path = tmp_path / "a.csv"
    content = 'text,label\r"a, b\rc",1\rfünf,0\r'
    path.write_bytes(content.encode())
    assert read(path) == [("a, b\nc", "1"), ("fünf", "0")]
    path.write_bytes(content.encode("mac-roman"))
    assert read_rows(path, encoding="mac-roman").values("text")[1] == "fünf"


def test_line_breaks_in_long_cells_do_not_hide_the_separator(tmp_path):
    """What is looked at ends within quotes, and the texts have as many commas as you like."""
    path = tmp_path / "a.csv"
    cell = '"' + "Wort, " * 200 + "\r\n" + "Wort, " * 200 + '"'
    path.write_text("Text;Note;Label\r\n" + f"{cell};3,5;gut\r\n" * 60, newline="")
    assert read(path)[0][1:] == ("3,5", "gut")


def test_what_is_named_is_insisted_on(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text^label\r\nschön, ja^1\r\n".encode("cp1252"))
    rows = read_rows(path, "^", "cp1252")
    assert [rows.values(name) for name in rows.columns] == [["schön, ja"], ["1"]]
    for options, named in (
        ({"encoding": "utf-8"}, ("line 2", "UTF-8", "--encoding")),
        ({"encoding": "ascii"}, ("line 2", "ASCII", "f6 6e 2c", "--encoding")),
        (
            {"separator": ";", "encoding": "cp1252"},
            ("semicolons", "text^label", "--separator"),
        ),
    ):
        with refused("a.csv", *named):
            load(path, **options)


@pytest.mark.parametrize(
    ("option", "value"),
    [("encoding", "klingon"), ("encoding", "base64"), ("encoding", "a\0"), ("encoding", ""),
     ("encoding", "idna"), ("encoding", "punycode"),
     ("separator", ""), ("separator", ";;"), ("separator", '"'), ("separator", "\n"), ("separator", "§")],
)  # fmt: skip
def test_what_is_no_encoding_and_no_separator_is_refused(option, value):
    with refused(f"{option} = {value!r}", "utf-8" if option == "encoding" else ";"):
        load("a.csv", **{option: value})


def test_a_separator_of_what_has_none_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": 1}\n')
    for source in (tmp_path / "a.jsonl", "reviews", "owner/name"):
        with refused("--separator ;", source, "leave it out"):
            load(source, separator=";")


def test_how_a_file_is_written_makes_no_other_run(tmp_path):
    plain, odd = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_text("text,label\n" + "".join(f"schön {i},{i % 2}\n" for i in range(40)))
    odd.write_bytes(plain.read_text().replace(",", "|").encode("cp1252"))
    one, other = load(plain), load(odd, encoding="cp1252", separator="|")
    assert one.fingerprint() == other.fingerprint()
    settings = [
        RunSettings(fingerprint=corpus.fingerprint(), data=corpus.settings, model=ModelSettings())
        for corpus in (one, other)
    ]
    assert not differences(*settings)
    assert identity(settings[0], "", []) == identity(settings[1], "", [])


def test_a_file_of_one_column_says_how_it_was_read(tmp_path):
    (tmp_path / "a.csv").write_text("text^label\na b^1\n")
    with refused("no label column", "--separator"):
        load(tmp_path / "a.csv")


def test_an_error_in_a_row_names_the_line_as_an_editor_counts_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ntext,label\n"a\n\nb",1\n\n  \nc,"d\ne"\n')
    with refused("a.csv, line 8", "label = ", "--label-column"):
        load(path)
