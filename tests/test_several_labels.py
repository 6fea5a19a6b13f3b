"""Models that give several labels at once: each label is audited as a yes over the texts that have it."""

import json

import numpy as np
import pytest
import torch
from pair_transformers import pair_tokenizer, save_pair_model
from rule_columns import columns_of
from tiny_transformers import TEXTS, tiny_model, tiny_tokenizer
from wording import refused, stopped

import heedmap as hm
from heedmap.experiments.certainty import chance_of_another
from heedmap.experiments.rule import Thresholds, answer, map_numbers
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.one_output import answer_with_two, one_output
from heedmap.huggingface.output_texts import NotPredicted
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.deletions import reread_without_each
from heedmap.settings.models import TransformerSettings
from heedmap.sweeps.labels import audit_labels, folder_names, holm

ARCHITECTURES = ["bert", "distilbert", "gpt2", "bart"]
SEVERAL = {"problem_type": "multi_label_classification"}
WORDS = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]


def written(count=24):
    """Short texts without labels."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, n)) for n in rng.integers(3, 8, count)]


def plainly(architecture, text):
    """The probability of each label as transformers itself gives it."""
    tokenizer = tiny_tokenizer(architecture)
    encoding = tokenizer(text, return_tensors="pt")
    inputs = {name: encoding[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        return tiny_model(architecture, 3)(**inputs).logits[0].sigmoid()


def of_label(architecture, number, threshold=0.5, **settings):
    """A tiny model on trial for one of its three labels."""
    model = tiny_model(architecture, 3)
    output = one_output(model.config, f"class{number}", threshold, several=True)
    answer_with_two(model, output)
    wanted = TransformerSettings(source=architecture, **settings)
    return TransformerClassifier(model, tiny_tokenizer(architecture), wanted, output.classes)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("number", [0, 2])
def test_a_label_has_the_probability_that_its_own_output_gives(architecture, number):
    model = of_label(architecture, number)
    assert model.classes == [f"not class{number}", f"class{number}"]
    probabilities = model.logits(model.batch(TEXTS, range(3))).softmax(-1)[:, 1]
    expected = torch.stack([plainly(architecture, "".join(t))[number] for t in TEXTS])
    assert torch.allclose(probabilities, expected, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_deletions_and_other_weights_are_of_the_labels_own_output(architecture):
    model = of_label(architecture, 1)
    logits = reread_without_each(model, TEXTS)
    for text, without in zip(TEXTS[:2], logits, strict=False):
        for j in range(len(text)):
            shorter = plainly(architecture, "".join([*text[:j], *text[j + 1 :]]))[1]
            assert torch.allclose(without[j].softmax(-1)[1].float(), shorter, atol=1e-5)
    trace = model.trace(model.batch(TEXTS, range(3)))
    again = model.predict(trace, trace.attention.unsqueeze(0))[0]
    assert torch.allclose(again, trace.logits, atol=1e-5)
    even = trace.support.float() / trace.support.float().sum(-1, keepdim=True)
    other = model.predict(trace, even.unsqueeze(0))[0]
    assert (other[:, 0] == 0).all()
    assert (other[:, 1] != trace.logits[:, 1]).any()


def test_a_label_is_predicted_from_its_threshold_on():
    probability = plainly("bert", "".join(TEXTS[0]))[0].item()
    for threshold in (probability - 0.01, probability + 0.01):
        model = of_label("bert", 0, threshold)
        (logits,) = model.logits(model.batch(TEXTS[:1], [0]))
        assert bool(logits[1] > logits[0]) == (probability > threshold)
        assert logits[1].sigmoid().item() == pytest.approx(probability, abs=1e-5)


def test_which_output_is_audited_must_be_one_of_several(tmp_path):
    several = save_pair_model(tmp_path / "several", classes=3, **SEVERAL)
    single = save_pair_model(tmp_path / "single", classes=2)
    assert find_model(several).labels() == ["class0", "class1", "class2"]
    assert find_model(single).labels() is None
    assert find_model(single).outputs()[1] is None
    with refused("--output", "class0", "class2", "none"):
        find_model(several).outputs()
    with refused("--output", "'other'"):
        find_model(several).outputs("other")
    with refused("--threshold 0.3", "one class", "leave it out"):
        find_model(single).outputs(threshold=0.3)
    with refused("--output class0", "one class"):
        find_model(single).outputs("class0")
    with refused("--output", "--label-column"):
        hm.open_model(several, ["a film"], labels=["class0"], output="class0")
    with refused("single", "several labels"):
        audit_labels(single, ["a film"], out=tmp_path / "out")


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_the_texts_of_a_label_are_those_that_have_it(tmp_path, share):
    folder = save_pair_model(tmp_path / "model", classes=3, **SEVERAL)
    given, tokenizer, plain = written(), pair_tokenizer(), tiny_model("bert", 3)
    with torch.no_grad():
        probabilities = [
            float(plain(**tokenizer(text, return_tensors="pt")).logits[0, 1].sigmoid())
            for text in given
        ]
    threshold = float(np.quantile(probabilities, share, method="midpoint"))
    model = hm.open_model(folder, given, output="class1", threshold=threshold, out=tmp_path / "run")
    expected = [t for t, p in zip(given, probabilities, strict=True) if p >= threshold]
    assert ["".join(text) for text in model.corpus.splits["test"].tokens] == expected
    assert 0 < len(expected) < len(given)
    assert model.corpus.left_out["class1 is not predicted"] == len(given) - len(expected)
    again = hm.open_run(tmp_path / "run")
    assert again.corpus.fingerprint() == model.corpus.fingerprint()
    assert again.classes == ["not class1", "class1"]


def test_a_label_that_no_text_has_is_one_line(tmp_path):
    folder = save_pair_model(tmp_path / "model", classes=3, **SEVERAL)
    with refused("class1", "none of 3", "--threshold", kind=NotPredicted):
        hm.open_model(folder, written(3), output="class1", threshold=0.9999)


def test_labels_of_the_data_are_not_read(tmp_path):
    folder = save_pair_model(tmp_path / "model", classes=3, **SEVERAL)
    rows = [{"text": text, "label": ["class0", "class2"]} for text in written()]
    run = hm.open_model(folder, rows, output="class1")
    assert not run.corpus.splits["test"].labelled


@pytest.mark.parametrize("holding", [0.97, 0.02])
def test_a_clear_answer_is_certain_and_a_mixed_one_is_not(holding):
    columns = columns_of(np.random.default_rng(0), 100, holding)
    said = answer(map_numbers(columns), Thresholds())
    assert chance_of_another(columns, np.arange(100), said, Thresholds(), 0) < 0.05
    other = "no" if said != "no" else "yes"
    assert chance_of_another(columns, np.arange(100), other, Thresholds(), 0) > 0.9


@pytest.mark.parametrize(
    ("chances", "rejected"),
    [
        ({}, set()),
        ({"a": 0.04}, {"a"}),
        ({"a": 0.04, "b": 0.04}, set()),
        ({"a": 0.02, "b": 0.04}, {"a", "b"}),
        ({"a": 0.02, "b": 0.06, "c": 0.01}, {"a", "c"}),
    ],
)
def test_holm_steps_down(chances, rejected):
    assert holm(chances) == rejected


def test_labels_of_the_same_letters_have_folders_of_their_own():
    assert folder_names(["A b", "a/b", "¿?"]) == ["0-a-b", "1-a-b", "2"]


@pytest.mark.slow
def test_all_labels_are_audited_by_one_command(heedmap, tmp_path):
    folder = save_pair_model(tmp_path / "model", classes=3, **SEVERAL)
    data, out = tmp_path / "texts.jsonl", tmp_path / "out"
    rows = [{"text": text, "label": ["class0"]} for text in written(60)]
    data.write_text("\n".join(map(json.dumps, rows)))
    options = ["--permutations", 3, "--instances", 20, "--out", out]
    done = heedmap("audit", "--model", folder, "--data", data, *options)
    assert done.code == 0, done.err
    page = (out / "result.html").read_text()
    for label in ("class0", "class1", "class2"):
        assert label in page
    assert "Holm" in page
    assert "what is asked" in page
    summary = (out / "result.md").read_text()
    assert "skill" not in summary  # the labels of the data are not read
    audited = [path for path in out.iterdir() if (path / "report.html").exists()]
    assert audited
    again = heedmap("audit", "--model", folder, "--data", data, *options, "--json")
    labels = json.loads(again.out)["labels"]
    assert [row["label"] for row in labels] == ["class0", "class1", "class2"]
    assert sum(row["answer"] is not None for row in labels) == len(audited)


def test_a_shard_of_all_labels_is_refused(heedmap, tmp_path):
    folder = save_pair_model(tmp_path / "model", classes=3, **SEVERAL)
    data = tmp_path / "texts.csv"
    data.write_text("text\n" + "\n".join(written(4)))
    done = heedmap(
        "audit", "--model", folder, "--data", data, "--shard", "1/2", "--out", tmp_path / "out"
    )
    stopped(done, "--shard", "--output")


def test_one_label_of_several_is_explained(heedmap, tmp_path):
    several = save_pair_model(tmp_path / "several", classes=3, **SEVERAL)
    explanation = hm.explain(several, "a great film", output="class1")
    assert explanation.classes == ["not class1", "class1"]
    done = heedmap("explain", several, "a great film", "--output", "class1", "--json")
    assert json.loads(done.out)["classes"] == ["not class1", "class1"]
    assert heedmap("explain", several, "a great film").code == 2
    run = hm.open_model(several, ["a film", "bad"], output="class1", out=tmp_path / "run")
    with refused("class1", "leave it out"):
        hm.explain(run, "a film", output="class1")
    with refused("class1", "leave it out"):
        hm.explain(run.folder, "a film", output="class1")
