"""A user's model that stops in the middle: one line with model, step and cause, and nothing left behind."""

import csv
import json

import numpy as np
import pytest
import torch
from conftest import contents
from tiny_transformers import tiny_model, tiny_tokenizer
from transformers import BertForSequenceClassification, BertModel
from wording import refused, stopped

import heedmap as hm
from heedmap.errors import InputError, ModelError, running_model

TEXTS = ["a great film", "the plot is bad", "a film", "great plot , bad film ."]
LABELS = ["class0", "class1", "class0", "class1"]
FEW = {"permutations": 2, "progress": False}


class Own(Exception):
    """An error of a user's own kind."""


@pytest.fixture
def texts(tmp_path):
    with (tmp_path / "texts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(TEXTS, LABELS, strict=True)])
    return tmp_path / "texts.csv"


@pytest.fixture
def folder(tmp_path):
    tiny_model().save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def failing(monkeypatch, when, kind=Own):
    """Let every BERT stop where this is true of it and its embedded words."""
    forward = BertModel.forward

    def stopping(model, *arguments, **options):
        output = forward(model, *arguments, **options)
        if when(model, output):
            raise kind("no such thing\nat line 3")
        return output

    monkeypatch.setattr(BertModel, "forward", stopping)


def wants_gradient(_, output):
    return output.last_hidden_state.requires_grad


def test_a_word_without_numbers_is_one_line_with_its_text(folder, texts, tmp_path, heedmap):
    model, tokenizer = tiny_model(), tiny_tokenizer()
    with torch.no_grad():
        number = tokenizer.convert_tokens_to_ids("great")
        model.bert.embeddings.word_embeddings.weight[number] = torch.nan
    model.save_pretrained(folder)
    before = contents(tmp_path)
    done = heedmap("audit", "--model", folder, "--data", texts, "--out", tmp_path / "run")
    stopped(done, folder, "instances", "line 2", "nan")
    assert contents(tmp_path) == before
    with refused(folder, "instances", "nan", kind=ModelError):
        hm.explain(folder, "a great film")


def test_the_model_the_step_and_the_cause_are_named_and_nothing_is_left(
    folder, texts, tmp_path, heedmap, monkeypatch
):
    run = hm.open_model(folder, texts, out=tmp_path / "run", progress=False)
    table = tmp_path / "run" / "tables" / "highlights.parquet"
    failing(monkeypatch, lambda *_: table.exists())
    with refused(folder, "gradient", "Own: no such thing", kind=ModelError) as caught:
        hm.audit(run, **FEW)
    assert isinstance(caught.value.__cause__, Own)
    assert contents(tmp_path / "run") == {}
    before = contents(tmp_path)
    failing(monkeypatch, wants_gradient)
    audit = ("audit", "--model", folder, "--data", texts)
    for command in ("check", folder), audit, ("explain", folder, "a great film"):
        stopped(heedmap(*command), "BertForSequenceClassification", "Own: no such thing")
    assert contents(tmp_path) == before


def test_an_earlier_audit_stays_where_a_model_stops(folder, texts, tmp_path, monkeypatch):
    run = hm.open_model(folder, texts, out=tmp_path / "run", progress=False)
    hm.audit(run, **FEW)
    (tmp_path / "run" / "tables" / "gradient.parquet").unlink()
    before = contents(tmp_path / "run" / "tables")
    failing(monkeypatch, wants_gradient)
    with refused(folder, "Own", kind=ModelError):
        hm.audit(run, **FEW)
    assert contents(tmp_path / "run" / "tables") == before


def test_a_training_in_which_the_model_stops_leaves_nothing(folder, tmp_path, monkeypatch):
    forward = BertForSequenceClassification.forward

    def stopping(model, *arguments, **options):
        if model.training:
            raise Own("no such thing")
        return forward(model, *arguments, **options)

    monkeypatch.setattr(BertForSequenceClassification, "forward", stopping)
    with refused(folder, "training", "Own: no such thing", kind=ModelError):
        hm.fine_tune(folder, "reviews", out=tmp_path / "run", epochs=1, progress=False)
    assert not (tmp_path / "run" / "settings.toml").exists()


class Pool(torch.nn.Module):
    """A module that stops at bags of more items than `most`."""

    def __init__(self, most):
        super().__init__()
        self.score, self.head, self.most = torch.nn.Linear(4, 1), torch.nn.Linear(4, 2), most

    def forward(self, bag):
        if len(bag) > self.most:
            raise Own("too many items")
        return self.head(self.score(bag).softmax(0).T @ bag)


def test_a_module_that_stops_is_named():
    bags = [np.random.default_rng(0).normal(size=(size, 4)) for size in (5, 6, 12)]
    with refused("Pool", "too many items"):
        hm.open_pooling(Pool(2), bags, layer="score")
    run = hm.open_pooling(Pool(7), bags, labels=["0", "1", "0"], layer="score")
    with refused("Pool", "Own: too many items", kind=ModelError):
        hm.audit(run, **FEW)


@pytest.mark.parametrize(
    "kind", [Own, KeyError, AssertionError, type("Panic", (BaseException,), {})]
)
def test_any_kind_of_error_within_a_model_is_said(kind):
    def forward(_):
        raise kind("first line\nsecond line")

    module = torch.nn.Identity()
    module.forward = forward
    said = refused("mine", "a step", kind.__name__, "first line", kind=ModelError)
    with said as caught, running_model("mine", "a_step"):
        module(1)
    assert type(caught.value.__cause__) is kind


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, SystemExit, InputError])
def test_what_is_no_error_of_a_model_passes(kind):
    def forward(_):
        raise kind("as it is")

    module = torch.nn.Identity()
    module.forward = forward
    with pytest.raises(kind, match="as it is") as caught, running_model("mine", "a step"):
        module(1)
    assert type(caught.value) is kind


