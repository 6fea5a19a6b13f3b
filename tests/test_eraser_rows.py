"""Rationales from data: ERASER's folders, spans of words and sentiments of words; malformed ones are named."""

import json
import re

import numpy as np
import pytest
from eraser_files import eraser_folder
from making import write_rows
from wording import refused

from heedmap.data.documents import documents, owners
from heedmap.data.load import as_written, load, load_corpus
from heedmap.data.tokens import TOKENIZERS
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


@pytest.fixture
def folder(tmp_path):
    return eraser_folder(tmp_path / "movies")


def marked(split, row):
    return [t.strip() for t, m in zip(split.tokens[row], split.rationale[row], strict=True) if m]


def test_a_folder_is_read_with_the_words_that_people_marked(folder):
    corpus = load(folder)
    assert corpus.classes == ["NEG", "POS"]
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 60, "dev": 20, "test": 20,
    }  # fmt: skip
    for split in corpus.splits.values():
        assert split.queries is None
        assert split.keys[0].endswith("-0")
        for row in range(len(split)):
            assert marked(split, row) in (["truly", "lovely"], ["rather", "dreadful"])
    assert corpus.left_out == {}


def test_different_queries_make_pairs(folder):
    path = folder / "test.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[3]["query"] = "And now?"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = load(folder)
    assert corpus.pairs
    assert corpus.splits["test"].queries[3] == ["and", "now", "?"]
    with refused("movies", "queries"):
        load_corpus(DataSettings(source=str(folder), raw=True))


