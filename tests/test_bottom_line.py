"""From shares to levels, and from levels to one answer."""

import math
from dataclasses import replace

import pytest
from made_rates import question, rate, rates

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.findings import Finding, Relative, level_of
from heedmap.experiments.instances import ONE_CLASS
from heedmap.experiments.rates import DECISIVE
from heedmap.settings import ModelSettings, TransformerSettings

# --- levels -----------------------------------------------------------------------------------------------

EDGES = question(0.3, -0.3)


@pytest.mark.parametrize(
    ("low", "high", "rates", "level"),
    [
        (0.3, 0.9, EDGES, "for"),
        (0.2999, 0.9, EDGES, "mixed"),
        (-0.9, -0.3, EDGES, "against"),
        (-0.9, -0.2999, EDGES, "mixed"),
        (-0.9, 0.9, EDGES, "mixed"),
        (0.4, 0.9, question(None, -0.3), "mixed"),  # no edge for "for"
        (-0.9, -0.4, question(0.3, None), "mixed"),
        (0.4, 0.9, question(None, None), "for comparison"),  # it tells, but no edge held
        (-0.9, -0.4, question(None, None), "for comparison"),
        (0.4, 0.9, question(0.3, -0.3, auc_low=0.6), "for comparison"),  # its AUC reaches .6
        (0.4, 0.9, question(0.3, -0.3, auc_low=0.6001), "for"),
        (math.nan, math.nan, EDGES, "cannot tell"),
        (0.4, 0.9, None, "for comparison"),
    ],
)
def test_a_level_needs_the_whole_interval_beyond_an_edge(low, high, rates, level):
    assert level_of(low, high, rates) == level


# --- the bottom line --------------------------------------------------------------------------------------


def finding(
    key, level, share=0.5, low=0.4, high=0.55, n=100, relative=True, value=0.5, reading="r"
):
    return Finding(
        key=key, kind="found", question="?", measure="m", value=value, low=0.4, high=0.6, n=n, left_out={},
        reading=reading, level=level, meaning="", distinct=n, because=f"{key} is {level}",
        relative=Relative(0.1, 0.9, share, low, high, n) if relative else None,
    )  # fmt: skip


def three(first, second="for", third="for", **options):
    return [
        finding(key, level, **options)
        for key, level in zip(DECISIVE, (first, second, third), strict=True)
    ]


