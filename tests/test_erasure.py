"""Erasing weights: closed forms against erasing, dividing and decoding, subset by subset."""

from itertools import combinations

import numpy as np
import pytest
import torch
from making import padded_rows, random_rows

from heedmap.counterfactual.weight_erasure import (
    Flip,
    along,
    along_each,
    smallest,
    smallest_each,
    without_each,
)


def decoded(rows, row, erased):
    """Logits with the positions `erased` gone, the obvious way."""
    attention, readout, bias, mask = rows
    weights = torch.where(mask[row], attention[row].double(), 0.0)
    weights[list(erased)] = 0.0
    total = weights.sum()
    context = (weights / total) @ readout[row].double() if total > 0 else torch.zeros(len(bias))
    return context + bias.double()


def positions(rows, row):
    return rows[3][row].nonzero().flatten().tolist()


def predicted_of(rows):
    return torch.stack([decoded(rows, row, []).argmax() for row in range(len(rows[0]))])


def sparse(rows):
    """Half of the weights 0, as a sparse normaliser gives them."""
    attention, readout, bias, mask = rows
    kept = attention.masked_fill(attention < attention.median(-1, keepdim=True).values, 0.0)
    return kept / kept.sum(-1, keepdim=True), readout, bias, mask


def no_bias(rows):
    return rows[0], rows[1], torch.zeros_like(rows[2]), rows[3]


def ahead(rows, row, erased, predicted):
    """The classes that are ahead of the predicted one; none where no weight is left."""
    if not any(rows[0][row, t] > 0 for t in positions(rows, row) if t not in erased):
        return set()
    logits = decoded(rows, row, erased)
    return {c for c in range(len(logits)) if logits[c] > logits[predicted[row]]}


def flips(rows, row, erased, predicted):
    return bool(ahead(rows, row, erased, predicted))


CASES = [
    (random_rows(40, 8, classes), "random") for classes in (1, 2, 3, 5)
] + [
    (padded_rows([1, 2, 3, 8], side=side), side) for side in ("left", "right")
] + [
    (sparse(random_rows(40, 8, 3, seed=1)), "sparse"), (random_rows(40, 6, 4, seed=2, tied=True), "tied"),
    (no_bias(random_rows(20, 6, 3, seed=3)), "no bias"),
]  # fmt: skip
EVERY = pytest.mark.parametrize("rows", [rows for rows, _ in CASES], ids=range(len(CASES)))


@EVERY
def test_all_single_erasures_are_those_of_erasing_and_decoding(rows):
    found = without_each(*rows)
    for row in range(len(rows[0])):
        for place in positions(rows, row):
            torch.testing.assert_close(found[row, place], decoded(rows, row, [place]))


