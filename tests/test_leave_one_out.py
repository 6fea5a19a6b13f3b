import pytest
import torch
from conftest import random_pairs, random_sentences, random_texts, small_model
from pairwise import SINGLE_TEXTS, pairwise
from tiny_transformers import tiny_classifier

from heedmap.data.texts import exchanged
from heedmap.importance import deletions, leave_one_out
from heedmap.importance.deletions import reread_under, reread_without_each
from heedmap.importance.leave_one_out import logits_without_each, logits_without_each_under
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 17, 3, 1, 30)


@pairwise(**SINGLE_TEXTS, classes=[2, 3], kind=[TextClassifier, HierarchicalClassifier])
def test_kept_states_give_what_reading_again_gives(encoder, score, normaliser, classes, kind):
    model = small_model(encoder, score, normaliser, classes, kind=kind)
    texts = (random_texts if kind is TextClassifier else random_sentences)(LENGTHS)
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
        capabilities = model.capabilities
        tokens_at_once = model.tokens_at_once
        precision = model.precision

    names = (
        "lengths", "mask_token", "batch", "trace", "logits", "predict", "to_heatmap", "embed", "on_tokens",
        "token_positions", "logits_from", "parameters",
    )  # fmt: skip
    for name in names:
        setattr(Other, name, staticmethod(getattr(model, name)))
    batch = model.batch(texts, range(3))
    again = logits_without_each(Other(), batch, texts)
    assert torch.allclose(
        again, logits_without_each(model, batch, texts), atol=1e-6, equal_nan=True
    )


def test_a_masked_token_keeps_its_place_and_a_removed_one_does_not():
    model = small_model("cnn", classes=3)
    text = random_texts((5,))[0]
    masked, removed = (reread_without_each(model, [text], how)[0] for how in ("mask", "remove"))
    for j in range(5):
        unknown = [*text[:j], "never seen", *text[j + 1 :]]
        shorter = [*text[:j], *text[j + 1 :]]
        for row, changed in ((masked[j], unknown), (removed[j], shorter)):
            assert torch.allclose(row, model.trace(model.batch([changed], [0])).logits[0])
    batch = model.batch([text], [0])
    for how, expected in (("mask", masked), ("remove", removed)):
        assert torch.allclose(
            logits_without_each(model, batch, [text], how)[0], expected, atol=2e-6
        )
    assert not torch.allclose(masked, removed, atol=1e-3)


def test_the_deletions_of_a_long_text_are_written_out_a_few_at_a_time(monkeypatch):
    model = small_model("average")
    texts = random_texts((3, 1, 5))
    whole = reread_without_each(model, texts)
    sizes = []
    lengths = model.lengths
    monkeypatch.setattr(deletions, "AT_ONCE", 3)
    monkeypatch.setattr(
        model, "lengths", lambda changed: sizes.append(len(changed)) or lengths(changed)
    )
    for row, same in zip(reread_without_each(model, texts), whole, strict=True):
        assert torch.allclose(row, same, equal_nan=True)
    assert sizes == [3, 3, 2]  # the only token of a text is none of them


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_states_are_kept_up_to_the_most_that_a_text_may_take(monkeypatch, encoder):
    """Numbers per (deletion, position): what the decoder makes of a state, or the half of one that is new."""
    model = small_model(encoder, classes=3)  # 3 logits, 16 numbers a state
    texts = random_texts((4, 7))
    batch = model.batch(texts, [0, 1])
    monkeypatch.setattr(leave_one_out, "reread_without_each", None)
    monkeypatch.setattr(leave_one_out, "MOST", 7 * 7 * 3)
    logits_without_each(model, batch, texts)
    monkeypatch.setattr(leave_one_out, "MOST", 7 * 7 * 3 - 1)
    with pytest.raises(TypeError):
        logits_without_each(model, batch, texts)


