"""Are these the words? What is said of texts that are read again, and of which texts another map is asked."""

import numpy as np
import pyarrow as pa
import pytest
from made_rates import rates
from rule_columns import columns_of

from heedmap.calibration.by_hand import planted_by_hand
from heedmap.calibration.plants import Design, Plant, vocabulary_of, write_texts
from heedmap.experiments.context import AuditContext
from heedmap.experiments.intervals import of_ratio
from heedmap.experiments.methods.rankings import read_outs
from heedmap.experiments.questions.alternatives import CANDIDATES, READ_OUTS
from heedmap.experiments.questions.alternatives import EXPERIMENT as ALTERNATIVES
from heedmap.experiments.questions.highlights import EXPERIMENT, PER_CLASS, TEXTS, sampled
from heedmap.experiments.registry import registered
from heedmap.experiments.results import Results
from heedmap.experiments.rule import FEWEST, Thresholds, answer, map_numbers
from heedmap.settings.audit import AuditSettings

SETTINGS = AuditSettings()
T = Thresholds()


def results(
    predicted, *, of=None, gone=0.4, alone=0.9, best=None, lengths=None, made=None, probability=0.9
):
    """Texts with an answer of .9 and a lead of .4, two classes; `of`: the rows that were asked."""
    n = len(predicted)

    def column(values):
        asked = np.isin(np.arange(n), np.arange(n) if of is None else of)
        return np.where(asked, np.broadcast_to(values, n), np.nan)

    tables = {
        "instances": pa.table({"predicted": predicted, "n_tokens": lengths or [12] * n}),
        "highlights": pa.table(
            {
                "probability": np.full(n, probability),
                "guessing": np.full(n, 0.5),
                "gone_map": column(gone),
                "gone_random": column(0.1),
                "alone_map": column(alone),
                "alone_random": column(0.6),
                "highlighted": column(2.0),
            }
        ),
    }
    if best is not None:
        tables["alternatives"] = pa.table({"gone_best": pa.array(best, pa.float64())})
    return Results(tables, SETTINGS, ["a", "b"], None, made)


def findings(*arguments, **options):
    made = EXPERIMENT.findings(results(*arguments, **options))
    assert [finding.key for finding in made[:2]] == ["needed", "sufficient"]
    return made[:2]


# --- the findings -----------------------------------------------------------------------------------------


def test_the_number_is_a_share_of_the_lead_beside_that_of_random_words():
    gone = np.array([0.4, 0.2, 0.3] * 4)
    needed, sufficient = findings([0, 1] * 6, gone=gone, alone=np.linspace(0.5, 0.9, 12))
    assert needed.value == pytest.approx(gone.sum() / (12 * 0.4))
    expected = of_ratio(gone, np.full(12, 0.4), np.arange(12), SETTINGS.seed)
    assert (needed.low, needed.high) == pytest.approx(expected)
    assert needed.reading == "75% of the lead, random words 25%"
    assert sufficient.value == pytest.approx(0.5)
    assert sufficient.reading == "50% of the lead, random words 25%"
    assert needed.low < needed.value < needed.high


def test_a_class_stands_beside_random_words_and_the_best_ones_of_its_own_texts():
    best = [None] * 6 + [0.35] * 6
    needed, sufficient = findings([0] * 6 + [1] * 6, gone=[0.4] * 6 + [0.1] * 6, best=best)
    a, b = needed.by_class["a"], needed.by_class["b"]
    assert (a.value, a.chance, a.ceiling, a.n) == pytest.approx((1.0, 0.25, 1.0, 6))
    assert (b.value, b.chance, b.ceiling, b.n) == pytest.approx((0.25, 0.25, 0.875, 6))
    assert "random words 0.25, the best by leave-one-out 0.94" in needed.meaning
    assert np.isnan(sufficient.by_class["b"].ceiling)


def test_texts_that_were_not_asked_are_counted_with_the_reason():
    lengths = [12] * 8 + [2, 1]
    needed, sufficient = findings([0, 1] * 5, of=range(6), lengths=lengths)
    for finding in (needed, sufficient):
        assert finding.n == 6
        assert finding.left_out == {"fewer than 3 words": 2, "not sampled": 2}


TWO = [0] * 10 + [1] * 10


