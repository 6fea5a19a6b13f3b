import gzip
import hashlib
import json
import sys
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from making import ROWS, write_rows
from wording import refused, warned

from heedmap.data.embedded import EMBEDDED
from heedmap.data.load import as_written, load, load_corpus
from heedmap.data.tokens import spaces, words
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.options import Data


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_every_kind_of_file_gives_the_same_corpus(tmp_path, name):
    corpus = load(write_rows(tmp_path / name))
    assert corpus.fingerprint() == load(write_rows(tmp_path / "b.jsonl")).fingerprint()
    assert corpus.classes == ["0", "1"]
    assert corpus.name == "a"


def test_one_file_is_split_by_class_the_same_way_for_the_same_seed(tmp_path):
    path = write_rows(tmp_path / "a.jsonl")
    corpus = load(path)
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    assert sizes == {"train": 28, "dev": 4, "test": 8}
    for split in corpus.splits.values():
        assert abs(split.labels.mean() - 0.5) < 1e-9
    keys = [key for split in corpus.splits.values() for key in split.keys]
    assert sorted(int(key.removeprefix("line ")) for key in keys) == list(range(1, 41))
    assert load(path).fingerprint() == corpus.fingerprint()
    assert load(path, seed=1).splits["test"].keys != corpus.splits["test"].keys


def test_a_folder_brings_its_own_splits_and_missing_ones_are_drawn(tmp_path):
    write_rows(tmp_path / "train.jsonl")
    write_rows(tmp_path / "test.csv", ROWS[:6])
    corpus = load(tmp_path)
    assert len(corpus.splits["test"]) == 6
    assert len(corpus.splits["dev"]) == 6
    assert len(corpus.splits["train"]) == 34


def test_a_split_column_is_followed(tmp_path):
    parts = ["train"] * 20 + ["valid"] * 8 + ["test"] * 10 + ["other"] * 2
    rows = [{**row, "split": part} for row, part in zip(ROWS, parts, strict=True)]
    corpus = load(write_rows(tmp_path / "a.csv", rows))
    assert [len(corpus.splits[n]) for n in ("train", "dev", "test")] == [20, 8, 10]
    assert corpus.left_out == {"split column says 'other'": 2}


@pytest.mark.parametrize("text", ["sentence", "Review", "content"])
def test_usual_column_names_are_guessed(tmp_path, text):
    rows = [{"n": 1, text: row["text"], "Label": row["label"]} for row in ROWS]
    assert load(write_rows(tmp_path / "a.csv", rows)).splits["test"].tokens[0][0] == "this"


def test_other_column_names_are_given(tmp_path):
    rows = [{"body": row["text"], "verdict": "guilty" if row["label"] else "free"} for row in ROWS]
    corpus = load(write_rows(tmp_path / "a.csv", rows), text="body", label="verdict")
    assert corpus.classes == ["free", "guilty"]


def test_missing_labels_are_dropped_and_counted(tmp_path):
    rows = [*ROWS, {"text": "no label", "label": None}, {"text": "none either", "label": None}]
    for name in ("a.jsonl", "a.parquet"):
        assert load(write_rows(tmp_path / name, rows)).left_out == {"label missing": 2}
    rows[-2:] = [{"text": "no label", "label": ""}]
    corpus = load(write_rows(tmp_path / "a.csv", rows))
    assert corpus.left_out == {"label missing": 1}
    assert corpus.classes == ["0", "1"]


def test_empty_texts_are_skipped_and_long_ones_cut_and_both_counted(tmp_path):
    rows = [
        *ROWS,
        {"text": "  ", "label": 0},
        {"text": None, "label": 0},
        {"text": "x " * 99, "label": 1},
    ]
    corpus = load(write_rows(tmp_path / "a.jsonl", rows), max_tokens=50, min_tokens=2)
    assert corpus.left_out == {"empty text": 2, "cut to 50 tokens (kept)": 1}
    assert max(len(t) for s in corpus.splits.values() for t in s.tokens) == 50


