"""Where a transformer runs: on the device asked for, or where its user put it, with nothing made elsewhere."""

import numpy as np
import pytest
import torch
from conftest import watched
from making import evidence_of
from second_device import SECOND, second_device
from tiny_transformers import TEXTS, tiny_classifier, tiny_model, tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.huggingface.from_memory import copy_device
from heedmap.huggingface.placement import device_named
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.runs.stored_models import check_on_cpu, device_name
from heedmap.settings.models import TransformerSettings

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
QUICK = ("instances", "gradient", "leave_one_out", "integrated_gradients", "permutation", "heads")
OTHERS = (
    "highlights", "importance_mass", "baselines", "agreement", "opposing_mass", "erasure", "decision_flips",
    "class_erasure", "eraser", "adversary", "smallest_change", "scan", "head_mixture", "better_maps",
)  # fmt: skip


def elsewhere(architecture, **settings):
    """A tiny classifier whose weights are on the second device."""
    model = tiny_model(architecture).to(SECOND)
    wanted = TransformerSettings(source=architecture, **settings)
    return TransformerClassifier(model, tiny_tokenizer(architecture), wanted, ["c0", "c1"])


def same(found, expected):
    """Assert that two tables, or parts of them, hold the same numbers up to rounding."""
    if isinstance(expected, dict | list):
        assert len(found) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            same(found[key], expected[key])
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, **CLOSE)
    else:
        assert found == expected


def tables_on_both(architecture, questions, **settings):
    """The tables of questions by a model on the second device, and by one on the CPU."""
    texts = [*TEXTS, ["a", " great", " plot"]]
    expected = evidence_of(tiny_classifier(architecture, **settings), texts)
    on_cpu = {name: expected.table(name).to_pydict() for name in questions}
    tiny_model(architecture)  # made once, here
    with second_device():
        evidence = evidence_of(elsewhere(architecture, **settings), texts)
        return {name: evidence.table(name).to_pydict() for name in questions}, on_cpu


def test_the_second_device_refuses_what_a_gpu_refuses():
    with second_device():
        there = torch.arange(3.0).to(SECOND)
        assert (there.device, (there + 1).cpu().tolist()) == (SECOND, [1.0, 2.0, 3.0])
        with pytest.raises(RuntimeError, match="one device"):
            there + torch.ones(3)
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_questions_make_no_tensor_on_another_device_than_the_models(architecture):
    same(*tables_on_both(architecture, QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("view", ["row", pytest.param("rollout", marks=pytest.mark.exhaustive)])
def test_no_question_makes_one(view):
    same(*tables_on_both("bert", (*QUICK, *OTHERS), view=view))


@pytest.mark.parametrize("name", ["cuda", "cuda:7", "mps", "tpu", ""])
def test_a_device_that_is_not_there_is_refused_with_what_is(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with refused(repr(name), "cpu"):
        device_named(name)


@pytest.mark.parametrize("name", ["tpu", "", "CPU", "cuda:x", "cpu:0", "cuda:0 "])
def test_what_is_no_name_of_a_device_is_told_from_one_that_is_not_here(name):
    with refused(repr(name), "expected cpu, cuda or cuda:N"):
        device_named(name)


@pytest.mark.parametrize(
    ("version", "why"), [(None, "a build for the CPU alone"), ("12.8", "PyTorch finds no GPU")]
)
def test_it_is_said_whether_the_gpu_or_the_build_of_pytorch_is_missing(version, why, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr(torch.version, "hip", None)
    with refused("'cuda'", why):
        device_named("cuda")


@pytest.mark.parametrize(
    ("device", "name"),
    [(None, None), ("cuda:1", "cuda:1"), (torch.device("cuda", 1), "cuda:1"), (1, "cuda:1")],
)
def test_a_device_has_one_name_however_it_is_given(device, name):
    assert device_name(device) == name


def test_every_function_takes_a_device_of_pytorch_and_the_number_of_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    loaded, texts = (tiny_model("bert"), tiny_tokenizer("bert")), ["a great film.", "a bad plot."]
    labels = {"labels": ["class0", "class1"]}
    run = hm.open_model(loaded, texts, **labels, device=torch.device("cpu"), out=tmp_path / "run")
    assert run.facts["device"] == "cpu"
    calls = (
        lambda **on: hm.open_model(loaded, texts, **labels, **on),
        lambda **on: hm.open_run(tmp_path / "run", **on),
        lambda **on: hm.explain(loaded, "a film", **on),
        lambda **on: hm.check(loaded, **on),
    )
    for call in calls:
        assert call(device=torch.device("cpu"))
        with refused("'cuda:0'", "cpu"):
            call(device=0)


def test_a_gpu_is_named_with_or_without_its_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(device_named(name)) for name in ("cpu", "cuda", "cuda:1")] == [
        "cpu",
        "cuda:0",
        "cuda:1",
    ]
    with refused("'cuda:2'", "cpu", "cuda:0", "cuda:1"):
        device_named("cuda:2")


def test_a_copy_runs_where_the_users_own_model_is():
    model = tiny_model("bert")
    assert copy_device(model) is None  # the CPU, where it is loaded
    with second_device():
        model.to(SECOND)
        assert copy_device(model) == str(SECOND)
        model.classifier.to("cpu")
        with refused("one device", "cpu", SECOND, "device="):
            copy_device(model)


def test_the_device_is_said_and_kept_among_the_facts():
    said, texts = [], ["a great film.", "a bad plot."]
    loaded = (tiny_model("bert"), tiny_tokenizer("bert"))
    with watched(note=said.append):
        run = hm.open_model(loaded, texts, labels=["class0", "class1"], device="cpu")
    assert said == ["running on cpu"]
    assert run.facts["device"] == "cpu"
    with refused("'cuda:9'", "cpu"):
        hm.open_model(loaded, ["a great film."], device="cuda:9")
    with refused("'cuda:9'", "run that is open"):
        hm.explain(run, "a film", device="cuda:9")


def test_models_of_our_own_run_on_the_cpu(heedmap):
    with refused("'cuda'", "cpu"):
        check_on_cpu("cuda")
    check_on_cpu("cpu")
    done = heedmap("audit", "--data", "reviews", "--device", "cpu")
    assert (done.code, done.err.count("\n")) == (2, 1)
