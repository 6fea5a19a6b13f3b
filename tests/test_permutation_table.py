"""Every column of the permutation's table, written out."""

import math
from itertools import permutations as every_order

import numpy as np
import pytest
from conftest import random_texts, small_model
from making import evidence_of

from heedmap.counterfactual.permute import permuted_logits
from heedmap.experiments.methods.readout import linear


def sharp_model(classes):
    model = small_model(classes=classes, seed=2)
    model.score.vector.weight.mul_(30)
    model.projection.weight.mul_(20)
    model.projection.bias.zero_()
    return model


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def tvd(z, y):
    return 0.5 * np.abs(softmax(z) - softmax(y)).sum(-1)


def written_out(own, even, orders):
    """The columns of one text from its logits: its own, under even weights, and under each order."""
    bases = orders[:5]
    between = np.array([[tvd(base, other) for other in orders] for base in bases])
    changes = tvd(own, orders)
    return {
        "median_tvd": np.median(changes),
        "flipped": np.mean(orders.argmax(-1) != own.argmax()),
        "uniform_tvd": tvd(own, even),
        "uniform_flipped": float(even.argmax() != own.argmax()),
        "chance_tvd": np.mean(np.median(between, axis=1)),
        "largest_tvd": max(changes.max(), between.max()),
        "uniform_chance": tvd(even, bases).mean(),
        "uniform_largest": max(tvd(even, orders).max(), tvd(own, even)),
    }


def check(row, expected):
    for name, number in expected.items():
        assert row[name] == pytest.approx(number, abs=2e-6), name


@pytest.mark.parametrize("classes", [2, 3])
def test_of_long_texts_the_numbers_are_those_of_the_drawn_orders(classes):
    model, texts = sharp_model(classes), random_texts([9] * 24)
    evidence = evidence_of(model, texts, permutations=20)
    table = evidence.table("permutation").to_pylist()
    (trace,) = evidence.traces
    weights, relevance, bias = linear(trace)
    drawn = permuted_logits(
        weights, trace.mask, relevance, bias, 20, evidence.generator("permutation")
    )
    rows = [
        written_out(own, even, orders)
        for own, even, orders in zip(
            trace.logits.double().numpy(),
            (relevance.mean(1) + bias).numpy(),
            drawn.numpy(),
            strict=True,
        )
    ]
    for row, expected in zip(table, rows, strict=True):
        check(row, expected)
    assert 0 < sum(row["flipped"] for row in rows) < 24
    assert 0 < sum(row["uniform_flipped"] for row in rows) < 24
    assert any(row["chance_tvd"] > row["median_tvd"] + 0.01 for row in rows)


@pytest.mark.parametrize("tokens", [1, 2, 3, 4])
def test_of_short_texts_they_are_those_of_all_orders(tokens):
    model = sharp_model(2)
    texts = random_texts([tokens, 9, 2])
    evidence = evidence_of(model, texts, permutations=50)
    row = evidence.table("permutation").to_pylist()[0]
    trace = next(iter(evidence_of(model, texts[:1]).traces))
    weights, relevance, bias = linear(trace)
    drawn = permuted_logits(weights, trace.mask, relevance, bias, 50, np.random.default_rng(1))
    orders = drawn[0, : math.factorial(tokens)].numpy()
    weights, relevance, bias = (x.squeeze(0).numpy() for x in (weights, relevance, bias))
    every = np.array([weights[list(o)] @ relevance + bias for o in every_order(range(tokens))])
    assert np.sort(orders[:, 0]) == pytest.approx(np.sort(every[:, 0]))
    check(row, written_out(trace.logits[0].double().numpy(), relevance.mean(0) + bias, orders))
