"""Adam by rows ends at the bits of dense Adam: weights, moments, whole trainings, resumed ones."""

import copy

import pytest
import torch
from conftest import small_corpus, watched
from torch import nn
from torch.utils.checkpoint import checkpoint

from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.runs.train import train
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings
from heedmap.training import attention
from heedmap.training.row_adam import RowAdam

SMALL = {"embedding_size": 12, "hidden_size": 16, "min_df": 1, "learning_rate": 1e-4}
NEVER, ONCE, ALWAYS = 3, 4, 5


class Pair:
    """The same embedding and layer under dense Adam and under Adam by rows."""

    def __init__(self, rows=50, width=8, weight_decay=1e-5, amsgrad=True, trained=True):
        torch.manual_seed(0)
        self.dense = nn.Sequential(nn.Embedding(rows, width, padding_idx=0), nn.Linear(width, 4))
        self.dense[0].weight.requires_grad_(trained)
        self.by_rows = copy.deepcopy(self.dense)
        groups = [
            [
                {"params": list(model[0].parameters()), "weight_decay": weight_decay},
                {"params": list(model[1].parameters()), "weight_decay": 0.0},
            ]
            for model in (self.dense, self.by_rows)
        ]
        self.adam = torch.optim.Adam(groups[0], lr=1e-2, amsgrad=amsgrad, fused=True)
        self.row_adam = RowAdam(groups[1], [self.by_rows[0]], lr=1e-2, amsgrad=amsgrad)
        self.generator = torch.Generator().manual_seed(1)
        self.rows = rows

    @property
    def sides(self):
        return (self.dense, self.adam), (self.by_rows, self.row_adam)

    def step(self, ids, targets, loss=None):
        for model, optimizer in self.sides:
            optimizer.zero_grad()
            (loss or summed)(model, ids, targets).backward()
            optimizer.step()

    def drawn(self, number):
        """Rare rows, one that is never there, one that is there once, one that always is, and padding."""
        chances = 1.0 / torch.arange(1, self.rows + 1).double() ** 2
        chances[NEVER] = chances[ONCE] = 0
        ids = torch.multinomial(chances, 12, replacement=True, generator=self.generator)
        ids[0], ids[1] = ALWAYS, ONCE if number == 7 else ALWAYS
        return ids.view(3, 4), torch.randn(3, 4, 4, generator=self.generator)

    def check(self):
        states = [optimizer.state_dict() for _, optimizer in reversed(self.sides)]
        weights = [model.state_dict() for model, _ in self.sides]
        assert all(same_bits(weights[0][name], weights[1][name]) for name in weights[0])
        assert states[0]["state"].keys() == states[1]["state"].keys()
        assert states[0]["param_groups"] == states[1]["param_groups"]
        for index, slots in states[0]["state"].items():
            others = states[1]["state"][index]
            assert slots.keys() == others.keys()
            assert all(same_bits(slots[name], others[name]) for name in slots)


def same_bits(left, right):
    """Return whether two tensors are equal, the signs of zeros included."""
    return torch.equal(left.view(torch.int32), right.view(torch.int32))


def summed(model, ids, targets):
    return (model(ids) * targets).sum()


@pytest.mark.parametrize("amsgrad", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-5, 0.1])
@pytest.mark.parametrize(("rows", "width"), [(50, 8), (37, 5), (33, 1), (90, 300), (6, 16)])
def test_weights_and_moments_are_dense_adams(rows, width, weight_decay, amsgrad):
    pair = Pair(rows, width, weight_decay, amsgrad)
    for number in range(25):
        pair.step(*pair.drawn(number))
    pair.check()
    assert (pair.by_rows[0].weight[0] == 0).all()
    pair.row_adam.release()
    pair.step(*pair.drawn(0))  # dense again, from a gradient of all rows
    pair.check()


def test_rows_are_moved_in_blocks_of_any_size(monkeypatch):
    monkeypatch.setattr("heedmap.training.row_adam.BLOCK", 24)
    pair = Pair()
    for number in range(12):
        pair.step(*pair.drawn(number))
    pair.check()


def test_several_threads_end_at_the_same_bits():
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        pair = Pair(601, 12)
        for number in range(9):
            pair.step(*pair.drawn(number))
        pair.check()
    finally:
        torch.set_num_threads(threads)


