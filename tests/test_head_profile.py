"""What heads attend to, their entropies and distances, against the obvious sums; words of several sub-words."""

import math

import pytest
import torch

from heedmap.data.trees import ROOT, DependencyTree
from heedmap.importance.head_profile import Marks, head_distances, masses, row_entropies, smoothed
from heedmap.importance.head_relations import OFFSETS, Predictions, at_offsets, predicted_heads
from heedmap.importance.words import between_words
from heedmap.measures import jensen_shannon


def random_weights(heads, size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(heads, size, size, generator=generator).pow(3).softmax(-1)


def marks(size, cls=(), sep=(), punctuation=()):
    return Marks(
        *(torch.tensor([i in places for i in range(size)]) for places in (cls, sep, punctuation))
    )


def slow_masses(weights, at):
    """Each number as a sum over rows and columns."""
    n = len(weights)
    sums = dict.fromkeys(("cls", "sep", "punctuation", "self", "next", "previous"), 0.0)
    to_sep = {True: [], False: []}
    for i in range(n):
        for j in range(n):
            a = float(weights[i, j])
            for name in ("cls", "sep", "punctuation"):
                sums[name] += a / n * bool(getattr(at, name)[j])
            sums["self"] += a / n * (i == j)
            sums["next"] += a / n * (j == i + 1)
            sums["previous"] += a / n * (j == i - 1)
        to_sep[bool(at.sep[i])].append(sum(float(weights[i, j]) for j in range(n) if at.sep[j]))
    for name, rows in (("sep_to_sep", to_sep[True]), ("others_to_sep", to_sep[False])):
        sums[name] = sum(rows) / len(rows) if rows else math.nan
    for name in ("cls", "sep"):
        sums[name] = sums[name] if bool(getattr(at, name).any()) else math.nan
    sums["others_to_sep"] = sums["others_to_sep"] if bool(at.sep.any()) else math.nan
    return sums


@pytest.mark.parametrize(
    ("size", "places"),
    [
        (1, {}),
        (1, {"sep": [0]}),
        (2, {"cls": [0], "sep": [1]}),
        (6, {"cls": [0], "sep": [5], "punctuation": [4]}),
        (7, {"cls": [0], "sep": [3, 6], "punctuation": [2, 5]}),
        (5, {"punctuation": [4]}),
    ],
)
def test_masses_are_the_sums_over_rows_and_columns(size, places):
    weights, at = random_weights(3, size), marks(size, **places)
    found = masses(weights, at)
    for head in range(3):
        expected = slow_masses(weights[head], at)
        assert {name: float(values[head]) for name, values in found.items()} == pytest.approx(
            expected, nan_ok=True
        )


def test_entropies_are_of_smoothed_rows_and_at_most_ln_n():
    weights = torch.cat([torch.eye(4)[None], torch.full((1, 4, 4), 0.25)])
    one_hot, uniform = row_entropies(weights)
    low = [0.9999 + 0.0001 / 4, *[0.0001 / 4] * 3]
    assert one_hot.tolist() == pytest.approx([-sum(p * math.log(p) for p in low)] * 4)
    assert uniform.tolist() == pytest.approx([math.log(4)] * 4)
    assert row_entropies(torch.ones(2, 1, 1)).flatten().tolist() == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize(("heads", "size"), [(1, 3), (2, 1), (2, 2), (5, 4)])
def test_distances_are_sums_of_divergences_of_smoothed_rows(heads, size):
    weights = random_weights(heads, size)
    weights[0] = torch.eye(size)
    found = head_distances(weights)
    rows = smoothed(weights, 1e-3)
    for k in range(heads):
        for m in range(heads):
            expected = sum(float(jensen_shannon(rows[k, i], rows[m, i])) for i in range(size))
            assert float(found[k, m]) == pytest.approx(expected, abs=1e-12)


def slow_words(weights, words, size):
    result = torch.zeros(size, size)
    for i in range(size):
        rows = [p for p, word in enumerate(words) if word == i]
        for j in range(size):
            columns = [p for p, word in enumerate(words) if word == j]
            for row in rows:
                result[i, j] += sum(weights[row, column] for column in columns) / len(rows)
    return result


@pytest.mark.parametrize(
    "words",
    [[0], [-1], [-1, 0, -1], [0, 0], [-1, 0, 1, 1, 2, -1], [3, 3, 0, 1, 0], [2, -1, 2, 3, -1, -1]],
)
def test_words_get_the_sum_of_their_sub_words_and_give_the_mean(words):
    weights = random_weights(2, len(words), len(words))
    found = between_words(weights, torch.tensor(words), 4)
    for head in range(2):
        torch.testing.assert_close(found[head], slow_words(weights[head], words, 4))


def test_rows_of_words_sum_to_one_without_other_positions():
    found = between_words(random_weights(2, 5), torch.tensor([0, 0, 1, 2, 2]), 3)
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 3))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_head_s_parse_is_its_largest_weight_on_another_word_in_either_direction(size):
    weights = random_weights(4, size)
    to_head, to_dependent = predicted_heads(weights)
    for k in range(4):
        for word in range(size):
            others = [i for i in range(size) if i != word]
            assert to_head[k, word] == max(others, key=lambda i: float(weights[k, word, i]))
            assert to_dependent[k, word] == max(others, key=lambda i: float(weights[k, i, word]))


def test_of_equal_weights_the_first_other_word_counts():
    to_head, to_dependent = predicted_heads(torch.full((1, 3, 3), 1 / 3))
    assert to_head.tolist() == to_dependent.tolist() == [[1, 0, 0]]


def test_offsets_outside_of_a_sentence_are_no_word():
    places = at_offsets(3)
    assert places[OFFSETS.index(1)].tolist() == [1, 2, -1]
    assert places[OFFSETS.index(-2)].tolist() == [-1, -1, 0]
    assert at_offsets(1).max() == -1
    assert 0 not in OFFSETS


def test_sentences_without_scored_words_add_nothing():
    lone = DependencyTree(("Go", "!"), (ROOT, 0), ("root", "punct"))
    pair = DependencyTree(("It", " works"), (1, ROOT), ("nsubj", "root"))
    found = Predictions.of([lone, pair], [random_weights(2, 2), random_weights(2, 2)])
    assert found.sentence.tolist() == [1]
    assert found.parsers == 4
    assert found.predicted[0, :4].tolist() == [1] * 4
