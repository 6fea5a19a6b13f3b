"""The bottom line in words: what is answered, why, what to do, and how sure that is."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_audits import make_audit
from made_numbers import DEFAULT, FEW, FLAT_, NEEDED, RIGHT, SUFFICIENT, UNCLEAR, WRONG, T, model
from made_rates import family, kind, rates

from heedmap.experiments.bottom_line import LEVELS, BottomLine, kind_of, not_tested, told_of
from heedmap.experiments.questions.alternatives import CANDIDATES
from heedmap.experiments.rates import OfKind, packaged_rates
from heedmap.experiments.reasons import because, by_class, measured, named, what_to_do
from heedmap.experiments.rule import ANSWERS, answer, map_numbers
from heedmap.nouns import BAGS
from heedmap.settings.models import ModelSettings

CLASSES = ("bad", "good")


HIGHLIGHTS_NOTHING = replace(WRONG, nothing=1.0)
NOTHING_CARRIES = replace(WRONG, best_gone=0.2)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (model(RIGHT, RIGHT), "with these words alone the answers stay, and the weights matter"),
        (model(RIGHT, RIGHT, weights=0.0), "other weights hardly change what is predicted"),
        (model(WRONG, WRONG), "words other than those that it highlights make the answer"),
        (model(HIGHLIGHTS_NOTHING, HIGHLIGHTS_NOTHING), "it highlights nothing"),
        (model(NOTHING_CARRIES, NOTHING_CARRIES), "no small set of words makes the answer"),
        (model(SUFFICIENT, SUFFICIENT), "suffice, but so do others that it misses"),
        (model(NEEDED, NEEDED), "others that it misses are needed, too"),
        (model(RIGHT, DEFAULT), "for texts predicted “good”, no map can show why"),
        (model(RIGHT, WRONG), "for texts predicted “bad”, it highlights the words"),
        (
            model(*[replace(RIGHT, gone=0.5, held=24)] * 2),
            "in 48 of 80 texts, which is 60%, where a yes needs",
        ),
        (model(DEFAULT, DEFAULT), "no map can show why"),
        (model(RIGHT, UNCLEAR), "for texts predicted “good”, it is neither clearly right"),
        (model(UNCLEAR, UNCLEAR), "it is neither clearly right nor clearly wrong"),
        (model(UNCLEAR, DEFAULT), "for some of the predicted classes it is neither"),
        (model(RIGHT, NOTHING_CARRIES), "for texts predicted “good”, no small set of words"),
        (
            model(RIGHT, HIGHLIGHTS_NOTHING),
            "for texts predicted “good”, it highlights nothing in most",
        ),
        (model(FLAT_, FLAT_), "hardly likelier than guesses"),
        (model(FEW, FEW), "too few texts"),
    ],
)
def test_the_reason_is_the_true_one(numbers, reason):
    assert reason in because(answer(numbers, T), numbers, T, CLASSES)


def test_classes_have_their_numbers_where_they_differ_and_what_the_reason_has_not_said():
    assert by_class("yes", model(RIGHT, RIGHT), T, CLASSES) == ()
    of_right, of_few = by_class("yes", model(RIGHT, FEW), T, CLASSES)
    numbers = (
        "its first words take all of the lead, the best words known all; left alone, the highlighted words "
        "keep 95%"
    )
    assert of_right == (
        f"Texts predicted “bad”: it highlights the words that make the answer ({numbers})."
    )
    assert of_few == f"Texts predicted “good”: there are fewer than 5 texts ({numbers})."
    of_right, of_wrong = by_class("in part", model(RIGHT, WRONG), T, CLASSES)
    assert of_right == f"Texts predicted “bad”: {numbers}."
    assert of_wrong == (
        "Texts predicted “good”: its first words take 20% of the lead, the best words known all; left alone, "
        "the highlighted words keep nothing."
    )


def test_the_numbers_of_several_classes_are_shares_of_their_whole_lead():
    heavy = replace(RIGHT, n=30, lead=0.4, gone=0.9)
    light = replace(RIGHT, n=10, lead=0.2, gone=0.5)
    of_both, *_ = by_class("yes", model(heavy, light, FEW), T, CLASSES * 2)
    assert "its first words take 84% of the lead" in of_both  # (.9 · 12 + .5 · 2) / 14


def test_of_many_classes_the_first_are_named():
    numbers = model(*[RIGHT] * 9)
    names = [f"c{number}" for number in range(9)]
    assert named(numbers.classes[:2], names) == "texts predicted “c0” or “c1”"
    assert named(numbers.classes, names).endswith("“c5” or one of 3 more classes")


@pytest.mark.parametrize(
    ("classes", "advice"),
    [
        ((RIGHT, WRONG), "show the map only for texts predicted “bad”"),
        ((SUFFICIENT, SUFFICIENT), "if you show the map, say that other words suffice, too"),
        ((NEEDED, NEEDED), "if you show the map, say that other words are needed, too"),
        ((SUFFICIENT, WRONG), "show the map only for texts that pass the same test by themselves"),
        ((FEW, FEW), "audit more texts, 30 or more of each predicted class (the smallest has 4)"),
        ((FLAT_, FLAT_), "first make a model that is surer of its answers"),
        ((WRONG, WRONG), "show no map of words"),
    ],
)
def test_where_there_is_no_yes_it_is_said_what_to_do(classes, advice):
    numbers = model(*classes)
    assert what_to_do(answer(numbers, T), numbers, {}, T, CLASSES).startswith(advice)


def test_the_right_words_are_shown_as_words_whatever_other_maps_were_tried():
    numbers = model(RIGHT, RIGHT, weights=0.0)
    assert what_to_do("words", numbers, {}, T, CLASSES) == (
        "show the map as the words that the answer rests on, not as how the model weighs them"
    )


@pytest.fixture
def columns():
    """Texts of two classes, of which the map on trial and two others lose nothing, and the read-out all."""
    n = 40
    every = {
        name: np.zeros(n)
        for name in ("gone_random", "alone_random", "among_random", "highlighted", "gone_best")
    }
    every |= {"predicted": np.arange(n) % 2.0, "probability": np.ones(n), "mean_tvd": np.ones(n)}
    every |= {"guessing": np.full(n, 0.5), "unseen": np.full(n, 0.5)}
    for map_ in ("map", *CANDIDATES):
        passes = float(map_ == "read_out")
        every |= {f"gone_{map_}": np.full(n, passes), f"alone_{map_}": np.full(n, passes)}
        every |= {f"among_{map_}": np.full(n, passes), f"highlighted_{map_}": np.ones(n)}
    return every


def test_another_map_that_passes_the_same_test_is_offered(columns):
    numbers = map_numbers(columns)
    assert answer(numbers, T) == "no"
    advice = what_to_do("no", numbers, columns, T, CLASSES)
    assert advice == (
        "show the read-out (what each word's state says for the answer) instead, which finds the deciding "
        "words in 40 of 40 texts"
    )


def test_where_no_other_map_passes_those_that_were_tried_are_named(columns):
    of_none = {**columns, "gone_read_out": np.zeros(40), "alone_read_out": np.zeros(40)}
    advice = what_to_do("no", map_numbers(of_none), of_none, T, CLASSES)
    assert "(leave-one-out, read-out × attention, the read-out) passes the same test" in advice


def read_again(gone=0.4, alone=0.88, highlighted=2, n=80, **more):
    """Texts with an answer of .9 and a lead of .4, of which random words take .12, and keep .08."""
    numbers = {
        "probability": 0.9, "guessing": 0.5, "gone_map": gone, "gone_random": 0.12, "alone_map": alone,
        "alone_random": 0.58 if highlighted else math.nan, "highlighted": highlighted,
    }  # fmt: skip
    return {name: np.full(n, value, dtype=float) for name, value in numbers.items()} | more


def test_what_was_measured_is_said_in_shares_of_the_lead_and_in_texts():
    changes = {"mean_tvd": np.array([0.2, 0.4, np.nan]), "flipped": np.array([0.5, 0.5, np.nan])}
    gone, alone, held, moved = measured(model(RIGHT, RIGHT), read_again(**changes), T).values()
    assert gone == (
        "Left out, the words that the map puts first (up to a third of all) take away all of the answer's "
        "lead, which is its probability above that of a guess; random words take 30%."
    )
    assert alone == (
        "Left alone, the highlighted words (each with at least twice the weight of an even map) keep 95% of "
        "the lead; as many random words keep 20%."
    )
    assert held.startswith("80 of 80 texts have deciding words: ")
    assert " The map finds them in 76 of these, 95% [" in held
    assert held.endswith("; a yes needs 75% or more.")
    few = replace(RIGHT, n=10, losing=10, held=9)
    assert measured(model(few), read_again(), T)["holding"].endswith(
        "; a yes needs 75% or more, so that more texts might change the answer."
    )
    assert moved == (
        "If the weights are shuffled among the words, 50% of the answers change. Shuffles move the "
        "probabilities by 0.30 on average, where 0.03 counts as enough: so the weights matter."
    )
    still = {"mean_tvd": np.array([0.0298]), "flipped": np.array([0.0])}
    assert measured(model(RIGHT), read_again(**still), T)["permutation"].endswith(
        "by 0.030 on average, where 0.03 counts as enough: so the weights hardly matter."
    )


def test_the_shares_are_of_the_same_texts_as_those_of_the_findings():
    gone, highlighted = np.array([0.4, 0.2, 0.0]), np.array([2.0, 1.0, 0.0])
    texts = read_again(n=3) | {
        "gone_map": gone, "highlighted": highlighted, "alone_map": np.array([0.9, 0.7, 0.5]),
        "alone_random": np.array([0.9, 0.7, np.nan]),
    }  # fmt: skip
    half, alone, *_ = measured(model(RIGHT), texts, T).values()
    assert "take away 50% of the answer's lead" in half
    # Where nothing is highlighted, as many random words are none, too.
    assert "keep 50% of the lead; as many random words keep 50%." in alone


def test_of_a_map_that_highlights_nothing_no_word_is_left_alone():
    empty = replace(WRONG, nothing=1.0, random_alone=math.nan, random_among=math.nan)
    texts = read_again(gone=0.08, highlighted=0)
    gone, nothing, _ = measured(model(empty, empty), texts, T).values()
    assert "take away 20% of the answer's lead" in gone
    assert nothing == "In 80 of 80 texts nothing is highlighted."


def test_no_more_than_all_is_lost_and_no_less_than_nothing_kept():
    beyond = replace(RIGHT, losing=0, held=0)
    texts = read_again(gone=0.6, alone=0.4)
    gone, alone, held = measured(model(beyond, beyond), texts, T).values()
    assert "take away all of the answer's lead" in gone
    assert "keep nothing of the lead" in alone
    assert held.startswith("0 of 80 texts have deciding words")
    assert "finds" not in held


@pytest.mark.parametrize("said", ANSWERS)
def test_every_answer_is_a_sentence_with_a_level_then_the_trainings_and_what_to_do(said):
    line = BottomLine(said, "reasons", "advice", trainings="In all trainings.")
    assert line.sentence.endswith(": reasons. In all trainings. What to do: advice.")
    assert line.level == LEVELS[said]


def test_rates_are_those_of_the_models_kind_and_name_the_worst_family():
    assert told_of(rates(gru=kind(right=30, wrong=30)), "gru", "yes") == (
        "it was tried on models of this kind (gru, by hand) that were built to have a known answer. On 30 "
        "wrong maps it said yes once, on 30 right ones it said yes 28 times and never said no; worst "
        "kind of wrong map: random words attended (yes to 1 of 30)."
    )


def test_of_another_answer_than_yes_it_is_told_how_many_maps_with_it_were_right():
    made = rates(gru=kind(right=30, wrong=30))
    assert told_of(made, "gru", "in part").endswith(
        " Of all 4 maps that got the answer of this one, 2 were right."
    )
    assert told_of(made, "gru", "no").endswith(
        " Of all 27 maps that got the answer of this one, none was right."
    )
    assert told_of(made, "gru", "words").endswith("(yes to 1 of 30).")


@pytest.mark.parametrize(
    ("maps", "right", "told"),
    [
        (1, 0, "The only map that got the answer of this one was not right."),
        (1, 1, "The only map that got the answer of this one was right."),
        (2, 0, "Of the two maps that got the answer of this one, none was right."),
        (2, 1, "Of the two maps that got the answer of this one, one was right."),
        (2, 2, "Of the two maps that got the answer of this one, both were right."),
    ],
)
def test_one_map_and_two_are_told_in_words(maps, right, told):
    families = {
        "cue attended": family("right", in_part=right, yes=30),
        "random words attended": family("wrong", in_part=maps - right, no=30),
    }
    assert told_of(rates(gru=OfKind(families=families)), "gru", "in part").endswith(f" {told}")


def test_rates_of_bags_say_that_they_are_of_bags_and_not_of_the_texts_of_the_calibration():
    told = told_of(rates(bags=kind(right=30, wrong=30)), "bags", "yes")
    assert told.startswith("it was tried on models of this kind (bags, bags of digits)")
    assert "by hand" not in told


@pytest.mark.parametrize(
    ("planted", "on"),
    [
        ("pictures", "drawn patterns and digits"),
        ("transformer of pairs", "synthetic pairs"),
    ],
)
def test_rates_of_pictures_and_of_transformers_of_pairs_are_their_own(planted, on):
    told = told_of(packaged_rates(), planted, "yes")
    assert told.startswith(f"it was tried on models of this kind ({planted}, {on})")
    of_kind = packaged_rates().kinds[planted]
    assert f"On {of_kind.of('wrong').n} wrong maps" in told


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"encoder": "mlp", "score": "gated"}, "bags"),
        ({"encoder": "none", "score": "additive"}, "bags"),
        ({"encoder": "lstm"}, "bags, items in context"),
        ({"encoder": "mlp", "maps": "per-class"}, "bags, a map for each class"),
    ],
)
def test_rates_of_bags_are_those_of_one_map_over_items_that_are_read_by_themselves(model, expected):
    audit = make_audit()
    data = audit.settings.data.model_copy(update={"nouns": BAGS})
    changed = {"data": data, "model": ModelSettings.of(**model)}
    assert kind_of(replace(audit, settings=audit.settings.model_copy(update=changed))) == expected


@pytest.mark.parametrize(
    "unplanted",
    ["transformer of several labels", "module for bags", "arrays",
     "bags, items in context", "bags, a map for each class"],
)  # fmt: skip
def test_a_kind_that_was_not_planted_borrows_no_rates_of_another(unplanted):
    assert told_of(packaged_rates(), unplanted, "yes").startswith(
        f"not known, for it was tried on no map of this kind of model ({unplanted})"
    )


def test_rates_of_too_few_plants_are_not_told():
    told = told_of(rates(cnn=kind(right=29, wrong=60)), "cnn", "no")
    assert told == (
        "not known, for it was tried on only 29 right and 60 wrong maps of this kind of model (cnn), built to "
        "have a known answer; 30 of each are wanted."
    )
    assert told_of(rates(), "small-cnn", "no") == (
        "not known, for it was tried on no map of this kind of model (small-cnn), built to have a known "
        "answer; 30 right and as many wrong ones are wanted."
    )


def finding(key, reading=""):
    (skill, *_) = make_audit().findings
    return replace(skill, key=key, reading=reading)


def test_further_trainings_and_labels_leave_less_untested():
    assert "other training seeds" in not_tested([finding("skill")])
    assert "other training seeds" not in not_tested([finding("stability")])
    assert "other training seeds" not in not_tested([finding("skill")], other_trainings=True)
    assert not any("no labels" in one for one in not_tested([finding("skill")]))
    first, *_ = not_tested([replace(finding("skill"), left_out={"no label": 40})])
    assert first == "whether the model predicts well, for the texts have no labels"
