"""The rule by which all reproductions say which models have learned."""

import math

import pytest

from heedmap.papers.kit import claims
from heedmap.papers.kit.claims import Check, Side
from heedmap.papers.kit.learned import Learned, Score, accuracy, has_learned
from heedmap.papers.kit.result import Claim, Estimate


@pytest.mark.parametrize(
    ("value", "n", "published", "learned"),
    [
        (0.60, 100, math.nan, True),  # half of the texts by chance, 1.96 deviations are .098
        (0.59, 100, math.nan, False),
        (0.60, 100, 0.8, False),  # a third of the way
        (0.70, 100, 0.8, True),
        (0.40, 100, 0.8, False),
        (0.60, 100, 0.4, True),  # theirs has not learned: no way to go
        (0.70, 0, 0.8, True),  # the texts are not known
        (0.60, 0, 0.8, False),
        (0.60, 0, math.nan, None),
        (math.nan, 100, 0.8, None),
    ],
)
def test_a_training_has_learned_above_one_answer_and_half_of_the_way_to_the_published(
    value, n, published, learned
):
    assert accuracy(value, 0.5, n, published).learned is learned


def test_every_score_that_tells_must_say_so():
    good, bad, unknown = (Score("F1", x, 0.5, published=0.9) for x in (0.8, 0.6, math.nan))
    assert has_learned([good, unknown]) is True
    assert has_learned([good, bad]) is False
    assert has_learned([unknown]) is has_learned([]) is None


@pytest.fixture
def judged():
    return Learned(
        {
            "a": {0: [accuracy(0.9, 0.5, 100)], 1: [accuracy(0.52, 0.5, 100)]},
            "b": {0: [accuracy(0.9, 0.5, 100)]},
        }
    )


def test_one_training_that_has_not_learned_marks_its_model(judged):
    assert judged.failed == {"a": [1]}
    assert (judged.marked("A", "a"), judged.marked("B", "b")) == ("A †", "B")
    assert (judged.of("a", 0), judged.of("a", 1), judged.of("c", 0)) == (True, False, None)
    told = "† Not learned, and not counted: a (1 of 2 trainings: accuracy 0.520, one answer 0.500)."
    assert judged.sentence().startswith(told)
    assert Learned({"b": judged.models["b"]}).sentence() == ""


def test_a_model_of_which_it_is_asked_whether_it_learns_is_marked_and_counted(judged):
    guided = Learned(judged.models, frozenset("a"))
    assert (guided.failed, guided.uncounted) == (judged.failed, {})
    assert guided.marked("A", "a") == "A †"
    told = (
        "† Not learned, and counted, for whether they learn is what is asked: a (1 of 2 trainings: "
    )
    assert guided.sentence().startswith(told)
    number = Estimate("a", 0.5, 0.4, 0.6)
    claim = Claim("It holds", "survives", ("1 of 1",), decisive=number)
    assert guided.judged(claim, "a") == claim
    check = Check("1 of 1", Side(True, False), ["a"], number)
    assert claims.judged("It holds", [check], guided).verdict == "survives"
    assert claims.judged("It holds", [check], judged).verdict == "undecided"
    both = Learned({**judged.models, "c": judged.models["a"]}, frozenset("a"))
    assert "not counted: c (" in both.sentence()


def test_a_claim_that_rests_on_such_a_model_is_undecided_and_says_why(judged):
    number = Estimate("a", 0.5, 0.4, 0.6)
    claim = Claim("It holds", "survives", ("1 of 1",), decisive=number)
    assert judged.judged(claim, "b") == claim
    found = judged.judged(claim, "a", "b")
    assert found.verdict == "undecided"
    assert found.numbers == ("1 of 1; not learned: a, not counted †",)
    assert found.decisive is None