def test_texts_that_look_like_missing_values_or_numbers_are_texts(tmp_path):
    path = tmp_path / "a.csv"
    odd = ["null", "NA", "3.5", "true"]
    path.write_text("text,label\n" + "".join(f"{odd[i % 4]},{i % 2}\n" for i in range(40)))
    with warned("13 in train, 2 in dev, 5 in test ('null' 10, 'NA' 10)"):
        corpus = load(path)
    assert corpus.left_out == {}
    assert {t for s in corpus.splits.values() for text in s.tokens for t in text} >= {
        "null",
        "na",
        "true",
    }


def test_classes_that_are_numbers_are_ordered_as_numbers(tmp_path):
    rows = [{"text": "a b", "label": i % 11} for i in range(220)]
    assert load(write_rows(tmp_path / "a.jsonl", rows)).classes == [str(i) for i in range(11)]


def test_a_class_that_only_the_test_split_has_is_left_out_and_counted(tmp_path):
    write_rows(tmp_path / "train.jsonl")
    write_rows(tmp_path / "test.jsonl", [*ROWS[:6], {"text": "new", "label": 7}])
    corpus = load(tmp_path)
    assert corpus.left_out == {"test: class never seen in training": 1}
    assert len(corpus.splits["test"]) == 6


def test_a_clone_of_a_hub_data_set_is_read_with_its_class_names(tmp_path, monkeypatch):
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    for name, rows in (("train", ROWS), ("validation", ROWS[:10]), ("test", ROWS[:8])):
        (tmp_path / "hub" / "data").mkdir(parents=True, exist_ok=True)
        part = datasets.Dataset.from_list(rows, features=features)
        part.to_parquet(tmp_path / "hub" / "data" / f"{name}-00000-of-00001.parquet")
    monkeypatch.setitem(sys.modules, "datasets", None)  # who reads files need not have it
    corpus = load(tmp_path / "hub")
    assert corpus.classes == ["no", "yes"]
    assert [len(split) for split in corpus.splits.values()] == [40, 10, 8]


def test_a_name_like_that_of_an_embedded_corpus_is_guessed():
    with refused("digit-bag", "Hub", "did you mean the embedded digit-bags"):
        load("digit-bag")


def test_every_embedded_corpus_is_named_in_the_help_of_data():
    option = get_args(Data)[1]
    assert [name for name in EMBEDDED if name not in option.help] == []


def test_a_name_that_is_neither_here_nor_on_the_hub_is_one_clear_line():
    with refused("nobody/nothing", "Hub") as caught:
        load("nobody/nothing")
    assert "\n" not in str(caught.value)


def test_words_are_lower_case_with_marks_apart():
    assert words("Don't STOP, it's well-made!") == ["don't", "stop", ",", "it's", "well-made", "!"]
    assert words("<b>hi</b>") == ["<", "b", ">", "hi", "<", "/", "b", ">"]
    assert words(" \t\n") == []


def test_spaces_leave_tokens_as_they_are():
    assert spaces("It 's  fine .") == ["It", "'s", "fine", "."]