@pytest.mark.parametrize(
    ("predicted", "gone", "level"),
    [
        (TWO, [T.mean_gone * 0.4 + 0.01] * 20, "for"),
        # As in the rule the mean must reach one threshold, and each class the other.
        (TWO, [0.5] * 10 + [0.25] * 10, "for"),
        (TWO, [0.5] * 10 + [0.15] * 10, "mixed"),
        (TWO, [T.carried * 0.4 - 0.01] * 20, "against"),
        (TWO, [0.3] * 10 + [0.0] * 10, "against"),
        # A class of few texts has no say.
        ([0] * 20 + [1] * (FEWEST - 1), [0.4] * 20 + [0.0] * (FEWEST - 1), "for"),
        ([0] * (FEWEST - 1) + [1] * (FEWEST - 1), [0.4] * 2 * (FEWEST - 1), "cannot tell"),
    ],
)
def test_needed_words_are_for_a_map_where_they_are_needed_in_every_class(predicted, gone, level):
    needed, _ = findings(predicted, gone=gone)
    assert needed.level == level


@pytest.mark.parametrize(
    ("alone", "level"),
    [
        ([0.9] * 20, "for"),
        ([0.9] * 10 + [0.6] * 10, "mixed"),
        ([0.5 + T.alone * 0.4 - 0.01] * 20, "against"),
        ([0.1] * 20, "against"),  # they speak for another class
    ],
)
def test_sufficient_words_are_for_a_map_where_they_suffice_in_every_class(alone, level):
    _, sufficient = findings(TWO, alone=alone)
    assert sufficient.level == level


@pytest.mark.parametrize(("changed", "level"), [(13, "for"), (7, "against")])
def test_a_number_whose_interval_reaches_the_other_side_leaves_it_open(changed, level):
    made = rates().model_copy(update={"thresholds": Thresholds(gone=0.45, mean_gone=0.55)})
    gone = [0.4] * changed + [0.0] * (20 - changed)
    few, _ = findings([0] * 20, gone=gone, made=made)
    assert few.value == pytest.approx(changed / 20)
    assert few.low < 0.45 if level == "for" else few.high > 0.55
    assert few.level == "mixed"
    many, _ = findings([0] * 200, gone=gone * 10, made=made)
    assert (many.value, many.level) == (pytest.approx(changed / 20), level)


def test_the_edges_are_the_thresholds_of_the_calibration_that_is_used():
    strict = rates().model_copy(update={"thresholds": Thresholds(mean_gone=0.95, mean_alone=0.9)})
    (needed, sufficient), (before, _) = (
        findings(TWO, gone=0.36, made=strict),
        findings(TWO, gone=0.36),
    )
    assert needed.edges == (strict.thresholds.gone, 0.95)
    assert sufficient.edges == (strict.thresholds.alone, 0.9)
    assert (before.level, needed.level) == ("for", "mixed")


@pytest.mark.parametrize("weights", [0.01, 0.2])
@pytest.mark.parametrize("n", [12, 60, 200])
@pytest.mark.parametrize("spoilt", [0.0, 0.7])  # of what is gone in one class
def test_an_answer_that_is_no_yes_stands_above_a_number_that_is_not_for_the_map(n, weights, spoilt):
    said = []
    for seed, holding in enumerate(np.linspace(0.6, 1.0, 9)):
        columns = columns_of(np.random.default_rng(seed), n, holding, weights)
        spoils = np.where(columns["predicted"] == 1, 1 - spoilt, 1.0)
        columns["gone_map"], columns["gone_best"] = (
            columns["gone_map"] * spoils,
            columns["gone_best"] * spoils,
        )
        asked = {name: pa.array(x, from_pandas=True) for name, x in columns.items()}
        tables = {
            "instances": pa.table(
                {"predicted": columns["predicted"].astype(int), "n_tokens": [12] * n}
            ),
            "highlights": pa.table(
                {k: x for k, x in asked.items() if k not in ("gone_best", "mean_tvd")}
            ),
            "alternatives": pa.table({"gone_best": asked["gone_best"]}),
            "permutation": pa.table({"mean_tvd": asked["mean_tvd"]}),
        }
        chips = {
            finding.key: finding
            for finding in EXPERIMENT.findings(Results(tables, SETTINGS, ["a", "b"], None, None))
        }
        numbers = map_numbers(columns)
        assert chips["holding"].value == pytest.approx(numbers.held / numbers.losing)
        assert (chips["holding"].low, chips["holding"].high) == numbers.holding_interval
        assert chips["weights"].value == pytest.approx(numbers.weights)
        said.append(answer(numbers, T))
        if said[-1] != "yes":
            assert {"for"} != {finding.level for finding in chips.values()}, (said[-1], chips)
    assert len({*said}) > 1 or n == 12 or spoilt


# --- which texts are asked --------------------------------------------------------------------------------


