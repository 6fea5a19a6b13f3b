"""Planted texts of sentences: the map is over the sentences, and is where the family says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.planted_sentences import (
    SentenceDrawing,
    sentence_scores,
    with_other_cues,
    without_some_cues,
    write_sentences,
)
from heedmap.calibration.plants import FAITHFUL, IRRELEVANT, Plant, is_cue
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.settings.models import ModelSettings

FAMILIES = {n: family for n, family in families().items() if "hierarchical" in family.makers}
PLAIN = Plant("any", "hierarchical", 0, classes=3, deciding=2, length=12, sharpness=5.0)


def plant(name, **options):
    given = {
        "classes": 2,
        "length": 10,
        "texts": 60,
        "sharpness": 5.0,
        "deciding": 1,
        "score": "fixed",
    }
    given |= {"normaliser": "softmax", "margin": 4.0, **options}
    return replace(draw(FAMILIES[name], "hierarchical", given.pop("seed", 0)), **given)


def made(name, **options):
    result = make(plant(name, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(model, split):
    return model.trace(model.batch(split.texts, range(len(split))))


def mass(result, marks):
    heat = trace_of(result.model, result.split).heatmap.numpy()
    return np.mean([h[: len(m)][m].sum() for h, m in zip(heat, marks, strict=True)])


def test_a_grid_has_thirty_right_and_thirty_wrong_plants_of_sentences():
    drawn = [p for p in plants(8) if p.encoder == "hierarchical"]
    for truth in ("right", "wrong"):
        group = [p for p in drawn if FAMILIES[p.family].truth == truth]
        assert len(group) >= 40
        assert {p.score for p in group} == {"fixed", "additive", "dot"}
        assert {p.normaliser for p in group} == {"softmax", "sparsemax", "entmax15"}


def test_sentences_with_cues_are_marked_and_are_at_most_a_third():
    split = write_sentences(FAITHFUL, PLAIN, 50, "test")
    for text, marks in zip(split.tokens, split.rationale, strict=True):
        assert [any(map(is_cue, sentence.split())) for sentence in text] == marks.tolist()
        assert 1 <= marks.sum() <= len(text) / 3
        assert not marks[-1]
        assert not (marks[1:] & marks[:-1]).any()
        assert all(4 <= len(sentence.split()) <= 8 for sentence in text)


def test_other_cues_make_another_label_and_change_nothing_else():
    split = write_sentences(FAITHFUL, PLAIN, 20, "test")
    other = with_other_cues(PLAIN, split)
    assert (other.labels != split.labels).all()
    for text, changed in zip(split.tokens, other.tokens, strict=True):
        for sentence, new in zip(text, changed, strict=True):
            pairs = list(zip(sentence.split(), new.split(), strict=True))
            assert all((a != b) == is_cue(a) for a, b in pairs)


def test_a_fifth_of_the_training_texts_has_no_cue_and_a_drawn_label():
    split = write_sentences(FAITHFUL, PLAIN, 500, "train")
    some = without_some_cues(PLAIN, split)
    changed = [i for i, (a, b) in enumerate(zip(split.tokens, some.tokens, strict=True)) if a != b]
    assert 70 < len(changed) < 130
    for i in changed:
        assert not any(is_cue(word) for sentence in some.tokens[i] for word in sentence.split())
    kept = np.setdiff1d(np.arange(500), changed)
    assert (some.labels[kept] == split.labels[kept]).all()
    # Drawn among three classes, the label is the old one a third of the time.
    assert 0.15 < np.mean(some.labels[changed] == split.labels[changed]) < 0.5


def test_a_sentences_score_is_the_sum_of_its_words_and_of_what_the_one_before_passes_on():
    vocabulary = Vocabulary(["a", "b", "c"])
    settings = ModelSettings.of(encoder="gru", embedding_size=4, hidden_size=4)
    model = HierarchicalClassifier(settings, vocabulary, ["0", "1"])
    scores = np.zeros((len(vocabulary), 2))
    scores[4:] = [[1.0, 0.0], [2.0, 0.0], [0.0, 8.0]]
    batch = model.batch([["a b", "b c", "a"], ["c"]], range(2))
    assert SentenceDrawing(scores)(batch)[batch.mask].tolist() == [3.0, 2.0, 9.0, 0.0]


def test_random_scores_do_not_depend_on_the_length_of_a_sentence():
    split = write_sentences(IRRELEVANT, PLAIN, 100, "test")
    words = sorted({w for text in split.tokens for sentence in text for w in sentence.split()})
    vocabulary = Vocabulary(words)
    own = sentence_scores(IRRELEVANT, PLAIN, vocabulary)[:, 0]
    sentences = [s.split() for text in split.tokens for s in text if "cue" not in s]
    sums = np.array([own[vocabulary.encode(s)[1:-1]].sum() for s in sentences])
    lengths = np.array([len(s) for s in sentences])
    assert abs(np.corrcoef(sums, lengths)[0, 1]) < 0.25
    assert sums.std() > 1


def test_with_the_weights_on_the_sentence_with_the_cue_the_answer_follows_the_cue():
    name = "sentences, sentence with the cue attended"
    result = made(name)
    assert mass(result, result.split.rationale) >= 0.5
    other = with_other_cues(plant(name), result.split)
    assert (trace_of(result.model, other).predicted.numpy() == other.labels).mean() >= 0.9


@pytest.mark.parametrize(("score", "normaliser"), [("additive", "sparsemax"), ("dot", "softmax")])
def test_learned_scores_are_taught_the_sentence_after_it(score, normaliser):
    result = made("sentences, sentence after it attended", score=score, normaliser=normaliser)
    assert result.model.settings.score == score
    after = [np.append(False, marks[:-1]) for marks in result.split.rationale]
    assert mass(result, after) >= 0.5
    assert mass(result, result.split.rationale) <= 0.25


@pytest.mark.exhaustive
def test_uniform_weights_are_the_same_for_all_sentences():
    result = made("sentences, uniform weights", deciding=2)
    trace = trace_of(result.model, result.split)
    assert torch.allclose(trace.heatmap, trace.mask / trace.mask.sum(1, keepdim=True), atol=1e-6)


@pytest.mark.exhaustive
def test_a_map_that_is_hardly_on_the_sentence_is_not_admitted():
    result = make(plant("sentences, sentence with the cue attended", sharpness=0.5))
    assert not result.admitted
    assert result.why_not.endswith("on the sentences with cues")
