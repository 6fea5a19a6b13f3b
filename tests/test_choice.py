"""Edges from one half of the plants, their errors from the other."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from heedmap.calibration.choice import (
    FEWEST,
    auc,
    choose,
    edges,
    family_of,
    is_right,
    is_wrong,
    kind_of,
    rate,
    verdict_rates,
)
from heedmap.calibration.measure import Measured, Number, _to_json, measure, read_measured
from heedmap.calibration.plants import Plant
from heedmap.experiments.rates import DECISIVE, RULES

QUESTION = DECISIVE[0]


def numbers(lows, width=0.1):
    return [Number(low + width / 2, low, low + width) for low in lows]


def measured(kind, share, seed, number, family="by hand", key=QUESTION, accuracies=None):
    return Measured(Plant(family, kind, share, seed), {key: number}, accuracies, confidence=0.9)


def many(wrong=-0.5, right=0.5, wrong_odd=None, right_odd=None, n=20, half=None):
    """n plants of either truth; in odd seeds their numbers lie elsewhere if told."""
    every = []
    for kind, share, even, odd in (
        ("uniform", 0.0, wrong, wrong_odd), ("faithful", 1.0, right, right_odd), ("partly", 0.5, half, None),
    ):  # fmt: skip
        if even is None:
            continue
        for seed in range(n):
            middle = odd if odd is not None and seed % 2 else even
            shift = 0.001 * seed
            every.append(
                measured(
                    kind,
                    share,
                    seed,
                    Number(middle + shift, middle - 0.1 + shift, middle + 0.1 + shift),
                )
            )
    return every


# --- edges ------------------------------------------------------------------------------------------------


def test_one_of_twenty_wrong_plants_may_lie_above_the_edge_of_for():
    wrong, right = numbers(np.linspace(-0.5, 0.45, 20)), numbers([-0.9] * 20)
    for_edge, _ = edges(wrong, right)
    # The second largest of the lower ends does not reach it.
    assert for_edge == np.nextafter(wrong[18].low, 1)
    assert [n.low >= for_edge for n in wrong] == [False] * 19 + [True]
    assert edges(wrong[:19], right)[0] > wrong[18].low  # of nineteen, none


def test_one_of_twenty_right_plants_may_lie_below_the_edge_of_against():
    wrong, right = numbers([0.95] * 20), numbers(np.linspace(0.0, 0.95, 20))
    _, against_edge = edges(wrong, right)
    assert [n.high <= against_edge for n in right] == [True] + [False] * 19
    assert against_edge == np.nextafter(right[1].high, -1)
    # Of several questions together, each may be wrong of its part.
    _, shared = edges(wrong, right, questions=2)
    assert [n.high <= shared for n in right] == [False] * 20
    assert shared == np.nextafter(right[0].high, -1)


def test_a_gap_between_wrong_and_right_is_parted_in_its_middle():
    for_edge, against_edge = edges(numbers([-0.3] * 10), numbers([0.4] * 10))
    assert for_edge == against_edge == pytest.approx((-0.3 + 0.5) / 2)


def test_where_they_overlap_a_map_between_the_edges_reads_neither():
    for_edge, against_edge = edges(numbers([0.3] * 10), numbers([0.1] * 10))
    assert against_edge < 0.2 < 0.3 < for_edge


@pytest.mark.parametrize(("wrong", "right"), [(FEWEST - 1, 20), (20, FEWEST - 1)])
def test_of_few_plants_no_edge_is_chosen(wrong, right):
    assert edges(numbers([0.0] * wrong), numbers([0.5] * right)) == (None, None)
    assert None not in edges(numbers([0.0] * FEWEST), numbers([0.5] * FEWEST))


# --- areas and rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "wrong", "shift"), [(20, 30, 1.0), (8, 5, 0.3), (15, 15, 5.0)])
def test_the_area_is_sklearns_and_its_interval_holds_the_areas_that_would_be_near_it(
    right, wrong, shift
):
    rng = np.random.default_rng(right)
    above, below = (rng.normal(shift, 1, right).round(1), rng.normal(0, 1, wrong).round(1))
    area, low, high = auc(above.tolist(), below.tolist())
    truth = [1] * right + [0] * wrong
    assert area == pytest.approx(roc_auc_score(truth, [*above, *below]))

    def error(a):  # Hanley & McNeil 1982 with Newcombe's sizes
        size = (right + wrong) / 2 - 1
        return math.sqrt(
            a * (1 - a) * (1 + size * (1 - a) / (2 - a) + size * a / (1 + a)) / (right * wrong)
        )

    assert 0 < low < area
    assert (area - low) / error(low) == pytest.approx(1.96, abs=0.01)
    if area < 1:
        assert (high - area) / error(high) == pytest.approx(1.96, abs=0.01)
    else:
        assert high == 1


def test_perfect_areas_of_more_plants_are_surer_and_of_none_unknown():
    few, more = (auc([1.0] * n, [0.0] * n) for n in (5, 50))
    assert few[0] == more[0] == few[2] == 1
    assert 0.5 < few[1] < more[1] < 1
    area, *interval = auc([], [0.0])
    assert math.isnan(area)
    assert interval == [0.0, 1.0]


@pytest.mark.parametrize(("count", "n"), [(0, 20), (1, 20), (20, 20), (3, 7)])
def test_a_rate_has_wilsons_interval(count, n):
    found = rate([True] * count + [False] * (n - count))
    z = stats.norm.ppf(0.975)
    p, middle = count / n, (count / n + z**2 / (2 * n)) / (1 + z**2 / n)
    width = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert (found.count, found.n, found.share) == (count, n, p)
    assert (found.low, found.high) == pytest.approx((middle - width, middle + width))
    assert str(rate([True, False])).startswith("50% of 2 [")


def test_a_rate_of_nothing_is_none():
    none = rate([])
    assert (none.count, none.n, none.low, none.high) == (0, 0, 0.0, 1.0)
    assert math.isnan(none.share)
    assert str(none) == "none measured"


# --- the choice -------------------------------------------------------------------------------------------


def test_edges_are_chosen_on_even_seeds_and_measured_on_odd_ones():
    """In odd seeds the wrong plants lie above all right ones, which no edge of the even ones knows."""
    honest, other = choose(many(), "texts"), choose(many(wrong_odd=2.0), "texts", "abc")
    first, second = honest.questions[QUESTION], other.questions[QUESTION]
    assert (honest.rules, honest.plants, honest.name, honest.data) == (RULES, 40, "texts", None)
    assert (other.name, other.data) == ("texts", "abc")
    assert first.for_edge == first.against_edge
    # Halfway between the lower ends of the wrong and the upper ends of the right, of even seeds.
    assert first.for_edge == pytest.approx(((-0.6 + 0.018) + (0.6 + 0.0)) / 2)
    assert (first.false_for.count, first.false_for.n) == (0, 10)
    assert (first.power.count, first.power.n) == (10, 10)
    assert (first.auc, first.tells) == (1.0, True)
    assert (first.caught.count, first.caught.n) == (10, 10)
    # All ten odd wrong plants read "for", none "against": the edges are dropped, and with them the power.
    assert second.for_edge is second.against_edge is None
    assert (second.caught.count, second.caught.n) == (0, 10)
    assert (second.false_for.count, second.false_for.n) == (0, 10)
    assert (second.power.count, second.power.n) == (0, 10)
    assert (second.auc, second.tells) == (0.0, False)


def test_an_edge_of_against_that_does_not_hold_on_other_plants_is_dropped():
    found = choose(many(right_odd=-2.0), "texts").questions[QUESTION]
    assert found.against_edge is None
    assert (found.false_against.count, found.false_against.n) == (0, 10)
    held = choose(many(), "texts").questions[QUESTION]
    assert (held.false_against.count, held.false_against.n) == (0, 10)
    assert held.against_edge is not None


def test_a_map_that_is_right_in_half_of_the_texts_is_wrong_but_no_part_of_the_area():
    """The area is that of right plants against those that are right of no text."""
    found = choose(many(half=0.4, right=0.9), "texts").questions[QUESTION]
    assert found.auc == 1.0
    assert found.false_for.n == 20
    assert found.for_edge > 0.3
    assert choose(many(half=2.0), "texts").questions[QUESTION].auc == 1.0


def test_plants_that_did_not_become_what_they_should_do_not_count():
    bad = [replace(m, accuracies=(0.95, 0.89)) for m in many(wrong=5.0)[:20]]
    good = [replace(m, accuracies=(0.9, 0.95)) for m in many()]
    found = choose([*bad, *good], "texts")
    assert found.plants == 40
    assert found.questions[QUESTION] == choose(many(), "texts").questions[QUESTION]


def test_a_plant_without_an_interval_is_not_judged():
    none = [measured("uniform", 0.0, 100 + s, Number(9.0, math.nan, math.nan)) for s in range(10)]
    found = choose([*many(), *none], "texts")
    assert found.questions[QUESTION] == choose(many(), "texts").questions[QUESTION]
    assert found.verdicts["uniform"]["yes"].n == 15  # the bottom line says something of them too


def test_the_decisive_questions_share_the_errors_of_against():
    """Of twenty right plants one may be wrong by a question alone, and none by one of the decisive three."""
    keys = ("alone", DECISIVE[0])
    spread = [
        Measured(
            Plant("by hand", kind, share, 2 * seed + odd),
            {key: Number(x, x - 0.01, x + 0.01) for key in keys},
        )
        for kind, share, start in (("faithful", 1.0, 0.3), ("uniform", 0.0, 0.28))
        for seed, x in enumerate(
            np.linspace(start, start + 0.4, 20) if share else np.full(20, start)
        )
        for odd in (0, 1)
    ]
    alone, shared = (choose(spread, "texts").questions[key] for key in keys)
    # Even seeds choose: .31 is the lowest upper end, the next one .331.
    assert alone.against_edge == alone.for_edge == pytest.approx((0.27 + 0.31 + 0.4 / 19) / 2)
    assert shared.against_edge == shared.for_edge == pytest.approx((0.27 + 0.31) / 2)


@pytest.mark.parametrize(
    ("kind", "share", "right", "wrong", "name"),
    [
        ("faithful", 1.0, True, False, "faithful"),
        ("proportional", 1.0, True, False, "proportional"),
        ("partly", 0.75, False, False, "partly 0.75"),
        ("partly", 0.5, False, True, "partly 0.5"),
        ("partly", 0.25, False, True, "partly 0.25"),
        ("deceptive", 0.0, False, True, "deceptive"),
    ],
)
def test_a_plant_is_right_wrong_or_between(kind, share, right, wrong, name):
    one = measured(kind, share, 0, Number(0.0, 0.0, 0.0), family="cnn")
    assert (is_right(one), is_wrong(one), kind_of(one)) == (right, wrong, name)
    truth = "right" if right else "wrong" if wrong else "between"
    assert family_of(one) == f"cnn: {truth}"


def test_the_bottom_line_is_counted_by_truth_kind_and_family():
    rates = choose(many(), "texts")
    of = [
        measured("faithful", 1.0, 1, Number(0.5, 0.4, 0.6)),
        measured("faithful", 1.0, 3, Number(-0.5, -0.6, -0.4), family="cnn"),
        measured("uniform", 0.0, 1, Number(0.5, 0.4, 0.6)),
        measured("partly", 0.75, 1, Number(0.0, -0.5, 0.5)),
    ]
    counted = {
        group: {said: (r.count, r.n) for said, r in said.items()}
        for group, said in verdict_rates(rates, of).items()
    }
    assert counted == {
        "wrong": {"yes": (1, 1), "no": (0, 1)},
        "right": {"yes": (1, 2), "no": (1, 2)},
        "faithful": {"yes": (1, 2), "no": (1, 2)},
        "uniform": {"yes": (1, 1), "no": (0, 1)},
        "partly 0.75": {"yes": (0, 1), "no": (0, 1)},
        "by hand: right": {"yes": (1, 1), "no": (0, 1)},
        "own models: right": {"yes": (1, 2), "no": (1, 2)},
        "own models: wrong": {"yes": (1, 1), "no": (0, 1)},
        "own models: between": {"yes": (0, 1), "no": (0, 1)},
        "cnn: right": {"yes": (0, 1), "no": (1, 1)},
        "by hand: wrong": {"yes": (1, 1), "no": (0, 1)},
        "by hand: between": {"yes": (0, 1), "no": (0, 1)},
    }
    # Of the whole, only odd seeds are counted.
    assert rates.verdicts["right"]["yes"].n == 10
    assert rates.verdicts["wrong"]["no"].count == 10


# --- measuring --------------------------------------------------------------------------------------------


def test_a_plants_numbers_are_kept_and_read_again(tmp_path):
    plant = Plant("by hand", "faithful", 1.0, 0, texts=12, length=8)
    first = measure(plant, tmp_path, None)
    kept = (tmp_path / plant.file).stat().st_mtime_ns
    assert measure(plant, tmp_path, None) == first
    assert (tmp_path / plant.file).stat().st_mtime_ns == kept
    again = measure(replace(plant, margin=9.0), tmp_path, None)  # another plant of the same name
    assert again != first
    assert first.confidence == pytest.approx(1 / (1 + math.exp(-plant.margin)), abs=0.03)
    assert (
        first.numbers[QUESTION].low <= first.numbers[QUESTION].share <= first.numbers[QUESTION].high
    )
    assert first.admitted


def test_numbers_without_an_interval_survive_the_file(tmp_path):
    one = measured("faithful", 1.0, 0, Number(0.5, math.nan, math.nan), accuracies=(0.5, 1.0))
    path = tmp_path / "numbers.json"
    path.write_text(_to_json(one))
    read = read_measured(path)
    assert (read.plant, read.accuracies, read.admitted) == (one.plant, (0.5, 1.0), False)
    assert repr(read.numbers) == repr(one.numbers)
    for damage in (
        "",
        "{}",
        "[]",
        path.read_text()[:-20],
        path.read_text().replace('"seed"', '"sead"'),
    ):
        path.write_text(damage)
        assert read_measured(path) is None
    assert read_measured(tmp_path / "none.json") is None
