"""Rates of planted models: what they hold, which of them an audit uses, and which are refused."""

import json
import math

import pytest
from made_rates import family, kind, rates
from wording import refused, warned

from heedmap.experiments.rates import (
    ALL,
    FILE,
    LEAST,
    RULES,
    OfKind,
    Rate,
    Rates,
    packaged_rates,
    rates_beside,
    read_rates,
)
from heedmap.experiments.rule import Thresholds
from heedmap.files.identity import source_identity


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\na,b\n")
    return path


def calibration(folder, of, made=None, **changed):
    """Write the rates of a calibration on some texts."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = {"data": source_identity(str(of)), **changed}
    made = (made or rates()).model_copy(update=changed)
    (folder / FILE).write_text(made.to_json())
    return made


# --- what they hold ---------------------------------------------------------------------------------------


def test_the_packaged_rates_are_of_these_rules_and_of_enough_plants():
    packaged = packaged_rates()
    assert packaged.rules == RULES
    assert packaged.data is None
    assert packaged.decides
    assert packaged.plants == sum(one.answers.n for one in packaged.kinds[ALL].families.values())


def test_a_rate_is_a_share_with_an_exact_interval():
    rate = Rate(count=3, n=60)
    assert rate.share == 0.05
    # Clopper and Pearson: 3 or more of 60 happen one time in forty at the lower end, 3 or fewer at the upper.
    for end, counts in zip(rate.interval, (range(3, 61), range(4)), strict=True):
        tail = sum(math.comb(60, k) * end**k * (1 - end) ** (60 - k) for k in counts)
        assert tail == pytest.approx(0.025)
    assert str(rate) == "5% of 60 [1%, 14%]"


def test_of_no_plants_there_is_no_rate():
    none = Rate(count=0, n=0)
    assert math.isnan(none.share)
    assert none.interval == (0.0, 1.0)
    assert str(none) == "none measured"


def test_answers_about_families_of_the_same_truth_are_added_up():
    of = OfKind(
        families={
            "a": family("wrong", no=5, yes=1),
            "b": family("wrong", in_part=4),
            "c": family("right", yes=7),
        }
    )
    assert of.of("wrong").n == 10
    assert of.of("wrong").counts == {"no": 5, "yes": 1, "in part": 4}
    assert of.of("wrong", "right").rate("yes") == Rate(count=8, n=17)
    assert of.of("between").rate("yes") == Rate(count=0, n=0)


def test_the_worst_family_is_that_with_the_largest_share_of_false_yes():
    many, few = family("wrong", no=95, yes=5), family("wrong", no=8, yes=2)
    right = family("right", yes=10)
    assert OfKind(families={"many": many, "few": few, "right": right}).worst == (
        "few",
        Rate(count=2, n=10),
    )
    assert OfKind(families={"none": family("wrong", no=9), "right": right}).worst is None


@pytest.mark.parametrize(
    ("right", "wrong", "enough"),
    [(LEAST, LEAST, True), (LEAST - 1, LEAST, False), (LEAST, LEAST - 1, False)],
)
def test_thirty_right_and_thirty_wrong_plants_are_enough(right, wrong, enough):
    assert kind(right, wrong).is_enough == enough
    assert rates(all=kind(right, wrong)).decides == enough


# --- files ------------------------------------------------------------------------------------------------


def test_rates_are_read_as_they_were_written(tmp_path, texts):
    made = calibration(tmp_path / "own", texts)
    assert read_rates(tmp_path / "own" / FILE) == made


def test_rates_of_another_version_are_refused_in_one_line(tmp_path, texts):
    calibration(tmp_path / "old", texts, rules=RULES + 1)
    with refused(FILE, f"version {RULES}", f"version {RULES + 1}", "heedmap calibrate"):
        read_rates(tmp_path / "old" / FILE)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "3", "not JSON", '{"rules": 3}', "[" * 100_000]
)
def test_other_files_are_refused_in_one_line(tmp_path, content):
    path = tmp_path / FILE
    path.write_text(content)
    with refused(path, "heedmap calibrate"):
        read_rates(path)


def test_rates_that_are_not_there_are_refused(tmp_path):
    with refused(FILE, "heedmap calibrate"):
        read_rates(tmp_path / FILE)


# --- beside a run -----------------------------------------------------------------------------------------


def test_rates_of_the_same_texts_are_found_beside_the_run(tmp_path, texts):
    own = calibration(tmp_path / "runs" / "calibration-mine", texts, name="mine")
    run = tmp_path / "runs" / "mine-lstm"
    assert rates_beside(run, str(texts)) == own
    texts.write_text("text,label\na,c\n")
    assert rates_beside(run, str(texts)) is None


def test_files_of_other_programs_are_none_of_our_business(tmp_path, texts):
    for name, content in (("a", "not JSON"), ("b", '{"USD": 1.1}'), ("c", "[1]")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / FILE).write_text(content)
    (tmp_path / "runs" / "d" / FILE).mkdir(parents=True)
    assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None


def test_of_several_calibrations_of_the_same_texts_the_one_of_the_most_plants_is_used(
    tmp_path, texts
):
    for name, count in (("a", 130), ("b", 200), ("c", 190)):
        calibration(tmp_path / "runs" / name, texts, plants=count)
    assert rates_beside(tmp_path / "runs" / "mine", str(texts)).plants == 200


def test_a_calibration_that_is_too_small_to_decide_is_passed_over_with_a_warning(tmp_path, texts):
    calibration(tmp_path / "runs" / "small", texts, rates(all=kind(29, 60)), plants=89)
    own = calibration(tmp_path / "runs" / "smaller", texts, plants=70)
    with warned(FILE, "passed over", "89", "--seeds"):
        assert rates_beside(tmp_path / "runs" / "mine", str(texts)) == own


def test_rates_of_another_version_beside_the_run_are_refused_if_they_are_of_its_texts(
    tmp_path, texts
):
    other = tmp_path / "other.csv"
    other.write_text("text,label\nc,d\n")
    calibration(tmp_path / "runs" / "old", other, rules=RULES - 1)
    run = tmp_path / "runs" / "mine"
    assert rates_beside(run, str(texts)) is None
    calibration(tmp_path / "runs" / "old", texts, rules=RULES - 1)
    with refused(FILE, f"version {RULES - 1}"):
        rates_beside(run, str(texts))


def test_damaged_rates_are_passed_over_wherever_they_were_cut(tmp_path, texts):
    calibration(tmp_path / "runs" / "cut", texts)
    path = tmp_path / "runs" / "cut" / FILE
    whole = path.read_bytes()
    for size in (20, 300, len(whole) - 3):
        path.write_bytes(whole[:size])
        with warned(path, "passed over", "heedmap calibrate"):
            assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None
        with refused(path, "heedmap calibrate"):
            read_rates(path)


def set_to(value, *where):
    """Return an edit that sets one value of the text of the rates."""

    def edit(values):
        place = values
        for name in where[:-1]:
            place = place[name]
        place[where[-1]] = value

    return edit


WRONG = ("kinds", ALL, "families", "random words attended")


@pytest.mark.parametrize(
    "edit",
    [
        set_to(-1, *WRONG, "answers", "counts", "yes"),
        set_to(2, *WRONG, "answers", "counts", "yes"),
        set_to(59, *WRONG, "answers", "n"),
        set_to({}, *WRONG, "answers", "counts"),
        set_to(1, *WRONG, "answers", "counts", "perhaps"),
        set_to({}, "kinds"),
        set_to({"lstm": {"families": {}}}, "kinds"),
        set_to("strict", "thresholds", "gone"),
        *(
            set_to(beyond, "thresholds", name)
            for name in Thresholds.model_fields
            for beyond in (-0.1, 1.1)
        ),
        set_to(0, "plants"),
        set_to(-5, "plants"),
        set_to("many", "plants"),
        set_to(1, "more"),
    ],
)
def test_numbers_that_no_calibration_has_are_passed_over_even_where_their_hash_is_right(
    tmp_path, texts, edit
):
    calibration(tmp_path / "runs" / "edited", texts)
    path = tmp_path / "runs" / "edited" / FILE
    values = json.loads(path.read_text())
    del values["sha256"]
    edit(values)
    path.write_text(with_hash(values))
    with warned(path, "passed over", "heedmap calibrate"):
        assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None
    with refused(path, "heedmap calibrate"):
        read_rates(path)


def with_hash(values):
    """Return the text of rates, with the hash of what they say where they can be read at all."""
    try:
        return Rates.model_validate(values).to_json()
    except ValueError:
        return json.dumps(values, indent=1)


def test_another_digit_or_no_hash_is_noticed(tmp_path, texts):
    calibration(tmp_path / "runs" / "mine-too", texts)
    path = tmp_path / "runs" / "mine-too" / FILE
    values = json.loads(path.read_text())
    changed = values | {"thresholds": values["thresholds"] | {"gone": 0.501}}
    without = {name: value for name, value in values.items() if name != "sha256"}
    for other in (changed, without):
        path.write_text(json.dumps(other, indent=1))
        with warned(path, "passed over", "hash"):
            assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None
