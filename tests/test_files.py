"""Users' files and folders: what was named is read, or refused in one line."""

import gzip
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tiny_transformers import reviews_classifier
from wording import refused, warned

from heedmap.data import readers as files
from heedmap.data import streams
from heedmap.data.array_files import read_arrays
from heedmap.data.bag_files import BagFile
from heedmap.data.bag_parquet import ParquetBags
from heedmap.data.labels import check_labels
from heedmap.data.load import load
from heedmap.data.matching import match
from heedmap.data.pictures import read_picture
from heedmap.data.readers import read_hub, read_rows
from heedmap.data.vocabulary import Vocabulary, read_vectors
from heedmap.errors import InputError
from heedmap.models import from_jain_wallace

HEAD = b"text,label\n"
LINES = [{"text": f"this is text {i} !", "label": i % 2} for i in range(40)]
CSV = HEAD + "".join(f"{row['text']},{row['label']}\n" for row in LINES).encode()


def columns(path):
    rows = read_rows(path)
    return {name: rows.values(name) for name in rows.columns}


def refusal(source, *names, **options):
    """The one line that says why and names these, within seconds: what is refused costs no time."""
    started = time.perf_counter()
    with refused(*names) as caught:
        load(source, **options)
    assert time.perf_counter() - started < 20
    return str(caught.value)


@pytest.mark.parametrize(
    ("named", "beside"),
    [
        ("data[12].csv", "data1.csv"),
        ("dat?.csv", "data.csv"),
        ("*.csv", "data.csv"),
        ("a::b.csv", "b.csv"),
        ("{a,b}.csv", "a.csv"),
        ("%41.csv", "A.csv"),
        ("file:b.csv", "b.csv"),
        ("zip:b.csv.gz", "b.csv.gz"),
    ],
)
def test_a_path_means_the_file_of_that_name(tmp_path, named, beside):
    for name, text in ((named, b"mine"), (beside, b"other")):
        content = HEAD + b"%s,1\n" % text
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert columns(tmp_path / named) == {"text": ["mine"], "label": ["1"]}


def test_a_folder_whose_name_is_a_pattern_is_that_folder(tmp_path):
    for name, text in (("set[12]", "mine"), ("set1", "other")):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "train.csv").write_bytes(CSV.replace(b"this", text.encode()))
    assert load(tmp_path / "set[12]").splits["train"].tokens[0][0] == "mine"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'"a, ""b""",1\n"c\nd",0\n', [['a, "b"', "c\nd"], ["1", "0"]]),
        (b'"a\rb",1\r\nc,0\r\n', [["a\rb", "c"], ["1", "0"]]),
        (b",1\nb,\n", [[None, "b"], ["1", None]]),
        (b'"",1\nb,""\n', [[None, "b"], ["1", None]]),
        (b"NA,NA\nnull,nan\nNone,None\n", [["NA", "null", "None"], ["NA", "nan", "None"]]),
        (b"a,True\nb,false\n", [["a", "b"], ["True", "false"]]),
        (b"a,01\nb,02\n", [["a", "b"], ["01", "02"]]),
        (b"007,x\n3.50,y\n", [["007", "3.50"], ["x", "y"]]),
        (b"1e5,1.10\n+49,1.0\n", [["1e5", "+49"], ["1.10", "1.0"]]),
        (b"a,1\nb,x\n", [["a", "b"], ["1", "x"]]),
        (b"a\nb,0\n", [["a", "b"], [None, "0"]]),
        (b"\na,1\n\nb,0\n\n", [["a", "b"], ["1", "0"]]),
        (b"a,1\n  \n \t \nb,0\n", [["a", "b"], ["1", "0"]]),
        (b" a , 1\n", [[" a "], [" 1"]]),
        (b'a , "1"\n "b, c" , 2\n', [["a ", "b, c"], ["1", " 2"]]),
        (b"a\0b,1\n", [["a\0b"], ["1"]]),
        (b"a,99999999999999999999\nb," + b"9" * 400, [["a", "b"], ["9" * 20, "9" * 400]]),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_a_csv_file_says(tmp_path, content, expected, mark):
    (tmp_path / "a.csv").write_bytes(mark + HEAD + content)
    assert list(columns(tmp_path / "a.csv").values()) == expected


