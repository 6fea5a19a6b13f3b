"""A transformer that reads pairs: which words are audited, its predictions under other weights, deletions."""

import numpy as np
import pytest
import torch
from pair_transformers import (
    ARCHITECTURES,
    FIRST,
    SECOND,
    pair_classifier,
    pair_tokenizer,
    plainly,
    texts_of,
)
from tiny_transformers import tiny_model

from heedmap.data.texts import Pair, TwoTexts, exchanged, replaced, shortened
from heedmap.huggingface.attention_hook import Visitor
from heedmap.importance.deletions import reread_kept, reread_without_each

CLOSE = 1e-5
SIDES = ["first", "second", "both"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("side", SIDES)
def test_a_pair_is_read_as_its_own_tokenizer_and_model_read_it(architecture, side):
    model = pair_classifier(architecture)
    batch = model.batch(texts_of(side), range(3))
    logits = model.logits(batch)
    for i, (first, second) in enumerate(zip(FIRST, SECOND, strict=True)):
        encoding, output = plainly(architecture, first, second)
        assert batch.ids[i][batch.real[i]].tolist() == encoding["input_ids"][0].tolist()
        assert torch.allclose(output.logits[0], logits[i], atol=CLOSE)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert"])
@pytest.mark.parametrize("side", SIDES)
def test_the_map_of_a_side_is_its_share_of_the_models_own_row(architecture, side):
    model = pair_classifier(architecture)
    texts = texts_of(side)
    trace = model.trace(model.batch(texts, range(3)))
    for i, (first, second) in enumerate(zip(FIRST, SECOND, strict=True)):
        encoding, output = plainly(architecture, first, second, output_attentions=True)
        row = output.attentions[-1][0].mean(0)[0]
        sides = {"first": [first, None], "second": [None, second], "both": [first, second]}[side]
        weights = []
        for number, words in enumerate(sides):
            weights += [] if words is None else _by_word(words, number, encoding, row)
        expected = torch.tensor(weights)
        assert torch.allclose(
            expected / expected.sum(), trace.heatmap[i, : len(texts[i])], atol=CLOSE
        )


def _by_word(words, side, encoding, row):
    """Sum a row by the words of a side, by the characters at which its sub-words end."""
    ends = np.cumsum([len(word) for word in words])
    sums = [0.0] * len(words)
    spans = encoding["offset_mapping"][0].tolist()
    for number, (start, end), weight in zip(
        encoding.sequence_ids(0), spans, row.tolist(), strict=True
    ):
        if number == side and end > start:
            sums[int(np.searchsorted(ends, end))] += weight
    return sums


class _Imposing(Visitor):
    """Replace the weights of one call: the slow and obvious way."""

    def __init__(self, call, weights):
        self.call, self.imposed = call, weights

    def weights(self, call, weights):
        return self.imposed(weights) if call.index == self.call else None


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "gpt2", "bart"])
@pytest.mark.parametrize("side", ["first", "both"])
def test_predictions_under_other_weights_are_those_of_a_whole_pass(architecture, side):
    model = pair_classifier(architecture)
    batch = model.batch(texts_of(side), range(3))
    trace = model.trace(batch)
    other = torch.rand(trace.attention.shape, generator=torch.Generator().manual_seed(0))
    other = other * trace.support
    other = other / other.sum(-1, keepdim=True)
    rows = model.read_rows(model.inputs(batch))

    def impose(weights):
        changed = weights.clone()
        changed[torch.arange(3), :, rows] = other
        return changed

    with torch.no_grad(), model.adapter.visiting(_Imposing(model.calls[-1], impose)):
        expected = model.model(**model.inputs(batch)).logits
    assert torch.allclose(model.predict(trace, other.unsqueeze(0))[0], expected, atol=CLOSE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("side", SIDES)
def test_a_deleted_word_is_out_of_its_side_and_the_other_side_stays(architecture, side):
    model = pair_classifier(architecture)
    texts = texts_of(side)
    logits = reread_without_each(model, texts)
    for i, (first, second) in enumerate(zip(FIRST, SECOND, strict=True)):
        sides = {"first": [0], "second": [1], "both": [0, 1]}[side]
        changed = [
            [
                [*words[:j], *words[j + 1 :]] if n == s else words
                for n, words in enumerate((first, second))
            ]
            for s in sides
            for j in range(len((first, second)[s]))
        ]
        for j, pair in enumerate(changed):
            if len(texts[i]) > 1:
                expected = plainly(architecture, *pair)[1].logits[0]
                assert torch.allclose(logits[i][j].float(), expected, atol=CLOSE)


def test_words_of_both_texts_may_be_kept_alone_and_one_text_may_lose_all():
    model = pair_classifier()
    (pair,) = texts_of("both")[:1]
    masks = np.array([[True] * 4 + [False] * 2, [False] * 4 + [True, False], [True] * 6])
    (logits,) = reread_kept(model, [pair], [masks])
    expected = [
        plainly("bert", FIRST[0], [])[1].logits[0],
        plainly("bert", [], ["the"])[1].logits[0],
        plainly("bert", FIRST[0], SECOND[0])[1].logits[0],
    ]
    assert torch.allclose(logits.float(), torch.stack(expected), atol=CLOSE)


def test_changes_of_two_texts_know_where_the_second_begins():
    pair = TwoTexts(["a", " b ", "c", " d "], 2)
    assert exchanged(pair, 1).sides == (["a "], ["c", " d "])
    assert exchanged(pair, 3, " e").sides == (["a", " b "], ["c", " e "])
    kept = shortened(pair, np.array([True, False, False, True]))
    assert kept.sides == (["a "], [" d "])
    donor = ["x", " y", " z", " w"]
    assert replaced(pair, np.array([True, False, True, False]), donor).sides[1] == ["z", " d "]


def test_a_masked_word_of_a_pair_keeps_its_query():
    model = pair_classifier()
    masked = model.mask_token(Pair(["a", " film"], ["bad"]), 1)
    assert (list(masked), masked.query) == (["a", " [MASK]"], ["bad"])
    masked = model.mask_token(TwoTexts(["a", " film"], 1), 1)
    assert masked.sides == (["a"], [" [MASK]"])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("truncation_side", ["right", "left"])
def test_a_long_pair_is_cut_as_its_tokenizer_cuts_it(side, truncation_side):
    model = pair_classifier()
    model.tokenizer.truncation_side = truncation_side
    first, second = ["the"] + [" film"] * 9, ["a", " plot", " is", " bad"]
    whole = {
        "first": Pair(first, second),
        "second": Pair(second, first, query_first=True),
        "both": TwoTexts([*first, *second], len(first)),
    }[side]
    for longest in range(7, 17):
        cut = model.truncated(whole, longest)
        tokenizer = pair_tokenizer()
        tokenizer.truncation_side = truncation_side
        expected = tokenizer("".join(first), "".join(second), truncation=True, max_length=longest)[
            "input_ids"
        ]
        assert model.batch([cut.text], [0]).ids[0].tolist() == expected
        assert len(cut.text) == cut.end - cut.start or side == "both"
    assert model.truncated(whole, 17) is None


@pytest.mark.parametrize("architecture", ["bert", "xlnet"])
def test_gradients_of_a_pair_are_those_of_its_own_words(architecture):
    model = pair_classifier(architecture)
    batch = model.batch(texts_of("second"), range(3))
    embedded = model.embed(batch).detach().requires_grad_()
    logits = model.logits_from(embedded, batch)
    assert torch.allclose(logits, model.logits(batch), atol=CLOSE)
    counted = model.on_tokens(torch.ones(batch.ids.shape), batch)
    assert (counted.sum(1) == (batch.words >= 0).sum(1)).all()
    assert [int(n) for n in batch.mask.sum(1)] == [len(words) for words in SECOND]


def test_the_tiny_model_reads_token_types():
    types = pair_classifier().batch(texts_of("first"), range(3)).types
    assert {*types.flatten().tolist()} == {0, 1}
    assert tiny_model("bert").config.type_vocab_size == 2
