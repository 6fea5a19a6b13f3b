"""What chance and a perfect map reach on the same texts."""

from dataclasses import replace
from itertools import islice, permutations

import numpy as np
import pytest
import torch
from conftest import random_texts, small_model
from scipy import stats
from tiny_transformers import tiny_classifier

from heedmap.counterfactual.row_weights import dirichlet, permuted
from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.questions import baselines
from heedmap.experiments.questions.baselines import SHUFFLES, randomised
from heedmap.experiments.registry import make_findings, registered
from heedmap.experiments.results import attained
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.settings.audit import AuditSettings

LENGTHS = (1, 2, 3, 5, 8, 8, 13, 21)


def evidence_of(model, texts, **settings):
    split = Split([str(i) for i in range(len(texts))], texts, np.zeros(len(texts), dtype=np.int64))
    return AuditContext(
        model, split, AuditSettings(integrated_gradients_steps=4, **settings), registered()
    )


def test_random_weights_of_context_free_states_agree_with_leave_one_out_far_above_zero():
    """The weight is a factor of what is left out: chance is not 0."""
    model = small_model("average")
    table = evidence_of(model, random_texts([12] * 60)).table("baselines").to_pandas()
    assert table.tau_random_gradient.mean() > 0.2
    assert (
        table.tau_shuffled_gradient.mean() > 0.05
    )  # an untrained model's weights are nearly equal
    # Shuffled weights are as random as the untrained model's own.
    own = evidence_of(model, random_texts([12] * 60)).table("agreement").to_pandas()
    gap = own.tau_attention_gradient.mean() - table.tau_shuffled_gradient.mean()
    assert abs(gap) < 0.1


def test_the_maps_of_other_trainings_are_kept_of_the_texts_that_are_asked():
    texts, other = random_texts(LENGTHS), small_model("average", seed=1)
    context = evidence_of(small_model("average"), texts, integrated_gradients_instances=5)
    context.other_seeds = {"seed_1": other}
    table = context.table("baselines")
    asked = table["tau_shuffled_gradient"].is_valid().to_pylist()
    maps = table["attention_seed_1"].to_pylist()
    for row, (text, heat) in enumerate(zip(texts, maps, strict=True)):
        assert heat is not None or len(text) == 1 or not asked[row]
        if heat is not None:
            alone = other.trace(other.batch([text], [row])).heatmap[0].tolist()
            assert heat == pytest.approx(alone, abs=1e-6)
    assert sum(heat is not None for heat in maps) == 5


def test_random_weights_on_words_that_all_matter_find_no_more_than_shuffled_ones_do():
    """The weights make the importance: ten times 1/n may lie under weights that say nothing of the words."""
    shares = []
    for seed in range(6):
        model = small_model("average", seed=seed)
        model.decoder.weight[:, :8] = (
            0  # half of a state makes the answer, the other half the weights
        )
        model.score.hidden.weight[:, 8:] = 0
        model.score.vector.weight.mul_(60)
        evidence = evidence_of(model, random_texts([12] * 40))
        names = (
            "instances",
            "gradient",
            "leave_one_out",
            "integrated_gradients",
            "importance_mass",
            "baselines",
        )
        tables = {name: evidence.table(name) for name in names}
        findings = make_findings(tables, evidence.settings, model.classes)
        (own,) = (each for each in findings if each.key == "mass_leave_one_out")
        even = (own.value - 1 / 12) / (own.relative.ceiling - 1 / 12)
        assert even > 0.85
        shares.append(own.relative.share)
    assert max(shares) < 0.5
    assert np.mean(shares) == pytest.approx(0, abs=0.15)


def test_the_largest_tau_with_one_deciding_word_is_the_square_root_of_two_nths():
    n = 9
    deciding = np.zeros(n)
    deciding[3] = 1.0
    weights = np.random.default_rng(0).random(n)
    best = stats.kendalltau(np.sort(weights), np.sort(deciding)).statistic
    assert best == pytest.approx(np.sqrt(2 / n))


def test_the_largest_tau_is_reached_by_sorting_both():
    evidence = evidence_of(small_model("lstm"), random_texts(LENGTHS))
    largest = evidence.table("baselines")["tau_largest_leave_one_out"].to_pylist()
    heat = evidence.table("instances")["attention"].to_pylist()
    left = evidence.table("leave_one_out")["importance"].to_pylist()
    for row in range(1, len(LENGTHS)):
        both = np.sort(heat[row]), np.sort(left[row])
        assert largest[row] == pytest.approx(stats.kendalltau(*both).statistic)


