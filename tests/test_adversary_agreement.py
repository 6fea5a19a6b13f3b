"""An adversary's map against its own importance: numbers, chance, the word of the finding."""

import numpy as np
import pytest
import torch
from conftest import small_corpus
from scipy import stats

from heedmap.experiments.context import AuditContext
from heedmap.experiments.questions.adversary_agreement import (
    agreement_of,
    agreements,
    corrected,
    variants,
    word_for,
)
from heedmap.experiments.questions.baselines import tau_of_map
from heedmap.experiments.registry import registered
from heedmap.importance.deletions import reread_without_each
from heedmap.retraining.base import base_of
from heedmap.retraining.trainer import Trainer
from heedmap.runs.retrain import retrain
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings

SIZES = {"embedding_size": 8, "hidden_size": 8, "epochs": 2, "min_df": 1}
BRIEF = {"seeds": 2, "lambdas": (0.5,), "adversary_epochs": 3}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = train(small_corpus(), out=tmp_path_factory.mktemp("runs") / "run", **SIZES)
    return run, retrain(run, ("adversary_agreement",), workers=1, **BRIEF)


def models_of(made):
    run, audit = made
    return agreements(audit.tables["adversary_agreement"], len(run.corpus.splits["test"]))


def test_a_row_per_model_and_text(made):
    models = models_of(made)
    named = [(model.model, model.direction, model.strength) for model in models]
    assert named[1:] == [
        ("control", "adversary", 0.0), ("adversary", "adversary", 0.5), ("adversary", "base", 0.5),
    ]  # fmt: skip
    assert named[0][:2] == ("run", "")
    assert np.isnan(named[0][2])


@pytest.mark.parametrize("measure", ["leave_one_out", "gradient"])
def test_this_models_numbers_are_those_of_its_audit(made, measure):
    _, audit = made
    run = models_of(made)[0]
    for table, column, number in (
        ("agreement", f"tau_attention_{measure}", f"tau_{measure}"),
        ("importance_mass", f"mass_{measure}", f"mass_{measure}"),
        ("importance_mass", f"largest_{measure}", f"mass_largest_{measure}"),
    ):
        expected = audit.tables[table][column].to_numpy().astype(float)
        sampled = np.isfinite(run.numbers[number])
        assert sampled.any()
        assert run.numbers[number][sampled] == pytest.approx(expected[sampled], abs=1e-5)


def test_an_adversary_is_compared_with_its_own_importance(made, tmp_path):
    run, _ = made
    split = run.corpus.splits["test"]
    base = base_of(run.model, run.corpus, run.settings, split, tmp_path)
    trainer = Trainer(base, RetrainSettings.of(**BRIEF), workers=1)
    model = trainer.model(variants(trainer)[1])
    numbers = models_of(made)[2].numbers
    lists = reread_without_each(model, split.texts, "remove")
    for row, without in enumerate(lists):
        trace = model.trace(model.batch([split.texts[row]], [row]))
        heat = trace.heatmap[0].double().numpy()
        answer = trace.logits.double().softmax(-1)
        change = 0.5 * (without.double().softmax(-1) - answer).abs().sum(-1).numpy()
        if len(heat) < 2 or np.ptp(heat) < 1e-6 or len(np.unique(change.round(6))) < len(change):
            continue  # ties that rounding makes are `levelled`, not those of scipy
        expected = stats.kendalltau(heat, change).statistic
        assert numbers["tau_leave_one_out"][row] == pytest.approx(expected, abs=1e-6)
        assert numbers["mass_leave_one_out"][row] == pytest.approx(
            (heat * change).sum() / change.sum(), abs=1e-4
        )


def test_numbers_do_not_depend_on_the_batches(made):
    run, _ = made
    split, settings = run.corpus.splits["test"], AuditSettings()
    context = AuditContext(run.model, split, settings, registered())
    rows = np.arange(len(split))
    together = agreement_of(run.model, context, rows)
    each = [agreement_of(run.model, context, [int(row)]) for row in rows]
    for name, values in together.items():
        alone = np.concatenate([numbers[name] for numbers in each])
        assert values == pytest.approx(alone, abs=1e-6, nan_ok=True)


def test_edges_a_text_of_one_word_has_no_order_and_no_ceiling_is_passed(made):
    run, _ = made
    lengths = np.array([len(text) for text in run.corpus.splits["test"].tokens])
    for model in models_of(made):
        for measure in ("leave_one_out", "gradient"):
            tau = model.numbers[f"tau_{measure}"]
            assert np.isnan(tau[lengths < 2]).all()
            defined = np.isfinite(tau)
            assert (tau[defined] <= model.numbers[f"tau_largest_{measure}"][defined] + 1e-9).all()
            mass = model.numbers[f"mass_{measure}"]
            defined = np.isfinite(mass)
            assert (mass[defined] <= model.numbers[f"mass_largest_{measure}"][defined] + 1e-6).all()


@pytest.mark.parametrize(
    ("tau", "change", "word"),
    [
        ((-0.4, -0.1), (-0.9, -0.5), "anti-correlated"),
        (
            (-0.4, 0.1),
            (-0.9, -0.5),
            "less correlated than its control, whether still correlated is undecided",
        ),
        ((0.2, 0.4), (-0.5, -0.1), "less correlated than its control, and still correlated"),
        ((0.2, 0.4), (0.1, 0.3), "more correlated than its control"),
        ((-0.1, 0.4), (-0.1, 0.3), "undecided: no difference from its control is seen"),
        ((np.nan, np.nan), (np.nan, np.nan), "undecided: no difference from its control is seen"),
    ],
)
def test_the_word_follows_from_the_intervals(tau, change, word):
    assert word_for(tau, change) == word


def test_more_tries_make_wider_intervals():
    values = np.random.default_rng(0).normal(-0.2, 0.5, 40)
    clusters = np.arange(40)
    (low, high), (wider_low, wider_high) = (corrected(values, clusters, n) for n in (1, 24))
    assert wider_low < low < values.mean() < high < wider_high
    # Student's interval of one try, by the obvious formula.
    expected = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected)
    assert np.isnan(corrected(values[:1], clusters[:1], 1)).all()
    assert np.isnan(corrected(values[:0], clusters[:0], 1)).all()


def test_finding_and_figures_name_model_chance_and_tries(made):
    _, audit = made
    found = {finding.key: finding for finding in audit.findings}
    finding = found["adversary_agreement"]
    assert "(4 intervals, together at 95 %)" in finding.meaning
    assert "the control τ" in finding.meaning
    assert "chance" in finding.meaning
    assert "adversary_agreement_gradient" in found
    keys = set(audit.figures)
    assert {"adversary-agreement-leave-one-out", "adversary-agreement-gradient"} <= keys


def test_weights_in_the_reverse_order_of_the_importance_are_anti_correlated():
    values, mask = torch.tensor([[0.1, 0.2, 0.3, 0.4]]), torch.ones(1, 4, dtype=torch.bool)
    assert float(tau_of_map(values.flip(-1), values, mask)) == -1.0