def test_the_embedded_corpus_knows_its_rationale(reviews):
    split = reviews.splits["test"]
    assert all(
        len(m) == len(t) and m.any() for m, t in zip(split.rationale, split.tokens, strict=True)
    )
    assert len(load("reviews-stars").classes) == 5


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("missing.csv", None, "no such file"),
        ("missing.txt", None, "no such file; give"),
        ("a.doc", b"PK", "unknown kind of file"),
        ("a.ods", b"PK", "(each also with .gz); save it as .xlsx"),
        ("a.txt", b"text\tlabel\n", "no rows"),
        (
            "a.txt",
            b"A fine film.\nIt is long, sad, and good.\n",
            "got other text; name its --separator",
        ),
        ("a.txt.gz", b"not gzip at all", "cannot be read"),
        ("a.csv", b"PK\x03\x04 an archive", "got an Excel file or another archive; name an Excel"),
        ("a.jsonl", b"\x1f\x8b\x08 packed", "got a gzipped file; add .gz to its name"),
        ("a.csv", b"\x89PNG\r\n\x1a\n", "expected a text file, got a picture"),
        ("a.xlsx", b"PK", "not readable as XLSX"),
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"text,label\n", "no rows"),
        ("a.csv", b"id,words,kind\n1,x,y\n", "no text column (text / sentence / review"),
        ("a.csv", b"id,words,kind\n1,x,y\n", "; name them with --text-column and --label-column"),
        (
            "a.csv",
            b"text,answer\nx,1\n",
            "the columns are text, answer; name it with --label-column (in Python label=)",
        ),
        ("a.csv", b"text,label\na,1\nb,1\nc,1\n", "expected at least two classes"),
        ("a.csv", b"text,label\na,1\nb,0\n", "no rows for the dev split"),
        ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b", "la\n', "line 2: broken JSON"),
        (
            "a.jsonl",
            b'{"text": "a", "label": 1}\n[1, 2]\n',
            "line 2: expected a JSON object, got list",
        ),
        ("a.csv", b"text,label\ng\xc3\xb6od,1\nbad \xe9,0\n", "line 3: not UTF-8"),
        ("a.csv.gz", b"not gzip at all", "cannot be read"),
        ("a.parquet", b"PAR1 not really", "not readable as PARQUET"),
        (
            "a.csv",
            b'text,label\n"a,1\nb,0\nc,d,1\n',
            "line 4: expected as many fields as the header",
        ),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, name, content, expected):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_that_are_all_empty_are_not_blamed_on_the_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "' ',1\n".replace("'", '"') * 3)
    with refused("a.csv", "(left out: empty text: 3)"):
        load(path)


def test_a_label_that_is_a_list_is_refused_with_its_row(tmp_path):
    rows = [{**row, "label": [row["label"], 2]} for row in ROWS]
    path = write_rows(tmp_path / "a.jsonl", rows)
    with refused("line 1", "label", "[0, 2]"):
        load(path)


def test_test_labels_that_training_never_saw_are_named(tmp_path):
    write_rows(tmp_path / "train.jsonl")
    write_rows(tmp_path / "test.jsonl", [{"text": "a b", "label": "other"}])
    with refused("test", "training", "0, 1", "other"):
        load(tmp_path)


def test_a_folder_without_a_training_file_says_what_is_there(tmp_path):
    write_rows(tmp_path / "test.jsonl")
    with refused("train.csv", "test.jsonl"):
        load(tmp_path)


@pytest.mark.parametrize(("name", "mark"), [("twice.csv", ","), ("twice.tsv.gz", "\t")])
def test_two_columns_of_one_name_are_refused(tmp_path, name, mark):
    content = f"text{mark}text{mark}label\na b{mark}c d{mark}x\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with refused(name, "column text", "2"):
        load(tmp_path / name)


def test_one_column_cannot_be_both_text_and_query(tmp_path):
    path = write_rows(tmp_path / "t.csv")
    with refused("text", "--text-column", "--query-column"):
        load(path, query="text")


def test_two_files_for_one_split_are_refused(tmp_path):
    write_rows(tmp_path / "train.jsonl")
    write_rows(tmp_path / "train.csv")
    with refused("train.csv", "train.jsonl", "train"):
        load(tmp_path)


def test_a_setting_that_does_not_fit_names_itself():
    with refused("tokenizer = 'chars'", "'words', 'spaces' or 'sentences'"):
        load("reviews", tokenizer="chars")


def test_taking_rows_keeps_texts_labels_and_keys_together(reviews):
    split = reviews.splits["test"]
    some = split.take([5, 2])
    assert some.keys == [split.keys[5], split.keys[2]]
    assert some.tokens[1] == split.tokens[2]
    assert np.array_equal(some.rationale[0], split.rationale[5])


PARTS = [*"a'!ßΣİ漢é\t\n\u2028 ", "e\u0301", "👍🏽", "BC", "d-E", "  ", "...", "3/4", "ΑΣ.Β"]


