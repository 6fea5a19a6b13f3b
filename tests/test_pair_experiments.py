"""Every experiment on pairs of texts against the slow, obvious way: one text at a time, `logits_from`."""

from itertools import permutations as every_order

import numpy as np
import pytest
import torch
from conftest import small_pairs
from sklearn.metrics import roc_auc_score

from heedmap.counterfactual.row_weights import permuted
from heedmap.data.texts import exchanged
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import applicable, make_findings, registered
from heedmap.measures import LN2, jensen_shannon, log_odds
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings

SETTINGS = AuditSettings(
    permutations=6, epsilon=0.05, integrated_gradients_steps=48, search_steps=12, descent_steps=60
)
MEASURES = ("attention", "gradient", "leave_one_out", "integrated_gradients")


@pytest.fixture(
    scope="module",
    params=["lstm", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in ("cnn", "average"))],
)
def evidence(request):
    sizes = {"embedding_size": 12, "hidden_size": 16}
    run = train(small_pairs(), encoder=request.param, epochs=6, batch_size=5, min_df=1, **sizes)
    return AuditContext(run.model, run.corpus.splits["test"], SETTINGS, registered())


def rows_of(evidence, name):
    return evidence.table(name).to_pylist()


def alone(evidence, weights=None, text=None, row=0):
    """The prediction for one text in a batch of its own, under these weights if there are any."""
    batch = evidence.model.batch([text or evidence.texts[row]], [0])
    given = None if weights is None else torch.as_tensor(weights, dtype=torch.float32)[None, None]
    embedded = evidence.model.embed(batch)
    return evidence.model.logits_from(embedded, batch, given)[0].double().softmax(-1).numpy()


def tvd(p, q):
    return 0.5 * np.abs(p - q).sum()


def test_instances_are_what_a_batch_of_one_gives(evidence):
    for row in rows_of(evidence, "instances"):
        assert alone(evidence, row=row["row"]) == pytest.approx(row["probabilities"], abs=1e-6)
        assert sum(row["attention"]) == pytest.approx(1, abs=1e-6)
        assert row["query"] == evidence.split.queries[row["row"]]
        assert row["candidates"] == evidence.split.allowed[row["row"]].sum()


def test_median_change_under_shuffles(evidence):
    found = rows_of(evidence, "permutation")
    for trace in evidence.traces:
        rngs = evidence.generators("permutation", trace.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, 6, rngs)))
        for i, row in enumerate(trace.rows.tolist()):
            before, n = alone(evidence, row=row), len(evidence.texts[row])
            weightings = shuffles[:, i, 0, :n]
            if n <= 3:  # all orders there are
                weightings = [weightings[0][list(p)] for p in every_order(range(n))]
            after = [alone(evidence, weights, row=row) for weights in weightings]
            changes = [tvd(p, before) for p in after]
            assert found[row]["median_tvd"] == pytest.approx(np.median(changes), abs=1e-6)
            flips = np.mean([p.argmax() != before.argmax() for p in after])
            assert found[row]["flipped"] == pytest.approx(flips)


def test_uniform_weights(evidence):
    for row in rows_of(evidence, "permutation"):
        n, before = row["n_tokens"], alone(evidence, row=row["row"])
        even = alone(evidence, np.full(n, 1 / n), row=row["row"])
        assert row["uniform_tvd"] == pytest.approx(tvd(before, even), abs=1e-6)
        assert row["uniform_flipped"] == (before.argmax() != even.argmax())


def test_what_the_adversary_finds_is_feasible_and_as_different_as_it_says(evidence):
    instances, found = rows_of(evidence, "instances"), rows_of(evidence, "adversary")
    for own, other in zip(instances, found, strict=True):
        before = alone(evidence, row=own["row"])
        after = alone(evidence, other["attention"], row=own["row"])
        assert tvd(before, after) <= SETTINGS.epsilon + 1e-5
        assert tvd(before, after) == pytest.approx(other["tvd"], abs=1e-5)
        heat = torch.tensor([own["attention"], other["attention"]], dtype=torch.float64)
        assert other["jsd"] == pytest.approx(float(jensen_shannon(*heat)), abs=1e-5)
        # No weighting is further away than all weight on the least attended word.
        corner = torch.eye(len(heat[0]), dtype=torch.float64)[heat[0].argmin()]
        assert other["jsd_upper"] == pytest.approx(float(jensen_shannon(heat[0], corner)), abs=1e-5)
        assert other["jsd"] <= other["jsd_upper"] <= LN2
        assert 0 <= other["search_jsd"] <= other["jsd_upper"] + 1e-6
        assert other["search_found"] or other["search_jsd"] == 0


def test_the_search_is_seldom_behind_the_papers(evidence):
    table = evidence.table("adversary").to_pandas()
    assert (table["jsd"] >= table["search_jsd"] - 0.02).mean() >= 0.9
    assert table["search_found"].any()


