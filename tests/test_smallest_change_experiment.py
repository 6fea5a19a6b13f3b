"""`smallest_change` and `opposing_mass` against the slow, obvious way, and what their baselines mean."""

from itertools import permutations as every_order

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import random_pairs, random_texts, small_model
from making import evidence_of, random_rows
from wording import refused

from heedmap.counterfactual.row_weights import permuted
from heedmap.counterfactual.smallest_change import (
    farthest_order_mass,
    smallest_divergence,
    smallest_mass,
)
from heedmap.counterfactual.tolerance import canonical_order
from heedmap.experiments.findings import BOUNDS
from heedmap.experiments.methods import smallest_change_search
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.methods.smallest_change_search import nearest_met
from heedmap.experiments.questions.smallest_change import DRAWS, measured
from heedmap.experiments.registry import make_findings
from heedmap.measures import LN2, drop_in_probability, jensen_shannon, log_odds
from heedmap.models.pair_classifier import PairClassifier
from heedmap.report.figures import figures
from heedmap.runs.audit import audit

LENGTHS = [1, 2, 2, 3, 3, 5, 8, 12]


def sharp_model(classes=2, encoder="average", seed=1):
    """A model whose states differ enough for weights to decide, without a bias."""
    model = small_model(encoder, classes=classes, seed=seed)
    model.decoder.weight.mul_(8)
    model.decoder.bias.zero_()
    model.score.vector.weight.mul_(20)
    return model


def tables(classes=2, seed=0, **options):
    return evidence_of(sharp_model(classes, **options), random_texts(LENGTHS, seed))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_the_numbers_of_short_texts_are_the_means_over_all_orders(classes):
    evidence = tables(classes)
    found = measured(evidence)
    finite = 0
    for trace in evidence.traces:
        weights, relevance, bias = linear(trace)
        for i, row in enumerate(trace.rows.tolist()):
            n = LENGTHS[row]
            rest = (relevance[i : i + 1, :n], bias, trace.mask[i : i + 1, :n])
            own = trace.predicted[i : i + 1]

            def least(which, w, of, rest=rest):
                return which(w[None], *rest, of).distance.item()

            for name, which in (("least_tvd", smallest_mass), ("least_jsd", smallest_divergence)):
                expected = least(which, weights[i, :n], own)
                value = found[name][row]
                assert (
                    np.isnan(value)
                    if np.isinf(expected)
                    else value == pytest.approx(expected, abs=1e-12)
                )
                if n > 3:
                    continue
                shuffled, answer, flipped = [], [], []
                for order in every_order(range(n)):
                    w = weights[i, list(order)]
                    of = (w @ rest[0][0] + bias).argmax(-1, keepdim=True)
                    shuffled.append(least(which, w, of))
                    answer.append(least(which, w, own))
                    flipped.append(of.item() != own.item())
                if np.isinf(expected):
                    assert np.isnan(found[f"shuffled_{name}"][row])
                    assert not found["changeable"][row]
                    continue
                finite += 1
                assert found[f"shuffled_{name}"][row] == pytest.approx(np.mean(shuffled), abs=1e-12)
                assert found["shuffled_flipped"][row] == pytest.approx(np.mean(flipped))
                if name == "least_tvd":
                    mean = np.mean(answer)
                    assert found["shuffled_from_answer_tvd"][row] == pytest.approx(mean, abs=1e-12)
    assert finite >= 4