def test_evidence_in_several_documents_is_counted(folder):
    path = folder / "train.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[5]["evidences"].append([{"docid": "train-6.txt", "start_token": 0, "end_token": 1}])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = load(folder)
    assert corpus.left_out == {"train: evidence in several documents": 1}
    assert len(corpus.splits["train"]) == 59


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda x: x.pop("annotation_id"), "annotation_id"),
        (lambda x: x.pop("classification"), "classification"),
        (lambda x: x.pop("evidences"), "evidences: missing"),
        (lambda x: x.update(evidences={"a": 1}), "evidences: expected a list of lists"),
        (lambda x: x["evidences"][0][0].update(start_token="3"), "evidences: start_token"),
        (lambda x: x["evidences"][0][0].pop("end_token"), "evidences: end_token"),
        (lambda x: x["evidences"][0][0].update(end_token=99), "evidences: expected spans"),
        (lambda x: x["evidences"][0][0].update(start_token=5, end_token=5), "evidences: expected"),
        (lambda x: x["evidences"][0][0].update(start_token=-1), "evidences: expected spans"),
        (lambda x: x.update(docids="train-2.txt"), "docids"),
        (lambda x: (x.update(docids=[]), x["evidences"][0][0].pop("docid")), "docid"),
        (lambda x: (x.update(docids=["no"]), x["evidences"].clear()), "docid: expected a document"),
        (lambda x: (x.update(docids=["../train.jsonl"]), x["evidences"].clear()), "docid"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_field(folder, change, field):
    path = folder / "train.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines[2])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError) as caught:
        load(folder)
    message = str(caught.value)
    assert f"{path}, line 3: " in message
    assert field in message
    assert "\n" not in message


def test_a_broken_line_is_named(folder):
    with (folder / "test.jsonl").open("a") as file:
        file.write('{"annotation_id": \n')
    with refused("test.jsonl, line 21", "JSON"):
        load(folder)


ROWS = [
    {
        "text": "An İstanbul film, slow-burning but lovely!",
        "label": "a",
        "evidence_spans": [[4, 6]],
    },
    {"text": "So-so.  Dreadful , really", "label": "b", "evidence_spans": [[1, 2], [3, 4]]},
    {"text": "one", "label": "a", "evidence_spans": []},
    {"text": "two words", "label": "b", "evidence_spans": None},
] * 10


def by_character(text, spans, tokenizer):
    """The slow, obvious way: tokens and marked words by their places in the text."""
    text = text.lower() if tokenizer == "words" else text
    places = [m.span() for m in re.finditer(r"\S+", text)]
    inside = {c for a, b in spans or [] for s, e in places[a:b] for c in range(s, e)}
    marks, at = [], 0
    for token in TOKENIZERS[tokenizer](text):
        at = text.index(token, at)
        marks.append(bool(inside & set(range(at, at + len(token)))))
        at += len(token)
    return marks


@pytest.mark.parametrize("tokenizer", ["words", "spaces"])
@pytest.mark.parametrize("name", ["texts.jsonl", "texts.parquet"])
def test_a_token_is_marked_if_it_overlaps_a_marked_word(tmp_path, tokenizer, name):
    corpus = load(write_rows(tmp_path / name, ROWS), tokenizer=tokenizer)
    for split in corpus.splits.values():
        for key, mask in zip(split.keys, split.rationale, strict=True):
            row = ROWS[int(key.split()[-1]) - 1]
            assert mask.tolist() == by_character(row["text"], row["evidence_spans"], tokenizer)
    raw = as_written(corpus)
    for split in raw.splits.values():
        assert [len(t) for t in split.tokens] == [len(m) for m in split.rationale]
    at = next(i for i, t in enumerate(raw.splits["train"].tokens) if "İstanbul" in "".join(t))
    assert "".join(marked(raw.splits["train"], at)) == "butlovely!"


def test_marks_change_no_token_and_no_fingerprint(tmp_path):
    plain = [{k: v for k, v in row.items() if k != "evidence_spans"} for row in ROWS]
    first = load(write_rows(tmp_path / "texts.jsonl", ROWS))
    second = load(write_rows(tmp_path / "plain.jsonl", plain))
    assert first.fingerprint() == second.fingerprint()
    assert second.splits["test"].rationale is None


@pytest.mark.parametrize(
    "value", [[[0, 9]], [[1, 1]], [[-1, 1]], [0, 1], "x", [["0", 1]], {"a": 1}]
)
def test_a_wrong_span_is_named(tmp_path, value):
    rows = [dict(row) for row in ROWS]
    rows[3]["evidence_spans"] = value
    with refused("texts.jsonl, line 4", "evidence_spans"):
        load(write_rows(tmp_path / "texts.jsonl", rows))


def sentiment(label, labels, text="a fine , dull film"):
    return {"text": text, "label": label, "token_labels": labels}


def test_words_on_the_side_of_the_label_are_marked(tmp_path):
    rows = [sentiment(1, [2, 3, 2, 1, 2]), sentiment(0, [2, 4, 2, 0, 2]), sentiment(1, [2] * 5)]
    corpus = load(write_rows(tmp_path / "t.jsonl", rows * 20))
    for split in corpus.splits.values():
        for key, mask in zip(split.keys, split.rationale, strict=True):
            assert np.flatnonzero(mask).tolist() == [[1], [3], []][(int(key.split()[-1]) - 1) % 3]


@pytest.mark.parametrize(
    "odd",
    [
        sentiment(1, [2, 3]), sentiment(1, ["B", "O", "O", "O", "O"]), sentiment(1, [5] * 5),
        sentiment("2", [2] * 5),
    ],
)  # fmt: skip
def test_other_labels_of_tokens_are_no_rationales(tmp_path, odd):
    rows = [sentiment(i % 2, [2, 3, 2, 1, 2]) for i in range(40)] + [odd] * 10
    corpus = load(write_rows(tmp_path / "t.jsonl", rows))
    assert corpus.splits["train"].rationale is None
    assert corpus.left_out == {"token_labels that are no sentiments of words: not read (kept)": 50}


def test_documents_are_whole_and_word_for_word(folder):
    found = documents(DataSettings(source=str(folder), max_tokens=3))
    assert len(found) == 20
    one = found["test-0"]
    assert one.docid == "test-0.txt"
    text = (folder / "docs" / "test-0.txt").read_text()
    assert one.words == text.split()
    assert [w for w, m in zip(one.words, one.marked, strict=True) if m] == ["truly", "lovely"]


def test_corpora_without_marks_are_told_which_ones_carry_them(csv_file):
    with refused("texts.csv", "ERASER", "evidence_spans", "reviews"):
        documents(DataSettings(source=str(csv_file)))


def test_words_own_the_tokens_they_are_read_as():
    words = ["So-so.", "Dreadful", "well", ",", "really"]
    assert owners(words, ["so-so", ".", "dreadful", "well", ","]) == [[0, 1], [2], [3], [4], []]
    assert owners(words, ["So-so.", " Dreadful well", " ,"]) == [[0], [1], [1], [2], []]
    assert owners([], []) == []
    assert owners(["a"], ["b"]) is None
    assert owners(["a"], ["a", "b"]) is None


@pytest.mark.parametrize(
    ("name", "least"),
    [pytest.param("eraser_movies", 0.98, marks=pytest.mark.exhaustive), ("sst", 0.8)],
)
def test_real_rationales_are_found(real_data, name, least):
    corpus = load(real_data / name)
    masks = corpus.splits["test"].rationale
    assert np.mean([mask.any() for mask in masks]) > least
    assert 0.05 < np.mean([mask.mean() for mask in masks]) < 0.35