@pytest.mark.parametrize("encoder", ["average", "mlp", "none"])
def test_no_states_are_kept_where_deletions_have_a_closed_form(monkeypatch, encoder):
    model = small_model(encoder, classes=3)
    texts = random_texts((4, 7))
    read = reread_without_each(model, texts)
    monkeypatch.setattr(leave_one_out, "reread_without_each", None)
    monkeypatch.setattr(leave_one_out, "MOST", 0)
    closed = logits_without_each(model, model.batch(texts, [0, 1]), texts)
    for row, logits in zip(read, closed, strict=True):
        assert torch.allclose(logits[: len(row)], row.float(), atol=2e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_imposed_weights_stay_when_a_token_goes(encoder, pairs, classes):
    model = small_model(encoder, classes=classes, kind=PairClassifier if pairs else TextClassifier)
    texts = random_pairs(LENGTHS, classes) if pairs else random_texts(LENGTHS)
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    draws = torch.rand(3, *trace.attention.shape, generator=torch.Generator().manual_seed(0))
    weights = draws.masked_fill(~trace.support, 0.0)
    fast = logits_without_each_under(model, batch, trace, texts, weights)
    slow = reread_under(model, trace, texts, weights)
    assert torch.allclose(fast, slow, atol=2e-6, equal_nan=True)
    # By hand, for one text, token and weighting.
    row, gone = LENGTHS.index(5), 2
    shorter = model.trace(model.batch([exchanged(texts[row], gone)], [0]))
    kept = weights[1, row, :, [0, 1, 3, 4]]
    by_hand = model.predict(shorter, (kept / kept.sum()).reshape(1, 1, 1, 4))[0, 0]
    assert torch.allclose(slow[1, row, gone], by_hand, atol=2e-6)


def test_a_models_own_weights_imposed_give_its_own_leave_one_out_where_scores_do_not_change():
    model = small_model("average")
    texts = random_texts(LENGTHS)
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    imposed = logits_without_each_under(model, batch, trace, texts, trace.attention.unsqueeze(0))
    own = logits_without_each(model, batch, texts)
    assert torch.allclose(imposed[0], own, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("how", ["remove", "mask"])
@pytest.mark.parametrize("view", ["row", "received"])
def test_a_transformers_imposed_weights_stay_when_a_word_goes(view, how):
    model = tiny_classifier(view=view)
    texts = [["The", " acting", " is", " unbelievable"], ["It", " bored", " me"]]
    batch = model.batch(texts, range(2))
    trace = model.trace(batch)
    draws = torch.rand(2, *trace.attention.shape, generator=torch.Generator().manual_seed(0))
    weights = draws * trace.support
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    logits = logits_without_each_under(model, batch, trace, texts, weights, how)
    for row, text in enumerate(texts):
        for gone in range(len(text)):
            changed = exchanged(text, gone) if how == "remove" else model.mask_token(text, gone)
            other = model.batch([changed], [0])
            old, new = batch.words[row], other.words[0]
            # Where each new position's weight comes from: position of the other words in their order.
            sources = [p for p in range(len(old)) if batch.real[row, p] and old[p] != gone]
            marks = [] if how == "remove" else [p for p in range(len(new)) if new[p] == gone]
            places = [p for p in range(len(new)) if p not in marks]
            came = dict(zip(places, sources, strict=True))
            word = [p for p in range(len(old)) if old[p] == gone]
            heads = weights[1, row].reshape(-1, *([len(old)] * (2 if view == "received" else 1)))
            expected = torch.zeros(heads.shape[0], *([len(new)] * (heads.dim() - 1)))
            for head in range(len(heads)):
                for query in range(len(new)) if view == "received" else [None]:
                    at = heads[head] if query is None else heads[head, came.get(query, word[0])]
                    target = expected[head] if query is None else expected[head, query]
                    for p in range(len(new)):
                        target[p] = at[word].sum() / len(marks) if p in marks else at[came[p]]
            expected = expected / expected.sum(-1, keepdim=True)
            by_hand = model.logits_from(
                model.embed(other), other, expected.reshape(1, -1, len(new))
            )[0]
            assert torch.allclose(logits[1, row, gone], by_hand, atol=1e-5)
