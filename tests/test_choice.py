"""Thresholds are chosen on all families but one, and the answers about that one counted."""

from dataclasses import replace

import pytest
from test_rule import RIGHT, WRONG, model

from heedmap.calibration.choice import GRID, Known, best, choose, thresholds
from heedmap.calibration.plants import Plant
from heedmap.experiments.rates import ALL
from heedmap.experiments.rule import answer


def known(family, truth, numbers, encoder="lstm", seeds=4):
    return [Known(Plant(family, encoder, seed), truth, numbers) for seed in range(seeds)]


FAMILIES = [
    *known("cue attended", "right", model(RIGHT, RIGHT)),
    *known("random words", "wrong", model(WRONG, WRONG)),
    *known(
        "half", "wrong", model(*[replace(RIGHT, gone=0.72, alone=0.7, holding=0.55)] * 2), "gru"
    ),
]


def said(plants):
    return [[answer(one.numbers, t) for one in plants] for t in thresholds()]


def test_the_grid_is_every_combination():
    combinations = thresholds()
    assert len({tuple(t.model_dump().values()) for t in combinations}) == len(combinations)
    for name, values in GRID.items():
        assert {getattr(t, name) for t in combinations} == set(values)


def test_the_chosen_thresholds_tell_the_families_apart():
    chosen = choose(FAMILIES, "by hand").thresholds
    assert {answer(one.numbers, chosen) for one in FAMILIES[:4]} == {"yes"}
    assert "yes" not in {answer(one.numbers, chosen) for one in FAMILIES[4:]}


def test_a_family_has_no_say_in_the_thresholds_that_it_is_measured_by():
    rates = choose(FAMILIES, "by hand")
    # Without the half-right family nothing forbids lenient thresholds, by which it gets a yes.
    others = FAMILIES[:8]
    lenient = thresholds()[best(others, said(others), range(8))]
    counts = rates.kinds[ALL].families["half"].answers
    assert counts.rate(answer(FAMILIES[8].numbers, lenient)).count == 4
    # Whatever the truth of the left-out family is said to be, its own answers are the same.
    other = choose([*others, *(replace(one, truth="right") for one in FAMILIES[8:])], "by hand")
    assert other.kinds[ALL].families["half"].answers == counts


def test_every_family_counts_alike_however_many_plants_it_has():
    many = [*FAMILIES, *known("cue attended", "right", model(RIGHT, RIGHT), seeds=400)[4:]]
    assert choose(many, "by hand").thresholds == choose(FAMILIES, "by hand").thresholds


def test_answers_are_counted_by_kind_of_model():
    rates = choose(FAMILIES, "by hand")
    assert {*rates.kinds} == {ALL, "lstm", "gru"}
    assert rates.kinds["gru"].of("wrong").n == 4
    assert rates.kinds["lstm"].of("right").rate("yes").count == 4
    assert not rates.decides  # 4 right plants are too few


@pytest.mark.parametrize("encoder", ["bert", "transformer by hand"])
def test_transformers_are_one_kind(encoder):
    assert known("a", "right", model(RIGHT), encoder)[0].kind == "transformer"
