"""Models that transformers has loaded: put on trial as a copy, and left as they are."""

import numpy as np
import pytest
import torch
import transformers
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused

import heedmap as hm

TEXTS = ["A great film.", "bad", "the plot is unwatchable , bad films", "A film", "great great"]
ROWS = [{"text": text, "label": str(i % 2)} for i, text in enumerate(TEXTS)]
QUICK = {"permutations": 3, "instances": 4}


def probabilities(model, tokenizer):
    with torch.no_grad():
        logits = [model(**tokenizer(text, return_tensors="pt")).logits[0] for text in TEXTS]
    return torch.stack(logits).double().softmax(-1).numpy()


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "llama", "bart"])
def test_a_model_and_its_tokenizer_are_opened_and_stay_as_they_are(architecture):
    model, tokenizer = tiny_model(architecture), tiny_tokenizer(architecture)
    model.train()
    model.config.pad_token_id = None if architecture == "gpt2" else model.config.pad_token_id
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config, written = model.config.to_dict(), tokenizer.backend_tokenizer.to_str()
    marks = dict(tokenizer.special_tokens_map)
    learned = [parameter.requires_grad for parameter in model.parameters()]
    run = hm.open_model((model, tokenizer), ROWS)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [parameter.requires_grad for parameter in model.parameters()] == learned
    assert model.config.to_dict() == config
    assert tokenizer.backend_tokenizer.to_str() == written
    assert tokenizer.special_tokens_map == marks
    np.testing.assert_allclose(
        run.predict_proba(TEXTS), probabilities(model.eval(), tokenizer), atol=1e-5
    )


def test_what_becomes_of_the_users_model_later_changes_no_run():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    run = hm.open_model((model, tokenizer), ROWS)
    before = run.predict_proba(TEXTS)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(run.predict_proba(TEXTS), before)


def test_a_pipeline_is_opened_too_and_its_run_is_kept_with_the_model(tmp_path):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    run = hm.open_model(pipe, ROWS, out=tmp_path / "run")
    audit = hm.audit(run, **QUICK)
    again = hm.audit(tmp_path / "run", **QUICK)
    assert again["adversary"].equals(audit["adversary"])
    np.testing.assert_array_equal(
        hm.open_run(tmp_path / "run").predict_proba(TEXTS), run.predict_proba(TEXTS)
    )
    assert hm.explain(tmp_path / "run", TEXTS[0]).to_dict() == run.explain(TEXTS[0]).to_dict()
    assert "a model from memory (BertForSequenceClassification)" in str(run.explain(TEXTS[0]))
    hm.open_model(pipe, ROWS, out=tmp_path / "run")  # the same again


def test_the_audit_of_a_loaded_model_is_saved_with_it(tmp_path):
    run = hm.open_model((tiny_model("bert"), tiny_tokenizer("bert")), ROWS)
    hm.audit(run, **QUICK).save(tmp_path / "kept")
    again = hm.open_run(tmp_path / "kept")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), run.predict_proba(TEXTS))


def test_a_loaded_model_is_explained_and_checked_without_texts():
    pair = tiny_model("bert"), tiny_tokenizer("bert")
    assert hm.explain(pair, TEXTS[0]).answer in ("class0", "class1")
    verification = hm.check(pair)
    assert verification
    assert verification.refusal is None
    assert "read and replaced exactly" in repr(verification)
    assert "<table" in verification._repr_html_()
    assert verification.to_dataframe().passed.all()


def test_a_check_that_fails_is_a_value_that_says_why(tmp_path):
    tiny_model("bert").to(torch.float16).save_pretrained(tmp_path)
    tiny_tokenizer("bert").save_pretrained(tmp_path)
    assert hm.check(tmp_path).passes
    with refused("float32, float16, bfloat16", "'int8'"):
        hm.check(tmp_path, dtype="int8")


def test_a_model_that_computes_something_else_after_loading_is_refused():
    class Doubled(transformers.BertForSequenceClassification):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            output.logits = 2 * output.logits
            return output

    plain = tiny_model("bert")
    model = Doubled(plain.config)
    model.load_state_dict(plain.state_dict())
    with refused("Doubled", "logits"):
        hm.open_model((model, tiny_tokenizer("bert")), ROWS)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (lambda m, t: m, ["(model, tokenizer)", "BertForSequenceClassification"]),
        (lambda m, t: t, ["(model, tokenizer)", "TokenizersBackend"]),
        (lambda m, t: (t, m), ["(model, tokenizer)", "(tokenizer, model)", "swap"]),
        (lambda m, t: (m,), ["(model, tokenizer)", "BertForSequenceClassification)"]),
        (lambda m, t: (m.base_model, "bert"), ["(model, tokenizer)", "BertModel, str)"]),
        (
            lambda m, t: (torch.nn.Linear(2, 2), t),
            ["(model, tokenizer)", "Linear, ", "another library"],
        ),
        (lambda m, t: 7, ["folder", "int"]),
        (
            lambda m, t: transformers.TokenClassificationPipeline(model=m, tokenizer=t),
            ["text-classification"],
        ),
    ],
)
def test_another_object_is_refused_with_what_to_give(source, named):
    with refused(*named, kind=TypeError):
        hm.open_model(source(tiny_model("bert"), tiny_tokenizer("bert")), ROWS)


@pytest.mark.parametrize(
    ("problem", "named"),
    [
        ("regression", ["in memory", "regression"]),
        ("multi_label_classification", ["output", "class1"]),
    ],
)
def test_a_model_that_cannot_be_audited_is_refused_without_a_folders_name(problem, named):
    model = tiny_model("bert", classes=3)
    model.config.problem_type = problem
    with refused(*named) as error:
        hm.open_model((model, tiny_tokenizer("bert")), ROWS)
    assert "/tmp" not in str(error.value)