def test_the_importance_found_is_that_of_the_definition_and_at_most_that_of_sorted_weights():
    evidence = evidence_of(small_model("lstm"), random_texts(LENGTHS))
    found = evidence.table("importance_mass").to_pandas()
    heat = evidence.table("instances")["attention"].to_pylist()
    left = evidence.table("leave_one_out")["importance"].to_pylist()
    for row in range(1, len(LENGTHS)):
        weights, importance = np.array(heat[row]) / np.sum(heat[row]), np.array(left[row])
        orders = [
            weights[list(order)] @ importance
            for order in islice(permutations(range(len(weights))), 5040)
        ]
        share = weights @ importance / importance.sum()
        assert found.mass_leave_one_out[row] == pytest.approx(share)
        assert found.largest_leave_one_out[row] >= share - 1e-12
        if len(weights) < 6:
            assert found.largest_leave_one_out[row] == pytest.approx(max(orders) / importance.sum())
            assert np.mean(orders) / importance.sum() == pytest.approx(1 / len(weights))
    assert np.isnan(found.mass_leave_one_out[0])  # one token


def test_of_two_words_chance_is_both_orders_alike():
    evidence = evidence_of(small_model("lstm"), random_texts([2] * 40))
    table = evidence.table("baselines").to_pandas()
    exact = []
    for batch in evidence.batches_of(range(40)):
        trace = evidence.model.trace(batch)
        taus = []
        for weights in (trace.attention, trace.attention.flip(-1)):
            logits = evidence.model.predict(trace, weights.unsqueeze(0))[0]
            under = replace(trace, attention=weights, logits=logits)
            importance = gradient_importance(evidence.model, batch, under)
            pairs = zip(weights[:, 0].numpy(), importance.numpy(force=True), strict=True)
            taus.append([stats.kendalltau(*pair).statistic for pair in pairs])
        exact.append(dict(zip(batch.rows.tolist(), np.mean(taus, 0), strict=True)))
    (exact,) = exact
    expected = [exact[row] for row in range(40)]
    assert table.tau_shuffled_gradient.to_numpy() == pytest.approx(expected)
    agreement = evidence.table("agreement").to_pandas().tau_attention_integrated_gradients
    own_first = np.mean(table.tau_shuffled_integrated_gradients == agreement)
    assert 0 < own_first < 1, "the one order that integrated gradients are asked of is drawn"