def test_missed_steps_are_taken_at_the_rate_of_their_time():
    pair = Pair()
    for number in range(20):
        for _, optimizer in pair.sides:
            optimizer.param_groups[0]["lr"] = 1e-2 / (1 + number // 6)
        pair.step(*pair.drawn(number))
    pair.check()


def test_texts_that_are_read_in_parts_have_the_same_gradient():
    def in_parts(model, ids, targets):
        parts = [checkpoint(model, part, use_reentrant=False) for part in ids.split(1)]
        return (torch.cat(parts) * targets).sum()

    pair = Pair()
    for number in range(10):
        pair.step(*pair.drawn(number), in_parts)
    pair.check()


def test_a_row_is_up_to_date_wherever_the_module_reads_it():
    pair = Pair()
    for number in range(8):
        pair.step(*pair.drawn(number))
        with torch.no_grad():
            rows = torch.tensor([NEVER, 49])
            assert torch.equal(pair.dense[0](rows), pair.by_rows[0](rows))
    assert torch.equal(pair.dense.state_dict()["0.weight"], pair.by_rows.state_dict()["0.weight"])


def test_the_state_of_either_optimiser_goes_on_with_the_other():
    pair = Pair()
    for number in range(6):
        pair.step(*pair.drawn(number))
    states = copy.deepcopy((pair.adam.state_dict(), pair.row_adam.state_dict()))
    weights = copy.deepcopy(pair.dense.state_dict())
    pair.step(*pair.drawn(0))
    for (model, optimizer), state in zip(pair.sides, reversed(states), strict=True):
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)
    for number in range(6):
        pair.step(*pair.drawn(number))
    pair.check()


def test_a_frozen_embedding_stays():
    pair = Pair(trained=False)
    before = pair.by_rows[0].weight.clone()
    pair.step(*pair.drawn(0))
    pair.check()
    assert torch.equal(pair.by_rows[0].weight, before)


def test_large_embeddings_alone_are_trained_by_rows(monkeypatch):
    monkeypatch.setattr(attention, "LARGE", 1000)
    for width, tables in ((10, 0), (300, 1)):
        model = attention_model(width)
        optimizer = attention.optimizer_of(model, TrainSettings())
        assert len(optimizer.tables) == tables


def attention_model(width):
    settings = ModelSettings(encoder="average", embedding_size=width, hidden_size=8)
    return TextClassifier(settings, Vocabulary(["a", "b"]), ["x", "y"])


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_a_training_and_a_resumed_one_end_at_dense_adams_bytes(encoder, tmp_path, monkeypatch):
    dense = train(small_corpus(), encoder=encoder, epochs=3, **SMALL)
    monkeypatch.setattr(attention, "LARGE", 0)
    by_rows = train(small_corpus(), encoder=encoder, epochs=3, out=tmp_path / "whole", **SMALL)

    def stop(done, text):
        if text.endswith("epoch 3 of 3"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(stop):
        train(small_corpus(), encoder=encoder, epochs=3, out=tmp_path / "run", **SMALL)
    resumed = train(small_corpus(), encoder=encoder, epochs=3, out=tmp_path / "run", **SMALL)
    assert dense.training.scores == by_rows.training.scores == resumed.training.scores
    for name, value in dense.model.state_dict().items():
        assert same_bits(value, by_rows.model.state_dict()[name])
    assert not by_rows.model.embedding._forward_pre_hooks
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_lookup_has_second_derivatives_and_no_forward_one_that_is_lost():
    pair = Pair()
    ids = torch.tensor([[0, 5, 5], [7, 0, 9]])

    def dense(values):
        return values.to_dense() if values.is_sparse else values

    second = []
    for model, _ in pair.sides:
        weight = model[0].weight
        (slope,) = torch.autograd.grad((model[0](ids) ** 3).sum(), weight, create_graph=True)
        second.append(dense(torch.autograd.grad((dense(slope) ** 2).sum(), weight)[0]))
    torch.testing.assert_close(*second)
    assert second[0].abs().sum() > 0
    embedding, forward_ad = pair.by_rows[0], torch.autograd.forward_ad
    with forward_ad.dual_level():
        weight = forward_ad.make_dual(embedding.weight, torch.ones_like(embedding.weight))
        with pytest.raises(NotImplementedError, match="jvp"):
            torch.func.functional_call(embedding, {"weight": weight}, (ids,))
    doubled = (2 * embedding.weight.detach()).requires_grad_()
    looked_up = torch.func.functional_call(embedding, {"weight": doubled}, (ids,))
    (slope,) = torch.autograd.grad((looked_up**2).sum(), doubled)
    expected = torch.zeros_like(doubled)
    for number in (5, 5, 7, 9):
        expected[number] += 2 * doubled[number].detach()
    torch.testing.assert_close(dense(slope), expected)