def test_leave_one_out_reads_the_text_again(evidence):
    for row in rows_of(evidence, "leave_one_out"):
        text = evidence.texts[row["row"]]
        if len(text) == 1:
            assert np.isnan(row["importance"]).all()
            continue
        before = alone(evidence, row=row["row"])
        without = [alone(evidence, text=exchanged(text, t)) for t in range(len(text))]
        slow = [tvd(before, after) for after in without]
        assert row["importance"] == pytest.approx(slow, abs=2e-6)


def test_the_gradient_is_that_of_the_text_alone(evidence):
    for row in rows_of(evidence, "gradient"):
        batch = evidence.model.batch([evidence.texts[row["row"]]], [0])
        weights = evidence.model.trace(batch).attention
        embedded = evidence.model.embed(batch).requires_grad_()
        logits = evidence.model.logits_from(embedded, batch, weights)
        log_odds(logits, logits.argmax(-1)).sum().backward()
        slow = (embedded.grad * embedded).sum(-1)[0, 1:-1].abs()
        assert row["importance"] == pytest.approx(slow.tolist(), abs=1e-4, rel=1e-4)


def test_integrated_gradients_are_complete_and_a_sum_along_the_way(evidence):
    steps = 300
    for row in rows_of(evidence, "integrated_gradients")[:5]:
        assert row["completeness_error"] < 0.01
        batch = evidence.model.batch([evidence.texts[row["row"]]] * steps, range(steps))
        full = evidence.model.embed(batch)
        empty = full.masked_fill(evidence.model.token_positions(batch).unsqueeze(-1), 0.0)
        target = evidence.model.logits(batch).argmax(-1)
        along = ((torch.arange(steps) + 0.5) / steps)[:, None, None]
        points = (empty + along * (full - empty)).requires_grad_()
        log_odds(evidence.model.logits_from(points, batch), target).sum().backward()
        slow = ((full - empty)[0] * points.grad.mean(0)).sum(-1)[1:-1].abs()
        assert row["importance"] == pytest.approx(slow.tolist(), abs=0.005)


def test_the_rationale_is_judged_text_by_text(evidence):
    instances = rows_of(evidence, "instances")
    for row in rows_of(evidence, "rationale"):
        own = instances[row["row"]]
        gold = own["rationale"]
        if all(gold) or not any(gold):
            assert np.isnan(row["auc_attention"])
            continue
        slow = roc_auc_score(gold, own["attention"])
        assert row["auc_attention"] == pytest.approx(slow)


def test_a_text_of_one_token_is_defined_or_counted(evidence):
    short = [i for i, text in enumerate(evidence.texts) if len(text) == 1]
    assert short
    run_of = {name: rows_of(evidence, name) for name in applicable(evidence.model, evidence.split)}
    for i in short:
        assert run_of["permutation"][i]["median_tvd"] == pytest.approx(0, abs=1e-7)
        assert run_of["permutation"][i]["uniform_tvd"] == pytest.approx(0, abs=1e-7)
        assert run_of["adversary"][i]["jsd"] == pytest.approx(0, abs=1e-6)
        assert run_of["adversary"][i]["jsd_upper"] == pytest.approx(0, abs=1e-6)
        assert run_of["adversary"][i]["search_jsd"] == pytest.approx(0, abs=1e-6)
        assert np.isfinite(run_of["gradient"][i]["importance"]).all()
        assert np.isnan(run_of["leave_one_out"][i]["importance"]).all()
        assert np.isnan(run_of["agreement"][i]["tau_attention_gradient"])


def test_batches_of_one_give_the_same_tables_and_findings(evidence, monkeypatch):
    names = applicable(evidence.model, evidence.split)
    ways = []
    for tokens in (1 << 14, 1):
        monkeypatch.setattr(evidence.model, "tokens_at_once", tokens)
        some = evidence.split.take(range(8))
        again = AuditContext(evidence.model, some, SETTINGS, registered())
        assert len(again.batches) == (8 if tokens == 1 else 1)
        ways.append({name: again.table(name) for name in names})
    together, single = ways
    for name in ("instances", *MEASURES[1:]):
        column = "attention" if name == "instances" else "importance"
        for a, b in zip(together[name][column], single[name][column], strict=True):
            np.testing.assert_allclose(a.as_py(), b.as_py(), atol=2e-5, rtol=1e-4)
    for name, column in (("permutation", "uniform_tvd"), ("adversary", "jsd_upper")):
        np.testing.assert_allclose(*(tables[name][column].to_numpy() for tables in ways), atol=1e-6)
    findings = [make_findings(tables, SETTINGS, evidence.model.classes) for tables in ways]
    for one, other in zip(*findings, strict=True):
        assert (one.key, one.n, one.left_out) == (other.key, other.n, other.left_out)
        # A word that stands twice ties with itself, or nearly so: the last digit decides.
        if one.key not in ("permutation", "adversary"):  # these draw anew
            assert one.value == pytest.approx(other.value, abs=0.02, nan_ok=True), one.key
