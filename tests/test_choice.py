"""Thresholds are chosen on all families but one, and the answers about that one counted."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_numbers import RIGHT, WRONG, model

from heedmap.calibration.choice import (
    GRID,
    LATER,
    Known,
    best,
    choose,
    costs,
    from_table,
    thresholds,
    to_table,
    with_later_kinds,
)
from heedmap.calibration.plants import Plant
from heedmap.experiments.rates import ALL, packaged_rates
from heedmap.experiments.rule import answer

ROOT = Path(__file__).parents[1]


def known(family, truth, numbers, encoder="lstm", seeds=4):
    return [Known(Plant(family, encoder, seed), truth, numbers) for seed in range(seeds)]


FAMILIES = [
    *known("cue attended", "right", model(RIGHT, RIGHT)),
    *known("random words", "wrong", model(WRONG, WRONG)),
    *known("half", "wrong", model(*[replace(RIGHT, gone=0.77, alone=0.7, held=31)] * 2), "gru"),
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
    lenient = thresholds()[best(others, costs(others, said(others)), range(8))]
    counts = rates.kinds[ALL].families["half"].answers
    assert counts.rate(answer(FAMILIES[8].numbers, lenient)).count == 4
    # Whatever the truth of the left-out family is said to be, its own answers are the same.
    other = choose([*others, *(replace(one, truth="right") for one in FAMILIES[8:])], "by hand")
    assert other.kinds[ALL].families["half"].answers == counts


def test_every_family_counts_alike_however_many_plants_it_has():
    many = [*FAMILIES, *known("cue attended", "right", model(RIGHT, RIGHT), seeds=40)[4:]]
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


ENCODERS = {
    "bags": "bags by hand",
    "transformer that gives a number": "number by hand",
    "pictures": "pictures by hand",
    "transformer of pairs": "pair transformer by hand",
}


def of_later(kind, truth, numbers):
    return known(f"{kind}, {truth}", truth, numbers, ENCODERS[kind], seeds=31)


def test_there_is_an_encoder_of_every_kind_that_chose_no_threshold():
    assert tuple(ENCODERS) == LATER
    for kind, encoder in ENCODERS.items():
        assert known("a", "right", model(RIGHT), encoder)[0].kind == kind


@pytest.mark.parametrize("kind", LATER)
def test_later_kinds_have_no_say_in_the_thresholds_and_are_judged_by_them(kind):
    # Wrong maps that would make every threshold strict, if these families chose it.
    later = [
        *of_later(kind, "right", model(RIGHT, RIGHT)),
        *of_later(kind, "wrong", model(RIGHT, RIGHT)),
    ]
    without, rates = choose(FAMILIES, "by hand"), choose([*later, *FAMILIES], "by hand")
    assert rates.thresholds == without.thresholds
    assert rates.plants == without.plants == len(FAMILIES)
    assert {k: of for k, of in rates.kinds.items() if k != kind} == without.kinds
    assert rates.kinds[kind].of("wrong").rate("yes").count == 31
    assert rates.kinds[kind].is_enough


@pytest.mark.parametrize("kind", LATER)
def test_a_kind_is_added_to_rates_of_which_nothing_else_changes(kind):
    rates = choose(FAMILIES, "by hand")
    wrong = of_later(kind, "wrong", model(WRONG, WRONG))
    added = with_later_kinds(rates, [*FAMILIES, *wrong])
    assert added == choose([*FAMILIES, *wrong], "by hand")
    assert added.kinds[kind].of("wrong").rate("no").count == 31
    assert with_later_kinds(added, []) == added
    assert with_later_kinds(rates, FAMILIES) == rates


@pytest.mark.slow
def test_the_packaged_rates_follow_from_the_kept_scores():
    plants = from_table(pq.read_table(ROOT / "docs" / "calibration" / "plants.parquet"))
    packaged = packaged_rates()
    assert choose(plants, packaged.name, packaged.data) == packaged


def test_the_readme_tells_the_packaged_rates():
    every = packaged_rates().kinds[ALL]
    wrong, right = every.of("wrong"), every.of("right")
    told = " ".join((ROOT / "README.md").read_text("utf-8").split())
    of_wrong = f"yes to {wrong.rate('yes').count} of {wrong.n} wrong maps"
    of_right = f"to {right.rate('yes').count} of {right.n} right ones"
    assert (
        f"{of_wrong} and {of_right}, and no to {right.rate('no').count} of the right ones" in told
    )


@pytest.mark.parametrize(
    ("page", "kind"),
    [("bags", "bags"), ("images", "pictures"), ("transformers", "transformer of pairs")],
)
def test_the_page_of_a_later_kind_tells_the_packaged_rates_of_it(page, kind):
    of_kind = packaged_rates().kinds[kind]
    assert of_kind.is_enough
    wrong, right = of_kind.of("wrong"), of_kind.of("right")
    told = " ".join((ROOT / "docs" / f"{page}.md").read_text("utf-8").split())
    assert (
        f"yes to {wrong.rate('yes').count} of {wrong.n} wrong maps and to {right.rate('yes').count} of "
        f"{right.n} right ones, and no to {right.rate('no').count} of the right ones"
    ) in told


def test_the_kept_scores_are_all_that_thresholds_are_chosen_by():
    assert from_table(to_table(FAMILIES)) == FAMILIES
