"""The synthetic biographies: what tells their labels, and how often."""

from collections import Counter

import numpy as np
import pytest

from heedmap.data.biographies import AGREEING, GENDERED, LEANING, UNRELATED, biographies
from heedmap.data.load import load
from heedmap.data.marks import marks_of

FEMALE = {"she", "her", "herself", "ms"}
SOME = biographies(2000)


def test_the_same_biographies_are_drawn_and_no_two_are_alike():
    assert biographies(2000) == SOME
    assert biographies(50, seed=1) != SOME[:50]
    assert len({one.tokens for one in SOME}) == 2000


def test_gendered_words_tell_the_gender_of_every_text():
    for one in SOME:
        found = {token for token in one.tokens if token in GENDERED}
        assert found
        assert found <= FEMALE if one.gender == "female" else not found & FEMALE
        assert [token in GENDERED for token in one.tokens] == list(one.gendered)


def test_no_other_word_tells_the_gender_much():
    counts = {gender: Counter() for gender in ("female", "male")}
    for one in biographies(2000, agreeing=UNRELATED):
        counts[one.gender].update(set(one.tokens) - set(GENDERED))
    for words in counts.values():
        for word, count in words.items():
            share = count / (counts["female"][word] + counts["male"][word])
            assert abs(share - 0.5) < LEANING - 0.5 + 0.08, word


def test_the_occupation_goes_with_the_gender_and_with_the_work():
    agree = np.mean([(one.gender == "female") == (one.occupation == "physician") for one in SOME])
    assert agree == pytest.approx(AGREEING, abs=0.02)
    assert Counter(one.occupation for one in SOME) == {"physician": 1000, "surgeon": 1000}


@pytest.mark.parametrize("tokenizer", ["words", "sentences"])
def test_they_are_corpora_with_gendered_words_marked_where_these_decide(tokenizer):
    gender = load("biographies-gender", tokenizer=tokenizer)
    occupation = load("biographies-occupation", tokenizer=tokenizer)
    assert gender.classes == ["female", "male"]
    assert occupation.classes == ["physician", "surgeon"]
    assert occupation.splits["train"].rationale is None
    split = gender.splits["train"]
    if tokenizer == "words":
        marks = marks_of(split, GENDERED)
        assert all((marks[i] == mask).all() for i, mask in enumerate(split.rationale))
    else:
        assert all(
            len(mask) == len(text) for mask, text in zip(split.rationale, split.tokens, strict=True)
        )