def planted(kind, texts=60, counts=None):
    """Texts of a plant without noise, `counts` of each class."""
    plant = Plant("a family", "by hand", 0, texts=texts, sharpness=5.0, noise=0.0)
    design = Design(kind, 1.0 if kind == "faithful" else 0.0)
    split = write_texts(plant, plant.texts, "test", design)
    if counts is not None:
        rows = [np.flatnonzero(split.labels == c)[:count] for c, count in enumerate(counts)]
        split = split.take(np.concatenate(rows).tolist())
    model = planted_by_hand(plant, design, split, vocabulary_of(plant, split))
    return AuditContext(model, split, SETTINGS, registered())


@pytest.mark.parametrize("counts", [(400, 50), (200, 200), (10, 500)])
def test_of_each_predicted_class_as_many_texts_are_drawn_where_there_are_so_many(counts):
    evidence = planted("faithful", 1000, counts)
    rows = sampled(evidence)
    predicted = evidence.table("instances")["predicted"].to_numpy()[rows]
    share = max(PER_CLASS, TEXTS // 2)
    assert np.bincount(predicted).tolist() == [min(count, share) for count in counts]
    assert len(set(rows.tolist())) == len(rows)


def test_the_best_order_is_asked_where_the_map_takes_less_than_half_of_the_lead():
    evidence = planted("reversed")
    asked, others = (evidence.table(name).to_pandas() for name in ("highlights", "alternatives"))
    half = (asked.probability - asked.guessing) / 2
    assert (others.gone_best.notna() == (asked.gone_map < half)).all()
    assert others.gone_best.notna().any()


def test_other_maps_are_asked_only_where_the_one_on_trial_has_no_yes():
    right, wrong = (planted(kind).table("alternatives") for kind in ("faithful", "reversed"))
    for name in CANDIDATES:
        assert right[f"gone_{name}"].null_count == 60
        assert wrong[f"gone_{name}"].null_count == 0
    # Whatever they are asked for, they find the words that decide.
    lost = wrong["gone_leave_one_out"].to_numpy()
    assert lost.mean() > 0.4


def test_the_maps_of_the_read_out_are_what_each_words_state_says_for_the_answer():
    evidence = planted("reversed", texts=20)
    (trace,) = evidence.traces
    maps, table = read_outs(evidence.model, trace), evidence.table("alternatives")
    relevance = trace.readout.relevance[:, 0]
    for i, row in enumerate(trace.rows.tolist()):
        answer = int(trace.predicted[i])
        says = (relevance[i, :, answer] - relevance[i, :, 1 - answer])[trace.mask[i]].numpy()
        assert maps[row]["read_out"] == pytest.approx(says, abs=1e-5)
        weights = trace.heatmap[i][trace.mask[i]].numpy()
        assert maps[row]["read_out_attention"] == pytest.approx(says * weights, abs=1e-5)
        for name in READ_OUTS:
            assert table[name][row].as_py() == maps[row][name].tolist()


def test_the_maps_of_the_read_out_are_drawn_where_they_were_asked():
    experiment = ALTERNATIVES
    row = planted("reversed", texts=20).table("alternatives").slice(0, 1).to_pylist()[0]
    times, read_out = experiment.heat_maps({"alternatives": row})
    assert (times.name, read_out.name) == ("read-out × attention", "the read-out")
    assert read_out.weights == [abs(x) for x in row["read_out"]]
    assert read_out.against == [x < 0 for x in row["read_out"]]
    of_right = planted("faithful", texts=20).table("alternatives").slice(0, 1).to_pylist()[0]
    assert experiment.heat_maps({"alternatives": of_right}) == []


@pytest.mark.parametrize("probability", [0.5, 0.52])
def test_nothing_is_judged_where_there_is_hardly_any_lead(probability):
    predicted = [0, 1] * 20
    gone = np.linspace(-0.3, 0.4, 40)
    for finding in findings(predicted, gone=gone, alone=gone + 0.5, probability=probability):
        assert finding.level == "cannot tell"
        assert np.isnan([finding.low, finding.high]).all()
        assert "below 0.05" in finding.no_interval
        assert "hardly any lead" in finding.reading
    judged = findings(predicted, gone=gone, probability=0.56)
    assert all("of the lead" in finding.reading for finding in judged)
    assert not any("below 0.05" in finding.no_interval for finding in judged)


def test_numbers_below_zero_have_a_true_minus():
    needed, _ = findings([0, 1] * 20, alone=0.2)
    assert "random words 0.25" in needed.meaning
    tables = results([0, 1] * 20, alone=0.2).tables
    column = tables["highlights"].column_names.index("alone_random")
    low = tables["highlights"].set_column(column, "alone_random", pa.array(np.full(40, 0.4)))
    _, sufficient = EXPERIMENT.findings(
        Results({**tables, "highlights": low}, SETTINGS, ["a", "b"], None, None)
    )
    assert "random words −0.25" in sufficient.meaning
