"""Erasure, as an experiment: closed forms against imposing what is left, for any model."""

import numpy as np
import pytest
import torch
from conftest import random_texts, small_model
from making import evidence_of
from scipy import stats
from tiny_transformers import tiny_classifier

from heedmap.counterfactual import weight_erasure as closed
from heedmap.counterfactual.row_weights import permuted
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods import erasure_predictions as erased
from heedmap.experiments.methods.flip_sets import RANKINGS
from heedmap.experiments.methods.flip_table import flip_table
from heedmap.experiments.questions.decision_flips import SHUFFLES, efficiency
from heedmap.experiments.registry import make_findings
from heedmap.measures import jensen_shannon
from heedmap.report.erasure_figures import curves
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings

SETTINGS = AuditSettings(search_instances=12)
LENGTHS = [1, 2, 3, 5, 8, 8, 12, 1, 4, 20]


def held(classes=2, **changed):
    return evidence_of(small_model(classes=classes), random_texts(LENGTHS), SETTINGS, **changed)


@pytest.mark.parametrize("classes", [2, 3])
def test_imposing_what_is_left_gives_what_the_closed_forms_give(classes, monkeypatch):
    evidence = held(classes)
    for trace in evidence.traces:
        rankings = (trace.heatmap, -trace.heatmap)

        def asked(trace=trace, rankings=rankings):
            flips = [erased.along(evidence.model, trace, ranking) for ranking in rankings]
            return erased.without_each(evidence.model, trace), flips

        logits, flips = asked()
        with monkeypatch.context() as patch:
            patch.setattr(erased, "is_linear", lambda trace: False)
            again, others = asked()
        real = trace.mask
        torch.testing.assert_close(again[real].to(logits), logits[real], atol=1e-5, rtol=1e-5)
        for one, other in zip(flips, others, strict=True):
            assert torch.equal(one.count, other.count)
            torch.testing.assert_close(one.mass, other.mass, atol=1e-6, rtol=0)