def test_labels_are_told_by_the_whole_column_of_a_long_file(tmp_path):
    lines = [f"text {i},{i % 2}\n" for i in range(30_000)]
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(lines) + "the last,x\n")
    assert set(columns(tmp_path / "a.csv")["label"]) == {"0", "1", "x"}


ROWS = [{"text": "a", "label": 1}, {"text": None, "label": 2.5}, {"text": "b\u2028c", "more": [1]}]


@pytest.mark.parametrize(
    "content",
    [
        "".join(json.dumps(row) + "\n" for row in ROWS),
        "\ufeff" + "\r\n\r\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS),
        json.dumps(ROWS),
        " \n" + json.dumps(ROWS, indent=2),
        "\n".join(json.dumps(row, indent=2) for row in ROWS),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_the_ways_to_write_json_rows_are_one(tmp_path, content, name):
    (tmp_path / name).write_bytes(content.encode())
    assert columns(tmp_path / name) == {
        "text": ["a", None, "b\u2028c"],
        "label": [1, 2.5, None],
        "more": [None, None, [1]],
    }


def test_json_says_neither_dates_nor_missing_numbers_in_another_way(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "2020-01-01", "label": NaN}\n{"text": "\\ud83d\\ude00", "label": 1}\n'
    )
    assert columns(path) == {"text": ["2020-01-01", "😀"], "label": [None, 1]}


def packed(data):
    """Gzipped, with a byte changed inside the stream; without the time, which would be in a test's name."""
    content = bytearray(gzip.compress(data, mtime=0))
    content[10] = 0xFF
    return bytes(content)


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


WIDE = ",".join(f"c{i}" for i in range(100_000)).encode()
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
)
DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.csv", CSV.replace(b"text 7", b"text\r7"), ["line 9", "carriage return"]),
        ("a.csv", b"x" * 200_000 + b"," + CSV, ["128 kB"]),
        ("a.csv", b"x," * 1_000_000 + b"\n" + CSV, ["128 kB"]),
        ("a.csv", b'"' + CSV * 200 + b'",x', ["128 kB"]),
        ("a.csv", WIDE + b"\n" + b"," * 99_999 + b"\n", ["10000", "100000"]),
        ("a.csv", HEAD + b"good, bad,1\nbad, good,0\n", ["(2)", "3"]),
        ("a.csv", HEAD + b"a,1,\nb,0,,x\n", ["(2)", "4"]),
        ("a.csv", b"\n\n" + b"text,text,label\na,b,1\n", ["column text", "2"]),
        ("a.csv", b"\n\n\n", ["names of the columns"]),
        ("a.csv", HEAD + b"a\xc3", ["line 2", "UTF-8"]),
        ("a.csv.gz", packed(CSV * 50), []),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)[:-9], []),
        ("a.jsonl.gz", packed(b'{"text": "a", "label": 1}\n' * 500), []),
        ("a.parquet.gz", packed(parquet(text=["a"], label=[1])), []),
        ("a.parquet", parquet(text=NOT_UTF8, label=[1, 0]), ["UTF-8"]),
        ("a.parquet", parquet(text=[b"a", b"b"], label=[1, 0]), ["text = b'a'"]),
        ("a.parquet", parquet(**{f"c{i}": [1] for i in range(10_001)}), ["10000", "10001"]),
        ("a.jsonl", DEEP + b"]" * 100_000, ["line 1", "JSON", "deeply"]),
        ("a.json", b'[{"text": ' + DEEP + b"]" * 100_000 + b"}]", ["JSON", "deeply"]),
        ("a.jsonl", b'{"text": "a", "label": 1}\n' + b'{"a":' * 100_000, ["line 2", "JSON"]),
        ("a.jsonl", b'{"text": "a", "label": ' + b"[" * 900 + b"]" * 900 + b"}", ["line 1", "label"]),
        ("a.jsonl", b'{"text": "a", "label": ' + b"9" * 5000 + b"}", ["line 1", "JSON"]),
        ("a.jsonl", b'{"text": "a", "text": "b", "label": 1}', ["line 1", "JSON", "twice"]),
        ("a.jsonl", b'{"text": "\\ud800", "label": 1}', ["line 1", "JSON"]),
        ("a.json", b'["a", "b"]', ["row 1", "str"]),
        ("a.jsonl", b'{"text": "a", "label": Infinity}', ["line 1", "Infinity"]),
        ("a.csv", HEAD + b'a,"pos\nneg"\n' + b"b,pos\n" * 9, ["line 2", r"label = 'pos\nneg'"]),
        ("a.csv", HEAD + b"".join(b"a,%d\n" % i for i in range(60_000)), ["--label-column"]),
        ("a.csv", HEAD + b"".join(b"a,%f\n" % (i / 7) for i in range(51)), ["--label-column"]),
    ],
)  # fmt: skip
def test_a_file_that_must_be_refused(tmp_path, name, content, named):
    (tmp_path / name).write_bytes(content)
    refusal(tmp_path / name, name, *named)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("orient", ["columns", "list"])
