"""The adversary's table, judged by plain numpy at its own ε."""

import numpy as np
import pytest
from conftest import random_texts, small_model
from making import evidence_of

from heedmap.counterfactual.jain_wallace_search import search_adversaries
from heedmap.experiments.methods.readout import linear

LENGTHS = [2, 3, 5, 8, 8, 12]


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def jsd(a, q):
    m = (a + q) / 2

    def kl(p):
        return np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / np.where(m > 0, m, 1)), 0).sum(-1)

    return 0.5 * (kl(a) + kl(q))


def sharp_model(classes=2):
    model = small_model("average", classes=classes)
    model.projection.weight.mul_(10)
    model.score.vector.weight.mul_(10)
    return model


@pytest.mark.parametrize("epsilon", [0.002, 0.005])
def test_the_papers_search_is_the_best_of_its_candidates_within_epsilon(epsilon):
    """Its descent stops caring at .01, so that many of its candidates are farther than a smaller ε allows."""
    evidence = evidence_of(sharp_model(), random_texts(LENGTHS), epsilon=epsilon, curve=(0.0, 0.2))
    table = evidence.table("adversary").to_pylist()
    generator = evidence.torch_generator("adversary")
    beyond = 0
    for trace in evidence.traces:
        weights, relevance, bias = linear(trace)
        drawn = search_adversaries(
            weights.float(), relevance.float(), bias.float(), trace.mask, generator=generator
        ).double()
        for i, row in enumerate(trace.rows.tolist()):
            q, readout = weights[i].numpy(), relevance[i].numpy()
            before = softmax(q @ readout + bias.numpy())
            some = np.where(trace.mask[i].numpy(), drawn[:, i].numpy(), 0.0)
            change = 0.5 * np.abs(softmax(some @ readout + bias.numpy()) - before).sum(-1)
            feasible = change <= epsilon
            best = max([0.0, *jsd(some, q)[feasible]])
            assert table[row]["search_jsd"] == pytest.approx(best, abs=1e-9)
            assert table[row]["search_found"] == feasible.any()
            beyond += ((change > epsilon) & (jsd(some, q) > best + 1e-3)).any()
            # What the table says of its own weights is so.
            given = np.zeros(len(q))
            given[trace.mask[i].numpy()] = table[row]["attention"]
            assert jsd(given, q) == pytest.approx(table[row]["jsd"], abs=1e-9)
            moved = 0.5 * np.abs(softmax(given @ readout + bias.numpy()) - before).sum()
            assert moved <= epsilon + 1e-9
    assert beyond > 0


def test_the_curve_is_that_of_each_epsilon_and_the_table_at_its_own():
    texts = random_texts(LENGTHS)
    curve = (0.0, 0.005, 0.01, 0.1)
    whole = (
        evidence_of(sharp_model(), texts, curve=curve, epsilon=0.02).table("adversary").to_pandas()
    )
    lower = np.stack(whole["curve_lower"])
    for k, epsilon in enumerate(curve):
        if epsilon > 0:
            alone = evidence_of(sharp_model(), texts, curve=(epsilon,), epsilon=epsilon).table(
                "adversary"
            )
            assert np.allclose(lower[:, k], alone["jsd"].to_numpy(), atol=1e-9)
    assert (lower[:, 2] <= whole["jsd"] + 1e-12).all()
    assert (lower[:, 2] < whole["jsd"] - 1e-4).any()
    assert (whole["jsd"] < lower[:, 3] - 1e-4).any()
