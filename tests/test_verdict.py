"""Every finding of tables written by hand, and the bottom line under them."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_rates import rates
from made_tables import MAPS, TAUS, layers, three_classes, two_classes

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.finding_tables import to_class_frame
from heedmap.experiments.findings import AuditResult, ClassNumber, Finding, Relative, to_json
from heedmap.experiments.intervals import of_mean, of_median, of_share
from heedmap.experiments.registry import make_findings, registered
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings, TransformerSettings
from heedmap.settings.run import RunSettings

SEED = 5
SETTINGS = AuditSettings(seed=SEED)
SAME = "undefined: a measure is the same for all tokens"
ONE = "undefined: one token"
LN2 = math.log(2)


class Expected:
    """What is expected of a finding, by plain arithmetic from columns of the tables."""

    def __init__(
        self, tables, values, left_out, *, median=False, bounds=(0.0, 1.0), room=None, lower=False
    ):
        """`left_out`: rows by reason. `room`: the columns of chance and ceiling, or numbers."""
        self.tables = tables
        instances = tables["instances"]
        self.total = instances.num_rows
        texts = [tuple(text) for text in instances["tokens"].to_pylist()]
        self.texts = np.array([texts.index(text) for text in texts])
        self.predicted = instances["predicted"].to_pylist()
        self.column, self.median, self.bounds = self.of(values), median, bounds
        self.rows = [
            r for r in range(self.total) if r not in {r for x in left_out.values() for r in x}
        ]
        self.left_out = {reason: len(rows) for reason, rows in left_out.items()}
        self.room = room and [self.of(x) for x in room]
        self.lower = lower

    def of(self, column):
        if isinstance(column, tuple):
            return self.tables[column[0]][column[1]].to_pylist()
        return column if isinstance(column, list) else [column] * self.total

    def statistic(self, values):
        return statistics.median(values) if self.median else sum(values) / len(values)

    def interval(self, values, rows, median, bounds):
        values = np.array(values, dtype=float)
        if median:
            return of_median(values, self.texts[rows])
        return of_mean(values, self.texts[rows], SEED, bounds)

    def relative(self):
        if self.room is None:
            return None
        chance, ceiling = self.room
        rows = [r for r in self.rows if None not in (chance[r], ceiling[r])]
        shares = []
        for r in rows:
            above, room = self.column[r] - chance[r], ceiling[r] - chance[r]
            if self.lower:
                above, room = -above, -room
            shares.append(max(-1.0, min(1.0, above / max(room, 0.02))))
        # A text counts as equal to another by three digits of its share.
        low, high = self.interval([round(x, 3) for x in shares], rows, False, (-1.0, 1.0))
        return Relative(
            self.statistic([self.column[r] for r in rows]),
            self.statistic([chance[r] for r in rows]), self.statistic([ceiling[r] for r in rows]),
            sum(shares) / len(shares), low, high, len(rows),
        )  # fmt: skip

    def check(self, found: Finding):
        values = [self.column[r] for r in self.rows]
        assert found.value == pytest.approx(self.statistic(values), abs=1e-12)
        expected = self.interval(values, self.rows, self.median, self.bounds)
        assert (found.low, found.high) == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert found.n == len(self.rows)
        assert found.distinct == len(set(self.texts[self.rows].tolist()))
        assert found.left_out == self.left_out
        assert found.n + sum(found.left_out.values()) == self.total
        by_class = {}
        for c in sorted({self.predicted[r] for r in self.rows}):
            rows = [r for r in self.rows if self.predicted[r] == c]
            by_class["abc"[c]] = self.statistic([self.column[r] for r in rows]), len(rows)
            beside = found.by_class["abc"[c]]
            assert (beside.value, beside.n) == pytest.approx(by_class["abc"[c]])
            chance, ceiling = self.room or [[None] * self.total] * 2
            rows = [r for r in rows if None not in (chance[r], ceiling[r])]
            sides = (self.column, chance, ceiling)
            ends = [self.statistic([end[r] for r in rows]) for end in sides if rows]
            assert beside.compared == len(rows)
            assert [beside.beside, beside.chance, beside.ceiling] == pytest.approx(
                ends or [math.nan] * 3, nan_ok=True
            )
        assert found.by_class.keys() == by_class.keys()
        relative = self.relative()
        if relative is None:
            assert found.relative is None
            return
        assert found.reading == reading(relative)
        numbers = [
            (r.chance, r.ceiling, r.share, r.low, r.high) for r in (found.relative, relative)
        ]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-9, nan_ok=True)
        assert found.relative.n == relative.n


def reading(relative):
    """An integer has no −0."""
    if not math.isfinite(relative.low):
        return f"{round(100 * relative.share)}% of the attainable (too few texts for an interval)"
    share, low, high = (f"{round(100 * x)}%" for x in (relative.share, relative.low, relative.high))
    return f"{share} of the attainable [{low}, {high}]".replace("-", "−")


T = two_classes()
NOT_READ = {"not sampled for integrated gradients": [9]}
NOTHING = "no word has any importance"


def tau(measure, **left_out):
    room = [("baselines", f"tau_{x}_{measure}") for x in ("shuffled", "largest")]
    values = ("agreement", f"tau_attention_{measure}")
    return Expected(T, values, left_out, bounds=(-1.0, 1.0), room=room)


def found(measure, left_out):
    room = [("baselines", f"mass_shuffled_{measure}"), ("importance_mass", f"largest_{measure}")]
    return Expected(T, ("importance_mass", f"mass_{measure}"), left_out, room=room)


def auc(measure, **left_out):
    every = {**left_out, "the rationale holds all words or none": [10, 11]}
    return Expected(T, ("rationale", f"auc_{measure}"), every)


WANTED = {
    "mass_leave_one_out": found("leave_one_out", {ONE: [11], NOTHING: [10]}),
    "mass_gradient": found("gradient", {ONE: [11]}),
    "mass_integrated_gradients": found("integrated_gradients", {**NOT_READ, ONE: [11]}),
    "agreement_gradient": tau("gradient", **{ONE: [11], SAME: [10]}),
    "agreement_leave_one_out": tau("leave_one_out", **{ONE: [11], SAME: [10]}),
    "agreement_integrated_gradients": tau(
        "integrated_gradients", **NOT_READ, **{ONE: [11], SAME: [10]}
    ),
    "agreement_yardstick": Expected(
        T, ("agreement", "tau_gradient_leave_one_out"), {ONE: [11]}, bounds=(-1.0, 1.0)
    ),
    "opposing_mass": Expected(
        T, ("opposing_mass", "against"), {"one token: it cannot be left out": [11]},
        room=[("baselines", "against_shuffled"), 0.0], lower=True,
    ),
    "permutation": Expected(
        T, ("permutation", "median_tvd"), {"one token: nothing to permute": [11]}, median=True,
        room=[("permutation", "chance_tvd"), ("permutation", "largest_tvd")],
    ),
    "uniform": Expected(
        T, ("permutation", "uniform_tvd"), {"one token: it has all the weight": [11]}, median=True,
        room=[("permutation", "uniform_chance"), ("permutation", "uniform_largest")],
    ),
    "adversary": Expected(
        T, [x / LN2 for x in T["adversary"]["jsd"].to_pylist()], {"one token: no other weights": [11]}
    ),
    "smallest_change": Expected(
        T, ("smallest_change", "least_tvd"),
        {"one token: no other weights": [11], "no weights whatever change the answer: a proof": [10]},
        room=[("smallest_change", "shuffled_least_tvd"), ("smallest_change", "least_tvd_largest")],
    ),
    "changeable": Expected(T, ("smallest_change", "changeable"), {"one token: no other weights": [11]}),
    "relative_freedom": Expected(
        T, ("smallest_change", "jsd_share"), {"one token: no other weights": [11]},
        room=[("smallest_change", "shuffled_jsd_share_pairs"), 0.0], lower=True,
    ),
    "simplex_share": Expected(
        T, ("smallest_change", "simplex_share"), {"one token: no other weights": [11]}, median=True,
        room=[("smallest_change", "shuffled_simplex_share"), 0.0], lower=True,
    ),
    "rationale_attention": auc("attention"),
    "rationale_gradient": auc("gradient"),
    "rationale_leave_one_out": auc("leave_one_out"),
    "rationale_integrated_gradients": auc("integrated_gradients", **NOT_READ),
}  # fmt: skip

# Per finding: its clause, and how to read its number.
CARRIES = (
    "each word counts as much as the map weights it; 1 = all weight on the only word that matters"
)
TVD = "0 = no change, 1 = the opposite answer"
TAU = "mean Kendall tau-b, attention against {}"
AUC = "mean ROC AUC of {} for the gold rationale"
FIRST = "0.5 = chance, 1 = always; its first word is one of them in {}"
WORDS = {
    "mass_leave_one_out": ("by leave-one-out", CARRIES),
    "mass_gradient": ("by the gradient", CARRIES),
    "mass_integrated_gradients": ("by integrated gradients", CARRIES),
    "agreement_gradient": (
        TAU.format("the gradient"),
        "1 = same order, −1 = the reverse; 60% of the texts significant at .05, 10% in the reverse order; "
        "random weights 0.10",
    ),
    "agreement_leave_one_out": (
        TAU.format("leave-one-out"),
        "1 = same order, −1 = the reverse; 40% of the texts significant at .05; random weights 0.15, the "
        "model with its parameters shuffled −0.04",
    ),
    "agreement_integrated_gradients": (
        TAU.format("integrated gradients"),
        "1 = same order, −1 = the reverse; 11% of the texts significant at .05; the gradients miss what they "
        "should add up to by more than 0.1 log-odds in 36% of the texts, by more than 1 in 9%",
    ),
    "agreement_yardstick": (
        "mean Kendall tau-b, gradient against leave-one-out",
        "what two measures of importance reach with each other, without attention",
    ),
    "opposing_mass": (
        "mean share of the map's mass on words whose removal makes the answer likelier",
        "0 = none of it, 1 = all; 32% of the words are such words",
    ),
    "permutation": (
        "median change of the prediction (TVD) under 100 shuffles of the weights",
        TVD + "; most shuffles flip 18% of the texts",
    ),
    "uniform": (
        "median change of the prediction (TVD) under uniform weights, at test only",
        TVD + "; another class is predicted for 36% of the texts",
    ),
    "adversary": (
        "mean of the largest JSD from the model's heat map within 0.01 of its prediction, as a share of the "
        "maximum ln 2",
        "0 = no other heat map, 1 = one with nothing in common; one such map is enough, however rare; "
        "the paper's search finds 0.41",
    ),
    "smallest_change": (
        "mean least share of the map's mass that must be moved",
        "0 = the least change suffices, 1 = all of it must move; 0.233 from the same weights shuffled within "
        "the text, to an answer other than theirs (n = 9; the map there 0.344)",
    ),
    "changeable": (
        "share of the texts where some weights give another answer",
        "of the others the answer does not rest on the weights: the states alone decide it",
    ),
    "relative_freedom": (
        "mean of the largest JSD within 0.01 of the prediction, as a share of the largest with any weights",
        "0 = no other heat map, 1 = as if the answer did not matter; 0.836 for the same weights shuffled",
    ),
    "simplex_share": (
        "median share of all weightings within 0.01 of the prediction",
        "0 = hardly any other, 1 = all",
    ),
    "rationale_attention": (AUC.format("attention"), FIRST.format("60%")),
    "rationale_gradient": (AUC.format("the gradient"), FIRST.format("90%")),
    "rationale_leave_one_out": (AUC.format("leave-one-out"), FIRST.format("0%")),
    "rationale_integrated_gradients": (
        AUC.format("integrated gradients"), FIRST.format("33%"),
    ),
}  # fmt: skip
READINGS = {  # of numbers without a chance level
    "agreement_yardstick": "for comparison",
    "adversary": "for comparison",
    "changeable": "for comparison",
    "rationale_attention": "between “seldom finds these words” and “often finds these words”",
    "rationale_gradient": "between “often finds these words” and “finds these words”",
    "rationale_leave_one_out": "no better than chance",
    "rationale_integrated_gradients": (
        "between “no better than chance” and “often finds these words”"
    ),
}  # fmt: skip


def findings(tables, classes, **model):
    shown = TransformerSettings(source="a/model", **model) if model else None
    return {f.key: f for f in make_findings(tables, SETTINGS, classes, shown, rates())}


def test_the_findings_are_in_the_order_of_the_card():
    places = {name: one.place for name, one in registered().items()}
    assert list(findings(T, ["a", "b"])) == ["skill", *WANTED]
    assert [places[name] for name in T if name in places] == sorted(places[name] for name in T)


@pytest.mark.parametrize("key", WANTED)
def test_a_findings_number_and_reading_are_those_of_its_table(key):
    finding = findings(T, ["a", "b"])[key]
    clause, meaning = WORDS[key]
    WANTED[key].check(finding)
    assert finding.level == "for comparison"
    assert finding.meaning == meaning
    colon = (
        "" if key.startswith("mass_") else ":"
    )  # readings are adjectives, verbs, or none of these
    assert finding.because == f"{clause}{colon} {finding.reading}"
    assert finding.no_interval == ""
    if key in READINGS:
        assert finding.reading == READINGS[key]


def test_skill_is_compared_with_the_commonest_label():
    """Ten of twelve are right; eight have the label 0, six are predicted to."""
    skill = findings(T, ["a", "b"])["skill"]
    correct = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1], dtype=float)
    assert skill.value == pytest.approx(10 / 12)
    assert (skill.low, skill.high) == of_share(correct, np.array([0, 0, 0, 1, 1, *range(2, 9)]))
    assert (skill.n, skill.distinct, skill.left_out, skill.relative) == (12, 9, {}, None)
    # The interval's ends stand for gains of −.60 and .90.
    assert (skill.reading, skill.level) == (
        "between “too weak to explain” and “good”",
        "cannot tell",
    )
    assert skill.meaning == "always answering with the commonest class would score 0.667"
    # Of all texts two thirds are labelled "a": as often a random answer "a" is right.
    assert skill.by_class == {
        "a": ClassNumber(1.0, 6, 8 / 12, 1.0, 6, 1.0),
        "b": ClassNumber(4 / 6, 6, 4 / 12, 1.0, 6, 4 / 6),
    }


def test_a_class_stands_beside_its_own_chance_in_the_frame_and_in_json():
    made = [*findings(T, ["a", "b"]).values()]
    frame = to_class_frame(made).set_index(["key", "class"])
    (in_json,) = (each["by_class"] for each in to_json(made) if each["key"] == "opposing_mass")
    column = T["baselines"]["against_shuffled"].to_pylist()
    of_all = statistics.mean(column[:9])
    for name, texts in (("a", [0, 1, 2, 5, 7]), ("b", [3, 4, 6, 8])):
        chance = statistics.mean(column[row] for row in texts)
        assert frame.loc[("opposing_mass", name)].chance == pytest.approx(chance)
        assert in_json[name]["chance"] == pytest.approx(chance)
        assert abs(chance - of_all) > 0.05
    assert (in_json["b"]["n"], in_json["b"]["compared"]) == (5, 4)
    # Text 10 has no smallest change to another answer, so that it has no chance either.
    assert (
        frame.loc[("smallest_change", "b")].n == frame.loc[("smallest_change", "b")].compared == 4
    )


def test_of_one_class_there_is_nothing_to_compare_with():
    tables = two_classes()
    same = tables["instances"].set_column(2, "label", [[0] * 12])
    skill = findings({"instances": same}, ["a", "b"])["skill"]
    assert skill.reading == "one class only among the audited texts: nothing to compare with"
    assert skill.level == "cannot tell"


THREE = three_classes()
ALONE = {"one token: no other weights": [5]}
WANTED_OF_THREE = {
    "adversary": Expected(THREE, [x / LN2 for x in THREE["adversary"]["jsd"].to_pylist()], ALONE),
    "smallest_change": Expected(
        THREE, ("smallest_change", "least_tvd"),
        {**ALONE, "no weights whatever change the answer: a proof": [2]},
        room=[("smallest_change", "shuffled_least_tvd"), ("smallest_change", "least_tvd_largest")],
    ),
    "changeable": Expected(THREE, ("smallest_change", "changeable"), ALONE),
    "relative_freedom": Expected(THREE, ("smallest_change", "jsd_share"), ALONE),
    "simplex_share": Expected(
        THREE, ("smallest_change", "simplex_share"), ALONE, median=True,
        room=[("smallest_change", "shuffled_simplex_share"), 0.0], lower=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", WANTED_OF_THREE)
def test_of_three_classes_too(key):
    WANTED_OF_THREE[key].check(findings(THREE, ["a", "b", "c"])[key])


def test_with_three_classes_bounds_are_called_bounds_and_draws_draws():
    found = findings(THREE, ["a", "b", "c"])
    assert found["skill"].meaning.endswith("would score 0.667")  # four labels of six are 2
    # Mean upper bound 2.14 / 5 / ln 2, mean of the search .65 / 5 / ln 2.
    assert found["adversary"].meaning.endswith(
        "; at least this, at most 0.62 on average; the paper's search finds 0.19"
    )
    free = found["relative_freedom"]
    assert free.measure.endswith(", at least")
    assert free.meaning.endswith(
        "; at most 0.890, with one or two words alone 0.500, 0.520 for the same weights shuffled"
    )
    # A lower bound is no share of the attainable: it could be any number above.
    assert (free.level, free.relative) == ("for comparison", None)
    assert found["simplex_share"].measure.endswith(", of 2000 drawn evenly")
    assert (
        found["simplex_share"].no_interval == "no interval of fewer than 6 distinct texts (here 5)"
    )
    assert (
        found["smallest_change"].no_interval
        == "no interval of fewer than 5 distinct texts (here 4)"
    )


LAYERS = layers()
FEW = {"one token: no other weights": [7], "not sampled for the search": [6]}
HALVES = np.random.default_rng([SEED, *b"halves"]).permutation(6)
BEST = [text[1] if row in HALVES[3:] else None for row, text in enumerate(TAUS)] + [None] * 2
WANTED_OF_LAYERS = {
    "adversary": Expected(LAYERS, [x and x / LN2 for x in LAYERS["adversary"]["jsd"].to_pylist()], FEW),
    "smallest_change": Expected(
        LAYERS, ("smallest_change", "least_tvd"), {**FEW, "no weights that change the answer were found": [2]}
    ),
    # A text whose answer was not seen to change counts as one that nothing is known to change.
    "changeable": Expected(LAYERS, [1, 1, 0, 1, 1, 1, None, None], FEW),
    "relative_freedom": Expected(LAYERS, ("smallest_change", "jsd_share"), FEW),
    "best_map_leave_one_out": Expected(
        LAYERS, BEST,
        {"not sampled for the scan": [6, 7], "used to choose the map": [int(r) for r in HALVES[:3]]},
        bounds=(-1.0, 1.0),
    ),
    # The mean of the last layer's heads: .1 r + .2 + .05; .9 − .1 r.
    "on_words": Expected(
        LAYERS, [*(0.1 * r + 0.25 for r in range(6)), None, None], {"not sampled": [6, 7]}
    ),
    "identified": Expected(
        LAYERS, [*(0.9 - 0.1 * r for r in range(6)), None, None], {"not sampled": [6, 7]}
    ),
}  # fmt: skip
SEARCHED = "found by search (4 starts of 30 steps), so at least this, at most 0.60 on average"
MASS = "mass 70% are on words before, 40% after"
NOT_ASKED = "not asked: the flow would have to be recomputed for every weighting that is tried"


@pytest.mark.parametrize("key", WANTED_OF_LAYERS)
def test_of_layers_and_heads_too(key):
    WANTED_OF_LAYERS[key].check(findings(LAYERS, ["a", "b"], view="row")[key])


def test_what_was_searched_for_is_called_a_bound():
    found = findings(LAYERS, ["a", "b"], view="row")
    assert found["adversary"].meaning.endswith(f"; {SEARCHED}; of the {MASS}")
    assert found["smallest_change"].measure.endswith(", at most: found by line searches")
    assert (found["smallest_change"].level, found["smallest_change"].relative) == (
        "for comparison",
        None,
    )
    assert found["changeable"].measure.endswith(", at least: found by line searches")
    assert found["changeable"].meaning == "of the others nothing is known"
    assert found["relative_freedom"].meaning.endswith("; at most 0.667")
    assert "simplex_share" not in found
    best = found["best_map_leave_one_out"]
    name = "row, layer 0, head 0"
    assert (
        best.measure
        == f"mean Kendall tau-b with leave-one-out of the best of {len(MAPS)} maps: {name}"
    )
    # Its mean is .65 with a standard error of .077: t(5) at 1 − .05 / 8 is 3.81, so .36 for certain.
    assert best.meaning.endswith("(Bonferroni, 95%), 0 lie above 0.4 for certain")
    assert found["on_words"].meaning.endswith("of all rows of the layer they get: [CLS] 10%")
    assert found["identified"].meaning == (
        "1 = no other weights give the head's output; 33% of all text-head pairs have room (longest rank 7); "
        "same output of a head, not only same prediction"
    )
    assert {f.level for f in found.values() if f.key != "skill"} == {"for comparison"}


def test_a_map_that_hardly_follows_its_layers_weights_says_so():
    pinned = layers()
    upper = [0.27 if x else None for x in pinned["adversary"]["jsd_upper"].to_pylist()]  # .39 ln 2
    pinned["adversary"] = pinned["adversary"].set_column(1, "jsd_upper", [upper])
    held = "the map hardly follows the layer's weights, whatever is predicted"
    bound = " (under any weights of the layer, whatever is predicted)"
    for tables, view, words in (
        (pinned, "rollout", held),
        (LAYERS, "rollout", "for comparison"),
        (pinned, "row", "for comparison"),
    ):
        found = findings(tables, ["a", "b"], view=view)["adversary"]
        assert found.reading == words
        assert (bound in found.meaning) == (view == "rollout")
        assert (f"of the layer’s {MASS}" in found.meaning) == (view == "rollout")


def test_what_is_not_asked_of_the_flow_is_counted():
    tables = layers()
    for name, columns in (
        ("adversary", ["jsd", "jsd_upper"]),
        ("smallest_change", ["least_tvd", "own_maximum"]),
    ):
        for column in columns:
            at = tables[name].column_names.index(column)
            none = pa.nulls(8, pa.float64())
            tables[name] = tables[name].set_column(at, column, none)
    found = findings(tables, ["a", "b"], view="flow")
    assert found["adversary"].reading == "not asked of this view"
    assert found["adversary"].left_out == found["smallest_change"].left_out == {NOT_ASKED: 8}


def test_the_bottom_line_of_the_hand_made_tables():
    made = findings(T, ["a", "b"])
    run = RunSettings(
        fingerprint="", data=DataSettings(source="x"), model=ModelSettings(), audit=SETTINGS
    )
    audit = AuditResult(run, ["a", "b"], T, [*made.values()], {})
    line = bottom_line(audit, rates())
    skill = made.pop("skill")
    assert line.answer == "cannot tell"
    assert line.because.startswith("it is not certain that the model predicts clearly better")
    assert line.measured == (
        f"The accuracy is 0.83 [{skill.low:.2f}, {skill.high:.2f}]; {skill.meaning}.",
    )
    # No measure decides by itself: without texts that are read again nothing is said.
    line = bottom_line(replace(audit, findings=[*made.values()]), rates())
    assert line.answer == "cannot tell"
    assert line.because == "the texts were not read again without the highlighted words"


def test_undefined_and_infinite_numbers_are_null_in_json():
    made = to_json(list(findings(THREE, ["a", "b", "c"]).values()))
    bent = next(values for values in made if values["key"] == "smallest_change")
    assert bent["low"] is None
    assert bent["relative"]["low"] is None
    assert bent["relative"]["n"] == 4
