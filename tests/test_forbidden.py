"""The least attention to impermissible tokens at the same prediction, against linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from heedmap.counterfactual.forbidden import least_mass


def by_program(relevance, weights, marked):
    """The same by a linear program, written out."""
    differences = relevance[:, 1:] - relevance[:, :1]
    found = linprog(
        marked,
        A_eq=np.vstack([np.ones(len(marked)), differences.T]),
        b_eq=[1.0, *(weights @ differences)],
        bounds=(0, 1),
    )
    return found.fun


def drawn(rng, size, classes):
    relevance = rng.normal(size=(size, classes)) * rng.choice([0.1, 1.0, 10.0])
    weights = rng.dirichlet(np.full(size, rng.choice([0.2, 1.0])))
    marked = (rng.random(size) < 0.5).astype(float)
    return relevance, weights, marked


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("size", [2, 3, 8, 30])
def test_it_is_what_a_linear_program_finds(size, classes):
    rng = np.random.default_rng([size, classes])
    above = 0
    for _ in range(60):
        relevance, weights, marked = drawn(rng, size, classes)
        if not marked.any() or marked.all():
            continue
        found = least_mass(relevance, weights, marked)
        assert found == pytest.approx(by_program(relevance, weights, marked), abs=1e-6)
        assert -1e-12 <= found <= weights @ marked + 1e-9
        above += found > 1e-6
    assert above or size == 30, "not all of them are 0"


def test_texts_without_impermissible_tokens_have_none_and_texts_of_nothing_else_have_all():
    relevance, weights = np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([0.5, 0.5])
    assert np.isnan(least_mass(relevance, weights, np.zeros(2)))
    assert least_mass(relevance, weights, np.ones(2)) == 1.0
    assert np.isnan(least_mass(np.zeros((0, 2)), np.zeros(0), np.zeros(0)))
    assert least_mass(relevance[:1], np.ones(1), np.ones(1)) == 1.0


def test_a_prediction_that_only_the_impermissible_word_gives_needs_it():
    relevance = np.array([[0.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    weights = np.array([0.75, 0.25, 0.0])  # z = 3, of which permissible words reach 1
    assert least_mass(relevance, weights, np.array([1.0, 0.0, 0.0])) == pytest.approx(2 / 3)
    mirrored = least_mass(-relevance, weights, np.array([1.0, 0.0, 0.0]))
    assert mirrored == pytest.approx(2 / 3)


def test_equal_readings_need_none_of_it():
    relevance, weights = np.zeros((4, 2)), np.full(4, 0.25)
    assert least_mass(relevance, weights, np.array([1.0, 1.0, 1.0, 0.0])) == 0.0
    three = least_mass(np.zeros((4, 3)), weights, np.array([1.0, 1.0, 1.0, 0.0]))
    assert three == pytest.approx(0.0, abs=1e-9)
