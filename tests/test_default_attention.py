"""A model whose audited eager attention is not its default: the report says so, with the numbers."""

import json
import warnings

import pytest
import torch
from tiny_transformers import SIZE, tiny_model, tiny_tokenizer
from transformers import AutoModelForSequenceClassification, FalconConfig
from wording import warned

import heedmap as hm
from heedmap.huggingface.model_adapter import attach
from heedmap.huggingface.verification import drift, verify
from heedmap.measures import change_in_prediction

FEW = {"permutations": 2, "instances": 6}


def falcon(alibi):
    """With alibi, its file's eager attention and its default one compute two different things."""
    names = {i: f"class{i}" for i in range(2)}
    config = FalconConfig(
        vocab_size=SIZE, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, alibi=alibi,
        pad_token_id=0, id2label=names, eos_token_id=3, bos_token_id=2,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() > 1 and "norm" not in name.lower():
                    parameter.normal_(0, 0.4)
    return model.eval().requires_grad_(False)


@pytest.fixture
def place(tmp_path):
    for alibi in (False, True):
        folder = tmp_path / ("alibi" if alibi else "rotary")
        falcon(alibi).save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
    rows = [
        {"text": f"a {word} film", "label": i % 2} for i, word in enumerate(["great", "bad"] * 4)
    ]
    (tmp_path / "films.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return tmp_path


def test_the_drift_is_that_of_the_two_passes_and_the_model_is_left_as_it_was():
    model, tokenizer = falcon(alibi=True), tiny_tokenizer()
    found = drift(model, tokenizer)
    verified = verify(model, tokenizer)
    assert found.logits == verified.value("eager as default") > 0.01
    assert found.tvd == verified.value("predictions as default") > 0.001
    assert found.default == model.config._attn_implementation == "sdpa"
    adapter = attach(model)
    assert drift(model, tokenizer) == found
    assert attach(model).kind == adapter.kind
    assert model.config._attn_implementation != "sdpa", "it is still entered"
    assert drift(tiny_model("bert"), tokenizer).logits < 1e-5


def test_an_answer_that_is_a_number_in_one_way_only_is_infinitely_far():
    from heedmap.huggingface.measuring import drift_between

    logits = torch.tensor([[1.0, 2.0]])
    broken = drift_between("sdpa", torch.full((1, 2), torch.nan), logits)
    assert broken.logits == broken.tvd == float("inf")
    other = torch.tensor([[1.5, 2.0]])
    found = drift_between("sdpa", logits, other)
    assert found.logits == 0.5
    assert found.tvd == pytest.approx(float(change_in_prediction(logits, other)))
    assert drift_between("sdpa", torch.zeros(1, 3, 2), torch.ones(1, 3, 2)).tvd is None


@pytest.mark.slow
def test_the_audit_warns_with_both_numbers_and_card_and_page_say_them(place, capsys):
    run = hm.open_model(place / "alibi", place / "films.jsonl", out=place / "run")
    drift_ = run.facts["drift"]
    said = f"{drift_['logits']:.2g} in logits and {drift_['tvd']:.2g} in probabilities"
    with warned(f"(sdpa) by {said}") as caught:
        audit = hm.audit(run, **FEW)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    audit.show()
    assert "eager attention, which is audited, differs" in " ".join(capsys.readouterr().out.split())
    assert said in (place / "run" / "report.html").read_text()
    assert hm.open_audit(place / "run").about["drift"] == drift_


@pytest.mark.slow
def test_rounding_is_no_reason_to_warn_but_stands_on_the_page(place, capsys):
    run = hm.open_model(place / "rotary", place / "films.jsonl", out=place / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hm.audit(run, **FEW).show()
    assert "which is audited, differs" not in " ".join(capsys.readouterr().out.split())
    assert (
        "which is audited, differs from the default (sdpa) by"
        in (place / "run" / "report.html").read_text()
    )


@pytest.mark.slow
def test_a_model_trained_here_says_its_drift_too(tmp_path):
    tiny_model("bert").save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    rows = [
        {"text": f"a {word} film", "label": i % 2} for i, word in enumerate(["great", "bad"] * 10)
    ]
    (tmp_path / "films.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    run = hm.fine_tune(tmp_path / "base", tmp_path / "films.jsonl", epochs=1, out=tmp_path / "run")
    assert run.facts["drift"]["logits"] < 1e-4
    assert hm.open_run(tmp_path / "run").facts["drift"] == run.facts["drift"]
