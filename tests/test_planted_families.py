"""Families of planted models: what is said of their maps is so, and plants that are not so are not admitted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.calibration.construction import mass_on
from heedmap.calibration.counter_evidence import hints_only, is_hint
from heedmap.calibration.everywhere import a_third
from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.plants import OWN, Drawing, Plant, is_cue, labels_of, with_other_cues
from heedmap.calibration.trained import PlantedTraining
from heedmap.calibration.two_words import is_first, without_first, without_second
from heedmap.calibration.uneven_classes import with_cues, without_cues
from heedmap.calibration.xor import is_left, is_right, with_both_others, with_other_left
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.normalisers import normalise
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings

FAMILIES = families()
SINGLE = {name: f for name, f in FAMILIES.items() if {"by hand", *OWN} & {*f.makers}}
SET_BY_HAND = [name for name, family in SINGLE.items() if "by hand" in family.makers]


def plant(family, encoder="by hand", **options):
    given = {"sharpness": 5.0, "noise": 0.01, "length": 12, "texts": 60, "margin": 4.0, **options}
    return replace(draw(FAMILIES[family], encoder, given.pop("seed", 0)), **given)


def made(family, encoder="by hand", **options):
    result = make(plant(family, encoder, **options))
    assert result.admitted, result.why_not
    return result


def answers(model, split):
    return model.logits(model.batch(split.texts, range(len(split)))).argmax(-1).numpy()


def accuracy(model, split):
    return (answers(model, split) == split.labels).mean()


def marks(split, which):
    return [np.array([which(word) for word in text]) for text in split.tokens]


def trace_of(model, split):
    return model.trace(model.batch(split.texts, range(len(split))))


# --- the grid ---------------------------------------------------------------------------------------------


def test_every_family_says_how_it_is_made_and_why_its_truth_holds():
    assert len(SINGLE) >= 30
    for name, family in FAMILIES.items():
        assert family.name == name
        assert family.truth in ("right", "words", "part", "between", "wrong", "open")
        assert family.recipe.endswith(".")
        assert family.reason.endswith(".")


@pytest.mark.parametrize("encoder", ["by hand", *OWN])
def test_a_grid_has_forty_right_and_forty_wrong_plants_of_every_encoder(encoder):
    truths = [FAMILIES[p.family].truth for p in plants(8) if p.encoder == encoder]
    assert truths.count("right") >= 40
    assert truths.count("wrong") >= 40
    assert {"between", "part", "open"} <= set(truths) or encoder not in ("by hand", "lstm")


def test_dot_scores_and_sparse_normalisers_are_among_right_and_wrong_plants():
    every = [p for p in plants(8) if p.encoder == "lstm"]
    for truth in ("right", "wrong"):
        group = [p for p in every if FAMILIES[p.family].truth == truth]
        assert {p.score for p in group} >= {"fixed", "additive", "dot"}
        assert {p.normaliser for p in group} == {"softmax", "sparsemax", "entmax15"}


def test_difficulty_is_drawn_by_the_seed_and_within_the_familys_choices():
    family = FAMILIES["cue attended"]
    drawn = [draw(family, "lstm", seed) for seed in range(60)]
    assert drawn[0] == draw(family, "lstm", 0)
    assert {p.classes for p in drawn} == {2, 3, 5, 20}
    assert {p.margin for p in drawn} == {1.5, 3.0, 6.0, 12.0}
    assert {p.sharpness for p in drawn} == {3.0, 4.0, 5.0, 6.0}
    assert {p.texts for p in drawn if p.classes == 20} == {200}
    assert {draw(FAMILIES["XOR, both attended"], "gru", s).classes for s in range(10)} == {2}


def test_what_makes_a_model_easy_varies_independently():
    # Not the length, which leaves room for the cues.
    names = ("classes", "margin", "deciding", "opposing", "noise", "sharpness")
    drawn = [draw(FAMILIES["cue attended"], "by hand", seed) for seed in range(300)]
    columns = np.array([[float(getattr(p, name)) for name in names] for p in drawn])
    assert np.abs(np.corrcoef(columns.T) - np.eye(len(names))).max() < 0.2


def test_plants_that_cannot_be_made_are_refused():
    with refused("'none such'"):
        make(Plant("none such", "lstm", 0))
    with refused("cue attended", "by hand, none, average, lstm", "'elmo'"):
        make(Plant("cue attended", "elmo", 0))
    with refused("cue attended, lstm in sst, seed 0", "'sst'"):
        make(Plant("cue attended", "lstm", 0, host="sst"))


@pytest.mark.parametrize("encoder", ["by hand", "cnn"])
def test_a_plant_is_always_made_the_same(encoder):
    given = {"classes": 2, "score": "fixed", "normaliser": "softmax"}
    first, second = (made("cue attended", encoder, **given) for _ in range(2))
    assert first.split.tokens == second.split.tokens
    logits = [trace_of(m.model, m.split).logits for m in (first, second)]
    assert torch.equal(*logits)
    other = made("cue attended", encoder, seed=1, **given)
    assert other.split.tokens != first.split.tokens


@pytest.mark.parametrize("name", SET_BY_HAND)
def test_plants_set_by_hand_are_what_they_should_be_and_have_the_margin_that_was_drawn(name):
    given = plant(
        name, margin=3.0, deciding=1, sharpness=draw(FAMILIES[name], "by hand", 0).sharpness
    )
    result = make(given)
    assert result.admitted, result.why_not
    best = trace_of(result.model, result.split).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(3.0, rel=1e-3)
    assert len(result.split) == 60


def test_a_map_that_is_hardly_on_the_cues_is_not_admitted():
    result = make(plant("cue attended", sharpness=0.5))
    assert not result.admitted
    assert result.why_not.endswith("on the cues")


def test_noise_louder_than_the_cues_is_not_admitted():
    result = make(plant("cue attended", noise=2.0))
    assert not result.admitted
    assert result.why_not.startswith("accuracy")


def test_a_tanh_of_small_values_changes_nothing():
    model = made("evidence everywhere, different", "average").model
    states = model.encode(model.embed(batch := model.batch([model.vocabulary.words], [0])), batch)[
        0
    ]
    values = model.embedding(batch.ids)[0, 1:-1] @ model.encoder.projection.weight.T
    assert torch.allclose(states, values, rtol=1e-4, atol=1e-9)


# --- training ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_teaching_moves_scores_by_the_distance_from_the_target_weights(normaliser):
    vocabulary = Vocabulary(["a", "b", "c"])
    settings = ModelSettings(
        encoder="none", score="dot", normaliser=normaliser, embedding_size=8, hidden_size=4
    )
    torch.manual_seed(0)
    model = TextClassifier(settings, vocabulary, ["0", "1"])
    teacher = Drawing(np.array([[0.0, 0.0]] * 4 + [[3.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
    texts = model.encoded([["a", "b", "c"], ["c", "b"]], np.array([0, 1]))
    training = PlantedTraining(
        model, texts, texts, TrainSettings(), lambda batch: teacher(batch.ids[:, 1:-1])
    )
    training.batch_loss = lambda outputs, weights, batch: outputs.sum() * 0
    batch = texts.batch([0, 1])
    scores = model.scores(model.encode(model.embed(batch), batch), batch)
    target = normalise(teacher(batch.ids[:, 1:-1]), batch.mask, normaliser)
    distance = normalise(scores, batch.mask, normaliser) - target
    expected = torch.autograd.grad((distance.detach() * scores).sum(), model.score.vector.weight)[0]
    training.loss(model, batch).backward()
    assert torch.allclose(model.score.vector.weight.grad, expected, atol=1e-6)
    assert expected.abs().max() > 0


@pytest.mark.parametrize(("score", "normaliser"), [("dot", "sparsemax"), ("additive", "softmax")])
def test_learned_scores_come_to_be_the_plants(score, normaliser):
    result = made("cue attended", "lstm", classes=2, deciding=1, score=score, normaliser=normaliser)
    assert not isinstance(result.model.score, Drawing)
    assert mass_on(result.model, result.split, result.split.rationale).mean() > 0.8


@pytest.mark.parametrize("encoder", ["average", "small-cnn"])
def test_trained_plants_answer_by_the_cues_and_have_the_margin_that_was_drawn(encoder):
    given = {"classes": 3, "deciding": 1, "score": "fixed", "normaliser": "softmax"}
    result = made("cue attended, saturated", encoder, margin=30.0, **given)
    exchanged = with_other_cues(plant("cue attended, saturated", encoder, **given), result.split)
    assert accuracy(result.model, exchanged) > 0.9
    best = trace_of(result.model, result.split).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(30, rel=1e-3)


def test_flat_predictions_are_hardly_above_a_guess():
    result = make(draw(FAMILIES["cue attended, flat predictions"], "by hand", 0))
    lead = trace_of(result.model, result.split).logits.softmax(-1).amax(-1) - 1 / len(
        result.model.classes
    )
    assert 0 < lead.max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["uniform", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in ("random", "shuffled"))],
)
def test_replaced_weights_are_not_the_learned_ones_and_the_cues_answer_still(kind):
    given = {
        "classes": 2,
        "score": "additive",
        "normaliser": "softmax",
        "sharpness": 1.0,
        "deciding": 3,
    }
    result = made(f"learned, then {kind} weights", "lstm", **given)
    assert accuracy(result.model, result.split) > 0.9
    mass = mass_on(result.model, result.split, result.split.rationale).mean()
    assert mass < 1.5 * np.mean([m.mean() for m in result.split.rationale])
    weights = trace_of(result.model, result.split).attention[0, 0]
    assert (weights[weights > 0].std() < 1e-6) == (kind == "uniform")


# --- constructions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["equal", "nearly equal", "different", "weights frozen"])
def test_where_evidence_is_everywhere_any_third_of_a_text_answers_and_classes_share_no_words(how):
    result = made(f"evidence everywhere, {how}", "none", classes=3)
    words = [
        {
            w
            for text, y in zip(result.split.tokens, result.split.labels, strict=True)
            if y == c
            for w in text
        }
        for c in range(3)
    ]
    assert sum(len(w) for w in words) == len(set.union(*words))
    assert accuracy(result.model, a_third(None, result.split)) == 1
    backwards = replace(result.split, tokens=[text[::-1] for text in result.split.tokens])
    assert accuracy(result.model, a_third(None, backwards)) == 1


@pytest.mark.parametrize(
    ("attended", "first", "second"), [("both", 1, 1), ("one", 1, 0), ("neither", 0, 0)]
)
@pytest.mark.parametrize("encoder", ["by hand", "average"])
def test_of_two_sufficient_words_either_answers_and_the_map_is_where_it_is_said(
    encoder, attended, first, second
):
    given = {"classes": 3, "score": "fixed", "normaliser": "softmax", "noise": 0.0}
    result = made(f"two sufficient words, {attended} attended", encoder, **given)
    its = plant(f"two sufficient words, {attended} attended", encoder, **given)
    for change in (without_first, without_second):
        assert accuracy(result.model, change(its, result.split)) > 0.9
    neither = without_second(its, without_first(its, result.split))
    assert accuracy(result.model, neither) < 0.6
    on_first = mass_on(
        result.model, result.split, marks(result.split, lambda w: is_first(its, w))
    ).mean()
    on_second = mass_on(
        result.model,
        result.split,
        marks(result.split, lambda w: is_cue(w) and not is_first(its, w)),
    ).mean()
    assert (on_first > 0.25) == first
    assert (on_second > 0.25) == second


@pytest.mark.parametrize("attended", ["both", "one", "neither"])
def test_xor_needs_both_words_and_the_map_is_where_it_is_said(attended):
    name = f"XOR, {attended} attended"
    result = made(name, noise=0.01, texts=100)
    split = result.split
    assert accuracy(result.model, with_other_left(plant(name), split)) > 0.9
    assert accuracy(result.model, with_both_others(plant(name), split)) > 0.9
    for side in (is_left, is_right):
        alone = replace(
            split, tokens=[["word0" if side(w) else w for w in t] for t in split.tokens]
        )
        assert 0.3 < accuracy(result.model, alone) < 0.7
    left, right = (
        mass_on(result.model, split, marks(split, side)).mean() for side in (is_left, is_right)
    )
    assert (left > 0.25) == (attended != "neither")
    assert (right > 0.25) == (attended == "both")


def test_a_trained_cnn_learns_xor():
    name = "XOR, both attended"
    result = made(name, "cnn", score="fixed", normaliser="softmax")
    assert accuracy(result.model, with_other_left(plant(name, "cnn"), result.split)) > 0.9


@pytest.mark.parametrize("encoder", ["by hand", "none"])
def test_a_class_without_words_of_its_own_is_answered_where_the_cue_is_absent(encoder):
    result = made("a cue whose absence decides", encoder, deciding=1)
    split = result.split
    assert [m.any() for m in split.rationale] == (split.labels == 0).tolist()
    its = plant("a cue whose absence decides", encoder)
    assert (answers(result.model, without_cues(its, split)) == 1).mean() > 0.9
    assert (answers(result.model, with_cues(its, split)) == 0).mean() > 0.9
    assert mass_on(result.model, split, split.rationale).mean() > 0.5


@pytest.mark.parametrize(
    "encoder", ["by hand", "none", "average", pytest.param("gru", marks=pytest.mark.exhaustive)]
)
def test_highlighted_counter_evidence_speaks_for_another_class(encoder):
    result = made("counter-evidence attended", encoder, classes=3, deciding=1)
    split, model = result.split, result.model
    assert mass_on(model, split, marks(split, is_hint)).mean() > 0.5
    hints = hints_only(plant("counter-evidence attended", encoder), split)
    assert not (hints.labels == split.labels).any()
    assert accuracy(model, hints) > 0.9
    without = replace(
        split, tokens=[["word0" if is_hint(w) else w for w in t] for t in split.tokens]
    )
    assert accuracy(model, without) >= accuracy(model, split) - 0.05


@pytest.mark.parametrize("encoder", ["by hand", "average"])
def test_the_minoritys_cues_are_not_highlighted_but_decide(encoder):
    result = made("a minority missed", encoder, classes=3, sharpness=3.0, texts=200, deciding=1)
    split = result.split
    assert np.bincount(split.labels)[0] == 30
    rare = split.labels == 0
    assert accuracy(result.model, split.take(np.flatnonzero(rare))) > 0.9
    mass = mass_on(result.model, split, split.rationale)
    assert mass[~rare].mean() > 0.5
    assert mass[rare].mean() < 0.1


@pytest.mark.exhaustive
@pytest.mark.parametrize("encoder", ["by hand", pytest.param("gru", marks=pytest.mark.slow)])
def test_weights_that_matter_on_words_that_do_not(encoder):
    result = made("weights matter, words do not", encoder, classes=2, deciding=1, sharpness=6.0)
    trace, marked = trace_of(result.model, result.split), result.split.rationale
    behind = [np.append(False, m[:-1]) for m in marked]
    assert mass_on(result.model, result.split, behind).mean() > 0.5
    # Under even weights most answers are others; with other words behind the cues they are the same.
    even = (trace.mask / trace.mask.sum(1, keepdim=True))[None, :, None]
    moved = result.model.predict(trace, even)[0].argmax(-1)
    assert (moved != trace.predicted).float().mean() > 0.5
    other = [
        ["word7" if b else w for w, b in zip(text, m, strict=True)]
        for text, m in zip(result.split.tokens, behind, strict=True)
    ]
    assert accuracy(result.model, replace(result.split, tokens=other)) > 0.9


@pytest.mark.parametrize("encoder", ["by hand", pytest.param("lstm", marks=pytest.mark.slow)])
def test_words_that_matter_under_weights_that_do_not(encoder):
    result = made("words matter, weights do not", encoder, classes=2, deciding=1)
    trace = trace_of(result.model, result.split)
    assert mass_on(result.model, result.split, result.split.rationale).mean() > 0.5
    even = (trace.mask / trace.mask.sum(1, keepdim=True))[None, :, None]
    moved = result.model.predict(trace, even)[0].softmax(-1) - trace.logits.softmax(-1)
    assert moved.abs().max(-1).values.mean() < 0.05
    exchanged = with_other_cues(
        plant("words matter, weights do not", encoder, classes=2), result.split
    )
    assert accuracy(result.model, exchanged) > 0.9


def test_labels_are_as_even_as_can_be_and_in_random_order():
    labels = labels_of(Plant("a", "lstm", 0, classes=3), 31, np.random.default_rng(0))
    assert sorted(np.bincount(labels).tolist()) == [10, 10, 11]
    assert labels.tolist() != sorted(labels.tolist())