def test_a_json_file_of_columns_is_read_as_its_rows_are(tmp_path, orient, indent):
    columns = {name: [row[name] for row in LINES] for name in ("text", "label")}
    if orient == "columns":
        columns = {name: dict(enumerate(values)) for name, values in columns.items()}
    (tmp_path / "a.json").write_text(json.dumps(columns, indent=indent))
    (tmp_path / "b.json").write_text(json.dumps(LINES))
    with warned("a.json", f"{len(LINES)} rows"):
        read = load(tmp_path / "a.json")
    assert read.fingerprint() == load(tmp_path / "b.json").fingerprint()


def test_one_object_of_a_text_and_its_words_is_one_row(tmp_path):
    for words, label in (["a", "b"], "good"), (["a", "b"], ["good"]), (["a"], ["good"]):
        (tmp_path / "a.jsonl").write_text(json.dumps({"text": words, "label": label}))
        assert len(read_rows(tmp_path / "a.jsonl")) == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_a_line_of_lists_alone_is_one_sentence(tmp_path, name):
    sentence = {"tokens": ["Ada", "met", "Bob"], "ner_tags": ["PER", "O", "PER"]}
    content = json.dumps(sentence).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    rows = read_rows(tmp_path / name)
    assert (len(rows), rows.values("tokens"), rows.notes) == (1, [sentence["tokens"]], [])


NASTY = (
    b"\r",
    b"\n",
    b'"',
    b",",
    b"\0",
    b"\xff",
    b"{",
    b"[",
    b"]",
    b"\\",
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"\x1b",
)


@pytest.mark.filterwarnings("ignore:.*read as Windows-1252")
@pytest.mark.parametrize(
    "name", ["a.csv", "a.jsonl", "a.json", "a.parquet", "a.csv.gz", "a.parquet.gz"]
)
def test_a_spoilt_file_is_read_or_refused_in_one_line_and_nothing_else(tmp_path, name):
    whole = {
        "csv": CSV,
        "jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in LINES),
        "json": json.dumps(LINES, indent=1).encode(),
        "parquet": parquet(
            text=[row["text"] for row in LINES], label=[row["label"] for row in LINES]
        ),
    }[name.split(".")[1]]
    content = gzip.compress(whole) if name.endswith("gz") else whole
    rng = np.random.default_rng(len(name))
    for _ in range(60):
        spoilt = bytearray(content)
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            kind = rng.integers(4)
            if kind == 0:
                del spoilt[at : at + rng.integers(1, 40)]
            elif kind == 1:
                del spoilt[at:]
            else:
                random = rng.integers(0, 256, rng.integers(1, 9), dtype=np.uint8)
                spoilt[at:at] = NASTY[rng.integers(len(NASTY))] if kind == 2 else bytes(random)
        (tmp_path / name).write_bytes(spoilt)
        said = ""
        try:
            load(tmp_path / name)
        except InputError as error:
            said = str(error)
        assert len(said.splitlines()) <= 1


