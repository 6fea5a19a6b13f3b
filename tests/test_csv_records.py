"""Records of a CSV file are those of Python's csv module, wherever quotes enclose whole fields."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedmap.data.csv_records import Dialect, LoneCarriageReturn, records

WRITERS = {
    "minimal": ("double", {}),
    "all": ("double", {"quoting": csv.QUOTE_ALL}),
    "not numbers": ("double", {"quoting": csv.QUOTE_NONNUMERIC}),
    "backslash": ("backslash", {"doublequote": False, "escapechar": "\\"}),
    "all with backslashes": (
        "backslash",
        {"quoting": csv.QUOTE_ALL, "doublequote": False, "escapechar": "\\"},
    ),
    "escapes alone": ("backslash", {"quoting": csv.QUOTE_NONE, "escapechar": "\\"}),
}
TABLES = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.text("ab1 \"',;\t|\\\n\0é😀", max_size=6), min_size=width, max_size=width),
        min_size=1,
        max_size=5,
    )
)


def fields(content, separator=",", quotes="double"):
    return [record.fields for record in records(content.encode(), Dialect(separator, quotes))]


@given(
    TABLES, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.sampled_from([*WRITERS])
)
def test_what_pythons_csv_writes_is_read_back(table, separator, end, writer):
    quotes, options = WRITERS[writer]
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator=end, **options).writerows(table)
    assert fields(file.getvalue(), separator, quotes) == table


@given(st.text('a" ,\n', max_size=30), st.sampled_from(",;\t|"))
def test_without_quoting_a_line_is_a_row_as_pythons_csv_reads_it(content, separator):
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=separator, quoting=csv.QUOTE_NONE)
    filled = [row for row in rows if len(row) > 1 or (row and row[0].strip())]
    assert fields(content, separator, "none") == filled


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"Titanic" is dull,0', ['"Titanic" is dull', "0"]),
        ('5" screen,0', ['5" screen', "0"]),
        ('He said "no",0', ['He said "no"', "0"]),
        ('"never closed,0', ['"never closed', "0"]),
        ('never opened",0', ['never opened"', "0"]),
        ('a, "b"', ["a", "b"]),
        ('a , "b, c" ,d', ["a ", "b, c", "d"]),
        ('""', [""]),
        ('"""",a', ['"', "a"]),
        ('"a"b,c', ['"a"b', "c"]),
    ],
)
def test_quotes_that_do_not_enclose_a_field_are_characters(line, expected):
    assert fields(line) == [expected]
    assert fields(f"x,y\n{line}\nz,w\n") == [["x", "y"], expected, ["z", "w"]]


def test_a_record_names_its_line_and_says_how_its_fields_are_written():
    content = b'a,b\n\n"x\ny","p ""q"""\n  \nn,"m" o\n'
    found = [(record.line, record.marks) for record in records(content, Dialect(","))]
    assert found == [(1, None), (3, ["enclosed", "enclosed"]), (6, ["plain", "bare"])]


@pytest.mark.parametrize("content", ["a,b\nc\rd,e\n", 'a,b\n"c",d\re\n', 'a,b\n"c"\rd,e\n'])
def test_a_carriage_return_alone_outside_of_quotes_is_an_error(content):
    with pytest.raises(LoneCarriageReturn) as caught:
        fields(content)
    assert caught.value.line == 2
    assert fields('a,b\r\n"c\rd",e\r\n') == [["a", "b"], ["c\rd", "e"]]
