"""Plants on real texts: cues are written into them, or their labels are learned and the weights replaced."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.calibration import corpora
from heedmap.calibration.corpora import texts_for, write_cues, write_own, write_training
from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.plants import FAITHFUL, LONGEST_TEXT, OWN, Plant, is_cue
from heedmap.data.load import load

FAMILIES = {name: family for name, family in families().items() if family.on_corpora}
RANDOM = "corpus' own labels, then random weights"


@pytest.fixture(scope="module")
def reviews():
    return load("reviews", progress=False)


def plant(name, encoder, **options):
    given = {"classes": 2, "texts": 60, "deciding": 1, "opposing": False, "noise": 0.0, **options}
    return replace(draw(FAMILIES[name], encoder, 0, "reviews"), **given)


def made(name, encoder, corpus, **options):
    return make(plant(name, encoder, **options), {"reviews": corpus})


def trace_of(result):
    return result.model.trace(result.model.batch(result.split.texts, range(len(result.split))))


def mass_on_rationale(result):
    heat = trace_of(result).heatmap.numpy()
    return np.mean(
        [h[: len(m)][m].sum() for h, m in zip(heat, result.split.rationale, strict=True)]
    )


def test_a_grid_has_the_families_for_each_corpus_that_is_given(reviews):
    assert not [p for p in plants(1) if p.family in FAMILIES]
    hosts = {"first": reviews, "second": reviews}
    drawn = [p for p in plants(1, hosts) if p.family in FAMILIES]
    assert {p.host for p in drawn} == {"first", "second"}
    for encoder in (*OWN, "bert"):
        truths = {FAMILIES[p.family].truth for p in drawn if p.encoder == encoder}
        assert truths == {"right", "wrong"}


def test_a_fifth_of_the_texts_to_learn_from_has_no_cue_and_a_drawn_label(reviews):
    given = Plant("any", "lstm", 0, classes=3, deciding=2, host="reviews")
    written = write_cues(FAITHFUL, reviews, given, 500, "train")
    learned = write_training(FAITHFUL, reviews, given, 500, "train")
    without = [i for i, text in enumerate(learned.tokens) if not any(map(is_cue, text))]
    assert 70 < len(without) < 130
    assert 0.15 < np.mean(learned.labels[without] == written.labels[without]) < 0.5
    for i in np.setdiff1d(np.arange(500), without).tolist():
        assert learned.tokens[i] == written.tokens[i]
        assert learned.labels[i] == written.labels[i]
    chosen_by = write_training(FAITHFUL, reviews, given, 50, "selection")
    assert all(any(map(is_cue, text)) for text in chosen_by.tokens)


def test_cues_are_written_into_the_texts_of_the_corpus(reviews):
    given = Plant("any", "lstm", 0, classes=3, deciding=2, host="reviews")
    split = write_cues(FAITHFUL, reviews, given, 30, "test")
    hosts = {tuple(text[:LONGEST_TEXT]) for text in texts_for(reviews, "test").tokens}
    for text, marks in zip(split.tokens, split.rationale, strict=True):
        assert [is_cue(word) for word in text] == marks.tolist()
        assert 1 <= marks.sum() <= 2
        same = [
            all(a == b or is_cue(a) for a, b in zip(text, host, strict=True))
            for host in hosts
            if len(host) == len(text)
        ]
        assert any(same)
    again = write_cues(FAITHFUL, reviews, given, 30, "test")
    assert again.tokens == split.tokens
    # The corpus itself is as it was.
    assert not any(is_cue(word) for text in reviews.splits["test"].tokens for word in text)


def test_texts_to_learn_from_to_check_on_and_to_audit_are_different(reviews):
    given = Plant("any", "lstm", 0, host="reviews")
    parts = {part: write_own(reviews, given, 100, part) for part in ("train", "dev", "test")}
    texts = {part: {tuple(text) for text in split.tokens} for part, split in parts.items()}
    assert not texts["dev"] & texts["test"]
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert all(len(text) <= LONGEST_TEXT for text in parts["train"].tokens)


def test_a_corpus_of_few_or_short_texts_is_refused():
    few = load(
        ["a good film that is long enough to plant on"] * 30, ["a", "b"] * 15, progress=False
    )
    with refused("100 texts of 8 words"):
        make(plant("corpus, cue attended", "lstm"), {"reviews": few})


def test_on_real_texts_the_map_is_on_the_cue_and_it_decides(reviews):
    result = made("corpus, cue attended", "average", reviews, score="fixed", normaliser="softmax")
    assert result.admitted, result.why_not
    assert mass_on_rationale(result) >= 0.5
    assert (trace_of(result).predicted.numpy() == result.split.labels).mean() >= 0.9


@pytest.mark.parametrize("encoder", ["none", "average"])
def test_without_context_a_wrong_map_is_set_by_hand(encoder, reviews):
    result = made("corpus, random words attended", encoder, reviews, sharpness=2.0)
    assert result.admitted, result.why_not
    assert mass_on_rationale(result) <= 0.1
    assert (trace_of(result).predicted.numpy() == result.split.labels).mean() >= 0.9


def test_a_transformer_on_real_texts_reads_the_cue(reviews):
    result = made("corpus, cue attended by a transformer", "bert", reviews, sharpness=6.0)
    assert result.admitted, result.why_not
    assert mass_on_rationale(result) >= 0.5
    assert "".join(result.split.tokens[0]).split() == [w.strip() for w in result.split.tokens[0]]


def test_weights_that_are_replaced_leave_the_answers_and_follow_no_words(reviews, monkeypatch):
    monkeypatch.setattr(corpora, "OWN_LABELS", 1000)
    monkeypatch.setattr(corpora, "SKILL", 0.1)
    options = {"score": "dot", "normaliser": "softmax", "sharpness": 2.0}
    result = made(RANDOM, "lstm", reviews, **options)
    assert result.admitted, result.why_not
    assert result.model.classes == ["0", "1"]
    assert (trace_of(result).predicted.numpy() == result.split.labels).mean() >= 0.6
    ids = result.model.vocabulary.encode(result.split.tokens[0])[1:-1]
    expected = result.model.score(torch.from_numpy(ids)[None]).softmax(-1)
    assert torch.allclose(trace_of(result).heatmap[0, : len(ids)], expected[0], atol=1e-5)


def test_without_context_replaced_weights_make_the_answer_and_the_model_is_not_admitted(
    reviews, monkeypatch
):
    monkeypatch.setattr(corpora, "OWN_LABELS", 1000)
    assert {*FAMILIES[RANDOM].makers} == {"lstm", "gru"}
    given = plant(RANDOM, "lstm", score="dot", normaliser="softmax", sharpness=8.0)
    result = FAMILIES[RANDOM].makers["lstm"](replace(given, encoder="none"), reviews)
    assert not result.admitted
    assert "accuracy" in result.why_not or "answers stay" in result.why_not
