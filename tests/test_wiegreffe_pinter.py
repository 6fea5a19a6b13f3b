"""The reproduction of Wiegreffe & Pinter, small but complete."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import contents, small_corpus, small_pairs
from sklearn.metrics import f1_score
from wording import refused

from heedmap.experiments.questions.adversary_agreement import Agreement
from heedmap.experiments.questions.guidance import GUIDES
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.registry import figures as figures_of
from heedmap.papers.kit.render import markdown
from heedmap.papers.kit.result import MARK
from heedmap.papers.wiegreffe_pinter.agreement import Agreements
from heedmap.papers.wiegreffe_pinter.paper import read, reproduce
from heedmap.papers.wiegreffe_pinter.published import F1, REPLICATED
from heedmap.papers.wiegreffe_pinter.result import result
from heedmap.papers.wiegreffe_pinter.settings import DATA
from heedmap.settings.data import DataSettings

TINY = {"seeds": 2, "epochs": 1, "adversary_epochs": 2, "lambdas": (0.5,), "workers": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return reproduce(small_corpus(), out=tmp_path_factory.mktemp("runs") / "made", **TINY)


def test_every_question_has_a_table_or_a_claim_and_every_figure_is_drawn(made):
    found = result(made)
    titles = [part.title if hasattr(part, "title") else part.text for part in found.sections]
    assert len(titles) == 9
    assert len(found.claims) == 4
    keys = {figure.key for figure in figures_of(made.folder)}
    assert {"necessity", "stability", "guidance", "trained-adversaries"} <= keys
    assert "adversary-agreement-leave-one-out" in keys
    text = markdown(found)
    assert "adversaries of 2 epochs instead of 80" in text
    assert "no pretrained word vectors" in text


def test_published_numbers_stand_beside_their_own_data_sets_alone(made):
    assert len(result(made).summary.lines) == 1
    assert "guided by uniform weights" in made.learned.models
    assert all(
        c.basis.startswith("By an interval over the test texts") for c in result(made).claims
    )
    data = made.settings.data.model_copy(update={"dataset": "sst"})
    theirs = replace(made, settings=made.settings.model_copy(update={"data": data}))
    lines = {line[0]: line[1:] for line in result(theirs).summary.lines}
    assert lines["Wiegreffe & Pinter, Table 2"] == ["0.831", "0.822"]
    assert lines["third-party replication, one run"] == ["0.830", "0.825"]
    assert set(F1) == set(REPLICATED) <= set(DATA.values())
    assert all(DataSettings(source="x", dataset=name).dataset for name in DATA.values())


@pytest.mark.parametrize(
    ("centre", "spread", "verdict"),
    [(-0.5, 0.1, "survives"), (0.5, 0.1, "does not"), (0.0, 0.3, "undecided")],
)
def test_the_claim_of_anti_correlation_follows_from_corrected_intervals(
    made, centre, spread, verdict
):
    numbers = {
        f"{number}_{measure}": np.random.default_rng(0).normal(centre, spread, 30)
        for number in ("tau", "tau_shuffled", "mass", "mass_shuffled")
        for measure in ("leave_one_out", "gradient")
    }
    positive = {name: np.abs(values) for name, values in numbers.items()}
    models = [
        Agreement("run", "", np.nan, np.nan, np.nan, positive),
        Agreement("control", "adversary", 0.0, 0.0, 0.0, positive),
        Agreement("adversary", "adversary", 0.5, 0.1, 0.5, numbers),
    ]
    agreement = Agreements(models, np.arange(30), Learned({}))
    word, lines, decisive = agreement.anti_correlated()
    assert word == verdict
    assert len(lines) == 2
    assert decisive.value == pytest.approx(-numbers[f"tau_{_measure(decisive)}"].mean())
    assert [line[0] for line in agreement.table().lines] == [
        "this model", "λ = 0, the control", "λ 0.5, KL(adversary ‖ base)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("below", "verdict"), [(1, "does not"), (4, "undecided"), (5, "survives"), (8, "survives")]
)
def test_one_map_of_eight_that_is_anti_correlated_is_not_enough(below, verdict):
    """Four adversaries and two measures; τ of the first ones is -.07 for certain, of the others .1."""
    noise = np.linspace(-0.01, 0.01, 30)
    taus = iter([-0.07] * below + [0.1] * (8 - below))
    adversaries = [
        Agreement("adversary", direction, strength, 0.1, 0.5, {
            f"tau_{measure}": next(taus) + noise for measure in ("leave_one_out", "gradient")
        })
        for direction in ("adversary", "base")
        for strength in (0.001, 0.01)
    ]  # fmt: skip
    agreement = Agreements([None, None, *adversaries], np.arange(30), Learned({}))
    word, lines, decisive = agreement.anti_correlated()
    assert word == verdict
    assert len(lines) == 8
    assert decisive.value == pytest.approx(0.07 if below > 4 else -0.1)


@pytest.mark.parametrize(("jsd", "verdict"), [(0.5, "survives"), (0.41, "undecided")])
def test_a_map_counts_as_far_if_its_interval_is(made, jsd, verdict):
    changed = replace(made)
    changed.__dict__["learned"] = Learned({})
    rows = len(made.label)
    distances = jsd + 0.1 * (-1.0) ** np.arange(rows)
    control, *adversaries = made.adversaries
    changed.__dict__["adversaries"] = [
        control, *(replace(a, jsd=distances, tvd=np.full(rows, -1.0)) for a in adversaries)
    ]  # fmt: skip
    (claim,) = [claim for claim in result(changed).claims if "farther than" in claim.text]
    assert claim.verdict == verdict


def _measure(estimate):
    return "leave_one_out" if "loo" in estimate.of else "gradient"


def test_an_adversary_that_has_not_learned_is_not_counted(made):
    failed = Learned({"λ 0.5, KL(adversary ‖ base)": {1: [accuracy(0.5, 0.5, 100)]}})
    agreement = Agreements.of(made.audit, failed)
    agreement.models[:] = [m for m in agreement.models if m.direction != "base"]
    word, lines, decisive = agreement.anti_correlated()
    assert (word, lines, decisive) == ("undecided", ["no adversary has learned"], None)
    assert any(MARK in line[0] for line in agreement.table().lines)


@pytest.mark.parametrize(
    ("failed", "marks"),
    [
        (["guided by uniform weights", "guided by a trained adversary's"], 0),
        (["guided by its own, learned"], 1),
        (["with attention"], 3),
        (["guided by uniform weights", "guided by its own, learned", "guided by this map"], 1),
        ([f"guided by {guide}" for guide in GUIDES.values()], 3),
    ],
)
def test_guided_models_count_unless_none_of_them_has_learned(made, failed, marks):
    changed = replace(made)
    scores = {name: {1: [accuracy(0.5, 0.5, 100)]} for name in failed}
    changed.__dict__["learned"] = Learned(scores, made.learned.counted)
    (claim,) = [claim for claim in result(changed).claims if "best guide" in claim.text]
    assert sum(line.endswith(MARK) for line in claim.numbers) == marks
    assert (claim.decisive is None) == (marks == 3)


def test_a_far_adversary_that_has_not_learned_neither_lets_a_claim_survive_nor_fall(made):
    changed = replace(made)
    scores = {a.name: {1: [accuracy(0.5, 0.5, 100)]} for a in made.adversaries[1:]}
    changed.__dict__["learned"] = Learned(scores)
    changed.__dict__["adversaries"] = [
        replace(a, jsd=np.full(len(a.jsd), 0.5)) for a in made.adversaries
    ]
    (claim,) = [claim for claim in result(changed).claims if "farther than" in claim.text]
    assert (claim.verdict, claim.decisive) == ("undecided", None)
    assert all(line.endswith(MARK) for line in claim.numbers)
    assert len(claim.numbers) == len(scores)


def test_f1_is_that_of_class_1(made):
    seeds = made.seeds("necessity", "uniform")
    lists = np.array(made.audit.tables["necessity"]["uniform"].to_pylist())
    assert seeds.f1 == [f1_score(made.label, one, zero_division=0.0) for one in lists.T]


def test_it_is_read_back_and_not_made_again(made, monkeypatch):
    before = contents(made.folder)
    monkeypatch.setattr("heedmap.retraining.trainer.fit", pytest.fail)
    monkeypatch.setattr("heedmap.runs.train.fit", pytest.fail)
    again = reproduce(small_corpus(), out=made.folder, **TINY)
    assert contents(made.folder) == before
    assert markdown(result(again)) == markdown(result(made)) == markdown(result(read(made.folder)))


def test_other_settings_are_refused_and_nothing_is_lost(made):
    before = contents(made.folder)
    with refused("seeds: 2 -> 3", "--overwrite"):
        reproduce(small_corpus(), out=made.folder, **TINY | {"seeds": 3})
    assert contents(made.folder) == before


@pytest.mark.exhaustive
def test_pairs_are_refused_and_more_than_two_classes_are_not(tmp_path):
    with refused("single texts of words", "pairs"):
        reproduce(small_pairs(), out=tmp_path / "out", **TINY)
    assert not (tmp_path / "out").exists()
    made = reproduce(small_corpus(classes=3), out=tmp_path / "three", **TINY)
    assert len(result(made).claims) == 4
    lists = np.array(made.audit.tables["necessity"]["uniform"].to_pylist())
    macro = [f1_score(made.label, one, average="macro", zero_division=0.0) for one in lists.T]
    assert made.seeds("necessity", "uniform").f1 == macro
