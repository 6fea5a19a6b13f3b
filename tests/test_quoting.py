"""What quotes in a CSV file mean is decided by its rows."""

import csv

import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st
from wording import refused

from heedmap.data import quoting
from heedmap.data.csv_records import Dialect
from heedmap.data.load import load
from heedmap.data.readers import read_rows

HEADER = ["text", "label"]


def read(path, **dialect):
    rows = read_rows(path, **dialect)
    return [list(row) for row in zip(*(rows.values(name) for name in rows.columns), strict=True)]


def written(path, rows, header=HEADER, **options):
    """Write a file as Python's csv does, or without any quoting where there are no options."""
    with path.open("w", newline="") as file:
        if options:
            csv.writer(file, **options).writerows([header, *rows])
        else:
            file.writelines("\t".join(row) + "\n" for row in [header, *rows])
    return path


def unbalanced(count=120):
    """Rows of a file without quoting, some of which begin or end with a quote."""
    texts = [f"the film number {i} was flat" for i in range(count)]
    for i in range(3, count - 4, 10):
        texts[i], texts[i + 4] = f'"{texts[i]}', f'{texts[i + 4]}"'
    return [[text, str(i % 2)] for i, text in enumerate(texts)]


def test_quotes_of_a_file_without_quoting_swallow_no_rows(tmp_path):
    path = written(tmp_path / "a.tsv", unbalanced())
    assert read(path) == unbalanced()
    (note,) = read_rows(path).notes
    assert note.startswith("quotes are read as characters, not around fields")
    assert "first: line 5); if they do enclose fields, say --quotes double" in note


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_the_separator_does_not_matter(tmp_path, separator):
    path = tmp_path / "a.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in [HEADER, *unbalanced()]))
    assert read(path) == unbalanced()


def test_quotes_in_two_columns_swallow_no_rows(tmp_path):
    rows = [
        [str(i % 2), str(1000 + i), one[0], other[0]]
        for i, (one, other) in enumerate(zip(unbalanced(), unbalanced()[2:], strict=False))
    ]
    header = ["Quality", "#1 ID", "#1 String", "#2 String"]
    assert read(written(tmp_path / "a.tsv", rows, header)) == rows


def test_evidence_beyond_the_first_megabyte_counts(tmp_path):
    rows = [[f"a text without any quotes, number {i}", str(i % 2)] for i in range(100_000)]
    rows += unbalanced()
    assert read(written(tmp_path / "a.tsv", rows)) == rows
    quoted = [*rows[:100_000], *([f'one "text",\nof two lines {i}', "1"] for i in range(9))]
    assert read(written(tmp_path / "b.csv", quoted, delimiter=",")) == quoted


def test_a_quote_that_is_not_closed_on_the_last_row_loses_nothing(tmp_path):
    for end in ("", "\n"):
        path = tmp_path / "a.csv"
        path.write_text('text,label\n"a, b",1\nc,0\n"d,1' + end)
        assert read(path) == [["a, b", "1"], ["c", "0"], ['"d', "1"]]
        (note,) = read_rows(path).notes
        assert note.startswith(
            "fields that begin with a quote and do not end with one: 1 (first: line 4)"
        )


def test_a_quoted_word_at_the_start_keeps_its_quotes(tmp_path):
    rows = [['"Titanic" is dull', "0"], ["a good one", "1"], ['he said "hi" to "her"', "0"]]
    assert read(written(tmp_path / "a.tsv", rows)) == rows
    path = tmp_path / "mixed.csv"
    path.write_text('text, label\n"Titanic" is dull, "0"\n"good, really", "1"\n')
    assert read(path) == [['"Titanic" is dull', "0"], ["good, really", "1"]]
    assert read_rows(path).columns == ["text", "label"]


def test_a_whole_text_in_quotes_keeps_them_where_no_other_is_quoted(tmp_path):
    rows = [['"Great!"', "1"], ["it was dull", "0"], ["nice", "1"]]
    assert read(written(tmp_path / "a.tsv", rows)) == rows
    excels = 'text\tlabel\n"a, b"\t1\nc\t0\n'  # quotes what has a comma
    (tmp_path / "b.tsv").write_text(excels)
    assert read(tmp_path / "b.tsv") == [["a, b", "1"], ["c", "0"]]


@pytest.mark.parametrize("every", [2, 5, 12, 20])
def test_whole_texts_in_quotes_keep_them_where_bare_ones_have_commas_too(tmp_path, every):
    texts = [f"it was good, really, number {i}" for i in range(60)]
    rows = [[text if i % every else f'"{text}"', str(i % 2)] for i, text in enumerate(texts)]
    path = written(tmp_path / "a.tsv", rows)
    assert read(path) == rows
    (note,) = read_rows(path).notes
    assert note.startswith("quotes are read as characters, not around fields")
    excels = [[text.replace(",", "") if i % every else text, "1"] for i, text in enumerate(texts)]
    lines = [f'"{text}"\t1\n' if "," in text else f"{text}\t1\n" for text, _ in excels]
    path.write_text("text\tlabel\n" + "".join(lines))
    assert read(path) == excels


