"""Pairs in files: which columns they are, which text is read first, and the side that a map is over."""

import numpy as np
import pandas as pd
import pytest
from wording import refused

from heedmap.data.corpus import Corpus, Split
from heedmap.data.in_memory import source_of
from heedmap.data.load import as_written, load, load_corpus
from heedmap.data.pair_sides import audited_sides
from heedmap.data.texts import Pair, TwoTexts
from heedmap.nouns import PAIRS
from heedmap.settings.data import DataSettings

ROWS = [("A man  sleeps.", "He rests!", "yes"), ("Two dogs run.", "They sit.", "no")] * 4


def corpus_of(columns, training=False, outputs=("no", "yes"), **settings):
    """A corpus of raw test texts from a frame of pairs with these names of columns."""
    name, in_memory = source_of(pd.DataFrame(ROWS, columns=columns), training=training)
    wanted = DataSettings.of(source=name, raw=True, training=training, **settings)
    return load_corpus(wanted, outputs, in_memory)


@pytest.mark.parametrize(
    ("columns", "first"),
    [
        (["premise", "hypothesis", "label"], "text"),
        (["Sentence1", "Sentence2", "label"], "text"),
        (["passage", "query", "label"], "query"),
        (["query", "passage", "label"], "query"),
        (["query", "text", "label"], "query"),
        (["text", "Query", "label"], "text"),
        (["question", "sentence", "label"], "query"),
        (["query", "document", "label"], "query"),
        (["sequence1", "sequence2", "label"], "text"),
    ],
)
def test_usual_names_of_pairs_need_no_options_and_say_what_is_read_first(columns, first):
    corpus = corpus_of(columns)
    assert corpus.pairs
    assert corpus.settings.first == first
    pair = corpus.splits["test"].texts[0]
    assert isinstance(pair, Pair)
    assert pair.query_first == (first == "query")
    sides = dict(zip(columns, ROWS[0], strict=False))
    read = [sides[corpus.settings.text], sides[corpus.settings.query]]
    assert ["".join(pair), "".join(pair.query)] == read


def test_a_pair_that_might_be_single_texts_is_noted_with_the_option_that_reads_these():
    (note,) = [n for n in corpus_of(["query", "text", "label"]).notes if "pairs" in n]
    assert "columns text and query are read as pairs of texts" in note
    assert "--text-column text" in note
    alone = corpus_of(["query", "text", "label"], text="text")
    assert not alone.pairs
    assert "".join(alone.splits["test"].texts[0]) == ROWS[0][1]
    assert not [n for n in alone.notes if "pairs" in n]
    # Names that no single text has need no note.
    assert not [n for n in corpus_of(["premise", "hypothesis", "label"]).notes if "pairs" in n]
    # A run that is opened again has the names in its settings.
    settings = corpus_of(["query", "text", "label"]).settings
    assert (settings.text, settings.query) == ("text", "query")


def test_other_columns_are_read_in_their_order_unless_told():
    named = {"text": "b", "query": "a"}
    assert corpus_of(["a", "b", "label"], **named).settings.first == "query"
    assert corpus_of(["a", "b", "label"], text="a", query="b").settings.first == "text"
    assert corpus_of(["a", "b", "label"], **named, first="text").settings.first == "text"


@pytest.mark.parametrize("first", ["text", "query"])
def test_a_side_is_audited_and_what_is_read_stays(first):
    read = []
    for side in ("text", "query", "both"):
        split = corpus_of(["a", "b", "label"], text="a", query="b", side=side, first=first)
        text = split.splits["test"].texts[0]
        read.append(["".join(words) for words in text.sides])
        if side == "both":
            assert isinstance(text, TwoTexts)
            assert "".join(text) == "".join(read[0])
        else:
            assert "".join(text) == ROWS[0][0 if side == "text" else 1]
    texts = [*ROWS[0][:2]]
    assert read == [texts if first == "text" else texts[::-1]] * 3


def test_sides_make_other_corpora():
    hashes = {
        corpus_of(["a", "b", "label"], text="a", query="b", side=side, first=first).fingerprint()
        for side in ("text", "query", "both")
        for first in ("text", "query")
    }
    assert len(hashes) == 6


def test_taking_rows_keeps_the_sides():
    split = corpus_of(["a", "b", "label"], text="a", query="b", side="both").splits["test"]
    part = split.take([2, 0])
    assert part.texts[1].sides == split.texts[0].sides
    split = corpus_of(["a", "b", "label"], text="a", query="b", first="query").splits["test"]
    assert split.take([1]).texts[0].query_first


@pytest.mark.parametrize("option", [{"side": "both"}, {"first": "query"}])
def test_a_side_of_single_texts_is_refused(option):
    with refused(f"--{next(iter(option))}", "pairs", "--query-column"):
        corpus_of(["text", "other", "label"], **option)


def test_marks_of_words_are_kept_for_the_text_alone():
    mask = [np.array([True, False])]
    split = Split(["0"], [["a", " b"]], np.zeros(1, dtype=int), mask, queries=[["c"]])
    for side, is_kept in (("text", True), ("query", False), ("both", False)):
        settings = DataSettings(source="memory", raw=True, query="q", side=side)
        audited, counted = audited_sides(split, settings)
        assert (audited.rationale is not None) == is_kept
        assert bool(counted) != is_kept


def test_pairs_to_fine_tune_on_are_read_again_as_they_are_written():
    rows = [
        {"a": f"A man sleeps {i}.", "b": "He rests!", "label": "yes" if i % 2 else "no"}
        for i in range(40)
    ]
    corpus = load(rows, text="a", query="b")
    assert isinstance(corpus, Corpus)
    raw = as_written(corpus)
    pair = raw.splits["train"].texts[0]
    assert "".join(pair.query) == "He rests!"
    assert "".join(pair).startswith("A man")
    assert np.array_equal(raw.splits["test"].labels, corpus.splits["test"].labels)


def test_pairs_are_called_pairs_where_both_texts_are_audited_and_texts_have_the_settings_they_had():
    both = corpus_of(["a", "b", "label"], text="a", query="b", side="both").settings
    assert both.nouns == PAIRS
    assert {"side", "first", "nouns"} <= both.model_dump().keys()
    single = DataSettings(source="reviews").model_dump()
    assert not {"side", "first", "nouns"} & single.keys()