@pytest.mark.parametrize("classes", [2, 3])
def test_the_shuffles_columns_are_those_of_each_shuffle_by_itself(classes):
    """Of two and three tokens the six shuffles are all orders; of nine they are drawn."""
    evidence = evidence_of(sharp_model(classes), random_texts([2, 3, 9, 9], seed=4))
    found = measured(evidence)
    flipped = 0
    for trace in evidence.traces:
        weights, relevance, bias = linear(trace)
        order = canonical_order(weights, relevance, trace.mask)
        rngs = evidence.generators("bending", trace.rows)
        one = weights.gather(1, order)
        readout = relevance.gather(1, order.unsqueeze(-1).expand(relevance.shape))
        mask = trace.mask.gather(1, order)
        shuffles = torch.cat(list(permuted(one[:, None], mask[:, None], 6, rngs)))[:, :, 0]
        for i, row in enumerate(trace.rows.tolist()):
            rest = (readout[i : i + 1], bias, mask[i : i + 1])
            maps = shuffles[:, i : i + 1]
            of = [(m[0] @ readout[i] + bias).argmax().view(1) for m in maps]
            own = trace.predicted[i : i + 1]
            flipped += len(set(map(int, [*of, own]))) > 1
            for name, least in (("least_tvd", smallest_mass), ("least_jsd", smallest_divergence)):
                expected = np.mean(
                    [least(m, *rest, o).distance for m, o in zip(maps, of, strict=True)]
                )
                if np.isfinite(expected):
                    assert found[f"shuffled_{name}"][row] == pytest.approx(expected, abs=1e-9)
                else:
                    assert np.isnan(found[f"shuffled_{name}"][row])
                mine = least(one[i : i + 1], *rest, own).distance.item()
                assert found[name][row] == pytest.approx(
                    mine if np.isfinite(mine) else np.nan, nan_ok=True
                )
            answers = [smallest_mass(m, *rest, own).distance.item() for m in maps]
            if np.isfinite(answers).all():
                mean = np.mean(answers)
                assert found["shuffled_from_answer_tvd"][row] == pytest.approx(mean, abs=1e-9)
            assert found["shuffled_flipped"][row] == pytest.approx(
                np.mean([int(o) != int(own) for o in of])
            )
    assert flipped > 0


@pytest.mark.parametrize("classes", [2, 3])
def test_nothing_depends_on_the_order_of_the_tokens(classes):
    texts = random_texts([4, 7, 12, 20], seed=3)
    model = sharp_model(classes)  # its states do not depend on the order
    there, back = (measured(evidence_of(model, some)) for some in (texts, [t[::-1] for t in texts]))
    assert np.isfinite(there["least_tvd"]).any()
    for name, values in there.items():
        np.testing.assert_allclose(values, back[name], atol=1e-6, err_msg=name)


def test_a_texts_numbers_do_not_depend_on_its_batch():
    model, texts = sharp_model(3), random_texts(LENGTHS)
    whole = measured(evidence_of(model, texts))
    model.tokens_at_once = 12
    single = measured(evidence_of(model, texts))
    for name, values in whole.items():
        np.testing.assert_allclose(values, single[name], atol=1e-6, err_msg=name)


def test_random_weights_are_as_far_from_a_change_as_their_shuffles():
    """The null: weights that know nothing of what they are on. Measured from the model's answer it fails."""
    attention, readout, bias, mask = random_rows(3000, 8, seed=0, shortest=8)
    predicted = (torch.einsum("bt,btc->bc", attention, readout) + bias).argmax(-1)
    rngs = [np.random.default_rng(i) for i in range(3000)]
    (shuffled,) = permuted(attention[:, None], mask[:, None], 1, rngs, elements=1 << 30)
    shuffled = shuffled[0, :, 0]
    theirs = (torch.einsum("bt,btc->bc", shuffled, readout) + bias).argmax(-1)

    def excess(of):
        own = smallest_mass(attention, readout, bias, mask, predicted).distance
        other = smallest_mass(shuffled, readout, bias, mask, of).distance
        both = own.isfinite() & other.isfinite()
        difference = (own - other)[both]
        return (difference.mean() / difference.std() * len(difference) ** 0.5).item()

    assert abs(excess(theirs)) < 3
    assert excess(predicted) > 5


