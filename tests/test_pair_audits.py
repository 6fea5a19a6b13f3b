"""Audits of transformers that read pairs: a classifier of relations, a cross-encoder with one output."""

import json

import numpy as np
import pytest
import torch
from pair_transformers import pair_tokenizer, save_pair_model
from tiny_transformers import tiny_model
from wording import refused, stopped, warned

import heedmap as hm
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.one_output import answer_with_two

FEW = {"permutations": 3, "instances": 8}
CLASSES = ["class0", "class1"]


def write_pairs(path, labels=("not relevant", "relevant")):
    """Twelve short pairs, as JSON lines."""
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {
            "query": " ".join(rng.choice(words, 2)),
            "passage": " ".join(rng.choice(words, n)),
            "label": labels[i % 2],
        }
        for i, n in enumerate([1, 2, *rng.integers(3, 7, 10)])
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def cross_encoder(folder):
    """Save a tiny cross-encoder with one output."""
    return save_pair_model(
        folder,
        classes=1,
        id2label={"0": "LABEL_0"},
        sbert_ce_default_activation_function="torch.nn.modules.activation.Sigmoid",
    )


def test_a_cross_encoder_with_one_output_has_the_logits_of_no_and_yes(tmp_path):
    folder = cross_encoder(tmp_path / "model")
    classes, output = find_model(folder).outputs()
    assert classes == ["not relevant", "relevant"]
    model, tokenizer = load_classifier(folder)
    answer_with_two(model, output)
    encoding = tokenizer("the plot", "a great film", return_tensors="pt")
    plain = tiny_model("bert", 1)
    with torch.no_grad():
        z = plain(**encoding).logits
        logits = model(**encoding).logits
    assert torch.allclose(logits, torch.cat([torch.zeros_like(z), z], -1), atol=1e-5)
    assert torch.allclose(logits.softmax(-1)[:, 1:], z.sigmoid(), atol=1e-6)


def test_one_output_of_anything_else_is_still_an_amount(tmp_path):
    save_pair_model(tmp_path / "model", classes=1, id2label={"0": "LABEL_0"})
    assert find_model(tmp_path / "model").outputs() == (["units of the output"], None)


@pytest.mark.parametrize("side", ["text", "query", "both"])
def test_a_run_of_pairs_is_read_as_the_data_says(tmp_path, side):
    folder, pairs = cross_encoder(tmp_path / "model"), write_pairs(tmp_path / "pairs.jsonl")
    run = hm.open_model(folder, pairs, side=side, out=tmp_path / "run")
    assert run.corpus.settings.first == "query"
    row = json.loads(pairs.read_text().splitlines()[2])
    plain, tokenizer = tiny_model("bert", 1), pair_tokenizer()
    with torch.no_grad():
        encoding = tokenizer(row["query"], row["passage"], return_tensors="pt")
        relevant = float(plain(**encoding).logits.sigmoid())
    given = (row["passage"], row["query"])
    assert run.predict_proba([given])[0, 1] == pytest.approx(relevant, abs=1e-5)
    again = hm.open_run(tmp_path / "run")
    assert again.corpus.fingerprint() == run.corpus.fingerprint()
    explanation = again.explain(given[0], query=given[1])
    words = {"text": given[:1], "query": given[1:], "both": given[::-1]}[side]
    shown = [token.removeprefix("‖ ") for token in explanation.tokens]
    assert shown == " ".join(words).split()


def test_a_list_of_texts_has_its_queries_beside_it(tmp_path):
    folder = save_pair_model(tmp_path / "model")
    given = {"queries": ["bad", "great film"], "labels": CLASSES}
    run = hm.open_model(folder, ["a film", "the plot"], **given)
    assert [
        ["".join(words) for words in text.sides] for text in run.corpus.splits["test"].texts
    ] == [
        ["a film", "bad"],
        ["the plot", "great film"],
    ]
    with refused("pair (text, query)", kind=TypeError):
        run.predict(["a film"])


def test_a_model_alone_explains_a_pair(tmp_path):
    explanation = hm.explain(cross_encoder(tmp_path / "model"), "a great film", query="the plot")
    assert explanation.tokens == ["a", "great", "film"]
    plain = tiny_model("bert", 1)
    with torch.no_grad():
        z = plain(**pair_tokenizer()("the plot", "a great film", return_tensors="pt")).logits
    relevant = float(z.sigmoid())
    assert explanation.probabilities[1] == pytest.approx(relevant, abs=1e-5)


