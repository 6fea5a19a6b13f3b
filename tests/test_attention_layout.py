"""The row that a classifier reads is found as the classifier finds it."""

import pytest
import torch
from tiny_transformers import TEXTS, tiny_model, tiny_tokenizer
from tokenizers import processors

from heedmap.huggingface.attention_layout import find_layout
from heedmap.huggingface.measuring import Leaves
from heedmap.huggingface.model_adapter import attach
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.zoo import END, FIRST, ZOO
from heedmap.importance.deletions import reread_without_each
from heedmap.settings.models import TransformerSettings

READ_ONE = [
    row
    for row in ZOO
    if row.model is None and (row.family != "encoder" or row.name in ("xlnet", "bert"))
]
CLOSE = 1e-4


def rows_with_a_gradient(adapter, inputs, call):
    """The slow, obvious way: those rows of a layer's weights that the logits depend on."""
    leaves = Leaves()
    with torch.enable_grad(), adapter.visiting(leaves):
        logits = adapter.model(**inputs).logits
    total = (logits * torch.arange(1.0, 1 + logits.shape[1])).sum()
    (found,) = torch.autograd.grad(total, leaves.leaves[call])
    return [row.nonzero()[:, 0].tolist() for row in found.abs().amax(dim=(1, 3)) > 0]


@pytest.mark.parametrize("row", READ_ONE, ids=[row.name for row in READ_ONE])
def test_the_row_is_found_wherever_padding_and_ends_of_text_stand_in_it(row):
    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)
    found = find_layout(adapter, inputs)
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        ids = inputs["input_ids"].clone()
        ids[ids == END] = FIRST
        for text, real in enumerate(inputs["attention_mask"].bool()):
            places = real.nonzero()[:, 0]
            some = places[torch.randperm(len(places), generator=generator)[:3]]
            ids[text, some] = torch.tensor([END, row.pad, row.pad])
        given = {**inputs, "input_ids": ids}
        expected = rows_with_a_gradient(adapter, given, found.calls[-1])
        assert [[int(r)] for r in found.read_rows(given)] == expected


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "bloom"])
def test_a_masked_word_is_read_as_the_model_reads_it_where_the_mark_is_the_padding(architecture):
    model, tokenizer = tiny_model(architecture), tiny_tokenizer()
    # As GPT-2 has it: nothing is added to a text, and one token is unknown, padding and end of text.
    nothing = processors.TemplateProcessing(single="$A", special_tokens=[])
    tokenizer.backend_tokenizer.post_processor = nothing
    tokenizer.mask_token, tokenizer.pad_token, tokenizer.eos_token = None, "[UNK]", "[UNK]"
    model.config.pad_token_id = model.config.eos_token_id = tokenizer.pad_token_id
    settings = TransformerSettings(source=architecture)
    on_trial = TransformerClassifier(model, tokenizer, settings, ["a", "b"])
    texts = [*TEXTS, ["a", " [UNK]", " plot", " [UNK]"], ["[UNK]", " zzz"]]
    plain = tiny_model(architecture)
    plain.config.pad_token_id = tokenizer.pad_token_id

    def alone(text):
        inputs = tokenizer("".join(text), return_tensors="pt")
        return plain(inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[0]

    batch = on_trial.batch(texts, range(len(texts)))
    own = on_trial.trace(batch)
    again = on_trial.predict(own, own.attention.unsqueeze(0))[0]
    for found in (on_trial.logits(batch), own.logits, again):
        assert torch.allclose(found, torch.stack([alone(text) for text in texts]), atol=CLOSE)
    for text, masked in zip(texts, reread_without_each(on_trial, texts, "mask"), strict=True):
        if len(text) > 1:
            slow = [alone(on_trial.mask_token(text, j)) for j in range(len(text))]
            assert torch.allclose(masked, torch.stack(slow), atol=CLOSE)
    last = rows_with_a_gradient(on_trial.adapter, on_trial.inputs(batch), on_trial.calls[-1])
    assert [[int(r)] for r in on_trial.read_rows(on_trial.inputs(batch))] == last


def test_of_an_encoder_and_a_decoder_the_attention_between_them_is_on_trial():
    model = tiny_model("bart")
    ids = torch.tensor([[2, 5, 6, 3]])
    adapter = attach(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    found = find_layout(adapter, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    assert len(found.names) == 6  # two layers of each of three kinds
    assert [name.split(".")[-1] for name in found.layers] == ["encoder_attn"] * 2
