"""Texts read again without a ranking's first words, with them alone, and among others': against plain loops."""

import numpy as np
import pytest

import heedmap as hm
from heedmap.data.texts import Pair, replaced
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.rereading import (
    ORDERS,
    PART,
    PREFIXES,
    Ranked,
    count_highlighted,
    donors_of,
    orders_of,
    outcomes,
    prefixes,
    ranked,
)
from heedmap.experiments.questions.highlights import sampled
from heedmap.experiments.registry import registered
from heedmap.settings.audit import AuditSettings


@pytest.mark.parametrize(
    ("weights", "count"),
    [
        ([], 0),
        ([1.0], 0),
        ([0.9, 0.1], 0),  # of fewer than three words none can be highlighted
        ([0.8, 0.1, 0.1], 1),
        ([0.5, 0.25, 0.25], 0),  # not twice a third
        ([1 / 9] * 9, 0),
        ([0.35, 0.35, 0.1, 0.1, 0.05, 0.05], 2),
        ([0.3, 0.3, 0.3, 0.05, 0.05], 0),  # nothing has twice a fifth
        ([0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0], 0),  # more than a third of the words
        ([-0.9, 0.1, 0.0, 0.0], 1),  # what is negative has no weight
        ([0.0, 0.0, 0.0], 0),
    ],
)
def test_a_word_with_twice_its_even_weight_is_highlighted(weights, count):
    assert count_highlighted(np.array(weights)) == count


@pytest.mark.parametrize("size", [*range(12), 48, 51, 100, 1000])
def test_up_to_a_third_of_the_words_are_left_out(size):
    counts = prefixes(size)
    assert len(counts) == min(size // PART, PREFIXES)
    if len(counts):
        assert counts[0] == 1
        assert counts[-1] == size // PART
        assert (np.diff(counts) > 0).all()


def test_words_that_tie_have_several_orders_and_others_one():
    rng = np.random.default_rng(0)
    assert len(orders_of(np.array([0.3, 0.2, 0.5]), rng)) == 1
    orders = orders_of(np.array([0.2, 0.2, 0.2, 0.4]), rng)
    assert len(orders) == ORDERS
    assert all(order[0] == 3 for order in orders)
    assert not ranked(np.ones(6), rng).orders  # a map that highlights nothing is not asked


def test_only_the_words_are_replaced_and_a_short_donor_is_read_again():
    where = np.array([True, False, True, True])
    assert replaced(["a", " b", " c", " d\n"], where, ["x", " y"]) == ["x", " b", " x", " y\n"]
    pair = replaced(Pair(["a", "b"], ["why"]), np.array([False, True]), ["x", "y"])
    assert (list(pair), pair.query) == (["a", "y"], ["why"])


@pytest.fixture(scope="module")
def evidence():
    run = hm.train(hm.load("reviews"), encoder="lstm", epochs=1, progress=False)
    return AuditContext(
        run.model, run.corpus.splits["test"].take(range(12)), AuditSettings(), registered()
    )


def probability(evidence, text, answer):
    logits = evidence.model.logits(evidence.model.batch([text], [0])).double()
    return float(logits.softmax(-1)[0, answer]), int(logits.argmax())


def test_the_outcome_of_a_ranking_is_that_of_a_plain_loop(evidence):
    rng = np.random.default_rng(1)
    whole = evidence.table("instances").to_pandas()
    for row in range(12):
        text = list(evidence.texts[row])
        answer, before = int(whole.predicted[row]), float(max(whole.probabilities[row]))
        order, count = rng.permutation(len(text)), 2
        found = outcomes(evidence, {row: {"one": Ranked([order], count)}})["one"][row]
        lost = [
            before
            - probability(evidence, [w for i, w in enumerate(text) if i not in order[:k]], answer)[
                0
            ]
            for k in range(1, len(text) // PART + 1)
            if k in prefixes(len(text))
        ]
        assert found.gone == pytest.approx(max(0.0, *lost), abs=1e-6)
        p, said = probability(
            evidence, [w for i, w in enumerate(text) if i in order[:count]], answer
        )
        assert found.alone == pytest.approx(p, abs=1e-6)
        assert found.alone_stays == (said == answer)
        among = [
            probability(
                evidence,
                [w if i in order[:count] else donor[i % len(donor)] for i, w in enumerate(text)],
                answer,
            )
            for donor in map(list, donors_of(evidence, row))
        ]
        assert len(among) == ORDERS
        assert found.among == pytest.approx(np.mean([p for p, _ in among]), abs=1e-6)
        assert found.among_stays == pytest.approx(np.mean([said == answer for _, said in among]))


def test_a_text_alone_has_no_words_of_others():
    run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    alone = AuditContext(
        run.model, run.corpus.splits["test"].take([0]), AuditSettings(), registered()
    )
    order = np.arange(len(alone.texts[0]))
    found = outcomes(alone, {0: {"one": Ranked([order], 1)}})["one"][0]
    assert donors_of(alone, 0) == []
    assert np.isnan(found.among)
    assert np.isfinite(found.alone)


def test_of_each_predicted_class_the_same_number_is_asked(evidence):
    rows = sampled(evidence)
    assert list(rows) == [i for i, text in enumerate(evidence.texts) if len(text) >= PART]


def test_the_table_is_the_same_when_made_again(evidence):
    again = AuditContext(evidence.model, evidence.split, evidence.settings, registered())
    assert again.table("highlights").equals(evidence.table("highlights"))