def test_a_model_of_pairs_on_single_texts_says_which_option_is_missing(tmp_path):
    folder = save_pair_model(tmp_path / "model", id2label={"0": "entailment", "1": "contradiction"})
    with warned("pairs of texts", "--query-column"):
        hm.open_model(folder, ["a film", "the plot"], labels=["entailment", "contradiction"])


def test_windows_of_both_texts_of_a_pair_are_refused(tmp_path):
    folder = save_pair_model(tmp_path / "model")
    texts, queries = ["the film " * 20, "a plot"], ["bad", "great film"]
    given = {"queries": queries, "labels": CLASSES, "long_texts": "windows"}
    with refused("--long-texts windows", "--side text"):
        hm.open_model(folder, texts, side="both", **given)
    run = hm.open_model(folder, texts, **given)
    split = run.corpus.splits["test"]
    windows = [text for text, number in zip(split.texts, split.text_of, strict=True) if not number]
    assert "".join(word for window in windows for word in window).strip() == texts[0].strip()
    assert {"".join(window.query) for window in windows} == {"bad"}
    assert run.model.lengths(split.texts).max() <= 32


def test_the_command_refuses_sides_of_a_model_of_our_own(heedmap, tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl")
    done = heedmap("audit", "--data", pairs, "--side", "both", "--out", tmp_path / "run")
    stopped(done, "--side", "--model")


@pytest.mark.slow
@pytest.mark.parametrize("side", ["text", "query", "both"])
def test_pairs_go_through_the_whole_audit(heedmap, tmp_path, side):
    folder, pairs = cross_encoder(tmp_path / "model"), write_pairs(tmp_path / "pairs.jsonl")
    out = tmp_path / "run"
    options = ["--permutations", 3, "--instances", 8, "--side", side, "--out", out]
    done = heedmap("audit", "--model", folder, "--data", pairs, *options)
    assert done.code == 0, done.err
    page = (out / "report.html").read_text()
    assert "the query read first: attention over" in page
    assert "tanh" not in page
    audit = hm.open_audit(out)
    assert {"scan", "heads", "adversary", "permutation"} <= set(audit.tables)
    assert {"within", "across"} <= {*audit.tables["heads"].column_names}
    within, across = (audit.tables["heads"][name].to_numpy() for name in ("within", "across"))
    assert (within + across <= 1 + 1e-6).all()
    assert (across > 0).any()
    instances = audit.tables["instances"]
    assert ("second" in instances.column_names) == (side == "both")
    assert ("query" in instances.column_names) != (side == "both")
    assert "models of this kind (transformer of pairs, synthetic pairs)" in audit.bottom_line.rates


@pytest.mark.slow
def test_a_model_fine_tuned_on_pairs_is_audited_on_pairs(heedmap, tmp_path):
    save_pair_model(tmp_path / "base", classes=2)
    rng = np.random.default_rng(0)
    words = np.array(["a", "film", "plot", "the", "is"])
    rows = [
        {
            "premise": " ".join([*rng.choice(words, 3), "great" if i % 2 else "bad"]),
            "hypothesis": " ".join(rng.choice(words, 2)),
            "label": "yes" if i % 2 else "no",
        }
        for i in range(60)
    ]
    data, out = tmp_path / "pairs.jsonl", tmp_path / "run"
    data.write_text("\n".join(map(json.dumps, rows)))
    done = heedmap(
        "train", "--model", tmp_path / "base", "--data", data, "--epochs", 1, "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    run = hm.open_run(out)
    assert run.corpus.settings.query == "hypothesis"
    plain = run.model.model
    row = rows[0]
    encoding = run.model.tokenizer(row["premise"], row["hypothesis"], return_tensors="pt")
    with torch.no_grad():
        expected = plain(**encoding).logits.softmax(-1)[0]
    predicted = run.predict_proba([(row["premise"], row["hypothesis"])])[0]
    assert np.allclose(predicted, expected.numpy(), atol=1e-5)
    assert len(hm.audit(run, **FEW).tables["instances"]) == 8
