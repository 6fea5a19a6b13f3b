"""The bottom line in words: what is answered, why, what to do, and how sure that is."""

from dataclasses import replace

import pytest
from made_rates import kind, rates
from test_rule import DEFAULT, FEW, FLAT_, NEEDED, RIGHT, SUFFICIENT, WRONG, T, model

from heedmap.experiments.bottom_line import (
    LEVELS,
    BottomLine,
    _because,
    _by_class,
    _instead,
    told_of,
)
from heedmap.experiments.rule import ANSWERS, answer

CLASSES = ("bad", "good")


def because(*classes, weights=0.3):
    numbers = model(*classes, weights=weights)
    return _because(answer(numbers, T), numbers, T, CLASSES)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (model(RIGHT, RIGHT), "with them alone they stay"),
        (model(RIGHT, RIGHT, weights=0.0), "other weights hardly change"),
        (model(WRONG, WRONG), "other words than those that it highlights"),
        (model(replace(WRONG, nothing=1.0), replace(WRONG, nothing=1.0)), "it highlights nothing"),
        (
            model(replace(WRONG, best_gone=0.2), replace(WRONG, best_gone=0.2)),
            "no small set of words",
        ),
        (model(SUFFICIENT, SUFFICIENT), "other words that it misses suffice, too"),
        (model(NEEDED, NEEDED), "others are needed, too"),
        (model(RIGHT, DEFAULT), "of texts predicted “good”, no map can show why"),
        (model(RIGHT, WRONG), "of texts predicted “bad”, it highlights the words"),
        (model(FLAT_, FLAT_), "hardly above guessing"),
        (model(FEW, FEW), "too few texts"),
    ],
)
def test_the_reason_is_the_true_one(numbers, reason):
    assert reason in _because(answer(numbers, T), numbers, T, CLASSES)


def test_classes_are_named_where_they_differ_and_only_then():
    assert _by_class(model(RIGHT, RIGHT), T, CLASSES) == ()
    of_right, of_wrong = _by_class(model(RIGHT, WRONG), T, CLASSES)
    assert "“bad”" in of_right
    assert "“good”" in of_wrong


def test_where_there_is_no_yes_it_is_said_what_to_do():
    for classes in ((WRONG, WRONG), (RIGHT, WRONG), (SUFFICIENT, SUFFICIENT), (FEW, FEW)):
        numbers = model(*classes)
        assert _instead(answer(numbers, T), numbers, {}, T, CLASSES).startswith("What to do: ")


@pytest.mark.parametrize("said", ANSWERS)
def test_every_answer_is_a_sentence_with_a_level(said):
    line = BottomLine(said, "reasons")
    assert line.sentence.endswith("reasons.")
    assert line.level == LEVELS[said]


def test_rates_are_those_of_the_models_kind_and_name_the_worst_family():
    told = told_of(rates(gru=kind(right=30, wrong=30)), "gru")
    assert "on 30 wrong maps of models of this kind (gru; by hand), the rule said yes once" in told
    assert "on 30 right ones 28 times" in told
    assert "worst kind of map: random words attended, 1 of 30" in told


def test_rates_of_too_few_plants_are_not_told():
    told = told_of(rates(cnn=kind(right=29, wrong=60)), "cnn")
    assert told == (
        "no rates are known of models of this kind (cnn), of which 29 right and 60 wrong maps were planted."
    )
    assert "0 right and 0 wrong" in told_of(rates(), "small-cnn")