def test_a_field_needs_its_quotes_for_the_separator_whatever_bare_fields_hold():
    rows = b'text,label\na film,1\n"a, b",0\n"c; d",0\n"e",1\n'
    assert quoting._tally(rows, Dialect(",", "double")).needless == 1


def test_a_text_whose_line_breaks_look_like_rows_is_noted(tmp_path):
    rows = [[f'so "good", really {i}', str(i % 2)] for i in range(30)]
    rows[7][0] = "bad,1\nworse,0\nthe end"
    path = written(tmp_path / "a.csv", rows, delimiter=",")
    assert read(path) == rows
    (note,) = read_rows(path).notes
    assert note.startswith("texts whose line breaks look like rows: 1 (first: line 9)")
    rows[7][0] = "First, of all\nand, second\nthe end"  # a comma per line, and no label
    assert not read_rows(written(path, rows, delimiter=",")).notes


def test_a_backslash_before_a_doubled_quote_belongs_to_the_text(tmp_path):
    rows = [[f'It is \\"so\\" flat, {i}', str(i % 2)] for i in range(40)]
    for change in (
        lambda text: text,
        lambda text: f"{text}\\n",
        lambda text: f'{text} \\"end\\" .',
    ):
        changed = [[change(text), label] for text, label in rows]
        path = written(tmp_path / "a.csv", changed, quoting=csv.QUOTE_ALL)
        assert read(path) == changed
        assert not read_rows(path).notes
    path = written(
        tmp_path / "b.csv", rows, quoting=csv.QUOTE_ALL, doublequote=False, escapechar="\\"
    )
    assert read(path) == rows


def test_what_the_user_says_of_quotes_holds(tmp_path):
    path = written(tmp_path / "a.tsv", unbalanced())
    assert len(read(path, quotes="double")) < 120
    assert load(path, quotes="double").notes == load(path, quotes="double").notes
    assert not read_rows(path, quotes="none").notes
    (tmp_path / "b.csv").write_text('text,label\n"good","1"\n"bad","0"\n')
    assert read(tmp_path / "b.csv") == [["good", "1"], ["bad", "0"]]
    assert read(tmp_path / "b.csv", quotes="none") == [['"good"', '"1"'], ['"bad"', '"0"']]
    with refused("quotes = 'single'", "'none' or 'double'"):
        load(path, quotes="single")
    with refused("--quotes none", "reviews", "leave it out"):
        load("reviews", quotes="none")


def test_a_row_that_does_not_fit_is_refused_with_how_the_file_was_read(tmp_path):
    rows = unbalanced()
    rows[60][0] += "\tmore"
    with refused("line 62", "(2)", "got 3", "quotes are characters"):
        read(written(tmp_path / "a.tsv", rows))


WORDS = ["the", "film", "was", '"good"', '"bad', "'dull'", 'nice"', '""', "a", '"b', "c\\d"]
TEXTS = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", " ", " ", ", ", "; ", "\n"])),
    min_size=1,
    max_size=12,
).map(lambda parts: "".join(word + gap for word, gap in parts).strip())
WRITERS = [
    {"quoting": csv.QUOTE_MINIMAL},
    {"quoting": csv.QUOTE_ALL},
    {"quoting": csv.QUOTE_NONNUMERIC},
    {"doublequote": False, "escapechar": "\\"},
    {"quoting": csv.QUOTE_NONE, "escapechar": "\\"},
    {},
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(TEXTS, min_size=60, max_size=60),
    st.sampled_from(WRITERS),
    st.sampled_from(",;\t"),
)
def test_texts_come_back_however_a_file_was_written(tmp_path_factory, texts, options, separator):
    rows = [[text, str(i % 2)] for i, text in enumerate(texts)]
    if options:
        options = {**options, "delimiter": separator}
    else:
        rows = [[" ".join(text.split()), label] for text, label in rows]
    path = tmp_path_factory.mktemp("csv") / ("a.csv" if separator in ",;" and options else "a.tsv")
    assert read(written(path, rows, **options)) == rows


@pytest.mark.parametrize("name", ["quotes.tsv", "quotes-in-two-columns.tsv"])
def test_the_rows_of_known_files_are_all_read(name):
    path = SHARED / "faults" / name
    if not path.exists():
        pytest.skip("the files are not on this machine")
    rows = read_rows(path)
    lines = path.read_text().splitlines()[1:]
    columns = [rows.values(name) for name in rows.columns]
    assert ["\t".join(row) for row in zip(*columns, strict=True)] == lines


@pytest.mark.slow
@pytest.mark.parametrize("options", WRITERS, ids=str)
@pytest.mark.parametrize("name", ["sst", "ag_news", "imdb", "news20_baseball_hockey"])
def test_real_texts_come_back_however_a_file_was_written(tmp_path, real_data, name, options):
    rows = read_rows(real_data / name / "dev.jsonl.gz")
    columns = [[str(value) for value in rows.values(name)] for name in HEADER]
    table = [list(row) for row in zip(*columns, strict=True)]
    for separator in ",\t;" if options else "\t":
        if not options:
            table = [[" ".join(value.split()) for value in row] for row in table]
        path = tmp_path / ("a.tsv" if separator == "\t" else "a.csv")
        dialect = {**options, "delimiter": separator} if options else {}
        assert read(written(path, table, **dialect)) == table
