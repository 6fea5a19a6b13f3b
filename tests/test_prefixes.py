"""Causal decoders read a changed text from its first change on: the numbers are those of whole passes."""

import pytest
import torch
from tiny_transformers import CONFIGS, TEXTS, tiny_classifier, tiny_model

from heedmap.huggingface.prefixes import PrefixReader, prefix_reader
from heedmap.importance.deletions import read, reread_without_each
from heedmap.importance.leave_one_out import logits_without_each

CLOSE = 1e-5
CAUSAL = ["gpt2", "llama", "bloom"]
LENGTHS = (1, 2, 3, 9)
MASK = "mask"


def drawn(lengths, seed=0):
    """Token ids without padding."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(2, 18, (n,), generator=generator).tolist() for n in lengths]


def without_each(text):
    return [[*text[:j], *text[j + 1 :]] for j in range(len(text)) if len(text) > 1]


def one_by_one(model, texts):
    with torch.no_grad():
        ids = [torch.tensor([text]) for text in texts]
        return torch.cat(
            [model(input_ids=i, attention_mask=torch.ones_like(i)).logits for i in ids]
        )


@pytest.mark.parametrize("architecture", CAUSAL)
@pytest.mark.parametrize("positions", [4, 24, 2048])
def test_every_deletion_gives_what_a_whole_pass_gives(architecture, positions):
    model = tiny_model(architecture, spread=0.2)
    texts = drawn(LENGTHS)
    reader = prefix_reader(model, 0, positions, texts)
    assert isinstance(reader, PrefixReader)
    changed = [without_each(text) for text in texts]
    alone = [
        reader.logits([text], [of_text])[0] for text, of_text in zip(texts, changed, strict=True)
    ]
    together = reader.logits(texts, changed)
    for of_text, found, other in zip(changed, together, alone, strict=True):
        assert len(found) == len(of_text)
        if of_text:
            expected = one_by_one(model, of_text)
            torch.testing.assert_close(found, expected, atol=CLOSE, rtol=CLOSE)
            torch.testing.assert_close(other, expected, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("architecture", CAUSAL)
def test_any_changed_text_may_be_read(architecture):
    """Also the text itself, a part of it, a longer one, and one that shares nothing."""
    model, (text, other) = tiny_model(architecture, spread=0.2), drawn((7, 12))
    changed = [text, text[:3], text[:1], [*text, 5, 6], other, text[1:]]
    torch.testing.assert_close(
        PrefixReader(model, 0, 2048).logits([text], [changed])[0],
        one_by_one(model, changed), atol=CLOSE, rtol=CLOSE,
    )  # fmt: skip


@pytest.mark.parametrize("architecture", sorted(CONFIGS.keys() - {*CAUSAL}))
def test_what_is_no_causal_decoder_is_found_out(architecture):
    assert prefix_reader(tiny_model(architecture), 0, 2048, drawn(LENGTHS)) is None


def test_windows_and_models_without_padding_are_left_alone():
    model = tiny_model("llama")
    assert prefix_reader(model, None, 2048, drawn(LENGTHS)) is None
    model.config.sliding_window = 4
    assert prefix_reader(model, 0, 2048, drawn(LENGTHS)) is None


def test_a_text_with_the_padding_token_is_left_alone():
    reader = PrefixReader(tiny_model("gpt2"), 0, 2048)
    assert reader.reads([3, 4], [[3], [4]])
    assert not reader.reads([3, 0], [[3], [0]])
    assert not reader.reads([3], [[]])


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "bloom", "bert"])
@pytest.mark.parametrize("deletion", ["remove", MASK])
def test_leave_one_out_is_that_of_texts_read_whole(architecture, deletion):
    model = tiny_classifier(architecture)
    texts = [*TEXTS, ["a", " film"], ["bad", " [PAD]", " plot"]]
    continued = model.continued(texts, [[text[1:]] if text[1:] else [] for text in texts])
    # The last text holds a padding token.
    expected = [architecture != "bert"] * 4 + [False]
    assert [logits is not None for logits in continued] == expected
    batch = model.batch(texts, range(len(texts)))
    found = logits_without_each(model, batch, texts, deletion)
    lists = reread_without_each(model, texts, deletion)
    for i, text in enumerate(texts):
        assert found[i, len(text) :].isnan().all()
        assert torch.equal(found[i, : len(text)].nan_to_num(9), lists[i].nan_to_num(9))
        for j in range(len(text)):
            changed = (
                [*text[:j], *text[j + 1 :]] if deletion == "remove" else model.mask_token(text, j)
            )
            if len(text) == 1:
                assert found[i, j].isnan().all()
                continue
            expected = read(model, [changed])[0].float()
            torch.testing.assert_close(found[i, j], expected, atol=1e-4, rtol=1e-5)
