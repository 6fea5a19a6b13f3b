"""Texts of sentences, and the models of two levels that read them."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SHARED, random_sentences, small_model
from hypothesis import given
from hypothesis import strategies as st
from wording import refused

from heedmap.data.load import as_written, load
from heedmap.data.tokens import cut, pieces, sentences, words
from heedmap.models.encoders import ENCODERS
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.report.examples import Example
from heedmap.report.heatmaps import instance
from heedmap.runs.audit import audit
from heedmap.runs.open import open_run
from heedmap.runs.train import train


@given(st.text(alphabet="aB. !?\n\t,'\"<>é…", max_size=60))
def test_sentences_as_written_joined_are_the_text(text):
    assert "".join(pieces(text, "sentences")) == (text if text.strip() else "")


@given(st.text(max_size=60))
def test_any_text_is_split_and_no_visible_character_is_lost(text):
    assert "".join(pieces(text, "sentences")).split() == text.split()


def test_a_sentence_is_its_words_and_tags_are_dropped():
    assert sentences("Mr. Fox isn't <b>here</b>.<br /><br />Is he? No...") == [
        "mr . fox isn't here .",
        "is he ?",
        "no . . .",
    ]
    assert sentences("") == sentences(" \n ") == []


def test_a_text_is_cut_after_a_sentence():
    text = "One came. Two came! Three?"
    assert [cut(text, "sentences", n) for n in (1, 2, 3, 9)] == [
        "One came.",
        "One came. Two came!",
        text,
        text,
    ]


@pytest.mark.skipif(not (SHARED / "data/imdb").is_dir(), reason="the data are not here")
def test_real_reviews_have_the_words_that_they_have_without_sentences():
    with gzip.open(SHARED / "data/imdb/dev.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for _, line in zip(range(300), file, strict=False)]
    for text in texts:
        assert "".join(pieces(text, "sentences")) == (text if text.strip() else "")
        bare = text.replace("<br />", " ")
        assert " ".join(sentences(text)).split() == words(bare)
    counts = [len(sentences(text)) for text in texts]
    assert 8 < np.mean(counts) < 18  # IMDB's reviews have about twelve


def test_a_corpus_of_sentences_has_the_same_texts_and_marks():
    by_words, by_sentences = load("reviews"), load("reviews", tokenizer="sentences")
    for name, split in by_sentences.splits.items():
        assert [" ".join(text).split() for text in split.tokens] == by_words.splits[name].tokens
        for text, marks, of_words in zip(
            split.tokens, split.rationale, by_words.splits[name].rationale, strict=True
        ):
            sizes = [len(sentence.split()) for sentence in text]
            parts = np.split(of_words, np.cumsum(sizes)[:-1])
            assert marks.tolist() == [part.any() for part in parts]
    assert as_written(by_sentences).splits["test"].tokens[0] == [
        sentence if i == 0 else f" {sentence}"
        for i, sentence in enumerate(by_sentences.splits["test"].tokens[0])
    ]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
def test_two_levels_are_what_reading_sentence_by_sentence_gives(encoder, normaliser, monkeypatch):
    model = small_model(encoder, "wide-additive", normaliser, 3, kind=HierarchicalClassifier)
    texts = random_sentences((3, 1, 5))
    batch = model.batch(texts, range(3))
    trace = model.trace(batch)
    for text, logits, heat in zip(texts, trace.logits, trace.heatmap, strict=True):
        vectors = []
        for sentence in text:
            ids = torch.from_numpy(model.vocabulary.encode(sentence.split())[None, 1:-1])
            size = torch.tensor([ids.shape[1]])
            states = model.word_encoder(model.embedding(ids), size)
            scores = model.word_score(states)
            vectors.append(_weights(scores, normaliser) @ states[0])
        inputs = torch.cat(vectors).unsqueeze(0)
        states = model.encoder(inputs, torch.tensor([len(text)]))
        weights = _weights(model.score(states), normaliser)
        assert torch.allclose(weights[0], heat[: len(text)], atol=1e-6)
        assert torch.allclose(model.decoder(weights @ states[0])[0], logits, atol=1e-5)


def _weights(scores, normaliser):
    from entmax import sparsemax

    return sparsemax(scores, dim=-1) if normaliser == "sparsemax" else scores.softmax(-1)


def test_how_many_words_are_read_at_a_time_changes_nothing(monkeypatch):
    from heedmap.models import hierarchical_classifier

    model = small_model("gru", kind=HierarchicalClassifier)
    batch = model.batch(random_sentences((7, 1, 30, 2)), range(4))
    whole = model.trace(batch).logits
    monkeypatch.setattr(hierarchical_classifier, "WORDS_AT_ONCE", 1)
    assert torch.allclose(model.trace(batch).logits, whole, atol=1e-6)


def test_a_part_of_a_batch_reads_the_same():
    model = small_model("small-cnn", kind=HierarchicalClassifier)
    batch = model.batch(random_sentences((2, 9, 3)), range(3))
    part = batch.taken(slice(2, 3))
    assert part.mask.shape[1] == 3
    assert torch.allclose(model.trace(part).logits[0], model.trace(batch).logits[2], atol=1e-6)


def test_the_words_of_each_sentence_have_weights_that_sum_to_one():
    model = small_model("none", kind=HierarchicalClassifier)
    texts = random_sentences((3, 1))
    for text, found in zip(texts, model.word_attention(model.batch(texts, [0, 1])), strict=True):
        assert [len(weights) for weights in found] == [len(sentence.split()) for sentence in text]
        assert np.allclose([sum(weights) for weights in found], 1, atol=1e-6)


def test_a_words_gradient_is_summed_over_its_sentence():
    model = small_model("gru", kind=HierarchicalClassifier)
    batch = model.batch([["w01 w02", "w03"], ["w04"]], [0, 1])
    assert model.on_tokens(torch.tensor([[1.0, 2.0, 4.0], [8.0, 99.0, 99.0]]), batch).tolist() == [
        [3.0, 4.0],
        [8.0, 0.0],
    ]


def test_a_run_of_sentences_is_trained_audited_and_opened_again(tmp_path):
    corpus = load("reviews", tokenizer="sentences", train_texts=200, test_texts=40)
    run = train(corpus, encoder="none", epochs=1, embedding_size=8, out=tmp_path)
    found = audit(run, permutations=10)
    assert {"agreement", "erasure", "decision_flips", "eraser", "adversary", "permutation"} <= set(
        found.tables
    )
    again = open_run(tmp_path)
    batch = again.model.batch(corpus.splits["test"].texts[:5], range(5))
    assert torch.equal(
        again.model.trace(batch).logits,
        run.model.trace(run.model.batch(corpus.splits["test"].texts[:5], range(5))).logits,
    )
    table = found.tables["instances"].to_pydict()
    for row, text in enumerate(corpus.splits["test"].tokens):
        (weights,) = run.model.word_attention(run.model.batch([text], [0]))
        assert len(weights) == len(text)
        for one, same in zip(weights, table["word_attention"][row], strict=True):
            assert one == pytest.approx(same, abs=1e-6)
    shown = instance(found.tables, corpus.classes, Example(0, "any", "first")).rows
    of_words = next(row for row in shown if row.name.startswith("words"))
    assert [t.text for t in of_words.tokens] == " ".join(table["tokens"][0]).split()
    assert sum(t.weight for t in of_words.tokens) == pytest.approx(1, abs=1e-5)
    short = [len(text) < 2 for text in corpus.splits["test"].tokens]
    left = next(f for f in found.findings if f.key == "erasure").left_out
    assert left["one token: nothing else is left"] == sum(short) > 0


def test_pairs_and_fixed_scores_are_refused(tmp_path):
    corpus = load("reviews", tokenizer="sentences", train_texts=50, test_texts=10)
    with refused("reviews", "words", "sentences", "--tokenizer words"):
        train(corpus, score="log_odds", epochs=1)
    pairs = replace(
        corpus,
        splits={
            name: replace(split, queries=[["why"]] * len(split))
            for name, split in corpus.splits.items()
        },
    )
    with refused("--tokenizer sentences", "pairs"):
        train(pairs, epochs=1)
