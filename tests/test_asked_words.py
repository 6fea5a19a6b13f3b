"""Texts with a word that a model is asked about: how they are read from tables, and how they are changed."""

import json

import numpy as np
import pytest

from heedmap.data.asked_words import FIRST_AND_SECOND, with_mask
from heedmap.data.load import load_corpus
from heedmap.data.texts import (
    Asked,
    beginning,
    exchanged,
    read_as,
    replaced,
    shortened,
    with_tokens,
)
from heedmap.errors import InputError
from heedmap.experiments.methods.rereading import Readings
from heedmap.settings.data import DataSettings

LABELS = ["O", "PER", "LOC"]


def read(tmp_path, rows, asks, outputs=LABELS, **options):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    settings = DataSettings.of(
        source=str(path), raw=True, training=False, asks=asks, max_tokens=10**6, **options
    )
    return load_corpus(settings, outputs)


def asked(text):
    return list(text), text.target


TEXT = Asked(["Ada", " met", " Bob", ".\n"], 2)


def test_a_change_beside_the_word_keeps_its_place():
    assert asked(exchanged(TEXT, 0)) == ([" met", " Bob", ".\n"], 1)
    assert asked(exchanged(TEXT, 3)) == (["Ada", " met", " Bob\n"], 2)
    assert asked(exchanged(TEXT, 0, "Old", " Ada")) == (["Old", " Ada", " met", " Bob", ".\n"], 3)
    assert asked(with_tokens(TEXT, ["a", " b", " c", " d"])) == (["a", " b", " c", " d"], 2)


def test_the_word_is_hidden_where_it_would_be_removed_or_replaced():
    hidden = ["Ada", " met", " [MASK]", ".\n"]
    assert asked(exchanged(TEXT, 2)) == (hidden, 2)
    assert asked(shortened(TEXT, np.array([True, True, False, True]))) == (hidden, 2)
    assert asked(shortened(TEXT, np.array([False, True, False, False]))) == (
        [" met", " [MASK]\n"],
        1,
    )
    donor = Asked(["x", " y"], 0)
    everything = np.ones(4, dtype=bool)
    assert asked(replaced(TEXT, everything, donor)) == (["y", " y", " [MASK]", "y\n"], 2)
    assert TEXT.tokens[2] == " Bob"


def test_equal_words_around_the_word_are_not_taken_for_it():
    text = Asked(["bad", " bad", " bad"], 1)
    without_first, without_last = exchanged(with_tokens(text, [" bad"] * 3), 0), exchanged(text, 2)
    assert read_as(with_tokens(without_first, [*without_last])) != read_as(without_last)
    readings = Readings()
    assert readings.add(0, without_last) == readings.add(0, exchanged(text, 2)) == 0
    assert readings.add(0, with_tokens(without_first, [*without_last])) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_beginning_of_a_text_has_the_word(count):
    start = beginning(TEXT, count)
    assert len(start) == min(count, 4)
    assert start[start.target] == " Bob"


def test_each_labelled_word_is_a_text(tmp_path):
    rows = [
        {"tokens": ["Ada", "met", "Bob"], "ner_tags": ["PER", "O", "PER"]},
        {"tokens": ["Rome"], "ner_tags": ["LOC"]},
    ]
    corpus = read(tmp_path, rows, "words")
    split = corpus.splits["test"]
    assert [asked(text) for text in split.texts] == [
        (["Ada", " met", " Bob"], 0),
        (["Ada", " met", " Bob"], 2),
        (["Rome"], 0),
    ]
    assert split.labels.tolist() == [1, 1, 2]
    assert list(corpus.left_out.values()) == [1]
    assert corpus.settings.nouns.instance == "token"
    everything = read(tmp_path, rows, "words", asked="all")
    assert everything.splits["test"].labels.tolist() == [1, 0, 1, 2]


@pytest.mark.parametrize(
    "row",
    [
        {"words": "Ada met Bob", "labels": "PER O PER"},
        {"text": "['Ada', 'met', 'Bob']", "tags": "['PER', 'O', 'PER']"},
        {"tokens": ["Ada", "met", "Bob"], "pos_tags": [1, 0, 1]},
        {"tokens": ["Ada", "met", "", "Bob"], "tags": ["PER", "O", "O", "PER"]},
        {"tokens": ["Ada", "met", "Bob"], "tags": ["PER", "O", "PER"], "id": "first"},
    ],
)
def test_lists_of_words_and_labels_in_other_layouts(tmp_path, row):
    split = read(tmp_path, [row, row], "words").splits["test"]
    assert len(split) == 4
    split = split.take([0, 1])
    assert [
        (text[text.target].strip(), int(label))
        for text, label in zip(split.texts, split.labels, strict=True)
    ] == [
        ("Ada", 1),
        ("Bob", 1),
    ]


def test_the_two_words_are_classes_in_the_order_of_the_alphabet(tmp_path):
    rows = [
        {"text": "The keys [MASK] here.", "target": "are", "foil": "is"},
        {"text": "A <mask> barks", "target": "dog", "foil": "cat"},
    ]
    corpus = read(tmp_path, rows, "masks", FIRST_AND_SECOND)
    first, second = corpus.splits["test"].texts
    assert asked(first) == (["The", " keys", " [MASK]", " here", "."], 2)
    assert (first.choices, second.choices) == (("are", "is"), ("cat", "dog"))
    assert corpus.splits["test"].labels.tolist() == [0, 1]
    assert corpus.classes == [*FIRST_AND_SECOND]
    assert read(tmp_path, rows[:1], "masks", FIRST_AND_SECOND).classes == ["are", "is"]


def test_a_corpus_that_asks_about_another_word_is_another(tmp_path):
    prints = {
        read(tmp_path, [{"tokens": ["Bob", "Bob"], "tags": tags}] * 2, "words").fingerprint()
        for tags in (["PER", "O"], ["O", "PER"])
    }
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("row", "asks", "said"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "words", "1 labels .* of 2 words"),
        ({"tokens": ["a"], "kind": ["O"]}, "words", "no column of labels .*--label-column"),
        ({"tokens": ["a", "b"], "tags": ["X", "Y"]}, "words", "X"),
        ({"tokens": ["a"], "tags": {"x": 1}}, "words", "expected a list in column tags"),
        ({"text": "No hole.", "target": "a", "foil": "b"}, "masks", r"one \[MASK\].*got 0"),
        ({"text": "[MASK] [MASK]", "target": "a", "foil": "b"}, "masks", "got 2"),
        ({"text": "[MASK]", "target": "a", "foil": "a"}, "masks", "another one as its foil"),
        ({"text": "[MASK]", "target": "a"}, "masks", "no column of the foil.*--foil-column"),
        ({"review": "Good.", "label": "pos"}, "masks", "heedmap train --model"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(tmp_path, row, asks, said):
    outputs = LABELS if asks == "words" else FIRST_AND_SECOND
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path, [row] * 2, asks, outputs)
    assert "\n" not in str(error.value)


def test_a_mask_within_a_word_is_a_token_by_itself():
    settings = DataSettings(source="texts", raw=True)
    assert with_mask("([MASK])", settings) == (["(", "[MASK]", ")"], 1)
    assert with_mask("[MASK]", settings) == (["[MASK]"], 0)
