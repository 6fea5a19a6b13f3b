"""Nothing touches the network unless a user names something on the Hub, and no path becomes such a name."""

import os
import socket

import numpy as np
import pytest
from conftest import QUICK, WORDS
from tiny_transformers import reviews_classifier

import heedmap as hm

FEW = ("--instances", "12", "--permutations", "5")


@pytest.fixture
def asked(monkeypatch):
    """The hosts that were asked. All of them refuse; the Hub's libraries are not told to stay offline."""
    names = []

    def refuses(*arguments, **options):
        names.append(arguments)
        raise OSError("no network here")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuses)
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: refuses(address))
    return names


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with folders of texts and of bags whose names could be those of data sets on the Hub."""
    monkeypatch.chdir(tmp_path)
    for folder in ("small", "owner/small"):
        (tmp_path / folder).mkdir(parents=True)
        for split in ("train", "dev", "test"):
            rows = [
                f"{'good' if i % 2 else 'bad'} {WORDS[i % 39]} {WORDS[i % 7]},{i % 2}"
                for i in range(30)
            ]
            (tmp_path / folder / f"{split}.csv").write_text("\n".join(["text,label", *rows]))
    bags = tmp_path / "bags"
    bags.mkdir()
    for i in range(20):
        np.save(
            bags / f"bag{i}.npy", np.random.default_rng(i).normal(size=(4, 3)).astype("float32")
        )
    (bags / "labels.csv").write_text("id,label\n" + "".join(f"bag{i},{i % 2}\n" for i in range(20)))
    return tmp_path


def move_away(*names):
    for name in names:
        os.rename(name, f"{name}-moved")


@pytest.mark.slow
@pytest.mark.parametrize("data", ["small", "owner/small", "bags"])
def test_a_run_of_a_folder_that_has_moved_asks_nobody_for_its_name(heedmap, place, asked, data):
    words = () if data == "bags" else ("explain", "run", "good w01")
    trained = ("--epochs", "1") if data == "bags" else QUICK
    assert heedmap("audit", "--data", data, "--out", "run", *trained, *FEW).code == 0
    commands = [
        ("audit", "--run", "run", *FEW), ("report", "run"), ("list", "."), ("export", "run", "--out", "tables"),
        ("card", "run"), ("figures", "run", "--format", "svg"), words,
    ]  # fmt: skip
    for command in filter(None, commands):
        done = heedmap(*command)
        assert done.code == 0, done.err
    move_away(data)
    for command in (
        ("audit", "--run", "run", *FEW),
        ("retrain", "run", "necessity"),
    ):
        done = heedmap(*command)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert data in done.err
    assert asked == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*matched with the model's classes")
def test_a_model_in_a_folder_is_asked_of_nobody(heedmap, place, asked):
    reviews_classifier(place / "model")
    for command in (
        ("check", "model"), ("explain", "model", "a good film"),
        ("audit", "--model", "model", "--data", "small", "--out", "run", *FEW),
        ("train", "--model", "model", "--data", "small", "--out", "tuned", "--epochs", "1"),
        ("audit", "--run", "run", *FEW), ("picture", "model", "a film", "--out", "picture.html"),
    ):  # fmt: skip
        done = heedmap(*command)
        assert done.code == 0, (command, done.err)
    move_away("model")
    for command in (
        ("audit", "--run", "run", *FEW),
        ("explain", "run", "a good film"),
    ):
        done = heedmap(*command)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert "model" in done.err
    assert heedmap("explain", "tuned", "a good film").code == 0
    assert asked == []


@pytest.mark.slow
def test_further_commands_on_local_things_ask_nobody(heedmap, place, asked):
    (place / "grid.toml").write_text('data = ["small"]\nencoders = ["average"]\n')
    for command in (
        ("sweep", "grid.toml", "--dry-run"),
        ("audit", "--data", "reviews", "--out", "a", *QUICK, *FEW),
        ("audit", "--data", "reviews", "--out", "b", "--seed", "1", *QUICK, *FEW),
        ("compare", "a", "b"), ("retrain", "--help"), ("merge", "--help"), ("support", "--help"),
        ("reproduce",), ("debate", "--help"), ("calibrate", "--help"),
    ):  # fmt: skip
        done = heedmap(*command)
        assert done.code == 0, (command, done.err)
    assert asked == []


def test_a_folder_that_is_called_as_an_embedded_corpus_is_not_read_for_it(place, asked):
    os.rename("small", "reviews")
    assert hm.load("reviews").settings.source == "reviews"
    assert hm.load("./reviews").settings.source == "./reviews"
    assert hm.load("owner/small").settings.source == "./owner/small"
    assert asked == []


def test_the_network_is_asked_for_what_is_named_on_the_hub(heedmap, place, asked):
    done = heedmap("audit", "--data", "nobody/has-this", "--out", "run")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert asked
