"""Models that answer at each position, asked about a word, against the same models of plain transformers."""

import numpy as np
import pytest
import torch
from tiny_askers import ARCHITECTURES, LABELS, MASKED, TAGGED, on_trial, plain
from tiny_transformers import tiny_tokenizer
from torch.nn import functional

from heedmap.data.texts import Asked
from heedmap.errors import InputError
from heedmap.huggingface.model_adapter import eagerly
from heedmap.huggingface.targets import answer_at_targets, is_one_entry, mask_of, word_number
from heedmap.huggingface.tasks import Task, task_of, task_of_model
from heedmap.importance.deletions import reread_without_each

FUSED = 1e-4  # of logits that fused attention gives: sums in another order, weights of size .6
KINDS = [(name, of_masks) for name in ARCHITECTURES for of_masks in (False, True)]


def read_plainly(model, text, swap=None, choices=None):
    """One text alone: its logits at the first sub-word of its word, that position, and the last weights.

    `swap` changes the weights of the last softmax.
    """
    tokenizer = tiny_tokenizer()
    written = "".join(text.tokens)
    encoding = tokenizer(written, return_tensors="pt")
    encoding.pop("token_type_ids", None)
    start = len("".join(text.tokens[: text.target]))
    visible = start + len(text.tokens[text.target]) - len(text.tokens[text.target].lstrip())
    position = encoding.char_to_token(0, visible)
    calls = []

    def softmax(scores, *args, **kwargs):
        weights = original(scores, *args, **kwargs)
        if weights.ndim == 4:
            calls.append(weights)
            if swap is not None and len(calls) == 3:
                weights = weights.clone()
                weights[0, :, position] = swap(weights.shape[-1])
        return weights

    original = functional.softmax
    functional.softmax = softmax
    try:
        with eagerly(model):
            logits = model(**encoding).logits[0, position]
    finally:
        functional.softmax = original
    if choices is not None:
        logits = logits[[tokenizer.convert_tokens_to_ids(word) for word in choices]]
    return logits, calls[-1][0, :, position]


@pytest.mark.parametrize(("architecture", "of_masks"), KINDS)
def test_logits_and_weights_are_those_at_the_word_that_is_asked_about(architecture, of_masks):
    texts = MASKED if of_masks else TAGGED
    model, alone = on_trial(architecture, of_masks=of_masks), plain(architecture, of_masks=of_masks)
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    assert model.reads == "target"
    assert torch.equal(model.logits(batch).argmax(1), trace.predicted)
    for row, text in enumerate(texts):
        expected, weights = read_plainly(alone, text, choices=text.choices)
        torch.testing.assert_close(trace.logits[row], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(model.logits(batch)[row], expected, atol=FUSED, rtol=1e-5)
        ours = trace.attention[row, :, : weights.shape[1]]
        torch.testing.assert_close(ours, weights, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("architecture", "of_masks"), KINDS)
def test_predictions_under_other_weights_are_those_of_the_model_with_them(architecture, of_masks):
    texts = MASKED if of_masks else TAGGED
    model, alone = on_trial(architecture, of_masks=of_masks), plain(architecture, of_masks=of_masks)
    trace = model.trace(model.batch(texts, range(len(texts))))

    def leaning(size):
        """Most weight on the first position, the same for all heads."""
        return torch.tensor([0.7, *[0.3 / (size - 1)] * (size - 1)])

    imposed = torch.zeros_like(trace.attention)
    for row, real in enumerate((trace.words != -2).sum(1).tolist()):
        imposed[row, :, :real] = leaning(real)
    logits = model.predict(trace, imposed[None])[0]
    for row, text in enumerate(texts):
        expected, _ = read_plainly(alone, text, swap=leaning, choices=text.choices)
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("architecture", "of_masks"), KINDS)
def test_without_a_word_the_changed_text_is_read_again(architecture, of_masks):
    text = (MASKED if of_masks else TAGGED)[1]
    model, alone = on_trial(architecture, of_masks=of_masks), plain(architecture, of_masks=of_masks)
    (logits,) = reread_without_each(model, [text], "remove")
    for place in range(len(text)):
        tokens, target = [*text.tokens], text.target
        if place == target:  # the word itself is hidden, for the answer is read there
            tokens[place] = tokens[place][: -len(tokens[place].strip())] + "[MASK]"
        else:
            del tokens[place]
            target -= place < target
        expected, _ = read_plainly(alone, Asked(tokens, target), choices=text.choices)
        torch.testing.assert_close(logits[place].float(), expected, atol=FUSED, rtol=1e-5)


@pytest.mark.parametrize("view", ["received", "rollout", "gradient"])
@pytest.mark.parametrize("of_masks", [False, True])
def test_other_views_have_the_same_answers(view, of_masks):
    texts = MASKED if of_masks else TAGGED
    trace, by_row = (
        model.trace(model.batch(texts, range(len(texts))))
        for model in (
            on_trial("bert", of_masks=of_masks, view=view),
            on_trial("bert", of_masks=of_masks),
        )
    )
    torch.testing.assert_close(trace.logits, by_row.logits, atol=1e-5, rtol=1e-5)
    sums = trace.heatmap.sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_without_a_word_that_is_asked_about_the_middle_answers():
    model = plain("bert", of_masks=False)
    encoding = tiny_tokenizer()("a great film .", return_tensors="pt")
    encoding.pop("token_type_ids", None)
    expected = model(**encoding).logits[0, 3]  # of [CLS] a great film . [SEP]
    answer_at_targets(model, of_masks=False)
    torch.testing.assert_close(model(**encoding).logits[0], expected)


@pytest.mark.parametrize(
    ("architectures", "task"),
    [
        (["BertForTokenClassification"], Task.WORDS),
        (["RobertaForMaskedLM"], Task.MASKS),
        (["BertForSequenceClassification"], Task.TEXTS),
        (None, Task.TEXTS),
    ],
)
def test_the_architecture_tells_what_a_model_answers(architectures, task):
    assert task_of({"architectures": architectures}) is task
    assert task_of_model(plain("bert", of_masks=True)) is Task.MASKS


def test_a_word_must_be_one_entry_of_the_vocabulary():
    tokenizer = tiny_tokenizer()
    assert word_number(tokenizer, "film") == tokenizer.convert_tokens_to_ids("film")
    assert mask_of(tokenizer) == "[MASK]"
    for word in ("unwatchable", "zebra"):
        assert not is_one_entry(tokenizer, word)
        with pytest.raises(InputError, match=f"one entry each.*{word}"):
            word_number(tokenizer, word)


def test_a_hidden_word_is_read_as_the_mask_of_the_model():
    model = on_trial("bert", of_masks=False)
    mask = model.tokenizer.mask_token_id
    for text in TAGGED:
        batch = model.batch([text.hidden()], [0])
        (place,) = np.flatnonzero(batch.ids[0] == mask).tolist()
        assert int(batch.words[0, place]) == text.target
        assert len(LABELS) == model.logits(batch).shape[1]


def test_a_word_that_a_change_joined_with_the_next_is_asked_at_their_sub_word():
    joined_words = Asked(["bad", " unwatchable", "bad", " film"], 1)
    expected = read_plainly(plain("bert", of_masks=False), joined_words)[0]
    model = on_trial("bert", of_masks=False)
    logits = model.logits(model.batch([joined_words], [0]))[0]
    torch.testing.assert_close(logits, expected.flatten(), atol=1e-5, rtol=0)
