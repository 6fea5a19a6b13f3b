"""More than two classes: `jsd` is the best feasible weighting found, in any order of the tokens."""

import numpy as np
import pytest
import torch
from conftest import small_model
from making import evidence_of, random_rows
from oracles import distance
from scipy.optimize import minimize

from heedmap.counterfactual.bounds import bound_adversary
from heedmap.counterfactual.jain_wallace_search import best_feasible, search_adversaries
from heedmap.measures import LN2, jensen_shannon


def planted(rows, positions, classes, seed=0, gain=4.0):
    """One cue word per class among fillers of two kinds, attention peaked on one of the cues."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(classes + 2, (rows, positions), generator=generator)
    cue = torch.randint(positions, (rows,), generator=generator)
    words[words < classes] = classes  # a filler, but for the one cue of each class
    for c in range(classes):
        words[torch.arange(rows), (cue + c) % positions] = c
    vectors = torch.zeros(classes + 2, classes, dtype=torch.float64)
    vectors[:classes] = gain * torch.eye(classes, dtype=torch.float64)
    vectors[-1] = 0.1 * torch.randn(classes, generator=generator, dtype=torch.float64)
    scores = 0.1 * torch.randn(rows, positions, generator=generator, dtype=torch.float64)
    scores[torch.arange(rows), cue] += 3
    mask = torch.ones(rows, positions, dtype=torch.bool)
    return scores.softmax(-1), vectors[words], torch.zeros(classes, dtype=torch.float64), mask


def rounded(rows):
    """With many ties: weights and logits in steps."""
    attention, readout, bias, mask = rows
    steps = torch.where(mask, (8 * attention).round() + 1, 0)
    return steps / steps.sum(-1, keepdim=True), readout.round(), bias, mask


def papers_search(rows, **settings):
    found = search_adversaries(*rows, generator=torch.Generator().manual_seed(1), **settings)
    return found / found.sum(-1, keepdim=True)


@pytest.mark.parametrize("classes", [3, 5])
def test_the_papers_search_exceeds_no_row_that_was_told_of_it(classes):
    rows = planted(40, 12, classes)
    met = best_feasible(papers_search(rows), *rows, 0.01)
    assert met[1].float().mean() > 0.9
    told = bound_adversary(*rows, 0.01, starts=[met[2]])
    assert (told.lower >= met[0]).all()
    assert (told.lower <= told.upper).all()
    assert (distance(told.attention, rows) <= 0.01 + 1e-9).all()
    torch.testing.assert_close(
        told.lower, jensen_shannon(told.attention, rows[0]), rtol=0, atol=1e-12
    )
    # What it adds is little: the bound's own search finds nearly all of that by itself.
    alone = bound_adversary(*rows, 0.01)
    assert (met[0] - alone.lower).max() < 1e-3


def test_a_table_of_five_classes_has_no_search_above_its_bound():
    words = [f"w{i:02}" for i in range(40)]
    draw = np.random.default_rng(0)
    texts = [list(draw.choice(words, n)) for n in (1, 2, 3, 5, 8, 12, 12, 12)]
    found = evidence_of(small_model(classes=5), texts, curve=[0.0, 0.01]).table("adversary")
    jsd, searched = (found[name].to_numpy() for name in ("jsd", "search_jsd"))
    assert (jsd >= searched).all()
    assert (searched > 0).any()


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("kind", ["random", "rounded", "planted"])
def test_the_order_of_the_tokens_changes_no_bound(kind, classes, epsilon):
    rows = planted(4, 7, classes) if kind == "planted" else random_rows(4, 7, classes)
    attention, readout, bias, mask = rounded(rows) if kind == "rounded" else rows
    bounds = bound_adversary(attention, readout, bias, mask, epsilon)
    for seed in range(2):
        order = torch.rand(7, generator=torch.Generator().manual_seed(seed)).argsort()
        moved = bound_adversary(
            attention[:, order], readout[:, order], bias, mask[:, order], epsilon
        )
        assert torch.equal(moved.lower, bounds.lower)
        assert torch.equal(moved.upper, bounds.upper)
        # Positions that are the same in all respects may share their weights out differently.
        for values in (moved.attention, bounds.attention):
            torch.testing.assert_close(
                values.sum(-1), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-12
            )


def test_a_text_read_backwards_by_a_bag_of_words_has_the_same_jsd():
    model = small_model(classes=5, encoder="average")
    words = [f"w{i:02}" for i in range(40)]
    draw = np.random.default_rng(1)
    texts = [list(draw.choice(words[:6], n)) for n in (2, 3, 6)]  # words come twice
    there = evidence_of(model, texts, curve=[0.0, 0.05]).table("adversary")
    back = evidence_of(model, [text[::-1] for text in texts], curve=[0.0, 0.05]).table("adversary")
    for name in ("jsd", "jsd_upper", "search_jsd"):
        assert np.allclose(there[name].to_numpy(), back[name].to_numpy(), rtol=0, atol=1e-6), name


def test_words_that_are_repeated_do_not_end_the_walk():
    """Twenty copies of a filler: the null space is full of directions that change no logit."""
    attention, readout, bias, mask = planted(10, 6, 5)
    copies = [0, 1, 2, 3, 4, *[5] * 20]
    attention = attention[:, copies] / torch.tensor([*[1] * 5, *[20] * 20])
    found = bound_adversary(attention, readout[:, copies], bias, mask[:, copies], 0.01)
    fewer = bound_adversary(*planted(10, 6, 5), 0.01)
    # All copies' mass may move to one of them, which is different weights: at least as much as before.
    assert (found.lower >= fewer.lower - 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "epsilon"), [(3, 0.01), (5, 0.01), (5, 0.1)])
def test_a_general_solver_finds_hardly_more(classes, epsilon):
    rows = planted(8, 8, classes)
    attention, readout, bias, _ = rows
    bounds = bound_adversary(*rows, epsilon)
    draw = np.random.default_rng(0)
    for row in range(8):
        own, logits = attention[row].numpy(), readout[row].numpy() + bias.numpy()
        prediction = softmax(own @ logits)

        def less(weights, own=own):
            middle = (weights + own) / 2
            return -0.5 * (entropy(weights, middle) + entropy(own, middle))

        def room(weights, logits=logits, prediction=prediction):
            return epsilon - 0.5 * np.abs(softmax(weights @ logits) - prediction).sum()

        best = 0.0
        for _ in range(20):
            found = minimize(
                less,
                draw.dirichlet(np.full(8, 0.3)),
                bounds=[(0, 1)] * 8,
                constraints=[
                    {"type": "eq", "fun": lambda weights: weights.sum() - 1},
                    {"type": "ineq", "fun": room},
                ],
                method="SLSQP",
                options={"maxiter": 300},
            )
            weights = found.x.clip(0) / found.x.clip(0).sum()
            if room(weights) >= -1e-9:
                best = max(best, -less(weights))
        assert best <= float(bounds.upper[row]) + 1e-6
        assert float(bounds.lower[row]) >= best - 0.01 * LN2


def softmax(logits):
    shifted = np.exp(logits - logits.max())
    return shifted / shifted.sum()


def entropy(p, q):
    """Σ p ln(p/q)."""
    return float((p * np.log(np.where(p > 0, p / q, 1))).sum())