@pytest.mark.parametrize(("classes", "exact"), [(2, True), (3, False), (4, False)])
def test_the_ceiling_is_the_farthest_order_of_the_weights(classes, exact):
    rows = attention, readout, bias, mask = random_rows(25, 5, classes, seed=classes)
    predicted = (torch.einsum("bt,btc->bc", attention, readout) + bias).argmax(-1)
    found = farthest_order_mass(*rows, predicted)
    gaps = []
    for row in range(25):
        real = mask[row].nonzero()[:, 0]
        best = 0.0
        for order in every_order(range(len(real))):
            dealt = attention[row : row + 1].clone()
            dealt[0, real] = attention[row, real[list(order)]]
            one = smallest_mass(dealt, readout[[row]], bias, mask[[row]], predicted[[row]])
            best = max(best, one.distance.item())
        if np.isinf(best):
            assert found[row].isinf()
            continue
        gaps.append(found[row].item() - best)
    assert len(gaps) > 10
    assert min(gaps) >= -1e-12
    if exact:
        assert max(gaps) <= 1e-12


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_freedom_is_a_share_of_what_the_text_allows(classes):
    evidence = tables(classes)
    found = evidence.table("smallest_change").to_pandas()
    adversary = evidence.table("adversary").to_pandas()
    heat = [np.array(x) for x in evidence.table("instances")["attention"].to_pylist()]
    for row, q in enumerate(heat):
        corners = jensen_shannon(torch.eye(len(q)).double(), torch.from_numpy(q).expand(len(q), -1))
        assert found["own_maximum"][row] == pytest.approx(corners.max().item(), abs=1e-6)
        if len(q) == 1:
            assert np.isnan(found["jsd_share"][row])
            continue
        assert found["jsd_share"][row] == pytest.approx(
            adversary["jsd"][row] / corners.max().item(), abs=1e-5
        )
    several = found[found["n_tokens"] > 1]
    assert (several["jsd_share_pairs"] <= several["jsd_share"] + 1e-9).all()
    assert (several["jsd_share"] <= several["jsd_share_upper"]).all()
    assert (several["jsd_share_upper"] <= 1).all()
    if classes == 2:
        assert several["jsd_share_pairs"].to_numpy() == pytest.approx(
            several["jsd_share"].to_numpy()
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_the_share_of_the_simplex_is_that_of_draws(classes):
    evidence = tables(classes)
    found = measured(evidence)
    rng = np.random.default_rng(5)
    for trace in evidence.traces:
        _, relevance, bias = linear(trace)
        for i, row in enumerate(trace.rows.tolist()):
            n = LENGTHS[row]
            drawn = torch.from_numpy(rng.dirichlet(np.ones(n), 50_000)) @ relevance[i, :n] + bias
            p = trace.logits[i].double().softmax(-1)
            share = (0.5 * (drawn.softmax(-1) - p).abs().sum(-1) <= 0.01).double().mean().item()
            error = (share * (1 - share) / (5e4 if classes == 2 else DRAWS)) ** 0.5
            assert found["simplex_share"][row] == pytest.approx(share, abs=5 * error + 1e-3)


def test_the_findings_count_what_cannot_be_changed_and_stand_between_chance_and_ceiling():
    evidence = tables()
    names = (
        "instances",
        "leave_one_out",
        "adversary",
        "smallest_change",
        "opposing_mass",
        "baselines",
    )
    made = {name: evidence.table(name) for name in names}
    findings = {f.key: f for f in make_findings(made, evidence.settings, ["a", "b"])}
    table = made["smallest_change"].to_pandas()
    many = table["n_tokens"] > 1
    bent = findings["smallest_change"]
    defined = many & table["least_tvd"].notna()
    assert bent.value == pytest.approx(table["least_tvd"][defined].mean())
    assert bent.n == defined.sum()
    assert bent.left_out["one token: no other weights"] == 1
    never = int((many & ~table["changeable"]).sum())
    assert bent.left_out.get("no weights whatever change the answer: a proof", 0) == never
    assert findings["changeable"].value == pytest.approx(table["changeable"][many].mean())
    assert bent.relative.chance == pytest.approx(table["shuffled_least_tvd"][defined].mean())
    assert bent.relative.ceiling == pytest.approx(table["least_tvd_largest"][defined].mean())
    assert {
        findings[k].level
        for k in ("smallest_change", "changeable", "relative_freedom", "opposing_mass")
    } == {"for comparison"}
    shares = made["opposing_mass"].to_pandas()
    assert findings["opposing_mass"].value == pytest.approx(shares["against"].mean())
    assert findings["opposing_mass"].relative.ceiling == 0
    for key in ("changeable", "relative_freedom", "opposing_mass", "simplex_share"):
        assert BOUNDS.get(findings[key].kind, (0.0, 1.0)) == (0, 1), key


def test_a_lower_bound_of_the_freedom_is_compared_with_shuffles_by_the_same_means():
    evidence = evidence_of(sharp_model(3), random_texts([1, 5, 7]))
    names = ("instances", "adversary", "smallest_change")
    made = {name: evidence.table(name) for name in names}
    findings = {f.key: f for f in make_findings(made, evidence.settings, ["a", "b", "c"])}
    free, table = findings["relative_freedom"], made["smallest_change"].to_pandas()
    assert free.value == pytest.approx(table["jsd_share"].mean())
    assert free.relative is None, "the shuffles' bound is a cheaper one"
    adversary = made["adversary"].to_pandas()
    for share, bound in (("jsd_share", "jsd"), ("jsd_share_upper", "jsd_upper")):
        expected = np.minimum(adversary[bound] / table["own_maximum"], 1)[1:]
        assert table[share][1:].to_numpy() == pytest.approx(expected.to_numpy())
    assert (adversary["jsd"] < adversary["jsd_upper"] - 1e-3).any()
    pairs, shuffled = table["jsd_share_pairs"].mean(), table["shuffled_jsd_share_pairs"].mean()
    assert (
        f"at most {table['jsd_share_upper'].mean():.3f}, with one or two words alone {pairs:.3f}, "
        in free.meaning
    )
    assert f"{shuffled:.3f} for the same weights shuffled" in free.meaning
    assert findings["simplex_share"].measure.endswith("drawn evenly")


@pytest.mark.slow
def test_the_figures_show_the_models_own_map_beside_the_shuffled(small_run):
    keys = {figure.key: figure for figure in figures(audit(small_run, permutations=5))}
    for key in ("smallest-change", "relative-freedom", "against"):
        assert [k.label.split(" (")[0] for k in keys[key].keys] == ["the model's own", "shuffled"]


# Models without a linear read-out: upper bounds by search.


@pytest.mark.parametrize("classes", [2, 4])
def test_no_line_search_finds_less_than_the_optimum(classes):
    """On models with a linear read-out, where the optimum is known."""
    model = sharp_model(classes, "lstm")
    evidence = evidence_of(model, random_texts([2, 3, 5, 8, 12, 12, 9, 20, 6, 7]))
    reached = []
    for trace in evidence.traces:
        rngs = evidence.generators("bending", trace.rows)
        (targets,) = permuted(trace.attention, trace.support, 2, rngs)
        tvd, jsd = nearest_met(model, trace, trace.attention, trace.predicted, targets)
        problem = (*linear(trace), trace.mask, trace.predicted)
        for found, least in ((tvd, smallest_mass(*problem)), (jsd, smallest_divergence(*problem))):
            assert (found >= least.distance - 1e-5).all()
            if found is tvd:
                reached += (found - least.distance)[found.isfinite()].tolist()
    assert len(reached) >= 3
    assert np.median(reached) < 0.02, "the path of the gradient is the knapsack's"


def test_pairs_have_upper_bounds_that_another_answer_stands_behind():
    model = small_model("average", classes=3, kind=PairClassifier)
    model.decoder.outer.weight.mul_(30)
    texts = random_pairs([1, 2, 4, 7, 9, 12, 12, 5])
    evidence = evidence_of(model, texts, search_instances=6, search_steps=4, descent_steps=0)
    found = evidence.table("smallest_change").to_pandas()
    sampled = found["own_maximum"].notna()
    assert sampled.sum() == 6
    assert (sampled == evidence.table("adversary").to_pandas()["jsd"].notna()).all()
    changed = found["least_tvd"].notna()
    assert changed.any()
    assert (changed == (found["changeable"] == 1)).all()
    assert found["least_tvd"][changed].between(0, 1).all()
    assert found["least_jsd"][changed].between(0, LN2).all()
    assert "simplex_share" not in found
    made = {n: evidence.table(n) for n in ("instances", "adversary", "smallest_change")}
    findings = {f.key: f for f in make_findings(made, evidence.settings, ["a", "b", "c"])}
    assert "at most" in findings["smallest_change"].measure
    assert "at least" in findings["changeable"].measure
    assert findings["smallest_change"].left_out["not sampled for the search"] == 2


def test_a_path_moves_the_mass_of_the_smallest_gradient_first():
    base = torch.tensor([[[0.5, 0.3, 0.2]]])
    order = torch.tensor([[[2, 0, 1]]])
    best = torch.tensor([[[1]]])
    for share, expected in (
        (0.0, [0.5, 0.3, 0.2]),
        (0.1, [0.5, 0.4, 0.1]),
        (0.4, [0.3, 0.7, 0.0]),
        (1.0, [0, 1, 0]),
    ):
        moved = smallest_change_search._moved(base, order, best, torch.tensor([share]))
        assert moved[0, 0].tolist() == pytest.approx(expected, abs=1e-6)


# The sign of leave-one-out.


@pytest.mark.parametrize("classes", [2, 3])
def test_a_signed_change_is_what_the_predicted_class_loses(classes):
    evidence = tables(classes, encoder="lstm")
    model, table = evidence.model, evidence.table("leave_one_out").to_pylist()
    for row, text in enumerate(evidence.split.tokens):
        signed, importance = table[row]["signed"], table[row]["importance"]
        if len(text) == 1:
            assert np.isnan(signed[0])
            continue
        before = model.logits(model.batch([text], [0]))[0].double().softmax(-1)
        of = int(before.argmax())
        for t in range(len(text)):
            rest = [*text[:t], *text[t + 1 :]]
            after = model.logits(model.batch([rest], [0]))[0].double().softmax(-1)
            assert signed[t] == pytest.approx((before - after)[of].item(), abs=2e-6)
        assert (np.abs(signed) <= np.array(importance) + 1e-15).all()
        if classes == 2:
            assert np.abs(signed).tolist() == importance
    assert any(x < 0 for row in table for x in row["signed"])


@pytest.mark.parametrize("classes", [2, 3])
def test_a_saturated_prediction_keeps_its_signs(classes):
    before = torch.zeros(2, classes, dtype=torch.float64)
    before[:, 0] = 60.0
    after = before.clone()
    after[0, 0], after[1, 0] = 59.0, 61.0
    of = torch.zeros(2, dtype=torch.long)
    found = drop_in_probability(before, after, of)
    p = [-torch.expm1(-torch.log1p(torch.exp(-log_odds(x, of)))) for x in (before, after)]
    assert found[0] > 0 > found[1]
    assert found.tolist() == pytest.approx((p[1] - p[0]).tolist(), rel=1e-9)


def test_changes_within_rounding_speak_neither_for_nor_against():
    model = small_model("average")
    model.decoder.weight.zero_()
    evidence = evidence_of(model, random_texts([3, 6]))
    assert all(x == 0 for row in evidence.table("leave_one_out")["signed"].to_pylist() for x in row)
    found = evidence.table("opposing_mass").to_pandas()
    assert (found["against"] == 0).all()
    assert (found["against_chance"] == 0).all()


def test_the_mass_against_the_answer_and_its_mean_over_all_orders():
    evidence = tables(encoder="lstm", seed=2)
    found = evidence.table("opposing_mass").to_pandas()
    lists = zip(
        evidence.table("instances")["attention"].to_pylist(),
        evidence.table("leave_one_out")["signed"].to_pylist(),
        strict=True,
    )
    for row, pair in enumerate(lists):
        heat, signed = map(np.array, pair)
        if len(heat) == 1:
            assert np.isnan(found["against"][row])
            continue
        assert found["against"][row] == pytest.approx(heat[signed < 0].sum(), abs=1e-6)
        if len(heat) <= 5:
            orders = [
                heat[list(order)][signed < 0].sum() for order in every_order(range(len(heat)))
            ]
            assert found["against_chance"][row] == pytest.approx(np.mean(orders), abs=1e-6)
    assert found["against"].gt(0).any()


def test_a_leave_one_out_of_an_older_version_is_refused_in_one_line():
    evidence = tables()
    old = evidence.table("leave_one_out").drop_columns(["signed"])
    assert isinstance(old, pa.Table)
    evidence._tables["leave_one_out"] = old
    with refused("--overwrite"):
        evidence.table("opposing_mass")
