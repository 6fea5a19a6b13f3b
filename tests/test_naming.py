"""Only strings that look like names are looked up on the Hub."""

import pandas as pd
import pytest
import torch
from tiny_transformers import tiny_model
from wording import refused

import heedmap as hm
from heedmap.files.naming import DATA, MODEL, check_name, is_there, name_of
from heedmap.huggingface.loading import load_classifier, load_for_training

TEXTS = ["a fine film", "a secret diagnosis"]


class Broken:
    def __fspath__(self):
        return b"bytes"


@pytest.fixture
def no_network(monkeypatch):
    """Whoever asks the Hub has failed, offline or not."""

    def asked(*arguments, **options):
        pytest.fail(f"went to the Hub for {arguments!r:.80}")

    monkeypatch.setattr("heedmap.data.readers.read_hub", asked)
    monkeypatch.setattr("heedmap.huggingface.configurations.AutoConfig.from_pretrained", asked)
    monkeypatch.setattr("socket.socket.connect", asked)


THINGS = {
    "list": TEXTS,
    "dict": {"text": TEXTS},
    "series": pd.Series(TEXTS),
    "tensor": torch.zeros(2),
    "none": None,
    "bytes": b"reviews",
    "bytes path": Broken(),
    "number": 3,
}


TAKES = {
    "load": hm.load,
    "data": lambda thing: hm.open_model("a/model", thing),
    "model": lambda thing: hm.open_model(thing, "texts.csv"),
    "base": lambda thing: hm.fine_tune(thing, "texts.csv"),
    "tuned-on": lambda thing: hm.fine_tune("a/model", thing),
    "classifier": load_classifier,
    "training": lambda thing: load_for_training(thing, ["no", "yes"]),
    "train": hm.train,
    "audit": hm.audit,
}
# Texts alone are data of a model that comes trained, for they need no labels there (test_unlabelled).
TEXTS_ALONE = {("data", "list"), ("data", "series")}


@pytest.mark.parametrize(
    ("take", "thing"),
    [
        pytest.param(take, thing, id=f"{way}-{kind}")
        for way, take in TAKES.items()
        for kind, thing in THINGS.items()
        if (way, kind) not in TEXTS_ALONE
    ],
)
def test_what_is_no_name_and_no_path_is_a_type_error_of_one_line(take, thing, no_network):
    with pytest.raises(TypeError) as error:
        take(thing)
    said = str(error.value)
    assert said.startswith("expected a")
    assert type(thing).__name__ in said
    assert "\n" not in said
    assert "secret" not in said


def test_a_model_object_is_named_with_its_remedy(no_network):
    with refused("(model, tokenizer)", "BertForSequenceClassification", kind=TypeError):
        hm.open_model(tiny_model("bert"), "texts.csv")
    with refused("dict", "pandas DataFrame", "labels=[...]", kind=TypeError):
        hm.load(THINGS["dict"])


def test_a_frame_is_named_with_the_way_it_goes(no_network):
    frame = pd.DataFrame({"text": TEXTS, "label": [0, 1]})
    for take, named in (
        (hm.train, ["corpus", "pandas.DataFrame", "heedmap.train(heedmap.load(data))"]),
        (
            hm.audit,
            ["run", "pandas.DataFrame", "heedmap.audit(heedmap.train(heedmap.load(data)))"],
        ),
        (lambda thing: hm.open_model(thing, "texts.csv"), ["model", "pandas.DataFrame"]),
        (lambda thing: hm.fine_tune(thing, "texts.csv"), ["model", "pandas.DataFrame"]),
    ):
        with refused(*named, kind=TypeError) as error:
            take(frame)
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a fine film",
        "a/secret diagnosis",
        "one line\nand another",
        "naïve",
        "x" * 97,
        "x" * 5000,
        "https://somewhere.example/texts",
        "hf://datasets/imdb",
        "['a', 'list']",
        "null\0byte",
        "great!",
        "one line\nand a/b/c",
        "/one line\nand another.csv",
    ],
)
def test_a_string_that_cannot_be_a_name_is_refused_without_asking(text, no_network, tmp_path):
    for take in (
        hm.load,
        lambda text: hm.open_model(text, "texts.csv"),
        lambda text: hm.fine_tune(text, "reviews", out=tmp_path / "run"),
    ):
        with pytest.raises(hm.InputError) as error:
            take(text)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 500
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["imdb", "stanfordnlp/sst2", "A-b_c.d/e.f-1", "x" * 96])
def test_a_name_is_let_pass(name):
    check_name(name, DATA)
    assert name_of(name, MODEL) == name


def test_a_path_is_never_taken_for_a_name(no_network, tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    with refused(tmp_path / "imdb"):
        hm.load(Path("imdb"))
    with refused("owner/model"):
        hm.open_model(Path("owner/model"), "texts.csv")
    (tmp_path / "texts.csv").write_text("text,label\ngood,1\n")
    assert name_of(Path("texts.csv"), DATA) == "texts.csv"
    assert is_there("texts.csv")
    assert not is_there("x" * 5000)
    assert not is_there("~nobody-of-that-name/x")


def test_on_the_command_line_it_is_one_line(heedmap, no_network):
    for arguments in (["--data", "a fine film"], ["--model", "a film", "--data", "texts.csv"]):
        done = heedmap("audit", *arguments)
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1
        assert "cannot be a name on the Hub" in done.err
