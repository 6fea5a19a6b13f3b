"""Models that are built unlike most: their answers are those of transformers, or one line says why not."""

import pytest
import torch
import transformers as hf
from tokenizer_layouts import tokenizer_of
from transformers.models.jetmoe import modeling_jetmoe
from wording import refused

import heedmap as hm
from heedmap.data.tokens import pieces
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings

SIZE = len(tokenizer_of("roberta"))
SMALL = {
    "vocab_size": SIZE, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 32, "pad_token_id": 1, "bos_token_id": 0,
    "eos_token_id": 2,
}  # fmt: skip
DECODER = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
LINEAR = {
    f"linear_{name}": 8 if name.endswith("dim") else 2
    for name in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
}
EYES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
SEEING = {**EYES, "num_hidden_layers": 1, "image_size": 28, "patch_size": 14}
BIGBIRD = {**SMALL, "max_position_embeddings": 64, "num_random_blocks": 1, "block_size": 4}
TEXTS = ["A quiet film.", "the plot is thin, but the actors carry it", "bad"]
LABELS = ["LABEL_0", "LABEL_1", "LABEL_0"]


def made(config, folder):
    """Save a model of random weights, large enough that its attention is uneven; return it as it is loaded."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = hf.AutoModelForSequenceClassification.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.normal_(0, 0.25)
    model.save_pretrained(folder)
    tokenizer_of("roberta", 32).save_pretrained(folder)
    return hf.AutoModelForSequenceClassification.from_pretrained(folder).eval()


def ids_of(text, folder):
    return torch.tensor([hf.AutoTokenizer.from_pretrained(folder)(text)["input_ids"]])


def by_transformers(model, folder):
    """Return the probabilities of each text alone."""
    logits = []
    for text in TEXTS:
        ids = ids_of(text, folder)
        with torch.no_grad():
            logits.append(model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0])
    return torch.stack(logits).softmax(-1).numpy()


def subject_of(model, folder):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    settings = TransformerSettings(source=str(folder))
    subject = TransformerClassifier(model, tokenizer, settings, ["negative", "positive"])
    batch = subject.batch([pieces(TEXTS[1], "words")], [0])
    assert torch.equal(batch.ids, ids_of(TEXTS[1], folder))
    return subject, batch


def jetmoe():
    options = {k: v for k, v in SMALL.items() if k != "num_attention_heads"}
    return hf.JetMoeConfig(
        **options, num_key_value_heads=2, kv_channels=8, num_local_experts=2, num_experts_per_tok=2
    )


def ctrl():
    return hf.CTRLConfig(
        vocab_size=SIZE, n_positions=32, n_embd=32, dff=48, n_layer=2, n_head=4, pad_token_id=1
    )


def inner(kind, text, eyes):
    return lambda: getattr(hf, kind)(text_config=text, vision_config=eyes)


@pytest.mark.parametrize(
    "config",
    [
        inner("Gemma3Config", {**DECODER, "sliding_window": 8}, SEEING),
        inner(
            "Qwen3_5Config",
            {**DECODER, **LINEAR, "layer_types": ["full_attention"] * 2},
            {"hidden_size": 16, "depth": 1, "num_heads": 2, "intermediate_size": 16},
        ),
        inner(
            "ModernVBertConfig",
            {**SMALL, "cls_token_id": 0, "sep_token_id": 2, "local_attention": 8},
            SEEING,
        ),
        jetmoe,
        ctrl,
    ],
    ids=["Gemma3", "Qwen3.5", "ModernVBert", "JetMoe", "CTRL"],
)
def test_a_model_answers_as_transformers_reads_it(config, tmp_path):
    model = made(config(), tmp_path)
    assert hm.check(tmp_path), hm.check(tmp_path)
    run = hm.open_model(tmp_path, TEXTS, labels=LABELS, progress=False)
    expected = by_transformers(model, tmp_path)
    assert run.predict_proba(TEXTS) == pytest.approx(expected, abs=1e-5)
    explanation = hm.explain(run, TEXTS[1])
    assert explanation.windows[0].probabilities == pytest.approx(expected[1], abs=1e-5)


def test_other_weights_of_a_row_of_jetmoe_are_its_own_pass_with_them(monkeypatch, tmp_path):
    model = made(jetmoe(), tmp_path)
    ids = ids_of(TEXTS[1], tmp_path)
    eager = modeling_jetmoe.eager_attention_forward

    def uniform_at_the_end(module, query, key, value, mask, **options):
        _, weights = eager(module, query, key, value, mask, **options)
        if module.layer_idx == 1:
            weights[:, :, -1] = 1 / weights.shape[-1]
        return (weights @ value).transpose(1, 2).contiguous(), weights

    model.set_attn_implementation("eager")
    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(modeling_jetmoe, "eager_attention_forward", uniform_at_the_end)
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    subject, batch = subject_of(model, tmp_path)
    trace = subject.trace(batch)
    uniform = torch.full_like(trace.attention, 1 / trace.attention.shape[-1])
    own, others = subject.predict(trace, torch.stack([trace.attention, uniform]))
    assert torch.allclose(own, trace.logits, atol=1e-5)
    assert torch.allclose(others, expected, atol=1e-5)


def test_the_gradient_of_a_model_that_changes_its_embeddings_in_place(tmp_path):
    model = made(ctrl(), tmp_path)
    looked_up = model.transformer.w(ids_of(TEXTS[1], tmp_path)).detach().requires_grad_()
    outputs = model.transformer(inputs_embeds=looked_up * 1.0).last_hidden_state
    (expected,) = torch.autograd.grad(model.classifier(outputs)[0, -1, 0], looked_up)
    subject, batch = subject_of(model, tmp_path)
    embedded = subject.embed(batch).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(subject.logits_from(embedded, batch)[0, 0], embedded)
    assert torch.allclose(gradient, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (hf.CanineConfig(**SMALL, num_hash_buckets=64, local_transformer_stride=8), "Canine"),
        (
            hf.PerceiverConfig(
                vocab_size=SIZE, num_latents=4, d_latents=32, d_model=32, num_blocks=1,
                num_self_attends_per_block=1, num_self_attention_heads=4, num_cross_attention_heads=4,
                qk_channels=32, v_channels=32, max_position_embeddings=32,
            ),
            "Perceiver",
        ),
    ],
    ids=["CANINE", "Perceiver"],
)  # fmt: skip
def test_a_model_without_word_embeddings_is_refused(config, kind, tmp_path):
    made(config, tmp_path)
    with refused("embeddings", f"{kind}ForSequenceClassification"):
        hm.check(tmp_path)


def test_a_block_sparse_model_is_told_how_it_can_be_read(tmp_path):
    made(hf.BigBirdConfig(**BIGBIRD, attention_type="block_sparse"), tmp_path / "sparse")
    with refused("BigBirdForSequenceClassification", '"attention_type": "original_full"'):
        hm.open_model(tmp_path / "sparse", TEXTS, labels=LABELS, progress=False)
    model = made(hf.BigBirdConfig(**BIGBIRD, attention_type="original_full"), tmp_path / "full")
    run = hm.open_model(tmp_path / "full", TEXTS, labels=LABELS, progress=False)
    expected = by_transformers(model, tmp_path / "full")
    assert run.predict_proba(TEXTS) == pytest.approx(expected, abs=1e-5)


def test_a_model_of_audio_is_refused_as_one(tmp_path):
    config = hf.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8,), conv_stride=(2,), conv_kernel=(3,), num_feat_extract_layers=1,
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, classifier_proj_size=8,
    )  # fmt: skip
    hf.Wav2Vec2ForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer_of("roberta").save_pretrained(tmp_path)
    with refused(tmp_path, "wav2vec2 reads audio"):
        hm.check(tmp_path)


def test_texts_without_spaces_are_refused_and_short_ones_are_read(tmp_path):
    config = hf.RobertaConfig(**{**SMALL, "max_position_embeddings": 34}, type_vocab_size=1)
    made(config, tmp_path)
    proteins = ["MKTAYIAKQRQISFVKSHFSRQ", "GSHMASLAEEK", "SLLMWITQC"]
    with refused("3 of 3", "one word"):
        hm.open_model(tmp_path, proteins, labels=LABELS, progress=False)
    with refused("1 of 1", "one word"):
        hm.explain(tmp_path, proteins[2])
    spaced = [" ".join(protein[:9]) for protein in proteins]
    for read in (spaced, ["MKT", "ACD", "SLL"]):
        assert hm.open_model(tmp_path, read, labels=LABELS, progress=False)