def test_a_label_of_white_space_is_none(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n" + "a,x\nb,y\n" * 20 + "c,  \n")
    corpus = load(tmp_path / "a.csv")
    assert (corpus.classes, corpus.left_out) == (["x", "y"], {"label missing": 1})


def test_classes_whose_names_differ_in_their_case_alone_are_told_apart():
    assert match("a", ["yes", "Yes"], ["Yes", "yes"], remedy="").number == {"yes": 1, "Yes": 0}
    assert match("a", ["YES", "no"], ["No", "Yes"], remedy="").number == {"YES": 1, "no": 0}
    with refused("2 classes (Yes, yes)", "YES"):
        match("a", ["YES"], ["Yes", "yes"], remedy="")


def test_up_to_half_as_many_classes_as_rows_are_classes():
    check_labels("a", [str(i % 30) for i in range(60)])
    check_labels("a", [str(i) for i in range(50)])
    with refused("31", "60 rows", "--label-column"):
        check_labels("a", [str(i % 31) for i in range(60)])


@pytest.mark.filterwarnings("ignore:.*10000 (different|of)")
def test_a_split_of_many_classes_is_drawn_in_no_time(tmp_path):
    rows = [f"word,{i % 10_000}\n" for i in range(60_000)]
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(rows))
    started = time.perf_counter()
    assert len(load(tmp_path / "a.csv").classes) == 10_000
    assert time.perf_counter() - started < 20


def test_a_compressed_file_may_grow_to_a_stated_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "SMALL", 1 << 20)
    for name in ("a.csv.gz", "a.jsonl.gz", "a.parquet.gz"):
        (tmp_path / name).write_bytes(gzip.compress(HEAD + b"a" * (8 << 20)))
        refusal(tmp_path / name, name, "100 times", "1 MiB")
    text = ["a" * 1000] * 100_000
    (tmp_path / "a.parquet").write_bytes(
        parquet(text=text, label=[i % 2 for i in range(len(text))])
    )
    refusal(tmp_path / "a.parquet", "a.parquet", "100 times")
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(b"a 1 2\n" * (1 << 20)))
    with refused("vectors.txt.gz", "100 times"):
        read_vectors(path, Vocabulary(["b"]))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(CSV))  # a small one may
    assert len(read_rows(tmp_path / "b.csv.gz")) == 40


LONG_TEXT = "a dull plot " * 3000


def of_one_text(kind, count):
    """A table in which one text stands in `count` places, and whether its types are stored."""
    text = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([LONG_TEXT]))
    ends, pair = pa.array([0, count]), pa.StructArray.from_arrays([text], ["of"])
    columns = {
        "texts": text,
        "categories": text,
        "lists": pa.ListArray.from_arrays(ends, text),
        "pairs": pair,
        "lists of pairs": pa.ListArray.from_arrays(ends, pair),
        "maps": pa.MapArray.from_arrays(ends, pa.array(range(count)), text),
    }
    return pa.table({"text": columns[kind]}), kind == "categories"


@pytest.mark.parametrize(
    "kind", ["texts", "categories", "lists", "pairs", "lists of pairs", "maps"]
)
def test_a_text_counts_as_often_as_it_stands_in_a_parquet_file(tmp_path, monkeypatch, kind):
    path = tmp_path / "a.parquet"
    # A group of rows has its own dictionary, which takes the place of one more text.
    monkeypatch.setattr(streams, "SMALL", 34 * len(LONG_TEXT))
    for count in (30, 34):
        table, stored = of_one_text(kind, count)
        pq.write_table(table, path, compression="zstd", store_schema=stored, row_group_size=20)
        if count == 30:
            assert read_rows(path).values("text") == table["text"].to_pylist()
        else:
            refusal(path, "a.parquet", "100 times the file's size")


@pytest.mark.parametrize("nested", [False, True])
def test_texts_are_counted_where_a_dictionary_was_given_up(tmp_path, monkeypatch, nested):
    texts = [f"text {i}" for i in range(5000)]
    rows = [[text, text] for text in texts] if nested else texts
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"text": rows}), path, dictionary_pagesize_limit=1000, row_group_size=3000
    )
    assert read_rows(path).values("text") == rows
    monkeypatch.setattr(streams, "SMALL", 0)
    monkeypatch.setattr(streams, "MOST_GROWTH", 1)
    with refused("1 times"):
        read_rows(path)


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)


def write_h5(path, shape):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("features", shape, "f4", chunks=(1000, 2), compression="gzip")


