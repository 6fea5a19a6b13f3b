"""What a run predicts for texts is what its model predicts by itself."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from conftest import small_corpus, small_pairs
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused, warned

import heedmap as hm
from heedmap.training.evaluation import predict_logits

SMALL = {"encoder": "lstm", "embedding_size": 12, "hidden_size": 16, "min_df": 1, "epochs": 2}
TEXTS = ["A great film.", "bad", "the plot is unwatchable , bad films"]
ROWS = [{"text": text, "label": label} for text, label in zip(TEXTS, "010", strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "bert"
    tiny_model("bert", classes=3).save_pretrained(place)
    tiny_tokenizer("bert").save_pretrained(place)
    return place


def alone(model, tokenizer, texts):
    """The model's own probabilities, one text at a time."""
    with torch.no_grad():
        logits = [model(**tokenizer(text, return_tensors="pt")).logits[0] for text in texts]
    return torch.stack(logits).double().softmax(-1).numpy()


def test_a_trained_models_probabilities_are_those_of_its_training():
    run = hm.train(small_corpus(classes=3), **SMALL)
    split = run.corpus.splits["test"]
    texts = [" ".join(tokens) for tokens in split.tokens]
    expected = predict_logits(run.model, run.encoded(split)).double().softmax(-1).numpy()
    np.testing.assert_allclose(run.predict_proba(texts), expected, atol=1e-6)
    assert run.predict(texts) == [run.classes[i] for i in expected.argmax(1)]
    assert run.predict_proba(texts[0]).shape == (1, 3)


def test_a_transformers_probabilities_are_its_own(folder):
    run = hm.open_model(folder, ROWS)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    expected = alone(model, tokenizer, TEXTS)
    for texts in (TEXTS, tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS)):
        np.testing.assert_allclose(run.predict_proba(texts), expected, atol=1e-6)
    pipe = transformers.pipeline(
        "text-classification", model=model, tokenizer=tokenizer, top_k=None
    )
    for row, scores in zip(run.predict_proba(TEXTS), pipe(TEXTS), strict=True):
        for each in scores:
            assert row[run.classes.index(each["label"])] == pytest.approx(each["score"], abs=1e-6)


@pytest.mark.slow
def test_a_real_classifiers_probabilities_are_its_own(minilm):
    texts = ["A dull plot, and yet I laughed.", "Not bad at all!", "x", "dull " * 700]
    rows = [{"text": text, "label": "negative"} for text in texts[:3]]
    run = hm.open_model(minilm, rows)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(minilm)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    with warned("1 of 4 texts", "text 3"):
        got = run.predict_proba(texts)
    np.testing.assert_allclose(got[:3], alone(model, tokenizer, texts[:3]), atol=1e-5)
    assert run.classes == [model.config.id2label[i] for i in range(2)]


def test_a_text_in_windows_has_the_mean_of_their_probabilities(folder):
    run = hm.open_model(folder, ROWS, long_texts="windows")
    text = " ".join(["great bad film"] * 400)
    whole = run.predict_proba(text)
    explanation = run.explain(text)
    assert len(explanation.windows) > 1
    np.testing.assert_allclose(whole[0], explanation.probabilities, atol=1e-6)


def test_pairs_are_predicted_given_their_query():
    run = hm.train(small_pairs(candidates=False), **SMALL)
    split = run.corpus.splits["test"]
    pairs = [(" ".join(t), " ".join(q)) for t, q in zip(split.tokens, split.queries, strict=True)]
    expected = predict_logits(run.model, run.model.encoded(split.texts, split.labels))
    np.testing.assert_allclose(run.predict_proba(pairs), expected.double().softmax(-1), atol=1e-6)
    np.testing.assert_allclose(run.predict_proba(pairs[0]), run.predict_proba(pairs[:1]))
    with refused("text 0", "pair"):
        run.predict(["no query"])


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (7, ["list of texts", "int"]),
        (None, ["list of texts", "NoneType"]),
        ({"text": "a"}, ["list of texts", "dict"]),
        (b"a", ["list of texts", "bytes"]),
        ([], ["one text", "none"]),
        (["a", 7], ["text 1", "int"]),
        (["a", None], ["text 1", "NoneType"]),
        ([("a", "b")], ["text 0", "tuple", "single texts"]),
        (["a", " "], ["text 1", "one word"]),
        (["a", "caf\udce9"], ["text 1", "UTF-8", r"caf\udce9"]),
    ],
)
def test_what_is_no_text_is_refused(small_run, texts, named):
    with refused(*named):
        small_run.predict(texts)