def test_errors_of_our_own_code_and_models_pass_and_all_with_a_traceback(monkeypatch):
    def ours(_):
        raise KeyError("ours")

    with pytest.raises(KeyError), running_model("mine", "a step"):
        ours(1)
    module = torch.nn.Identity()
    module.forward = ours
    with pytest.raises(KeyError), running_model(torch.nn.Identity(), "a step"):
        module(1)
    monkeypatch.setenv("HEEDMAP_TRACEBACK", "1")
    with pytest.raises(KeyError), running_model("mine", "a step"):
        module(1)


def test_too_little_memory_of_a_device_keeps_what_is_done():
    def forward(_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    module = torch.nn.Identity()
    module.forward = forward
    said = refused("mine", "out of memory", "--batch-tokens")
    with said as caught, running_model("mine", "a step"):
        module(1)
    assert not isinstance(caught.value, ModelError)


def stopping_at(letter):
    """What splits texts by an expression whose search ends at many of these letters in a row."""
    pattern = {"Regex": f"(?:(?:{letter}|{letter}|{letter})*)*q|({letter}+)+$"}
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def let_panic(folder, letter):
    path = folder / "tokenizer.json"
    parts = json.loads(path.read_text()) | {"pre_tokenizer": stopping_at(letter)}
    path.write_text(json.dumps(parts))


def test_a_tokenizer_that_panics_is_said(folder, texts, tmp_path, capfd):
    let_panic(folder, "a")
    with refused(folder, "opening the model", "PanicException", "retry-limit", kind=ModelError):
        hm.open_model(folder, texts, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
    assert "panicked" not in capfd.readouterr().err


def test_a_tokenizer_that_panics_at_a_text_is_said(folder, texts, tmp_path):
    let_panic(folder, "b")
    with texts.open("a", newline="") as file:
        csv.writer(file).writerow(("b" * 99, "class0"))
    with refused(folder, "reading the texts", "PanicException", "retry-limit", kind=ModelError):
        hm.open_model(folder, texts, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
