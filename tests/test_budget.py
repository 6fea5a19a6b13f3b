"""Audits with a budget: the drawing order, when an answer is certain, and runs that stop and go on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_numbers import T
from rule_columns import columns_of

from heedmap.data.corpus import Split
from heedmap.experiments.budget_facts import BudgetFacts
from heedmap.experiments.certainty import completed_numbers, possible_answers
from heedmap.experiments.drawing import LOOKS, first_texts, in_drawing_order, looks, stops
from heedmap.experiments.rule import answer, map_numbers


def split(labels, text_of=None):
    rows = len(labels)
    return Split(
        [f"k{row}" for row in range(rows)],
        [[f"w{row}"] for row in range(rows)],
        np.array(labels),
        text_of=None if text_of is None else np.array(text_of),
    )


def first(columns, n):
    return {name: column[:n] for name, column in columns.items()}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 5))
def test_texts_are_drawn_from_each_class_in_turn(labels, seed):
    drawn = in_drawing_order(split(labels), seed)
    assert sorted(drawn.keys) == sorted(split(labels).keys)
    for n in range(1, len(labels) + 1):
        taken = np.bincount(drawn.labels[:n], minlength=4)
        left = np.bincount(drawn.labels[n:], minlength=4)
        # A class that still has texts is never behind another by more than one.
        assert all(taken[c] >= taken.max() - 1 for c in range(4) if left[c])


def test_the_order_is_seeded_and_random_without_labels():
    unlabelled = split([-1] * 30)
    keys = [in_drawing_order(unlabelled, seed).keys for seed in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]
    assert sorted(keys[0]) == sorted(unlabelled.keys)


def test_the_windows_of_a_text_are_drawn_together_and_numbered_in_the_drawing_order():
    drawn = in_drawing_order(split([0, 0, 1, 0, 0, 1], [3, 3, 4, 7, 7, 9]), 0)
    assert drawn.text_of.tolist() == sorted(drawn.text_of)
    assert set(drawn.text_of) == {0, 1, 2, 3}
    assert [set(drawn.labels[drawn.text_of == text]) for text in range(2)] in (
        [{0}, {1}],
        [{1}, {0}],
    )
    windows = [row for row, key in enumerate(drawn.keys) if key in ("k0", "k1")]
    assert windows[1] == windows[0] + 1
    assert first_texts(drawn, 2).whole_texts == 2


@pytest.mark.parametrize("total", [1, 5, 16, 17, 40, 300, 1500])
def test_there_are_at_most_nineteen_looks_the_last_at_all_texts(total):
    assert len(looks(total)) <= LOOKS
    assert looks(total)[-1] == total
    assert {*looks(total)} <= {*stops(total)}
    assert stops(total) == sorted({*stops(total)})


def test_completions_have_the_numbers_of_the_texts_repeated():
    rng = np.random.default_rng(0)
    columns = columns_of(rng, 40, 0.7)
    counts = 1 + rng.integers(0, 4, (5, 40))
    for row, numbers in zip(counts, completed_numbers(columns, counts), strict=True):
        slow = map_numbers({name: np.repeat(column, row) for name, column in columns.items()})
        assert numbers.weights == pytest.approx(slow.weights)
        for fast_class, slow_class in zip(numbers.classes, slow.classes, strict=True):
            assert vars(fast_class) == pytest.approx(vars(slow_class), nan_ok=True)


def test_the_answer_of_all_texts_is_certain_and_that_of_few_mixed_ones_is_not():
    columns = columns_of(np.random.default_rng(1), 60, 0.8)
    every = possible_answers(columns, np.arange(60), 60, T, 0)
    assert every == {answer(map_numbers(columns), T): 1.0}
    assert len(possible_answers(first(columns, 16), np.arange(16), 300, T, 0)) > 1


def test_a_text_that_is_repeated_counts_once():
    columns = columns_of(np.random.default_rng(2), 6, 0.95)
    repeated = {name: np.tile(column, 10) for name, column in columns.items()}
    apart = possible_answers(repeated, np.arange(60), 600, T, 0)
    together = possible_answers(repeated, np.tile(np.arange(6), 10), 600, T, 0)
    assert max(together.values()) <= max(apart.values())


@pytest.mark.parametrize(
    ("holding", "weights"), [(0.97, 0.2), (0.86, 0.033), (0.5, 0.2), (0.02, 0.2)]
)
def test_an_answer_that_became_certain_at_any_look_is_that_of_all_texts(holding, weights):
    right = []
    for seed in range(12):
        columns = columns_of(np.random.default_rng(seed), 100, holding, weights)
        for size in looks(100):
            possible = possible_answers(first(columns, size), np.arange(size), 100, T, seed)
            if len(possible) == 1:
                break
        right.append(next(iter(possible)) == answer(map_numbers(columns), T))
    assert np.mean(right) >= 0.95 or sum(right) >= 11  # of 12, one may be wrong by chance


@pytest.mark.parametrize(
    ("minutes", "told"),
    [
        (1.0, "drawn until the minute was over"),
        (0.5, "drawn until the 0.5 minutes were over"),
        (10.0, "drawn until the 10 minutes were over"),
    ],
)
def test_one_minute_is_told_in_the_singular_and_the_minutes_count_anew(minutes, told):
    facts = BudgetFacts(16, 300, minutes, False, ["yes", "no"], 32, 5.0, 60.0, {})
    assert facts.drawn_until == told
    assert facts.what_to_do.endswith("the same or more --minutes, which count from its own start")
