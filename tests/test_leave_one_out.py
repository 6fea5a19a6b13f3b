import pytest
import torch
from conftest import random_texts, small_model

from heedmap.importance import leave_one_out
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.leave_one_out import logits_without_each

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 17, 3, 1, 30)


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("classes", [2, 3])
def test_kept_states_give_what_reading_again_gives(encoder, score, normaliser, classes):
    model = small_model(encoder, score, normaliser, classes)
    texts = random_texts(LENGTHS)
    fast = logits_without_each(model, model.batch(texts, range(len(texts))), texts)
    for row, slow in zip(fast, reread_without_each(model, texts), strict=True):
        assert torch.allclose(row[: len(slow)], slow, atol=2e-6, equal_nan=True)
        assert row[len(slow) :].isnan().all()


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_the_only_token_of_a_text_cannot_be_left_out(encoder):
    model = small_model(encoder)
    texts = [["w01"]]
    assert logits_without_each(model, model.batch(texts, [0]), texts).isnan().all()


def test_of_two_tokens_the_other_one_alone_decides():
    model = small_model("lstm")
    texts = [["w01", "w02"]]
    without = logits_without_each(model, model.batch(texts, [0]), texts)[0]
    alone = model.trace(model.batch([["w02"], ["w01"]], [0, 1])).logits
    assert torch.allclose(without, alone, atol=1e-6)


def test_how_many_deletions_are_carried_at_a_time_changes_nothing(monkeypatch):
    model = small_model("lstm")
    texts = random_texts(LENGTHS)
    batch = model.batch(texts, range(len(texts)))
    whole = logits_without_each(model, batch, texts)
    monkeypatch.setattr(leave_one_out, "ROWS", 1)
    assert torch.allclose(
        logits_without_each(model, batch, texts), whole, atol=1e-6, equal_nan=True
    )


def test_a_model_of_another_family_is_read_again():
    model = small_model("average")
    texts = random_texts((3, 1, 5))

    class Other:
        classes = model.classes
        tokens_at_once = model.tokens_at_once
        precision = model.precision

    names = (
        "lengths", "masked", "batch", "trace", "logits", "predict", "shown", "embed", "on_tokens",
        "of_text", "logits_from",
    )  # fmt: skip
    for name in names:
        setattr(Other, name, staticmethod(getattr(model, name)))
    batch = model.batch(texts, range(3))
    again = logits_without_each(Other(), batch, texts)
    assert torch.allclose(
        again, logits_without_each(model, batch, texts), atol=1e-6, equal_nan=True
    )