def test_a_position_with_nearly_all_the_weight_is_erased_to_the_last_digit():
    weights = torch.tensor([[1.0 - 3e-15, 1e-15, 2e-15]], dtype=torch.float64)
    readout = torch.tensor([[[5.0, 0.0], [0.0, 1.0], [0.0, 4.0]]], dtype=torch.float64)
    rows = (weights, readout, torch.zeros(2), torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(without_each(*rows)[0, 0], torch.tensor([0.0, 3.0]).double())


def test_with_nothing_left_the_bias_decides():
    rows = padded_rows([1], classes=3)
    assert torch.equal(without_each(*rows)[0, positions(rows, 0)[0]], rows[2].double())


@EVERY
def test_along_a_ranking_the_first_flip_is_that_of_the_plain_loop(rows):
    predicted = predicted_of(rows)
    ranking = torch.rand(rows[0].shape, generator=torch.Generator().manual_seed(3))
    ranking = (4 * ranking).round()  # with ties, which keep the order of the text
    found = along(ranking, *rows, predicted)
    for row in range(len(rows[0])):
        order = sorted(positions(rows, row), key=lambda t, row=row: -float(ranking[row, t]))
        count = next(
            (k for k in range(1, len(order) + 1) if flips(rows, row, order[:k], predicted)), 0
        )
        assert int(found.count[row]) == count
        mass = float(rows[0][row, order[:count]].double().sum())
        assert float(found.mass[row]) == pytest.approx(mass)


@EVERY
def test_no_smaller_set_flips_and_the_one_found_does(rows):
    predicted = predicted_of(rows)
    found, erased = smallest(*rows, predicted)
    seen = set()
    for row in range(len(rows[0])):
        places = positions(rows, row)
        least = next(
            (
                k
                for k in range(1, len(places) + 1)
                if any(flips(rows, row, some, predicted) for some in combinations(places, k))
            ),
            0,
        )
        assert int(found.count[row]) == least
        chosen = erased[row].nonzero().flatten().tolist()
        assert len(chosen) == least
        assert set(chosen) <= set(places)
        assert not chosen or flips(rows, row, chosen, predicted)
        assert float(found.mass[row]) == pytest.approx(float(rows[0][row, chosen].double().sum()))
        seen.add(least)
    assert len(rows[0]) < 10 or len(rows[2]) == 1 or len(seen) >= 3  # none, few and many


@EVERY
def test_no_smaller_set_puts_a_class_ahead_and_the_one_found_does(rows):
    predicted = predicted_of(rows)
    found, erased = smallest_each(*rows, predicted)
    seen = set()
    for row in range(len(rows[0])):
        places = positions(rows, row)
        least = dict.fromkeys(range(len(rows[2])), 0)
        for k in range(len(places), 0, -1):
            for some in combinations(places, k):
                least |= dict.fromkeys(ahead(rows, row, some, predicted), k)
        for c, count in least.items():
            assert int(found.count[row, c]) == count
            chosen = erased[row, c].nonzero().flatten().tolist()
            assert len(chosen) == count
            assert not chosen or c in ahead(rows, row, chosen, predicted)
            mass = float(rows[0][row, chosen].double().sum())
            assert float(found.mass[row, c]) == pytest.approx(mass)
            assert mass < 1 or not chosen
            seen.add(count)
        assert least[int(predicted[row])] == 0
    assert len(rows[0]) < 10 or len(rows[2]) == 1 or len(seen) >= 3


@EVERY
def test_the_smallest_set_of_all_is_that_of_the_class_that_needs_the_fewest(rows):
    predicted = predicted_of(rows)
    found, erased = smallest(*rows, predicted)
    each, sets = smallest_each(*rows, predicted)
    for row, counts in enumerate(each.count.tolist()):
        some = [count for count in counts if count]
        assert int(found.count[row]) == min(some, default=0)
        assert not some or any(torch.equal(erased[row], one) for one in sets[row])


@EVERY
@pytest.mark.parametrize("apart", [False, True], ids=["one ranking", "a ranking per class"])
def test_along_a_ranking_each_class_is_ahead_when_the_plain_loop_says_so(rows, apart):
    predicted = predicted_of(rows)
    classes = len(rows[2])
    generator = torch.Generator().manual_seed(4)
    rankings = (
        4 * torch.rand(*rows[0].shape, classes if apart else 1, generator=generator)
    ).round()
    found = along_each(rankings, *rows, predicted)
    for row in range(len(rows[0])):
        for c in range(classes):
            ranking = rankings[row, :, c if apart else 0].tolist()
            order = sorted(positions(rows, row), key=lambda t, ranking=ranking: -ranking[t])
            counts = range(1, len(order) + 1)
            first = (k for k in counts if c in ahead(rows, row, order[:k], predicted))
            assert int(found[row, c]) == next(first, 0)
    if not apart:
        least = torch.where(found > 0, found, 99).amin(-1) % 99
        assert torch.equal(least, along(rankings[..., 0], *rows, predicted).count)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_no_ranking_needs_fewer_and_where_no_set_flips_none_does(classes):
    rows = random_rows(300, 30, classes, seed=5)
    predicted = predicted_of(rows)
    found, _ = smallest(*rows, predicted)
    generator = torch.Generator().manual_seed(0)
    alone = rows[1].double() + rows[2].double()
    lead = alone.gather(2, predicted[:, None, None].expand(-1, 30, 1)).squeeze(2) - alone.mean(2)
    for ranking in (
        rows[0].double(), -rows[0].double(), lead, lead * rows[0],
        torch.rand(rows[0].shape, generator=generator),
    ):  # fmt: skip
        flip = along(ranking, *rows, predicted)
        some = flip.count > 0
        assert some.any()
        assert (flip.count[some] >= found.count[some]).all()
        # Every ranking ends with nothing left: it can flip only where some set does.
        assert (found.count[some] > 0).all()


def test_of_two_classes_without_bias_gradient_times_attention_is_the_best_ranking():
    attention, readout, bias, mask = random_rows(300, 30, 2, seed=6)
    rows = (attention, readout, torch.zeros_like(bias), mask)
    predicted = predicted_of(rows)
    difference = readout[..., 1] - readout[..., 0]
    sign = 2.0 * predicted.unsqueeze(1) - 1.0
    found, _ = smallest(*rows, predicted)
    flip = along(sign * difference * attention, *rows, predicted)
    assert torch.equal(flip.count, found.count)


def test_the_order_of_the_tokens_and_the_padding_change_nothing():
    rows = random_rows(50, 12, 4, seed=8)
    attention, readout, bias, mask = rows
    order = torch.tensor(np.random.default_rng(0).permutation(12))
    moved = (attention[:, order], readout[:, order], bias, mask[:, order])
    predicted = predicted_of(rows)
    one, other = smallest(*rows, predicted), smallest(*moved, predicted)
    assert torch.equal(one[0].count, other[0].count)
    assert torch.equal(one[1][:, order], other[1])
    assert isinstance(one[0], Flip)
