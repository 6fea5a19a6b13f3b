"""Memory does not grow with a text's length or the classes; the size of blocks changes no number."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import random_texts, small_corpus, small_model, small_pairs, watched
from making import evidence_of

from heedmap.experiments import context, cost
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import forecast
from heedmap.experiments.methods import kendall
from heedmap.experiments.questions import adversary, importance, permutation
from heedmap.experiments.registry import estimate, make_findings, registered
from heedmap.importance import integrated_gradients as integrated
from heedmap.importance import leave_one_out
from heedmap.importance.deletions import reread_without_each
from heedmap.models.attention_classifier import LOGITS, TOKENS
from heedmap.models.pair_classifier import PairClassifier
from heedmap.runs import audit as auditing
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.training import attention

SLOW = pytest.mark.slow
SHORT = AuditSettings(permutations=7, descent_steps=3, search_steps=3, search_instances=8)


def audited(model, texts, labels=None, settings=SHORT):
    return evidence_of(model, texts, settings, labels)


@pytest.mark.parametrize(("encoder", "pairs"), [("lstm", True), ("cnn", False), ("average", False)])
def test_a_batch_read_in_parts_has_the_same_outputs_and_gradient(monkeypatch, encoder, pairs):
    corpus = small_pairs(40) if pairs else small_corpus(3, 40)
    run = train(corpus, encoder=encoder, embedding_size=8, hidden_size=8, epochs=1, min_df=1)
    model = run.model
    batch = run.encoded(corpus.splits["train"]).batch(range(17))
    gradients = []
    for positions in (10**6, 3 * batch.ids.shape[1], 1):
        monkeypatch.setattr(attention, "GRADIENT_POSITIONS", positions)
        model.train().requires_grad_(True).zero_grad()
        outputs, weights = attention.outputs_of(model, batch)
        attention.cross_entropy(model, run.encoded(corpus.splits["train"]))(
            outputs, weights, batch
        ).backward()
        gradients.append(
            [
                outputs.detach(),
                weights.detach(),
                *(p.grad for p in model.parameters() if p.grad is not None),
            ]
        )
    for other in gradients[1:]:
        assert len(other) == len(gradients[0])
        for one, same in zip(gradients[0], other, strict=True):
            torch.testing.assert_close(same, one, rtol=1e-4, atol=1e-6)


def test_an_ordinary_batch_is_read_at_once(monkeypatch):
    monkeypatch.setattr(attention, "read_again", None)
    model = small_model()
    batch = model.batch(random_texts([510] * 32), range(32))
    assert attention.outputs_of(model, batch)[0].shape == (32, 1)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 33, 40])
def test_tau_in_blocks_is_tau_at_once_bit_by_bit(monkeypatch, size):
    rng = np.random.default_rng(size)
    values = torch.from_numpy(rng.integers(0, 9, (5, 4, size)).astype(float))
    mask = torch.from_numpy(rng.random((5, size)) < 0.8)
    whole, against = (
        kendall.kendall_tau(values, mask),
        kendall.tau_against(values, values[:, :2], mask),
    )
    for elements in (1, 100, 999):
        monkeypatch.setattr(kendall, "ELEMENTS", elements)
        blocks = kendall.kendall_tau(values, mask)
        assert torch.equal(blocks.tau.nan_to_num(9), whole.tau.nan_to_num(9))
        assert torch.equal(blocks.p.nan_to_num(9), whole.p.nan_to_num(9))
        again = kendall.tau_against(values, values[:, :2], mask)
        assert torch.equal(again.nan_to_num(9), against.nan_to_num(9))


@pytest.mark.parametrize("classes", [2, 5])
def test_permutations_in_blocks_are_the_same_permutations(monkeypatch, classes):
    texts = random_texts([1, 2, 3, 3, 9, 9, 9, 30])
    model = small_model(classes=classes)
    whole = audited(model, texts).table("permutation")
    for logits in (1, 40, 200):
        monkeypatch.setattr(permutation, "LOGITS", logits)
        assert audited(model, texts).table("permutation").equals(whole)


def test_the_steps_of_long_texts_are_integrated_in_parts(monkeypatch):
    texts = random_texts([1, 2, 9, 30])
    for encoder in ("average", "cnn"):
        model = small_model(encoder)
        whole = audited(model, texts).table("integrated_gradients")
        monkeypatch.setattr(integrated, "POSITIONS", 20)
        parts = audited(model, texts).table("integrated_gradients")
        monkeypatch.undo()
        for one, other in zip(*(t["importance"].to_pylist() for t in (whole, parts)), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-6)


def test_a_text_too_long_to_keep_its_states_is_read_again(monkeypatch):
    texts = random_texts([1, 2, 9, 30])
    model = small_model(classes=5)
    batch = model.batch(texts, range(4))
    kept = leave_one_out.logits_without_each(model, batch, texts)
    monkeypatch.setattr(leave_one_out, "MOST", 100)
    monkeypatch.setattr(leave_one_out, "_reuse", None)
    again = leave_one_out.logits_without_each(model, batch, texts)
    torch.testing.assert_close(again, kept, equal_nan=True, rtol=1e-4, atol=1e-5)
    for row, slow in zip(again, reread_without_each(model, texts), strict=True):
        torch.testing.assert_close(row[: len(slow)], slow, equal_nan=True)


def test_traces_are_kept_by_what_they_hold(monkeypatch):
    texts = random_texts([20] * 50)
    for classes in (2, 300):
        model = small_model(classes=classes)
        held = audited(model, texts)
        monkeypatch.setattr(context, "KEPT", 60_000)
        for _ in range(2):
            list(held.traces)
        kept = sum(t.readout.relevance.nbytes for t in held._traces.values())
        assert kept <= 60_000
        assert bool(held._traces) == (classes == 2)


@pytest.mark.parametrize(
    ("classes", "tokens"), [(2, TOKENS), (64, TOKENS), (65, LOGITS // 65), (1000, 1048)]
)
def test_a_batch_holds_fewer_tokens_of_very_many_classes(classes, tokens):
    assert small_model(classes=classes).tokens_at_once == tokens


def test_pairs_keep_no_number_a_token_and_class():
    assert small_model(classes=1000, kind=PairClassifier).tokens_at_once == TOKENS


def test_of_very_many_classes_the_adversary_is_searched_for_and_told_so():
    texts = random_texts([1, 2, 6, 9])
    few, many = (audited(small_model(classes=c), texts) for c in (64, 65))
    columns = many.table("adversary").column_names
    assert "curve_lower" not in columns
    assert {"tvd", "search_jsd"} <= set(columns)
    found = many.table("adversary").to_pandas()
    assert (found.jsd <= found.jsd_upper + 1e-9).all()
    assert (found.tvd <= SHORT.epsilon + 1e-9).all()
    tables = {name: many.table(name) for name in ("instances", "adversary")}
    (found,) = (f for f in make_findings(tables, SHORT, many.model.classes) if f.key == "adversary")
    assert "found by search (65 classes are too many for a bound of each two)" in found.meaning
    assert adversary.is_enclosed(next(few.traces))
    assert not adversary.is_enclosed(next(many.traces))


@SLOW
def test_the_searched_adversary_of_many_classes_is_within_the_bounds(monkeypatch):
    texts = random_texts([3, 6, 9, 12])
    settings = AuditSettings(search_instances=8)
    model = small_model(classes=4)
    bounds = audited(model, texts, settings=settings).table("adversary").to_pandas()
    monkeypatch.setattr(adversary, "MOST_CLASSES", 3)
    found = audited(model, texts, settings=settings).table("adversary").to_pandas()
    assert (found.jsd <= bounds.jsd_upper + 1e-6).all()
    assert found.jsd.mean() >= 0.8 * bounds.jsd.mean()


@pytest.mark.parametrize(("classes", "encoder"), [(2, "lstm"), (3, "cnn"), (65, "average")])
def test_what_an_audit_of_our_own_model_costs_is_told_beforehand(classes, encoder):
    held = audited(small_model(encoder, classes=classes), random_texts([1, 2, 30, 40] * 5))
    costs = estimate(held)
    assert set(costs) == {
        "instances", "leave_one_out", "gradient", "integrated_gradients", "permutation", "adversary",
        "baselines", "smallest_change", "better_maps", "erasure", "decision_flips", "class_erasure", "eraser",
        "highlights", "alternatives", "trainings",
    }  # fmt: skip
    assert all(np.isfinite(cost) and cost >= 0 for cost in costs.values())
    assert forecast(costs).startswith("about ")
    held.table("adversary")
    assert "adversary" not in estimate(held)


def test_a_forecast_reads_the_beginning_of_a_long_text():
    held = audited(small_model("average"), random_texts([3 * cost.PROBED] * 2))
    speed = cost.measure(held)
    assert speed.trace.mask.shape == (1, cost.PROBED)
    assert speed.squares() == 2 * 3**2


@pytest.mark.parametrize(("asked", "seconds"), [(20, 20.0), (5, 5.0)])
def test_the_forecast_of_integrated_gradients_is_of_two_texts_tried_and_of_the_sample(
    monkeypatch, asked, seconds
):
    """A clock on which the two of twenty texts take a second, and further steps double it."""
    settings = SHORT.model_copy(update={"integrated_gradients_instances": asked})
    held = audited(small_model("lstm"), random_texts([5] * 20), settings=settings)
    speed = cost.measure(held)
    monkeypatch.setattr(importance.time, "perf_counter", iter(range(9)).__next__)
    assert registered()["integrated_gradients"].cost(speed) == pytest.approx(seconds)


def test_a_forecast_reads_no_more_at_a_time_than_the_model_may():
    held = audited(small_model("average", classes=2048), random_texts([40] * 30))
    assert cost.measure(held).trace.mask.sum() <= held.model.tokens_at_once


def test_what_an_audit_of_pairs_costs_is_told_beforehand():
    split = small_pairs(30).splits["test"]
    held = AuditContext(small_model(classes=4, kind=PairClassifier), split, SHORT, registered())
    assert estimate(held)["adversary"] > 0


def test_a_forecast_of_our_own_model_is_told_from_a_minute_on(monkeypatch, small_run):
    said = []
    with watched(note=said.append):
        auditing.audit(small_run, permutations=3)
    assert said == []
    monkeypatch.setattr(auditing, "estimate", lambda held: {"adversary": 61.0})
    with watched(note=said.append):
        auditing.audit(small_run, permutations=3)
    assert said == ["The experiments will take about 61 s (adversary 100%)."]


def peak(what, limit=16_000):
    """Megabytes that a function of `memory_peaks.py` takes at its most, in a process of its own."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("memory_peaks.py"), str(limit), what],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout.splitlines()[-1])


@pytest.mark.exhaustive
@SLOW
def test_training_on_texts_of_4000_tokens_takes_bounded_memory():
    # `heedmap train` on 50 such texts took 2760 MB when a batch was read at once, and 1247 MB in parts.
    assert peak("trains_on_long_texts") - peak("trains_on_short_texts") < 1200


@SLOW
def test_a_thousand_classes_are_audited_in_bounded_time_and_memory():
    assert peak("audits_a_thousand_classes") < 1000


@SLOW
def test_experiments_on_texts_of_4000_tokens_take_bounded_memory():
    assert peak("audits_long_texts") - peak("audits_short_texts") < 400