@pytest.mark.parametrize(
    ("name", "write", "read"),
    [
        (
            "a.parquet",
            lambda path, n: write_parquet(path, text=[[0] * n], label=["b"]),
            read_rows,
        ),
        (
            "attention.parquet",
            lambda path, n: write_parquet(path, attention=[[0] * n]),
            lambda path: read_arrays(path.parent),
        ),
        (
            "bags.parquet",
            lambda path, n: write_parquet(
                path, bag=[LONG_TEXT] * (n // 9000), f=[[1.0]] * (n // 9000)
            ),
            ParquetBags,
        ),
        (
            "a.npz",
            lambda path, n: np.savez_compressed(path, attention=np.zeros((n, 1))),
            lambda path: read_arrays(path.parent),
        ),
        (
            "weights.npz",
            lambda path, n: np.savez_compressed(path, weights=np.zeros(n)),
            lambda path: from_jain_wallace(path, {}),
        ),
        ("a.h5", lambda path, n: write_h5(path, (n, 2)), lambda path: BagFile(path).vectors()),
        ("a.png", lambda path, n: Image.new("1", (n, 1)).save(path), read_picture),
    ],
)
def test_every_compressed_file_has_the_same_limit(tmp_path, monkeypatch, name, write, read):
    monkeypatch.setattr(streams, "SMALL", 1 << 20)
    write(tmp_path / name, 1_000_000)
    with refused(name, "100 times the file's size (or 1 MiB)"):
        read(tmp_path / name)
    monkeypatch.setattr(streams, "SMALL", 1 << 26)
    with pytest.raises(InputError, match="expected") if name == "weights.npz" else nullcontext():
        read(tmp_path / name)


def test_a_line_of_vectors_without_an_end_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"a 1 2\n")
    with path.open("r+b") as file:
        file.truncate(1 << 36)  # 64 GiB of nothing, which take no place on the disk
    with refused("line 2", "131072"):
        read_vectors(path, Vocabulary(["b"]))


LONG = "n" * 300


@pytest.mark.parametrize(
    "name", [f"{LONG}.csv", f"{LONG}/a.csv", "texts.csv/a.csv", "no\nsuch.csv"]
)
def test_a_path_that_cannot_be_is_one_clear_line(tmp_path, name):
    (tmp_path / "texts.csv").write_bytes(CSV)
    refusal(tmp_path / name)
    with refused(repr(name)[1:-1]):
        read_vectors(tmp_path / name, Vocabulary(["b"]))


def test_the_command_says_one_line_of_a_path_that_cannot_be(tmp_path, heedmap):
    for options in (
        ("audit", "--data", tmp_path / f"{LONG}.csv"),
        ("audit", "--data", tmp_path / LONG),
        ("audit", "--data", "reviews", "--vectors", tmp_path / LONG),
        ("audit", "--data", tmp_path / LONG, "--dataset", "sst"),
        ("audit", "--data", tmp_path / LONG, "--dataset", "diabetes"),
        ("reproduce", "jain-wallace", "sst", "--data", tmp_path / LONG),
    ):
        done = heedmap(*options)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs another user to be")
