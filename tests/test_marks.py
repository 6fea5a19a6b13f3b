"""Impermissible words: given as a list, as a file, or marked by the data."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import small_corpus
from wording import refused, warned

from heedmap.data.marks import marked_words, marks_of


@pytest.fixture
def corpus():
    return small_corpus()


def test_words_are_found_whatever_their_case(corpus):
    known = corpus.splits["train"].tokens[0][0]
    assert marked_words(f" {known.upper()} ,{known}", corpus) == (known,)
    marks = marks_of(corpus.splits["train"], (known,))
    for row, text in enumerate(corpus.splits["train"].tokens):
        assert marks[row].tolist() == [float(token == known) for token in text]


def test_a_file_has_one_word_per_line(corpus, tmp_path):
    known = corpus.splits["train"].tokens[0][0]
    path = tmp_path / "words.txt"
    path.write_text(f"{known}\n\n")
    assert marked_words(str(path), corpus) == (known,)


def test_words_that_occur_nowhere_are_refused_with_what_is_near(corpus):
    known = corpus.splits["train"].tokens[0][0]
    with refused("--forbidden", f"{known}x", known):
        marked_words(f"{known}x", corpus)
    with refused("--forbidden", "qqqqqq (nothing near)"):
        marked_words("qqqqqq", corpus)


def test_of_several_words_those_that_occur_nowhere_are_named(corpus):
    known = corpus.splits["train"].tokens[0][0]
    with warned("--forbidden", "qqqqqq"):
        assert marked_words(f"{known},qqqqqq", corpus) == (known,)


@pytest.mark.parametrize("text", ["", " , ,"])
def test_no_word_is_refused(text, corpus):
    with refused(f"--forbidden '{text}'", "he,she,..."):
        marked_words(text, corpus)


def test_an_unreadable_file_is_refused(corpus, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with refused(path, "0xff"):
        marked_words(str(path), corpus)


def test_marked_by_the_data_needs_marks_in_every_split(corpus):
    with refused("--forbidden marked", "train, dev, test"):
        marked_words("marked", corpus)
    splits = {
        name: replace(split, rationale=[np.arange(len(text)) == 0 for text in split.tokens])
        for name, split in corpus.splits.items()
    }
    marked = replace(corpus, splits=splits)
    assert marked_words("marked", marked) is None
    found = marks_of(splits["test"], None)
    assert found[0].tolist() == [1.0] + [0.0] * (len(splits["test"].tokens[0]) - 1)