def test_a_text_does_not_depend_on_the_others_in_its_batch():
    texts = random_texts(LENGTHS)
    whole = evidence_of(small_model("lstm"), texts).table("baselines").to_pandas()
    model = small_model("lstm")
    model.tokens_at_once = 1
    alone = evidence_of(model, texts).table("baselines").to_pandas()
    assert np.allclose(whole, alone, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("view", ["row", "received"])
def test_a_transformer_has_a_chance_level(view):
    texts = [["The", " acting", " is", " unbelievable"], ["It", " bored", " me", "."], ["A"]]
    table = evidence_of(tiny_classifier(view=view), texts).table("baselines").to_pandas()
    numbers = table.drop(index=2)
    assert np.isfinite(numbers.filter(like="mass_")).all(axis=None)
    assert numbers.tau_twin_leave_one_out.notna().all()


@pytest.mark.parametrize("model", [small_model("lstm"), tiny_classifier()], ids=["own", "theirs"])
def test_a_randomised_twin_is_another_model_and_leaves_the_model_as_it_was(model):
    batch = model.batch([["The", " acting", " is"], ["It", " bored"]], range(2))
    before, parameters = model.logits(batch), [p.clone() for p in model.parameters()]
    with randomised(model, torch.Generator().manual_seed(0)):
        within = model.logits(batch)
        for now, then in zip(model.parameters(), parameters, strict=True):
            assert torch.equal(now.flatten().sort().values, then.flatten().sort().values)
    assert not torch.allclose(within, before)
    assert torch.equal(model.logits(batch), before)
    with pytest.raises(RuntimeError), randomised(model, torch.Generator()):
        raise RuntimeError
    assert torch.equal(model.logits(batch), before)


def test_random_weights_stay_on_the_support_with_the_rows_mass():
    support = torch.tensor([[[True, True, True, False]], [[False, True, False, False]]])
    attention = torch.tensor([[[0.2, 0.3, 0.5, 0.0]], [[0.0, 0.7, 0.0, 0.0]]])
    rngs = [np.random.default_rng(i) for i in range(2)]
    drawn = dirichlet(attention, support, rngs)
    assert (drawn[~support] == 0).all()
    assert torch.allclose(drawn.sum(-1), torch.tensor([[1.0], [0.7]]))


def test_of_three_positions_random_weights_cover_the_simplex_evenly():
    support = torch.ones(20000, 1, 3, dtype=torch.bool)
    rngs = [np.random.default_rng(i) for i in range(20000)]
    drawn = dirichlet(support.double() / 3, support, rngs).squeeze(1)
    # Of the uniform law on the simplex, each weight is Beta(1, 2).
    for weight in drawn.T:
        assert stats.kstest(weight.numpy(), stats.beta(1, 2).cdf).pvalue > 1e-3


def test_a_share_of_the_attainable_is_0_at_chance_and_1_at_the_ceiling():
    values = np.array([0.2, 0.5, 0.8, 0.1, np.nan])
    low, high = np.full(5, 0.2), np.full(5, 0.8)
    expected = [0, 0.5, 1, -1 / 6, np.nan]
    assert np.allclose(attained(values, low, high), expected, equal_nan=True)


def test_where_nothing_can_be_told_noise_is_not_blown_up():
    even = np.array([0.05 + 1e-9])
    assert abs(attained(even, np.array([0.05]), np.array([0.05 + 2e-9]))[0]) < 1e-6


def tau_b(first, second):
    return stats.kendalltau(first, second).statistic if len(first) > 1 else np.nan


def test_the_baselines_are_those_of_each_drawn_weighting_by_itself():
    """States without context: without a word, the others' weights grow, and nothing else changes."""
    model = small_model("average")
    model.projection.weight.mul_(5)
    evidence = evidence_of(model, random_texts([3, 5, 8, 8]), seed=3)
    table, steps = evidence.table("baselines").to_pylist(), 4
    for batch, trace in evidence.passes():
        _, relevance, bias = linear(trace)
        rngs = evidence.generators("baselines", trace.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, SHUFFLES, rngs)))
        random = dirichlet(trace.attention, trace.support, rngs)[None]
        for name, weightings in (("shuffled", shuffles), ("random", random)):
            shuffled = name == "shuffled"
            kinds = ("tau", "mass") if shuffled else ("tau",)
            against = []
            measures = (
                MEASURE_NAMES if shuffled else ("gradient", "leave_one_out")
            )  # the others are fast
            found = {(kind, m): [] for kind in kinds for m in measures}
            for k, weights in enumerate(weightings):
                under = replace(
                    trace, attention=weights, logits=model.predict(trace, weights[None])[0]
                )
                values = {"gradient": gradient_importance(model, batch, under).numpy()}
                alpha = weights[:, 0].double()
                rest = (
                    torch.einsum("bt,btc->bc", alpha, relevance)[:, None]
                    - alpha[..., None] * relevance
                )
                without = (rest / (1 - alpha)[..., None] + bias).softmax(-1)
                before = under.logits.double().softmax(-1)[:, None]
                values["leave_one_out"] = (0.5 * (without - before).abs().sum(-1)).numpy()
                classes = under.predicted[:, None, None].expand(*without.shape[:2], 1)
                change = (without - before).gather(2, classes)[..., 0]
                against.append((alpha * (change > 1e-6)).sum(-1).tolist())
                if shuffled and k == 0:
                    values["integrated_gradients"] = integrated_gradients(
                        model, batch, under, steps, weights
                    )[0].numpy()
                for m, of in values.items():
                    pairs = [(alpha[i].numpy()[: mask.sum()], of[i][: mask.sum()])
                             for i, mask in enumerate(trace.mask.numpy())]  # fmt: skip
                    found["tau", m].append([tau_b(a, v) for a, v in pairs])
                    if shuffled:
                        found["mass", m].append([(a * v).sum() / v.sum() for a, v in pairs])
            if shuffled:
                for row, number in zip(trace.rows.tolist(), np.mean(against, axis=0), strict=True):
                    assert table[row]["against_shuffled"] == pytest.approx(number, abs=1e-5)
            for (kind, m), numbers in found.items():
                for row, number in zip(trace.rows.tolist(), np.mean(numbers, axis=0), strict=True):
                    assert table[row][f"{kind}_{name}_{m}"] == pytest.approx(number, abs=2e-4), (
                        kind,
                        name,
                        m,
                    )


def test_the_baselines_are_of_a_seeded_sample_that_integrated_gradients_have_too(monkeypatch):
    monkeypatch.setattr(baselines, "TEXTS", 3)

    def read(seed):
        model, texts = small_model("average"), random_texts([5] * 12)
        evidence = evidence_of(model, texts, seed=seed, integrated_gradients_instances=6)
        table = evidence.table("baselines").drop_columns(["row"]).to_pandas()
        (read,) = {tuple(np.flatnonzero(table[name].notna())) for name in table}
        assert len(read) == 3
        missing = evidence.table("integrated_gradients")["importance"].is_null().to_numpy()
        assert missing.sum() == 6
        assert not missing[list(read)].any()
        return read

    assert read(0) == read(0)
    assert len({read(seed) for seed in range(5)}) > 1


def test_a_map_that_is_even_but_for_rounding_ranks_nothing():
    evidence = evidence_of(small_model("lstm"), random_texts([6, 6]))
    instances = evidence.table("instances")
    even = [1 / 6 + x for x in (0, 1e-9, -1e-9, 2e-9, 0, 3e-9)]
    uneven = [0.1, 0.2, 0.15, 0.25, 0.05, 0.25]
    at = instances.column_names.index("attention")
    evidence._tables["instances"] = instances.set_column(at, "attention", [[even, uneven]])
    table = evidence.table("agreement").to_pandas()
    for measure in MEASURE_NAMES:
        assert np.isnan(table[f"tau_attention_{measure}"][0])
        assert np.isfinite(table[f"tau_attention_{measure}"][1])
    assert table["tau_gradient_leave_one_out"].notna().all()
