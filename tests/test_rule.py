"""The rule of the bottom line, on numbers whose answer is plain."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_numbers import (
    DEFAULT,
    FEW,
    FLAT_,
    NEEDED,
    RIGHT,
    SUFFICIENT,
    UNCLEAR,
    WRONG,
    T,
    model,
)

from heedmap.experiments.rule import (
    FEWEST,
    FEWEST_TEXTS,
    answer,
    class_numbers,
    judge_class,
    map_numbers,
)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (RIGHT, "right"),
        (WRONG, "wrong"),
        (SUFFICIENT, "sufficient"),
        (NEEDED, "needed"),
        (DEFAULT, "default"),
        (FLAT_, "flat"),
        (FEW, "few"),
        (UNCLEAR, "unclear"),
        (replace(WRONG, nothing=0.6), "wrong"),
        # Words of the default class that hold the answer among other words are right, though little is lost.
        (replace(DEFAULT, among=0.5), "right"),
        # A class that the model leans to is right if the map is, in the texts of which anything can be lost.
        (replace(UNCLEAR, unseen=0.3, losing=16, held=14), "right"),
        (replace(UNCLEAR, unseen=0.3, losing=16, held=8), "unclear"),
        (replace(UNCLEAR, unseen=0.3, losing=FEWEST - 1, held=FEWEST - 1), "unclear"),
        (replace(UNCLEAR, unseen=0.1, losing=16, held=14), "unclear"),
        # AuditContext in every word: any few words keep the answer, so that none of them is said to suffice.
        (replace(SUFFICIENT, best_gone=0.1, random_alone=0.9), "wrong"),
        # Without random words as much is lost: these are not the words that are needed.
        (replace(NEEDED, gone=0.6, random_gone=0.55), "wrong"),
    ],
)
def test_a_class_is_judged_by_what_is_lost_and_what_stays(numbers, said):
    assert judge_class(numbers, T) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (model(RIGHT, RIGHT), "yes"),
        (model(RIGHT, RIGHT, weights=0.01), "words"),
        (model(WRONG, WRONG), "no"),
        (model(WRONG, WRONG, weights=0.0), "no"),
        (model(RIGHT, WRONG), "in part"),
        (model(RIGHT, DEFAULT), "in part"),
        (model(SUFFICIENT, SUFFICIENT), "in part"),
        (model(NEEDED, NEEDED), "in part"),
        (model(WRONG, DEFAULT), "no"),
        (model(DEFAULT), "cannot tell"),
        (model(FLAT_, FLAT_), "cannot tell"),
        (model(FEW, FEW), "cannot tell"),
        (model(RIGHT, FEW), "yes"),  # the class of too few texts does not count
        # One class of five texts says nothing of many others.
        (model(replace(RIGHT, n=10), *[FEW] * 3), "cannot tell"),
        (model(replace(WRONG, n=10), *[FEW] * 3), "cannot tell"),
        (model(replace(RIGHT, n=FEWEST_TEXTS - 1)), "cannot tell"),
        # Each class is just right enough, all together are not.
        (model(*[replace(RIGHT, gone=0.5, held=18)] * 2), "in part"),
        # Right in three quarters of the texts that have deciding words.
        (model(*[replace(RIGHT, held=29)] * 2), "in part"),
        # Texts without deciding words do not count against a map.
        (model(*[replace(RIGHT, losing=10, held=9)] * 2), "yes"),
        # One class in ten may be an exception, but not wrong.
        (model(*[RIGHT] * 9, DEFAULT), "in part"),
        (model(*[RIGHT] * 10, DEFAULT), "yes"),
        (model(*[RIGHT] * 9, UNCLEAR), "in part"),
        (model(*[RIGHT] * 10, UNCLEAR), "yes"),
        (model(*[RIGHT] * 10, WRONG), "in part"),
        # One class of many is no part worth showing.
        (model(*[WRONG] * 11, replace(RIGHT, n=30)), "no"),
    ],
)
def test_an_answer_is_for_all_classes(numbers, said):
    assert answer(numbers, T) == said


def test_the_worst_class_decides_whatever_the_mean_is():
    many = [replace(RIGHT, n=1000)] * 9
    assert answer(model(*many), T) == "yes"
    assert answer(model(*many, replace(WRONG, n=20)), T) == "in part"


def texts(rng, n=60):
    """Draw the columns of two classes; some texts were not asked."""
    columns = {
        name: rng.uniform(0, 1, n)
        for name in (
            "gone_map", "gone_random", "gone_best", "alone_map", "alone_random", "among_map", "among_random",
            "unseen", "mean_tvd",
        )
    }  # fmt: skip
    columns["probability"] = rng.uniform(0.6, 1, n)
    columns["guessing"] = np.full(n, 0.5)
    columns["highlighted"] = rng.integers(0, 3, n).astype(float)
    columns["predicted"] = rng.integers(0, 2, n).astype(float)
    columns["gone_map"][:7] = np.nan
    return columns


@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_of_a_class_are_those_of_a_plain_loop(seed):
    columns = texts(np.random.default_rng(seed))
    for found in class_numbers(columns):
        rows = [
            i for i in range(60)
            if columns["predicted"][i] == found.number and not math.isnan(columns["gone_map"][i])
        ]  # fmt: skip
        lead = sum(columns["probability"][i] - 0.5 for i in rows)
        assert found.n == len(rows)
        assert found.lead == pytest.approx(lead / len(rows))
        assert found.gone == pytest.approx(sum(columns["gone_map"][i] for i in rows) / lead)
        assert found.alone == pytest.approx(sum(columns["alone_map"][i] - 0.5 for i in rows) / lead)
        held = [
            columns["gone_map"][i] >= (columns["probability"][i] - 0.5) / 2
            and columns["alone_map"][i] - 0.5 >= (columns["probability"][i] - 0.5) / 2
            for i in rows
        ]
        best = [
            columns["gone_best"][i]
            if columns["gone_map"][i] < (columns["probability"][i] - 0.5) / 2
            and columns["gone_best"][i] > columns["gone_map"][i]
            else columns["gone_map"][i]
            for i in rows
        ]
        assert found.best_gone == pytest.approx(sum(best) / lead)
        assert found.losing == sum(
            x >= (columns["probability"][i] - 0.5) / 2 for x, i in zip(best, rows, strict=True)
        )
        assert found.held == sum(held)
        assert found.nothing == pytest.approx(
            np.mean([columns["highlighted"][i] == 0 for i in rows])
        )


def test_texts_that_were_not_asked_count_for_the_weights_alone():
    columns = texts(np.random.default_rng(0))
    assert map_numbers(columns).texts == 53
    assert map_numbers(columns).weights == pytest.approx(columns["mean_tvd"].mean())


def test_no_text_is_no_answer():
    columns = {name: x[:0] for name, x in texts(np.random.default_rng(0)).items()}
    assert answer(map_numbers(columns), T) == "cannot tell"
