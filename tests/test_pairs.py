"""Pairs of texts: attention over one, given the other."""

import numpy as np
import pytest
import torch
from conftest import random_pairs, small_model
from pairwise import PAIRS, pairwise

from heedmap.data.texts import Pair, exchanged
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.models.normalisers import normalise
from heedmap.models.pair_classifier import PairClassifier

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 17, 3, 1, 30)


def pair_model(encoder="lstm", score="additive", normaliser="softmax", classes=3):
    return small_model(encoder, score, normaliser, classes, kind=PairClassifier)


@pairwise(**PAIRS, classes=[2, 4])
def test_a_batch_of_one_equals_a_batch_of_many(encoder, score, normaliser, classes):
    model = pair_model(encoder, score, normaliser, classes)
    pairs = random_pairs((5, 1, 2, 9), classes)
    together = model.trace(model.batch(pairs, range(4)))
    for i, pair in enumerate(pairs):
        alone = model.trace(model.batch([pair], [i]))
        assert torch.allclose(together.heatmap[i, : len(pair)], alone.heatmap[0], atol=1e-6)
        assert torch.allclose(together.logits[i], alone.logits[0], atol=1e-6)


@pairwise(**PAIRS)
def test_imposed_weights_through_the_encoder_and_from_kept_states_agree(encoder, score, normaliser):
    model = pair_model(encoder, score, normaliser)
    batch = model.batch(random_pairs((4, 7, 1)), range(3))
    trace = model.trace(batch)
    assert trace.readout is None
    assert torch.allclose(trace.logits, model(batch)[0], atol=1e-6)
    other = normalise(
        torch.randn(6, 3, 1, 7), batch.mask.unsqueeze(1).expand(6, 3, 1, 7), "softmax"
    )
    decoded = model.predict(trace, other)
    for s in range(6):
        again = model.logits_from(model.embed(batch), batch, other[s])
        assert torch.allclose(decoded[s], again, atol=1e-6)


@pairwise(**PAIRS, classes=[2, 5])
def test_kept_states_give_what_reading_again_gives(encoder, score, normaliser, classes):
    model = pair_model(encoder, score, normaliser, classes)
    pairs = random_pairs(LENGTHS, classes)
    fast = logits_without_each(model, model.batch(pairs, range(len(pairs))), pairs)
    for row, slow in zip(fast, reread_without_each(model, pairs), strict=True):
        assert torch.allclose(row[: len(slow)], slow, atol=5e-6, equal_nan=True)
        assert row[len(slow) :].isnan().all()


@pytest.mark.parametrize("score", ["additive", "dot"])
def test_the_query_decides_where_attention_goes(score):
    model = pair_model(score=score)
    text = ["w01", "w02", "w03"]
    asked = [Pair(text, ["w05"]), Pair(text, ["w06", "w07"])]
    heat = model.trace(model.batch(asked, [0, 1])).heatmap
    assert not torch.allclose(heat[0], heat[1])


def test_an_answer_that_is_no_candidate_has_no_probability_whatever_the_weights():
    model = pair_model(classes=4)
    allowed = np.array([True, False, True, False])
    trace = model.trace(model.batch([Pair(["w01", "w02"], ["w03"], allowed)], [0]))
    others = torch.rand(9, 1, 1, 2).softmax(-1)
    probabilities = model.predict(trace, others).softmax(-1)
    assert (probabilities[..., ~torch.from_numpy(allowed)] == 0).all()
    assert (probabilities[..., torch.from_numpy(allowed)] > 0).all()


def test_the_last_states_of_a_query_are_those_of_its_own_length():
    model = pair_model("lstm")
    short, long = Pair(["w01"], ["w02"]), Pair(["w01"], ["w03"] * 9)
    beside = model.encode_query(model.batch([short, long], [0, 1]))[0]
    alone = model.encode_query(model.batch([short], [0]))[0]
    assert torch.allclose(beside, alone, atol=1e-6)
    assert torch.equal(alone[0], model.query.encoder.last(
        model.query.encoder(model.query.embedding(torch.tensor([[2, 6, 3]])), torch.tensor([3])),
        torch.tensor([3]),
    )[0])  # fmt: skip


def test_exchanging_a_token_of_a_pair_keeps_its_query_and_its_candidates():
    pair = Pair(["a", "b", "c"], ["q"], np.array([True, False]))
    without, hidden = exchanged(pair, 1), exchanged(pair, 0, "<unk>")
    assert list(without) == ["a", "c"]
    assert list(hidden) == ["<unk>", "b", "c"]
    for changed in (without, hidden):
        assert changed.query == ["q"]
        assert changed.allowed is pair.allowed
    assert exchanged(["a", "b"], 0) == ["b"]