def test_the_gradient_by_the_weights_is_that_of_the_closed_form():
    evidence = held(3)
    for trace in evidence.traces:
        relevance = trace.readout.relevance[:, 0].double()
        p = trace.logits.double().softmax(-1)
        top = trace.predicted
        rows = torch.arange(len(top))
        free = relevance[rows, :, top] - torch.einsum("bc,btc->bt", p, relevance)
        slope, product = erased.slopes(evidence.model, trace)
        scale = (1 - p[rows, top]).unsqueeze(1)  # of the log-odds against the logarithm of p
        torch.testing.assert_close(
            (slope * scale)[trace.mask], free[trace.mask], atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(product, slope * trace.attention[:, 0], atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("rule", ["paper", "code"])
def test_the_table_is_that_of_erasing_one_weight_after_another(rule):
    evidence = held(3, random_item=rule)
    table, count = evidence.table("erasure").to_pandas(), 0
    for trace in evidence.traces:
        weights, relevance, bias = (
            trace.attention[:, 0].double(),
            trace.readout.relevance[:, 0],
            trace.readout.bias,
        )
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i].nonzero().flatten()
            line = table.iloc[row]
            if len(real) < 2:
                assert line[["js_top", "above", "flips", "random"]].isna().all()
                continue
            after = []
            for place in real:
                left = torch.where(trace.mask[i], weights[i], 0.0)
                left[place] = 0.0
                after.append((left / left.sum()) @ relevance[i].double() + bias.double())
            after = torch.stack(after)
            before = trace.logits[i].double()
            js = jensen_shannon(before.softmax(-1).expand_as(after), after.softmax(-1)).numpy()
            changed = 0.5 * (after.softmax(-1) - before.softmax(-1)).abs().sum(-1).numpy()
            order = sorted(range(len(real)), key=lambda t, w=weights[i, real]: -float(w[t]))
            places = {"top": order[0], "second": order[1], "lowest": order[-1]}
            for name, place in places.items():
                assert line[name] == real[place]
                assert line[f"js_{name}"] == pytest.approx(js[place], abs=1e-6)
                assert line[f"tvd_{name}"] == pytest.approx(changed[place], abs=1e-5)
                assert line[f"flip_{name}"] == (after[place].argmax() != before.argmax())
            others = [changed[t] for t in range(len(real)) if t != order[0]]
            above = np.mean([x < changed[order[0]] for x in others])
            assert line["above"] == pytest.approx(above)
            assert line["js_mean"] == pytest.approx(js.mean(), abs=1e-6)
            flips = (after.argmax(-1) != before.argmax()).double().mean()
            assert line["flips"] == pytest.approx(float(flips))
            assert line["random"] in real.tolist()
            assert line["random"] != (line["top"] if rule == "paper" else real[0])
            count += 1
    assert count == 8


def test_chance_is_that_of_shuffled_weights_with_every_effect_computed_again():
    model = small_model(classes=3)
    for layer in (model.score.vector, model.decoder):
        layer.weight.mul_(10)  # weights that are far apart, and words that decide
    evidence = evidence_of(model, random_texts(LENGTHS), SETTINGS)
    table, flips = (evidence.table(name).to_pandas() for name in ("erasure", "decision_flips"))
    counted = np.zeros(3)
    for trace in evidence.traces:
        for name in ("erasure_shuffled", "flips_shuffled"):
            rngs = evidence.generators(name, trace.rows)
            orders = torch.cat(
                list(permuted(trace.attention, trace.support, erased.SHUFFLES, rngs))
            )
            for i, row in enumerate(trace.rows.tolist()):
                real, line = trace.mask[i], table.iloc[row]
                if real.sum() < 2:
                    assert line[["above_shuffled", "decides_shuffled"]].isna().all()
                    assert np.isnan(flips.efficiency_shuffled[row])
                    continue
                relevance = trace.readout.relevance[i, 0, real].double()
                rest = (relevance, trace.readout.bias.double())
                found = [under(weights, *rest) for weights in orders[:, i, 0, real].double()]
                above, decides, shares = (
                    [x for x in column if x is not None] for column in zip(*found, strict=True)
                )
                if name == "erasure_shuffled":
                    assert line.above_shuffled == pytest.approx(np.mean(above))
                    wanted = np.mean(decides) if decides else np.nan
                    assert line.decides_shuffled == pytest.approx(wanted, nan_ok=True)
                    counted[:2] += len(above), len(decides)
                else:
                    wanted = np.mean(shares) if shares else np.nan
                    assert flips.efficiency_shuffled[row] == pytest.approx(wanted, nan_ok=True)
                    counted[2] += len(shares)
    assert (counted > 5).all()


def under(weights, relevance, bias):
    """Return which share of the others matters less than the first, whether it flips, and the efficiency."""
    weights = weights / weights.sum()
    before, rest = weights @ relevance + bias, 1 - weights
    after = (weights @ relevance - weights[:, None] * relevance) / rest[:, None] + bias
    tvd = 0.5 * (after.softmax(-1) - before.softmax(-1)).abs().sum(-1)
    first = int(weights.argmax())
    others = torch.arange(len(weights)) != first
    flips = after.argmax(-1) != before.argmax()
    whole = (
        relevance[None],
        bias,
        torch.ones(1, len(weights), dtype=torch.bool),
        before.argmax()[None],
    )
    least = int(closed.smallest(weights[None], *whole)[0].count)
    along = int(closed.along(weights[None], weights[None], *whole).count)
    return (
        float((tvd[others] < tvd[first]).double().mean()),
        float(flips[first]) if flips.any() else None,
        (least / along if along else 0.0) if least else None,
    )


def test_a_large_weight_matters_more_than_a_small_one_whatever_stands_there():
    """So chance is not a half, and random weights have none of the way from it to 1."""
    model = small_model("average")
    model.score.vector.weight.mul_(20)
    evidence = evidence_of(model, random_texts([12] * 40), SETTINGS)
    tables = {name: evidence.table(name) for name in ("instances", "erasure")}
    found = {f.key: f for f in make_findings(tables, SETTINGS, ["0", "1"])}["erasure"]
    assert found.value > 0.8
    assert found.relative.chance > 0.8
    assert found.relative.share < 0.5


def test_by_the_rule_of_the_code_the_random_token_may_be_the_top_one():
    texts = random_texts([3] * 200)
    evidence = evidence_of(small_model(), texts, SETTINGS, random_item="code")
    table = evidence.table("erasure").to_pandas()
    assert (table.random > 0).all()
    assert 0.2 < (table.random == table.top).mean() < 0.5


def test_rankings_are_those_of_their_name_and_never_better_than_the_smallest_set():
    evidence = held(3)
    table = evidence.table("decision_flips").to_pandas()
    importance = evidence.table("leave_one_out")["importance"].to_pylist()
    for trace in evidence.traces:
        weights, relevance, bias = (
            trace.attention[:, 0].double(), trace.readout.relevance[:, 0], trace.readout.bias,
        )  # fmt: skip
        rest = (
            weights / weights.sum(-1, keepdim=True),
            relevance,
            bias,
            trace.mask,
            trace.predicted,
        )
        without = torch.zeros_like(weights)
        for i, row in enumerate(trace.rows.tolist()):
            without[i, trace.mask[i]] = torch.tensor(importance[row]).nan_to_num().double()
        expected = {
            "attention": closed.along(weights, *rest), "ascending": closed.along(-weights, *rest),
            "leave_one_out": closed.along(without, *rest), "exact": closed.smallest(*rest)[0],
        }  # fmt: skip
        for i, row in enumerate(trace.rows.tolist()):
            for name, flip in expected.items():
                count = table[f"count_{name}"][row]
                assert np.isnan(count) if trace.mask[i].sum() < 2 else count == flip.count[i]
    exact = table.count_exact
    for name in RANKINGS:
        count = table[f"count_{name}"]
        assert (count[count > 0] >= exact[count > 0]).all()
        assert (exact[count > 0] > 0).all()
    lists = [x for x in table.count_random if x is not None]
    assert {len(x) for x in lists} == {SHUFFLES}
    assert len(lists) == sum(n > 1 for n in LENGTHS)


def test_efficiency_is_zero_where_a_ranking_never_flips_and_undefined_where_nothing_does():
    shares = efficiency(np.array([1.0, 2, 2, 0, np.nan]), np.array([4.0, 2, 0, 0, 3]))
    np.testing.assert_array_equal(shares, [0.25, 1, 0, np.nan, np.nan])


def test_texts_that_repeat_are_one_observation_of_mcnemars_test():
    first, other = np.array([1.0] * 40 + [0.0, np.nan]), np.array([0.0] * 40 + [1.0, 0.0])
    found = flip_table(first, other, np.array([0, 1, 2, 3] * 10 + [4, 5]))
    assert (found.only_first, found.only_other, found.different) == (40, 1, 5)
    assert found.p == pytest.approx(stats.binomtest(4, 5).pvalue)
    apart = flip_table(first, other, np.arange(42))
    assert apart.p == pytest.approx(stats.binomtest(40, 41).pvalue)


def test_findings_say_what_the_tables_say():
    evidence = held(2)
    names = ("instances", "erasure", "decision_flips")
    tables = {name: evidence.table(name) for name in names}
    found = {f.key: f for f in make_findings(tables, SETTINGS, ["0", "1"])}
    frame, flips = tables["erasure"].to_pandas(), tables["decision_flips"].to_pandas()
    assert found["erasure"].value == pytest.approx(np.nanmean(frame.above))
    assert found["erasure"].left_out == {"one token: nothing else is left": 2}
    top, other = (frame[f"flip_{item}"].dropna() > 0 for item in ("top", "random"))
    only = int((top & ~other).sum()), int((other & ~top).sum())
    p = stats.binomtest(only[0], sum(only)).pvalue if sum(only) else 1.0
    assert f"McNemar p = {p:.2g}" in found["decision_flip"].meaning
    some = flips[flips.count_exact > 0]
    share = np.where(some.count_attention > 0, some.count_exact / some.count_attention, 0.0)
    assert found["decision_flips"].value == pytest.approx(share.mean())
    assert found["decision_flips"].n + sum(found["decision_flips"].left_out.values()) == len(
        LENGTHS
    )
    assert all(
        f.level == "for comparison"
        for f in found.values()
        if f.key in ("erasure", "decision_flips")
    )


def test_a_transformer_is_read_again_above_the_layer_for_a_sample():
    model = tiny_classifier()
    texts = [["one", " two", " three", " four"], ["one"], [" a", " b", " c"], ["x", " y"]]
    evidence = evidence_of(model, texts, SETTINGS)
    table = evidence.table("erasure").to_pandas()
    assert table.above.notna().tolist() == [True, False, True, True]
    (batch,) = evidence.batches_of([0])
    trace = model.trace(batch)
    kept = torch.ones(1, 1, trace.mask.shape[1], dtype=torch.bool)
    top = int(table["top"][0])
    kept[0, 0, top] = False
    logits = erased.imposed(model, trace, kept)[0]
    js = jensen_shannon(trace.logits.double().softmax(-1), logits.softmax(-1))
    assert table.js_top[0] == pytest.approx(float(js), abs=1e-6)
    # All words erased: the special tokens have all of the weight, in every head.
    nothing = erased.left(trace, torch.zeros_like(kept))
    special = (trace.words < 0).unsqueeze(0).unsqueeze(2)
    torch.testing.assert_close((nothing * special).sum(-1)[0], trace.attention.sum(-1))
    flips = evidence.table("decision_flips").to_pandas()
    assert flips.count_exact.isna().all()


def test_the_curves_are_kaplan_and_meiers():
    evidence = held(3)
    tables = {name: evidence.table(name) for name in ("instances", "decision_flips")}
    settings = RunSettings(
        fingerprint="", data=DataSettings(source="x"), model=ModelSettings(), audit=SETTINGS
    )
    (figure,) = curves(AuditResult(settings, ["a", "b", "c"], tables, [], {}))
    (drawn,) = figure.spec["datasets"].values()
    flips = tables["decision_flips"].to_pandas()
    some = flips[flips.count_exact > 0]
    draws = np.array(some.count_random.to_list()).T
    series = {words: some[[f"count_{name}"]].to_numpy().T for name, words in RANKINGS.items()}
    series |= {"at random": draws, "the smallest set": some[["count_exact"]].to_numpy().T}
    assert {row["series"] for row in drawn} == set(series)
    censored = 0
    for name, counts in series.items():
        size = np.broadcast_to(some.n_tokens, counts.shape)
        came = counts > 0
        censored += int((~came).sum())
        times = stats.CensoredData((counts / size)[came], right=np.ones(int((~came).sum())))
        estimate = stats.ecdf(times).cdf
        for row in drawn:
            if row["series"] == name:
                expected = estimate.evaluate(row["erased"] + 1e-9)
                assert row["changed"] == pytest.approx(float(expected))
    assert censored