def test_a_folder_that_may_not_be_read_is_one_clear_line(tmp_path):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "train.csv").write_bytes(CSV)
    (tmp_path / "closed").chmod(0o700)
    tmp_path.chmod(0o755)
    script = (
        "import os, sys\nfrom heedmap.data.load import load\nfrom heedmap.errors import InputError\n"
        "os.setuid(65534)\n"
        "for path in sys.argv[1:]:\n    try: load(path)\n    except InputError as e: print(e)\n"
    )
    closed = tmp_path / "closed"
    done = subprocess.run(
        [sys.executable, "-c", script, closed, closed / "train.csv", closed / "a"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [line.split(" (")[1] for line in done.stdout.splitlines()] == [
        "Permission denied); check the path and the file"
    ] * 3


def test_line_breaks_in_the_names_of_columns_and_files_do_no_harm(tmp_path):
    path = tmp_path / "my\ntexts.csv"
    path.write_text('"the\ntext",label\n' + "a b,1\nc d,0\n" * 20 + ",1\n")
    refusal(path, r"the\ntext, label", label="x")
    assert load(path, text="the\ntext").left_out == {"empty the text": 1}
    with warned(r"column the\ntext is read as the text"):
        assert load(path).left_out == {"empty the text": 1}


def test_a_column_with_a_quote_that_is_never_closed_is_read_with_notes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'"' + CSV * 200)
    with warned("'label'", "--header none"), warned('column "text is read as the text'):
        assert load(tmp_path / "a.csv").classes == ["0", "1", "label"]


def clone(folder, readme=None, **contents):
    for name, content in contents.items():
        path = folder / name.replace("__", "/").replace("_csv", ".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if readme is not None:
        (folder / "README.md").write_text(f"---\n{readme}\n---\n# A data set\n")
    return folder


NAMED = """
configs:
- config_name: default
  data_files:
  - split: train
    path: "parts/a-*.csv"
  - split: test
    path:
    - parts/b.csv
dataset_info:
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': 'no'
          '1': 'yes'
"""


def test_a_clone_is_read_as_its_readme_says(tmp_path):
    folder = clone(tmp_path / "c", NAMED, parts__b_csv=CSV)
    for i in (2, 1):
        (folder / "parts" / f"a-{i}.csv").write_bytes(CSV.replace(b"this", b"%d" % i))
    corpus = load(folder)
    assert corpus.classes == ["no", "yes"]
    assert [len(corpus.splits[name]) for name in ("train", "dev", "test")] == [68, 12, 40]
    by_hub = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    parts = [columns(folder / "parts" / name)["text"] for name in ("a-1.csv", "a-2.csv", "b.csv")]
    ours = {"train": parts[0] + parts[1], "test": parts[2]}
    assert {name: part["text"][:] for name, part in by_hub.items()} == ours


def test_a_number_that_the_readme_has_no_name_for(tmp_path):
    folder = clone(tmp_path / "c", NAMED, parts__b_csv=CSV)
    (folder / "parts" / "a-1.csv").write_bytes(CSV + b"x,-1\nthe last,2\n")
    named = ["a-1.csv, line 43", "0 to 1"]
    refusal(folder, *named, "label = 2")
    (folder / "parts" / "a-1.csv").write_bytes(CSV + b"x,-1\nthe last," + b"2" * 5000 + b"\n")
    assert "label = 2222" in refusal(folder, *named)


@pytest.mark.parametrize(
    "names",
    [
        ("data/train-00000-of-00002.csv", "data/train-00001-of-00002.csv", "data/test-00000-of-00001.csv"),
        ("train/a.csv", "validation/a.csv", "test/a.csv"),
        ("en/my_train.csv", "en/my_dev.csv", "en/testing.2.csv"),
        ("sub/all.csv",),
        ("sub/all.csv", "sub/more.csv", "sub/about.jsonl", ".cache/x.csv", "sub/dataset_info.json"),
    ],
)  # fmt: skip
def test_a_clone_without_a_list_is_told_by_its_names_as_the_library_tells_it(tmp_path, names):
    folder = tmp_path / "clone"
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = CSV.replace(b"this is", b"%d is" % i)
        (folder / name).write_bytes(content if name.endswith("csv") else b'{"a": 1}\n')
    from heedmap.data.clones import read_clone

    by_library = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    ours = {split: rows.values("text") for split, rows in read_clone(folder).items()}
    assert ours == {split: part["text"][:] for split, part in by_library.items()}


@pytest.mark.parametrize(
    "names",
    [
        ("imdb/train.csv", "imdb/test.csv", "sst/train.csv", "sst/test.csv"),
        ("backup/train.csv", "data/train.csv", "data/test.csv"),
        ("imdb/train/a.csv", "sst/train/a.csv"),
        ("imdb/train.csv", "imdb/test.csv", "sst/test.csv"),
        ("imdb/all.csv", "sst/all.csv"),
    ],
)
def test_files_of_one_split_in_several_folders_are_several_data_sets(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(CSV)
    said = refusal(tmp_path, tmp_path, "one data set", "split")
    one = tmp_path / names[0].split("/")[0]
    assert f"in 2 folders ({one}, " in said or f", {one})" in said
    assert said.endswith(f"such as {one}")


def test_texts_of_several_files_of_one_split_have_different_names(tmp_path):
    names = {"train/a.csv": "a.csv", "train/more/a.csv": "more/a.csv"}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(CSV)
    with warned("train", "2 files", "train/a.csv, train/more/a.csv"):
        corpus = load(tmp_path)
    keys = {key for part in corpus.splits.values() for key in part.keys}
    assert len(keys) == 80
    assert {key.rpartition(", ")[0] for key in keys} == set(names.values())


@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv", "../../secret.csv", "data/../../secret.csv", "{secret}", "file://{secret}",
        "https://example.org/secret.csv", "zip://secret.csv::data/a.zip", "~/secret.csv", "link.csv",
        "links/*.csv", "hf://datasets/a/b/c.csv", "/", ".",
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["data_files", "data_dir"])
def test_a_readme_that_names_what_is_not_in_the_folder_is_refused(tmp_path, path, field):
    folder = clone(tmp_path / "clone", data__train_csv=CSV)
    secret = clone(tmp_path, secret_csv=CSV) / "secret.csv"
    (folder / "link.csv").symlink_to(secret)
    (folder / "links").symlink_to(tmp_path)
    value = json.dumps(path.replace("{secret}", str(secret)))
    clone(folder, f"configs:\n- config_name: default\n  {field}: {value}")
    said = refusal(folder)
    assert "inside the folder" in said or "data_files that are there" in said or "found" in said
    assert "this is text" not in said


def test_links_within_the_cache_of_the_hub_are_its_own(tmp_path):
    home = tmp_path / "datasets--a--b"
    blobs, snapshot = home / "blobs", home / "snapshots" / "0123"
    clone(blobs, abc=CSV)
    (snapshot / "data").mkdir(parents=True)
    (snapshot / "data" / "train.csv").symlink_to("../../../blobs/abc")
    assert len(load(snapshot).splits["train"]) > 20
    (snapshot / "data" / "train.csv").unlink()
    clone(tmp_path, secret_csv=CSV)
    (snapshot / "data" / "train.csv").symlink_to(tmp_path / "secret.csv")
    refusal(snapshot, "inside the folder")


@pytest.mark.parametrize(
    ("readme", "named"),
    [
        ("configs: [", ["YAML"]),
        ("configs: 3", ["configurations"]),
        ("configs:\n- config_name: a\n- config_name: b", ["2 (a, b)"]),
        ("configs:\n- config_name: a\n  sep: ';'\n  data_files: data/*", ["sep"]),
        ("configs:\n- config_name: a\n  data_files: 3", ["data_files with split and path"]),
        ("configs:\n- config_name: a\n  data_files: none/*", ["data_files", "none/*"]),
        (
            "configs:\n- config_name: a\n  data_files: data/*",
            ["columns", "train"],
        ),
    ],
)
def test_a_readme_that_cannot_be_followed(tmp_path, readme, named):
    folder = clone(tmp_path, readme, data__a_csv=CSV, data__b_csv=b"words,label\nx,1\n")
    refusal(folder, *named)


WATCHED = """
import os, sys
seen = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "tempfile.mkdtemp"):
        seen.append(event)
        if event.startswith("socket"):
            raise ConnectionRefusedError(event)
sys.addaudithook(watch)
{code}
print("SEEN", seen)
"""


def watched(code, *arguments, tmp_path):
    """Run some code where every socket refuses, and say what was tried and what is left in the temp folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    known = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(code=code), *map(str, arguments)],
        env={**known, "TMPDIR": str(scratch), "HF_HOME": str(tmp_path / "hf")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "SEEN" in done.stdout, done.stderr
    return done.stdout.split("SEEN ")[1].strip(), sorted(p.name for p in scratch.rglob("*"))


READ = """
from heedmap.data.load import load
for source in sys.argv[1:]:
    load(source)
"""


def test_local_data_is_read_without_the_network_and_without_a_copy(tmp_path):
    csv = clone(tmp_path / "data", texts_csv=CSV) / "texts.csv"
    folder = clone(tmp_path / "split", train_csv=CSV, test_csv=CSV)
    cloned = clone(tmp_path / "clone", data__train_csv=CSV)
    sources = [csv, folder, cloned]
    for name, write in (("a.parquet", "to_parquet"), ("a.jsonl", "to_json")):
        sources.append(tmp_path / name)
        getattr(datasets.Dataset.from_list(LINES), write)(tmp_path / name)
    assert watched(READ, *sources, tmp_path=tmp_path) == ("[]", [])


COMMAND = """
import runpy
sys.argv[0] = "heedmap"
from heedmap import cli
try:
    cli.main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""


@pytest.mark.slow
def test_an_audit_of_a_local_model_goes_without_the_network(tmp_path):
    reviews_classifier(tmp_path / "model")
    rows = b"".join(b"%s film,%d\n" % ((b"bad", b"good")[i % 2], i % 2) for i in range(12))
    csv = clone(tmp_path / "data", texts_csv=HEAD + rows) / "texts.csv"
    command = ("audit", "--model", tmp_path / "model", "--data", csv, "--out", tmp_path / "run")
    assert watched(COMMAND, *command, tmp_path=tmp_path)[0] == "[]"


def test_a_hub_data_set_may_name_files_of_the_hub_alone():
    files._check_hosted("a/b", {"train": ["hf://datasets/a/b@0123/data/train.parquet"]})
    for path in ("/home/me/secret.csv", "https://example.org/a.csv", "file:///secret.csv"):
        with refused("a/b", path):
            files._check_hosted("a/b", {"train": ["hf://datasets/a/b@0123/a.csv", path]})


def test_a_hub_data_set_is_read_into_memory_by_way_of_the_librarys_cache(tmp_path, monkeypatch):
    """With a clone in the Hub's place, which is refused as such."""
    folder = clone(tmp_path / "clone", NAMED, parts__b_csv=CSV)
    (folder / "parts" / "a-1.csv").write_bytes(CSV)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    with refused("parts/a-1.csv"):
        read_hub(str(folder))
    monkeypatch.setattr(files, "_check_hosted", lambda *_: None)
    monkeypatch.setattr(
        "tempfile.mkdtemp", lambda *_, **__: pytest.fail("a copy in the temp folder")
    )
    found = read_hub(str(folder))
    assert [(name, len(rows)) for name, rows in found.items()] == [("train", 40), ("test", 40)]
    assert found["train"].class_names == {"label": ["no", "yes"]}
    assert found["test"].values("label") == [row["label"] for row in LINES]


@pytest.fixture(params=["stand-in", "real"])
def data_sets(request, tmp_path):
    """A folder of data sets in folders: made up, and the real ones where there are any."""
    if request.param == "real":
        return request.getfixturevalue("real_data")
    rows = [
        {"id": "a-0", "text": "Fine, “really”.", "label": 1, "score": 0.5, "rationale": [0, 1]},
        {
            "id": "a-1",
            "text": "Line\nbreak\u2028 and \ud83d\ude00",
            "label": 0,
            "score": -1.0,
            "rationale": [],
        },
        {"id": "a-2", "text": "", "label": 1, "score": 3.25, "rationale": [1]},
    ]
    for name in ("films", "news"):
        (tmp_path / "sets" / name).mkdir(parents=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "sets" / name / "dev.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path / "sets"


def test_data_sets_are_read_as_the_datasets_library_reads_them(data_sets, tmp_path):
    paths = sorted(data_sets.glob("*/dev.jsonl.gz"))
    assert paths
    for path in paths:
        by_library = datasets.load_dataset(
            "json",
            data_files=str(path),
            split="train",
            cache_dir=str(tmp_path),
            keep_in_memory=True,
        )
        assert columns(path) == {name: by_library[name][:] for name in by_library.column_names}, (
            path
        )


def test_a_folder_with_runs_in_it_is_no_data_set(tmp_path):
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "settings.toml").write_text("")
    (run / "training.json").write_text('[{"text": "a", "label": 1}]')
    deep = tmp_path / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    (deep / "train.csv").write_bytes(CSV)
    from heedmap.data.clones import read_clone

    assert read_clone(tmp_path) == {}


def test_a_pipe_is_no_data_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with refused("a.csv", "a device or a pipe"):
        read_rows(tmp_path / "a.csv")
