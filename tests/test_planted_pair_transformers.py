"""Planted transformers of pairs: the query says which cues decide, the weights are where the family says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.choice import kind_of as kind_of_model
from heedmap.calibration.choice import known
from heedmap.calibration.construction import accuracy, weights_of
from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.measure import measure
from heedmap.calibration.planted_pair_transformers import (
    BERT,
    BY_HAND,
    ReadsPairs,
    Scored,
    encode_pair,
    usual_weights,
    vocabulary_of,
)
from heedmap.calibration.planted_pairs import (
    ASKED,
    Drawings,
    asked_in,
    asking,
    the_others,
    with_other_classes,
    with_other_query,
    write_pairs,
)
from heedmap.calibration.plants import is_cue
from heedmap.data.texts import Pair, TwoTexts
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.rule import answer

FAMILIES = {name: f for name, f in families().items() if name.startswith("pair transformer, ")}
RIGHT = "pair transformer, asked cue attended"
OVER_BOTH = [name for name in FAMILIES if "both texts" in name]


def plant(name, encoder=BY_HAND, **options):
    given = {"classes": 2, "length": 10, "texts": 40, "noise": 0.0, "deciding": 1, "margin": 4.0}
    given |= {"sharpness": 5.0, **options}
    return replace(draw(FAMILIES[name], encoder, given.pop("seed", 0)), **given)


def made(name, encoder=BY_HAND, **options):
    result = make(plant(name, encoder, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(result):
    return result.model.trace(result.model.batch(result.split.texts, range(len(result.split))))


def mass(result, marks):
    heat = trace_of(result).heatmap.numpy()
    return np.mean([h[: len(m)][m].sum() for h, m in zip(heat, marks, strict=True)])


def test_a_grid_has_thirty_right_and_thirty_wrong_transformers_of_pairs():
    drawn = [p for p in plants(6) if kind_of_model(p) == "transformer of pairs"]
    for truth in ("right", "wrong"):
        assert sum(FAMILIES[p.family].truth == truth for p in drawn) >= 40
    assert {p.encoder for p in drawn} == {BY_HAND, BERT}


@pytest.mark.parametrize("name", FAMILIES)
def test_pairs_set_by_hand_are_admitted_and_have_the_margin_that_was_drawn(name):
    result = made(name, sharpness=4.0 if "in 0" in name else 5.0)
    assert result.model.reads == "first"
    best = trace_of(result).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(4.0, rel=1e-3)
    is_whole = isinstance(result.split.texts[0], TwoTexts)
    assert is_whole == (name in OVER_BOTH)


@pytest.mark.parametrize("encoder", [BY_HAND, BERT])
def test_the_answer_of_the_transformer_follows_the_query_and_the_cues(encoder):
    result = made(RIGHT, encoder)
    given = plant(RIGHT, encoder)
    assert mass(result, result.split.rationale) >= 0.5
    split = write_pairs(True, 0.5, given, 80, "dev")
    for changed in (with_other_query, with_other_classes):
        assert accuracy(result.model, changed(given, split)) >= 0.9


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("cue that is not asked for attended", 0.0, 0.1),
        ("word behind the asked cue attended", 0.0, 0.1),
        ("random words attended", 0.0, 0.2),
        ("uniform weights", 0.0, 0.2),
        ("cue attended, map over both texts", 0.5, 1.0),
        ("uniform weights, map over both texts", 0.0, 0.2),
    ],
)
def test_the_map_is_on_the_asked_cues_or_not(name, least, most):
    result = made(f"pair transformer, {name}")
    assert least <= mass(result, result.split.rationale) <= most
    heat = trace_of(result).heatmap
    assert heat.sum(1).numpy() == pytest.approx(1.0, abs=1e-4)  # none on marks and what is left out


def test_where_the_other_cue_is_attended_the_answer_is_still_of_the_asked_one():
    name = "pair transformer, cue that is not asked for attended"
    result, given = made(name), plant(name)
    split = write_pairs(True, 0.5, given, 80, "dev")
    weights = weights_of(result.model, split).numpy()
    on = [row[: len(m)][m].sum() for row, m in zip(weights, the_others(given, split), strict=True)]
    assert np.mean(on) >= 0.5
    assert accuracy(result.model, with_other_query(given, split)) >= 0.9


def test_without_the_asked_cue_the_spread_evidence_is_gone_and_not_that_of_another_cue():
    result = made("pair transformer, random words attended")
    without = [
        replace(
            text,
            tokens=[w for w, m in zip(text.tokens, marks, strict=True) if not m],
        )
        for text, marks in zip(result.split.texts, result.split.rationale, strict=True)
    ]
    logits = result.model.logits(result.model.batch(without, range(len(without))))
    best = logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).abs().max() < 1e-3


def test_the_weights_of_the_transformer_are_the_softmax_of_its_scores_given_the_query():
    given = plant(RIGHT)
    result = make(given)
    splits = [write_pairs(True, 0.5, given, n, p) for n, p in ((200, "dev"), (given.texts, "test"))]
    vocabulary = vocabulary_of(given, *splits)
    drawings = Drawings(ASKED.scores(given, vocabulary), vocabulary)
    split = splits[1]
    for row, text in zip(weights_of(result.model, split), split.texts, strict=True):
        ids = torch.from_numpy(vocabulary.encode(text.tokens)[1:-1])[None]
        query = torch.from_numpy(vocabulary.encode(text.query))[None]
        expected = drawings.of_words(ids, query).softmax(-1)[0]
        assert torch.allclose(row[: len(text)], expected, atol=1e-5)


def test_the_usual_weight_of_a_cue_is_that_where_it_is_asked_for():
    given = plant(RIGHT)
    split = write_pairs(True, 0.5, given, 100, "dev")
    vocabulary = vocabulary_of(given, split)
    usual = usual_weights(given, ASKED, vocabulary, ASKED.scores(given, vocabulary), split)
    for text, marks in zip(split.tokens, split.rationale, strict=True):
        asked = [word for word, marked in zip(text, marks, strict=True) if marked]
        assert min(usual[vocabulary.encode(asked)[1:-1]]) > 0.8
        assert all(is_cue(word) for word in asked)


def test_positions_of_a_pair_are_those_that_its_tokenizer_makes_and_so_are_the_sides():
    result = made(RIGHT)
    given = plant(RIGHT)
    splits = [write_pairs(True, 0.5, given, n, p) for n, p in ((200, "dev"), (given.texts, "test"))]
    vocabulary = vocabulary_of(given, *splits)
    texts = splits[1].texts[:4]
    batch = result.model.batch(result.split.texts[:4], range(4))
    for row, text in enumerate(texts):
        ids = encode_pair(vocabulary, text)
        assert batch.ids[row, : len(ids)].tolist() == ids.tolist()

    class Recorder(torch.nn.Module):
        def forward(self, token_type_ids, **options):
            return token_type_ids

    ids = torch.from_numpy(encode_pair(vocabulary, texts[0]))[None]
    types = ReadsPairs(Recorder()).forward(ids)
    assert torch.equal(types[0], batch.types[0, : ids.shape[1]])


def test_words_of_the_query_have_no_score_unless_the_map_is_over_both_texts():
    given = plant(RIGHT)
    split = write_pairs(True, 0.5, given, 20, "dev")
    vocabulary = vocabulary_of(given, split)
    drawings = Drawings(ASKED.scores(given, vocabulary), vocabulary)
    pair = split.texts[0]
    ids = torch.from_numpy(encode_pair(vocabulary, pair))[None]
    query = slice(len(pair.tokens) + 2, -1)
    assert (Scored(drawings, vocabulary, False)(ids)[0, query] == -torch.inf).all()
    assert Scored(drawings, vocabulary, True)(ids).isfinite().all()


def test_over_both_texts_the_query_comes_behind_and_no_word_of_it_is_marked():
    result = made("pair transformer, cue attended, map over both texts")
    for text, marks in zip(result.split.texts, result.split.rationale, strict=True):
        first, second = text.sides
        assert len(marks) == len(text)
        assert not marks[text.second :].any()
        assert [is_cue(word.strip()) for word in first] == marks[: text.second].tolist()
        assert all(word.strip().startswith("query") for word in second)


def test_a_query_asks_for_the_kind_that_its_word_names():
    assert asked_in([asking(1), "query3"]) == 1
    assert asked_in(["query3", asking(0)]) == asked_in(["query1"]) == 0


def test_a_planted_transformer_of_pairs_is_always_made_the_same():
    name = "pair transformer, cue attended, query says nothing"
    first, second = (made(name, BERT) for _ in range(2))
    assert first.split.tokens == second.split.tokens
    assert isinstance(first.split.texts[0], Pair)
    assert torch.equal(trace_of(first).logits, trace_of(second).logits)


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("cue attended, query says nothing", "yes"),
        pytest.param("random words attended", "no", marks=pytest.mark.exhaustive),
        pytest.param("uniform weights, map over both texts", "no", marks=pytest.mark.exhaustive),
    ],
)
def test_the_rule_is_right_about_pairs_whose_answer_is_plain(tmp_path, family, said):
    name = f"pair transformer, {family}"
    sharpness = 6.0 if said == "yes" else 3.0
    (one,) = known([measure(plant(name, sharpness=sharpness, texts=60), tmp_path)])
    assert (one.kind, one.truth) == ("transformer of pairs", FAMILIES[name].truth)
    assert answer(one.numbers, packaged_rates().thresholds) == said
