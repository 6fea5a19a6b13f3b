"""Planted pairs: the query says which cues decide, and the weights are where the family says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.planted_pairs import (
    asking,
    is_attended,
    kind_of,
    the_others,
    with_other_classes,
    with_other_query,
    write_pairs,
)
from heedmap.calibration.plants import Plant, class_of, cue, is_cue, number_of

FAMILIES = {name: family for name, family in families().items() if "pair" in family.makers}
PLAIN = Plant("pair, asked cue attended", "pair", 0, classes=3, deciding=2, length=12)


def plant(name, **options):
    given = {
        "classes": 2,
        "length": 10,
        "texts": 80,
        "sharpness": 5.0,
        "deciding": 1,
        "score": "fixed",
    }
    given |= {"normaliser": "softmax", "margin": 4.0, **options}
    return replace(draw(FAMILIES[name], "pair", given.pop("seed", 0)), **given)


def made(name, **options):
    result = make(plant(name, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(model, split):
    return model.trace(model.batch(split.texts, range(len(split))))


def accuracy(model, split):
    return (trace_of(model, split).predicted.numpy() == split.labels).mean()


def mass(result, marks):
    heat = trace_of(result.model, result.split).heatmap.numpy()
    return np.mean([h[: len(m)][m].sum() for h, m in zip(heat, marks, strict=True)])


def test_a_grid_has_thirty_right_and_thirty_wrong_pairs_with_dot_scores_and_sparse_weights():
    drawn = [p for p in plants(8) if p.encoder == "pair"]
    for truth in ("right", "wrong"):
        group = [p for p in drawn if FAMILIES[p.family].truth == truth]
        assert len(group) >= 40
        assert {p.score for p in group} == {"fixed", "additive", "dot"}
        assert {p.normaliser for p in group} == {"softmax", "sparsemax", "entmax15"}


def test_every_class_has_cues_of_both_kinds_and_of_either_sort():
    for kind in (0, 1):
        cues = [cue(2, k) for k in range(PLAIN.cues) if kind_of(PLAIN, cue(2, k)) == kind]
        assert len(cues) == PLAIN.cues / 2
        assert sum(is_attended(PLAIN, number_of(c)) for c in cues) == len(cues) / 2


def test_the_query_names_the_kind_of_cue_whose_class_is_the_label():
    split = write_pairs(True, 0.5, PLAIN, 60, "test")
    for words, query, label in zip(split.tokens, split.queries, split.labels, strict=True):
        asked = next(kind for kind in (0, 1) if asking(kind) in query)
        cues = [word for word in words if is_cue(word)]
        assert {class_of(word) for word in cues if kind_of(PLAIN, word) == asked} == {label}
        assert len([word for word in cues if kind_of(PLAIN, word) != asked]) == 2
    others = with_other_query(PLAIN, split)
    # The class of the other kind is drawn on its own.
    assert 0.15 < (others.labels == split.labels).mean() < 0.55
    again = with_other_query(PLAIN, others)
    assert again.queries == split.queries
    assert (again.labels == split.labels).all()


def test_a_query_that_says_nothing_leaves_cues_of_one_kind():
    split = write_pairs(False, 1.0, PLAIN, 40, "test")
    for words, query, marks in zip(split.tokens, split.queries, split.rationale, strict=True):
        assert not {asking(0), asking(1)} & {*query}
        assert [is_cue(word) for word in words] == marks.tolist()
        assert {is_attended(PLAIN, number_of(word)) for word in words if is_cue(word)} == {True}


def test_with_the_weights_on_the_asked_cue_the_answer_follows_the_query_and_the_cues():
    result = made("pair, asked cue attended")
    assert mass(result, result.split.rationale) >= 0.5
    assert mass(result, the_others(plant("pair, asked cue attended"), result.split)) <= 0.1
    for changed in (with_other_query, with_other_classes):
        split = changed(plant("pair, asked cue attended"), result.split)
        assert accuracy(result.model, split) >= 0.9


@pytest.mark.exhaustive
def test_where_the_other_cue_is_attended_the_answer_is_still_of_the_asked_one():
    name = "pair, cue that is not asked for attended"
    result = made(name)
    assert mass(result, the_others(plant(name), result.split)) >= 0.5
    assert mass(result, result.split.rationale) <= 0.25
    assert accuracy(result.model, with_other_query(plant(name), result.split)) >= 0.85


@pytest.mark.parametrize(("score", "normaliser"), [("additive", "entmax15"), ("dot", "softmax")])
def test_learned_scores_are_taught_where_to_attend(score, normaliser):
    name = "pair, cue attended, query says nothing"
    result = made(name, score=score, normaliser=normaliser)
    assert result.model.settings.score == score
    assert result.model.settings.normaliser == normaliser
    assert mass(result, result.split.rationale) >= 0.5


def test_uniform_weights_are_about_the_same_and_the_cue_decides():
    result = made("pair, uniform weights, query says nothing")
    trace = trace_of(result.model, result.split)
    share = trace.heatmap * trace.mask.sum(1, keepdim=True)
    assert share[trace.mask].sub(1).abs().max() < 0.15
    assert accuracy(result.model, result.split) >= 0.9


@pytest.mark.exhaustive
def test_in_half_of_the_pairs_the_asked_cue_is_attended():
    result = made(
        "pair, asked cue attended in 0.5 of the texts", sharpness=4.0, texts=200, deciding=2
    )
    heat = trace_of(result.model, result.split).heatmap.numpy()
    pairs = zip(heat, result.split.rationale, strict=True)
    on = np.array([h[: len(m)][m].sum() for h, m in pairs])
    assert np.mean(on > 0.4) == pytest.approx(0.5, abs=0.12)


def test_a_pair_has_the_margin_that_was_drawn_and_is_always_made_the_same():
    first, second = (made("pair, cue attended, query says nothing", margin=3.0) for _ in range(2))
    logits = [trace_of(result.model, result.split).logits for result in (first, second)]
    assert torch.equal(*logits)
    best = logits[0].topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(3.0, rel=1e-3)