@pytest.mark.filterwarnings("ignore:.*texts without spaces between their words")
@pytest.mark.parametrize("tokenizer", ["words", "spaces"])
@pytest.mark.parametrize("limits", [{}, {"max_tokens": 1}, {"max_tokens": 3, "min_tokens": 2}])
def test_a_corpus_keeps_its_texts_as_they_are_written(tmp_path, tokenizer, limits):
    rng = np.random.default_rng(0)
    rows = [
        {"text": "".join(rng.choice(PARTS, rng.integers(1, 9))), "label": i % 2} for i in range(200)
    ]
    path = write_rows(tmp_path / "a.jsonl", rows)
    settings = {"tokenizer": tokenizer, **limits}
    raw = load_corpus(DataSettings(source=str(path), raw=True, **settings))
    corpus = load(path, **settings)
    path.unlink()
    written = as_written(corpus)
    assert written.settings == raw.settings
    assert written.fingerprint() == raw.fingerprint()
    for name, split in raw.splits.items():
        for key, tokens in zip(split.keys, written.splits[name].tokens, strict=True):
            text = rows[int(key.removeprefix("line ")) - 1]["text"]
            assert text.startswith("".join(tokens))
            assert limits or "".join(tokens) == text
    assert as_written(written) is written


@pytest.mark.parametrize("source", ["reviews", "reviews-stars"])
def test_the_embedded_reviews_as_they_are_written_are_their_tokens_with_spaces(source):
    raw = load_corpus(DataSettings(source=source, raw=True, max_tokens=9))
    written = as_written(load(source, max_tokens=9))
    assert written.fingerprint() == raw.fingerprint()
    assert "".join(written.splits["test"].tokens[0]) == " ".join(
        load(source, max_tokens=9).splits["test"].tokens[0]
    )
    for name, split in raw.splits.items():
        masks = zip(split.rationale, written.splits[name].rationale, strict=True)
        assert all(np.array_equal(one, other) for one, other in masks)


def test_texts_that_are_not_known_as_written_are_refused(tmp_path):
    corpus = load(write_rows(tmp_path / "a.jsonl"))
    bare = {n: replace(split, written=None) for n, split in corpus.splits.items()}
    with refused("a.jsonl", "tokens"):
        as_written(replace(corpus, splits=bare))
    # A tag hides the end of a sentence.
    rows = [{"text": "A(.<b>A" if i == 7 else "One. Two.", "label": i % 2} for i in range(40)]
    short = load(write_rows(tmp_path / "b.jsonl", rows), min_tokens=2, tokenizer="sentences")
    with refused("b.jsonl", "2 sentences", "--min-tokens"):
        as_written(short)


def test_equal_texts_share_one_list_of_tokens():
    corpus = load(["A fine film.", "A dull one."] * 20, labels=["good", "bad"] * 20, progress=False)
    tokens = [text for part in corpus.splits.values() for text in part.tokens]
    assert len(tokens) == 40
    assert len({id(text) for text in tokens}) == 2


def test_a_fingerprint_is_that_of_all_texts_in_one_string():
    corpus = load(["A fine film.", 'Dull – "one".'] * 9, labels=["good", "bad"] * 9, progress=False)
    digest = hashlib.sha256(json.dumps(corpus.classes).encode())
    for name in ("train", "dev", "test"):
        part = corpus.splits[name]
        assert all(key.startswith("index ") for key in part.keys)  # places are no part of the texts
        digest.update(json.dumps([[None] * len(part), part.tokens]).encode())
        digest.update(part.labels.tobytes())
    assert corpus.fingerprint() == digest.hexdigest()[:16]


def test_a_file_of_texts_alone_is_not_told_to_name_a_column_that_it_lacks(tmp_path):
    (tmp_path / "a.csv").write_text("text\nfine film\nbad film\n")
    with pytest.raises(InputError, match=r"add a column of labels, or name .* with --separator$"):
        load(tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"text": "fine film"}\n{"text": "bad film"}\n')
    with pytest.raises(InputError, match=r"add a column of labels$"):
        load(tmp_path / "a.jsonl")