LOO, GRADIENT, INTEGRATED = DECISIVE
SKILLED = finding("skill", "for", relative=False)
WEAK = finding("skill", "against", relative=False, value=0.51, reading="too weak to explain")
DOUBTFUL = finding(
    "skill", "cannot tell", relative=False, value=0.53,
    reading="between “too weak to explain” and “modest”",
)  # fmt: skip
OF_ONE_CLASS = finding("skill", "cannot tell", relative=False, value=0.9, reading=ONE_CLASS)
OTHER_MAP = (
    "no number of texts, for the map is between right and wrong: another map of this model, or a model that is "
    "made to attend to what it uses"
)
CARRY = "the words it highlights carry"
WORSE = "the model does not predict clearly better than its commonest class"
GUESS = "it is not certain that the model predicts clearly better than its commonest class"
UNCERTAIN = "how much of the importance the words it highlights carry is not certain"
PART = f"{CARRY} a part of the importance"
ALL_CARRIED = f"{CARRY} the importance"
TOO_LITTLE = f"{CARRY} too little of the importance"
CASES = {
    "all speak for it": (three("for"), "yes", ALL_CARRIED, ""),
    "leave-one-out is all there is": (three("for")[:1], "yes", ALL_CARRIED, ""),
    "for, and others for comparison": (
        [finding("sign", "for comparison"), *three("for"), finding("bending", "mixed")],
        "yes", ALL_CARRIED, "",
    ),
    "questions of the papers speak against it: weaker witnesses": (
        [finding("permutation", "against"), *three("for"), finding("sign", "against")], "yes", ALL_CARRIED, "",
    ),
    "so do decisive ones": (
        [finding("sign", "against"), finding("uniform", "against"), *three("for", "for", "against")],
        "no", TOO_LITTLE, "",
    ),
    "several decisive ones do": (
        three("against", "mixed", "against"), "no", TOO_LITTLE, "",
    ),
    "a number without a chance level does not count": (
        [finding("adversary", "against", relative=False), *three("for")],
        "yes", ALL_CARRIED, "",
    ),
    "the model guesses": (
        [WEAK, *three("for")], "cannot tell",
        WORSE,
        "a model that does",
    ),
    "the model guesses, and the map is wrong": (
        [WEAK, *three("against")], "cannot tell",
        WORSE,
        "a model that does",
    ),
    "the model may guess": (
        [DOUBTFUL, *three("for")], "cannot tell",
        GUESS,
        "more texts, or a better model",
    ),
    "the model is always right, of few texts that differ": (
        [replace(DOUBTFUL, value=1.0, distinct=2), *three("for")], "cannot tell",
        GUESS,
        "more different texts",
    ),
    "the model is always right, of texts of one word": (
        [replace(DOUBTFUL, value=1.0), *three("for comparison", n=0, relative=False)], "cannot tell",
        GUESS,
        "more texts, of several words",
    ),
    "there is one class": (
        [OF_ONE_CLASS, *three("for")], "cannot tell",
        "the audited texts are of one class, so that it cannot be seen whether the model predicts",
        "texts of several classes",
    ),
    "no importance by leave-one-out": (
        three("for")[1:], "cannot tell", "no importance could be measured that the map might be compared with",
        "texts of several words whose deletion changes the prediction",
    ),
    "nothing at all": (
        [], "cannot tell", "no importance could be measured that the map might be compared with",
        "texts of several words whose deletion changes the prediction",
    ),
    "too few texts for an interval": (
        three("cannot tell", low=math.nan, high=math.nan), "cannot tell",
        "there are too few different texts for an interval", "more of them, some hundred",
    ),
    "one interval is wide: (.5 / .2)² times the texts": (
        [*three("for")[:1], finding(GRADIENT, "mixed", low=0.0, high=0.5, n=40), three("for")[2]],
        "cannot tell", UNCERTAIN, "more texts, about 250 instead of 40",
    ),
    "an interval of texts that repeat is wide: (.5 / .2)² times the different ones": (
        [
            *three("for")[:1],
            replace(finding(GRADIENT, "mixed", low=0.0, high=0.5, n=40), distinct=8),
            three("for")[2],
        ],
        "cannot tell", UNCERTAIN, "more different texts, about 50 instead of 8",
    ),
    "two intervals are wide: as many as the wider one needs": (
        [
            finding(LOO, "mixed", low=0.0, high=0.41, n=40),
            finding(GRADIENT, "mixed", low=0.0, high=0.25, n=60),
            three("for")[2],
        ],
        "cannot tell", UNCERTAIN,
        "more texts, about 169 instead of 60",
    ),
    "no interval is wide": (
        three("mixed", "for", "mixed", low=0.3, high=0.49), "cannot tell",
        PART, OTHER_MAP,
    ),
}  # fmt: skip
TOLD = (
    "of planted models (by hand), this rule says yes of 2% of 40 [0%, 13%] whose map is wrong for half of the "
    "texts or more and of 75% of 20 [53%, 89%] whose map is right; no of 75% of 40 [60%, 86%] and of 0% of 20 "
    "[0%, 16%]"
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("skill", [[], [SKILLED]], ids=["", "skilled"])
def test_the_bottom_line_follows_its_rule(case, skill):
    given, said, because, would = CASES[case]
    line = bottom_line(
        [*skill, *given] if "skill" not in {f.key for f in given} else given, rates()
    )
    assert (line.answer, line.because, line.would, line.rates) == (said, because, would, TOLD)
    start = {"yes": "Yes, this map may be shown", "no": "No, this map should not be shown"}
    assert line.sentence.startswith(
        start.get(said, "This audit cannot tell whether this map shows")
    )
    assert because in line.sentence
    assert line.sentence.endswith(f"; what would: {would}." if would else f"{because}.")
    json = line.to_json()
    assert json["sentence"] == line.sentence
    assert json["answer"] == said
    assert len(json["not_tested"]) == 3
    assert json["measured"] == list(line.measured)


def test_the_numbers_stand_below_the_sentence_those_against_the_map_first():
    line = bottom_line([SKILLED, *three("for", "mixed", "against")], rates())
    assert line.measured == (
        f"{INTEGRATED} is against: against", f"{LOO} is for: for", f"{GRADIENT} is mixed: mixed",
    )  # fmt: skip
    assert line.details == [f"Measured: {'; '.join(line.measured)}.", f"How sure: {TOLD}."]
    assert not any(character.isdigit() for character in line.sentence)
    assert bottom_line([DOUBTFUL], rates()).measured[0] == "accuracy 0.53 [0.40, 0.60]"
    assert bottom_line([], rates()).details == [f"How sure: {TOLD}."]


def test_what_further_trainings_ask_is_no_longer_untested():
    def left(*keys):
        return bottom_line([replace(SKILLED, key=key) for key in keys], rates()).not_tested

    assert len(left()) == 3
    assert "other training seeds" in left()[0]
    assert left("stability")[0] == "other texts, another of the model's maps"
    assert len(left("trained_adversary")) == 2


OFFER = "show integrated gradients"
REACHED = "integrated gradients: 80% of the attainable, against 10% of this map"


@pytest.mark.parametrize(
    ("levels", "because", "instead"),
    [
        (("for", "for", "for"), OFFER, ""),
        (("against", "for", "for"), OFFER, "rather " + OFFER),
        (("mixed", "for", "for"), OFFER, "rather " + OFFER),
        (("against", "for", "for"), "", ""),  # nothing better was found
    ],
)
def test_what_would_be_better_is_said_where_the_answer_is_not_yes(levels, because, instead):
    better = replace(finding("instead", "for comparison", reading=REACHED), because=because)
    line = bottom_line([*three(*levels), better], rates())
    assert line.instead == instead
    assert line.to_json()["instead"] == instead
    assert ("rather" in line.sentence) == bool(instead)
    if instead:
        assert line.sentence.endswith(f"; {instead}.")
    assert (REACHED in line.measured) == bool(instead)


def test_without_rates_of_the_rule_none_are_told():
    empty = rates().model_copy(update={"verdicts": {}})
    assert bottom_line(three("for"), empty).rates == ""


def test_the_rates_told_are_those_of_the_models_family():
    of = {"yes": rate(1, 50, 0.0, 0.1), "no": rate(9, 10, 0.6, 1.0)}
    some = {
        f"{family}: {truth}": of for family in ("transformers",) for truth in ("wrong", "right")
    }
    both = rates().model_copy(update={"verdicts": rates().verdicts | some})
    told = bottom_line(three("for"), both, TransformerSettings(source="x")).rates
    assert told.startswith("of planted transformers (by hand), this rule says yes of 2% of 50")
    # None of ours were planted: those of all.
    assert bottom_line(three("for"), both, ModelSettings()).rates == TOLD


def test_of_a_model_that_may_guess_nothing_is_offered_instead():
    better = replace(finding("instead", "for comparison"), because=OFFER)
    assert bottom_line([DOUBTFUL, *three("mixed"), better], rates()).instead == ""


def test_a_calibration_without_edges_is_named_as_the_reason():
    none = rates(**{key: question(None, None) for key in DECISIVE})
    line = bottom_line(three("for comparison"), none)
    assert "too few planted models" in line.because
    assert "--seeds" in line.would
