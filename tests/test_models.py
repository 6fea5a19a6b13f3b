import numpy as np
import pytest
import torch
from conftest import random_sentences, random_texts, small_model
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import SINGLE_TEXTS, pairwise
from torch import nn

from heedmap.data.batches import Guided, Ragged
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import ENCODERS, LSTM, reverse_rows
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.normalisers import normalise

KINDS = pytest.mark.parametrize(
    ("kind", "texts_of"),
    [(TextClassifier, random_texts), (HierarchicalClassifier, random_sentences)],
    ids=["words", "sentences"],
)


@pairwise(**SINGLE_TEXTS, classes=[2, 4], kind=[TextClassifier, HierarchicalClassifier])
def test_a_batch_of_one_equals_a_batch_of_many(encoder, score, normaliser, classes, kind):
    model = small_model(encoder, score, normaliser, classes, kind=kind)
    texts = (random_texts if kind is TextClassifier else random_sentences)((5, 1, 2, 9))
    together = model.trace(model.batch(texts, range(4)))
    for i, text in enumerate(texts):
        alone = model.trace(model.batch([text], [i]))
        assert torch.allclose(together.heatmap[i, : len(text)], alone.heatmap[0], atol=1e-6)
        assert torch.allclose(together.logits[i], alone.logits[0], atol=1e-6)
        assert (together.heatmap[i, len(text) :] == 0).all()


@KINDS
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_a_uniform_score_gives_every_token_the_same_weight_and_learns_nothing(
    normaliser, kind, texts_of
):
    model = small_model(score="uniform", normaliser=normaliser, kind=kind)
    trace = model.trace(model.batch(texts_of((5, 1, 2)), range(3)))
    expected = trace.mask / trace.mask.sum(-1, keepdim=True)
    assert torch.allclose(trace.heatmap, expected.float(), atol=1e-6)
    assert model.attention_parameters() == []


def test_a_guided_batch_is_read_with_the_given_weights_whatever_its_parts():
    model = small_model("lstm")
    texts = random_texts((5, 1, 3))
    weights = Ragged([np.array([0, 1, 0, 0, 0]), np.array([1]), np.array([0.5, 0.25, 0.25])])
    encoded = Guided(model.encoded(texts, np.zeros(3, int)), weights)
    batch = encoded.batch([2, 0, 1])
    assert batch.weights.tolist() == [[0.5, 0.25, 0.25, 0, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    outputs, used = model(batch)
    trace = model.trace(batch)
    imposed = model.predict(trace, batch.weights[None, :, None])[0]
    assert torch.allclose(model.as_logits(outputs), imposed, atol=1e-6)
    assert torch.equal(used[:, 0], batch.weights)
    part = batch.taken(slice(0, 1))
    assert torch.allclose(model(part)[0], outputs[:1], atol=1e-6)
    assert part.weights.shape == (1, 3)


@KINDS
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_readout_decodes_the_models_own_weights_to_its_own_logits(
    encoder, classes, kind, texts_of
):
    model = small_model(encoder, classes=classes, kind=kind)
    batch = model.batch(texts_of((4, 7)), [0, 1])
    trace = model.trace(batch)
    assert torch.allclose(trace.logits, model.as_logits(model(batch)[0]), atol=1e-6)
    assert trace.readout.relevance.shape == (2, 1, 7, classes)


@KINDS
@pytest.mark.parametrize("encoder", ENCODERS)
def test_imposed_weights_through_the_encoder_and_through_the_readout_agree(encoder, kind, texts_of):
    model = small_model(encoder, classes=3, kind=kind)
    batch = model.batch(texts_of((4, 7, 1)), range(3))
    trace = model.trace(batch)
    other = normalise(
        torch.randn(6, 3, 1, 7), batch.mask.unsqueeze(1).expand(6, 3, 1, 7), "softmax"
    )
    decoded = model.predict(trace, other)
    assert decoded.shape == (6, 3, 3)
    for s in range(6):
        again = model.logits_from(model.embed(batch), batch, other[s])
        assert torch.allclose(decoded[s], again, atol=1e-6)


def test_two_classes_have_one_sigmoid_output_written_as_zero_and_z():
    model = small_model(classes=2)
    trace = model.trace(model.batch(random_texts((3,)), [0]))
    assert model.decoder.out_features == 1
    assert trace.logits[0, 0] == 0


def test_start_and_end_marks_are_read_but_never_attended_to():
    model = small_model("lstm")
    batch = model.batch([["w01", "w02"]], [0])
    assert batch.ids.shape == (1, 4)
    assert model.trace(batch).heatmap.shape == (1, 2)
    changed = batch.ids.clone()
    changed[0, 0] = 9
    other = type(batch)(batch.rows, changed, batch.mask, batch.labels)
    assert not torch.allclose(model.trace(other).logits, model.trace(batch).logits)


def test_two_lstms_over_padded_rows_are_one_bidirectional_lstm_over_packed_ones():
    torch.manual_seed(0)
    ours = LSTM(6, 5)
    packed = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
    for name, value in ours.forward_lstm.named_parameters():
        getattr(packed, name).data.copy_(value)
    for name, value in ours.backward_lstm.named_parameters():
        getattr(packed, name + "_reverse").data.copy_(value)
    lengths = torch.tensor([9, 4, 1])
    inputs = torch.randn(3, 9, 6)
    sequence = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
    expected = nn.utils.rnn.pad_packed_sequence(packed(sequence)[0], batch_first=True)[0]
    found = ours(inputs, lengths)
    for row, n in enumerate(lengths.tolist()):
        assert torch.allclose(found[row, :n], expected[row, :n], atol=1e-6)


def test_reversing_rows_twice_gives_them_back():
    values = torch.randn(4, 6, 2)
    lengths = torch.tensor([6, 3, 1, 0])
    assert torch.equal(reverse_rows(reverse_rows(values, lengths), lengths), values)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_weights_sum_to_one_over_unmasked_positions_and_are_zero_elsewhere(name, data):
    size = data.draw(st.integers(1, 8))
    scores = torch.tensor(data.draw(st.lists(st.floats(-50, 50), min_size=size, max_size=size)))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    weights = normalise(scores, mask, name)
    assert (weights[~mask] == 0).all()
    assert (weights >= 0).all()
    assert weights.sum().item() == pytest.approx(float(mask.any()), abs=1e-5)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15"])
def test_no_positions_at_all_give_no_weights(name):
    assert normalise(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), name).shape == (2, 0)
