"""Which output of a model a label means: by name, by the numbers in names, by counting, or refused."""

import pytest
from wording import refused

from heedmap.data.labels import label_text, unlabelled
from heedmap.data.matching import match, numbers_in

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
LABELS, NAMES = ("LABEL_0", "LABEL_1"), ("negative", "positive")
NEWS = ("World", "Sports", "Business", "Sci/Tech")


@pytest.mark.parametrize(
    ("labels", "outputs", "numbers", "how"),
    [
        ("Positive NEGATIVE", NAMES, [1, 0], None),
        ("01 02", ("01", "02", "03"), [0, 1], None),
        ("1 2", ("01", "02", "03"), [0, 1], "numbers in the names"),
        ("1.0 0.0", ("0", "1"), [1, 0], None),
        ("1 2 3 4", STARS, [0, 1, 2, 3], "numbers in the names"),
        ("1", STARS, [0], "numbers in the names"),
        ("0 1 2 3 4", STARS, [0, 1, 2, 3, 4], "counting from 0"),
        ("0 2", ("Rating: 2", "Rating: 0"), [1, 0], "numbers in the names"),
        ("1", LABELS, [1], "numbers in the names"),
        ("0 1", LABELS, [0, 1], None),
        ("0 1", NAMES, [0, 1], "counting from 0"),
        ("0", NAMES, [0], "counting from 0"),
        ("1 2", NAMES, [0, 1], "counting from 1"),
        ("2", NAMES, [1], "counting from 1"),
        ("1 2 3 4", NEWS, [0, 1, 2, 3], "counting from 1"),
        ("4", NEWS, [3], "counting from 1"),
    ],
)
def test_labels_are_matched_by_name_or_by_numbers_and_a_note_says_how(
    labels, outputs, numbers, how
):
    matching = match("a", labels.split(), outputs)
    assert [matching.number[label] for label in labels.split()] == numbers
    assert (matching.note is None) == (how is None)
    assert how is None or how in matching.note


@pytest.mark.parametrize(
    ("labels", "outputs", "named"),
    [
        ("1", NAMES, ["from 0, 1 is positive", "from 1, 1 is negative", "--classes 1,2 (in Python classes=)"]),
        ("1 2", ("a", "b", "c"), ["from 0, 1 is b", "from 1, 1 is a", "--classes 0,1,2"]),
        ("1 2", LABELS, ["from 1, 1 is LABEL_0", "number in its name, 1 is LABEL_1"]),
        ("0 1", STARS, ["from 0, 1 is 2 stars", "number in its name, 1 is 1 star"]),
        ("0 2", NAMES, ["(negative, positive)", "0, 2", "--classes NAME,NAME (in Python classes=)"]),
        ("-1 1", NAMES, ["(negative, positive)", "-1, 1", "--classes NAME,NAME"]),
        ("yes no", NAMES, ["(negative, positive)", "yes, no", "--classes NAME,NAME"]),
        ("true 1", NAMES, ["true, 1", "truth values, true", "numbers, 1"]),
        ("a b c", NAMES, ["2 classes", "3", "(a, b, c)"]),
        ("negative positive mixed", NAMES, ["2 classes", "3", "mixed", "no class for mixed"]),
    ],
)  # fmt: skip
def test_labels_whose_classes_are_not_certain_are_refused_with_the_cause(labels, outputs, named):
    with refused(*named):
        match("a", labels.split(), outputs)


def test_the_labels_of_other_splits_may_tell_how_they_count():
    assert match("a", ["1"], NAMES, further_labels=["0", "1"]).number == {"1": 1}
    assert match("a", ["1"], NAMES, further_labels=["1", "2"]).number == {"1": 0}
    with refused("from 0, 1 is positive", "from 1, 1 is negative"):
        match("a", ["1"], NAMES, further_labels=["odd"])
    for others in ([], ["0", "3"]):
        with refused("from 0, 1 is b", "from 1, 1 is a"):
            match("a", ["1", "2"], ("a", "b", "c"), further_labels=others)


@pytest.mark.parametrize("outputs", [STARS, ("1", "2", "3", "4", "5")])
def test_numbers_in_names_do_not_decide_where_all_splits_count_otherwise(outputs):
    labels = ["1", "2", "3", "4"]
    matching = match("a", labels, outputs, further_labels={"0", *labels})
    assert [matching.number[label] for label in labels] == [1, 2, 3, 4]
    assert "counting from 0" in matching.note
    assert (
        match("a", labels, outputs, ["1", "2", "3", "4", "5"], further_labels={"0"}).number["1"]
        == 0
    )
    for others in (labels, ["5"], ["0", "5"], ["9"], ["odd"]):
        assert match("a", labels, outputs, further_labels=others).number["1"] == 0


@pytest.mark.parametrize(
    ("labels", "outputs", "others"),
    [(["1", "2"], STARS, "0"), (["1"], LABELS, "2"), (["1"], ("0", "1"), "2")],
)
def test_other_splits_that_contradict_the_numbers_in_names_are_refused(labels, outputs, others):
    with refused("number in its name, 1 is", "--classes"):
        match("a", labels, outputs, further_labels=[others])


def test_names_that_a_user_gives_decide_and_there_is_one_for_each_output():
    assert match("a", ["1.0", "2.0"], NAMES, ["1", "2"]).number == {"1.0": 0, "2.0": 1}
    assert match("a", ["1"], STARS, ["0", "1", "2", "3", "4"]).number == {"1": 1}
    with refused("--classes", "2 names", "(negative, positive)", "3 (x, y, z)"):
        match("a", ["x"], NAMES, ["x", "y", "z"])
    with refused("2 classes (no, yes)", "0, 1"):
        match("a", ["0", "1"], NAMES, ["no", "yes"])


def test_numbers_in_names_are_those_that_tell_them_apart():
    assert numbers_in(["1 of 5", "2 of 5"]) == [1, 2]
    assert numbers_in(["-1", "0", "1"]) == [-1, 0, 1]
    assert numbers_in(["LABEL-1", "LABEL-2"]) == [1, 2]
    for names in (["b2b", "b2c"], ["1 star", "many"], ["1-2", "3-4"], ["yes", "no"]):
        assert numbers_in(names) is None


@pytest.mark.parametrize(
    ("labels", "classes", "none"),
    [
        ("entailment neutral -", (), "-"),
        ("+ - 0", (), ""),
        ("- a", (), ""),
        ("- a", ("a", "b"), "-"),
        ("- a", ("a", "-"), ""),
        ("null NaN a b", (), "null NaN"),
        ("none na a b", (), ""),
        ("none na a b", ("a", "b"), "none na"),
        ("-1 0 1", (), ""),
        ("-1 0 1", ("a", "b"), "-1"),
        ("-1 0 1", ("a", "b", "c"), ""),
        ("-1 0 1 2", (), "-1"),
        ("-1 1 2 3", (), "-1"),
    ],
)
def test_labels_that_say_that_there_is_none(labels, classes, none):
    assert unlabelled(labels.split(), classes) == set(none.split())


@pytest.mark.parametrize("value", [{"a"}, ["a"], ("a", "b"), {"a": 1}, frozenset()])
def test_several_labels_of_one_text_are_refused(value):
    with refused("label", f"{type(value).__name__} ({value})"):
        label_text(value)


@pytest.mark.parametrize("value", [object(), b"a", 1j, int])
def test_what_is_no_text_number_truth_value_or_date_is_no_label(value):
    with refused("got", type(value).__name__):
        label_text(value)
