"""Planted bags: the deciding items decide, and the weights are where the family says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.bags import (
    DECIDING,
    deciding_marks,
    items_of,
    rests_on_deciding,
    with_others,
    without_deciding,
)
from heedmap.calibration.choice import kind_of, known
from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.measure import measure
from heedmap.calibration.planted_bags import (
    BY_HAND,
    DIGITS,
    ONE_HOT,
    PICTURES,
    class_of,
    digit_of,
    digits_for,
    is_attended,
    is_deciding,
    usual_weights,
    with_other_digits,
    write_bags,
)
from heedmap.calibration.plants import FAITHFUL, Design, Plant
from heedmap.data.load import load
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.rule import answer

FAMILIES = {name: family for name, family in families().items() if "bags, " in name}
DRAWN = [name for name in FAMILIES if name.startswith("bags, ")]
PLAIN = Plant("bags, deciding items attended", ONE_HOT, 0, classes=3, deciding=2, opposing=True)


def plant(name, encoder=BY_HAND, **options):
    given = {"texts": 60, "length": 16, "deciding": 1, "margin": 4.0, "score": "fixed", **options}
    return replace(draw(FAMILIES[name], encoder, given.pop("seed", 0)), **given)


def made(name, encoder=BY_HAND, **options):
    result = make(plant(name, encoder, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(model, split):
    return model.trace(model.batch(split.texts, range(len(split))))


def mass(result):
    heat = trace_of(result.model, result.split).heatmap.numpy()
    pairs = zip(heat, result.split.rationale, strict=True)
    return np.mean([row[: len(m)][m].sum() for row, m in pairs if m.any()])


def digits_of(bag):
    return [digit_of(item) for item in bag]


# --- the bags ---------------------------------------------------------------------------------------------


def test_a_grid_has_thirty_right_and_thirty_wrong_bags_with_scores_that_are_learned():
    drawn = [p for p in plants(6) if kind_of(p) == "bags"]
    for truth in ("right", "wrong"):
        group = [p for p in drawn if FAMILIES[p.family].truth == truth]
        assert len(group) >= 60
        assert {p.score for p in group} == {"fixed", "gated", "additive", "dot"}
    assert {p.encoder for p in drawn} == {BY_HAND, ONE_HOT, PICTURES, *DECIDING}


def test_most_of_the_deciding_items_of_a_bag_are_of_its_class_and_one_is_of_another():
    split = write_bags(PLAIN, digits_for(PLAIN), 60, "test", FAITHFUL)
    for bag, label, marks in zip(split.tokens, split.labels, split.rationale, strict=True):
        deciding = [class_of(d) for d in digits_of(bag) if is_deciding(PLAIN, d)]
        assert len(deciding) == marks.sum() == 3
        assert deciding.count(label) == 2
    assert np.bincount(split.labels).tolist() == [20, 20, 20]


def test_a_fifth_of_the_bags_to_learn_from_have_no_deciding_item():
    split = write_bags(PLAIN, digits_for(PLAIN), 400, "train", FAITHFUL)
    assert np.mean([not marks.any() for marks in split.rationale]) == pytest.approx(0.2, abs=0.06)


def test_an_item_is_the_vector_of_its_digit():
    items = digits_for(PLAIN)
    (bag, *_) = write_bags(PLAIN, items, 3, "dev", FAITHFUL).tokens
    rows = np.array([items.vectors.row(item) for item in bag])
    assert items.vectors.vectors(rows).argmax(1).tolist() == digits_of(bag)
    assert items.digits[rows].tolist() == digits_of(bag)


def test_the_pictures_of_the_audit_are_others_than_those_to_learn_from():
    pictured = replace(PLAIN, encoder=PICTURES)
    items = digits_for(pictured)
    rows = {
        part: {
            items.vectors.row(item)
            for bag in write_bags(pictured, items, 30, part, FAITHFUL).tokens
            for item in bag
        }
        for part in ("train", "test")
    }
    assert not rows["train"] & rows["test"]
    vectors = [items.vectors.vectors(np.array(sorted(of))) for of in rows.values()]
    assert (np.abs(vectors[0][:, None] - vectors[1][None]).sum(-1) > 0).all()


def test_deciding_items_of_the_next_class_make_it_the_label():
    items = digits_for(PLAIN)
    split = write_bags(PLAIN, items, 20, "test", FAITHFUL)
    changed = with_other_digits(items, PLAIN, split)
    assert (changed.labels == (split.labels + 1) % 3).all()
    for before, after in zip(split.tokens, changed.tokens, strict=True):
        for old, new in zip(digits_of(before), digits_of(after), strict=True):
            expected = (old + 2) % 6 if is_deciding(PLAIN, old) else old
            assert new == expected


def test_in_a_partly_right_plant_a_share_of_the_bags_has_the_digits_that_draw_attention():
    split = write_bags(PLAIN, digits_for(PLAIN), 300, "test", Design("partly", 0.25))
    kinds = [
        {is_attended(d) for d in digits_of(bag) if is_deciding(PLAIN, d)} for bag in split.tokens
    ]
    assert {len(kind) for kind in kinds} == {1}
    assert np.mean([kind == {True} for kind in kinds]) == pytest.approx(0.25, abs=0.08)


# --- the models -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWN)
def test_plants_by_hand_are_what_they_should_be_and_have_the_margin_that_was_drawn(name):
    result = made(name, margin=3.0)
    best = trace_of(result.model, result.split).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(3.0, rel=1e-3)
    on = mass(result)
    if FAMILIES[name].truth == "right":
        assert on >= 0.5
    elif "attended in" not in name:
        assert on <= 0.25


def test_the_usual_weight_of_a_digit_is_the_mean_over_its_items():
    result = made("bags, deciding items attended", classes=2, sharpness=3.0)
    heat = trace_of(result.model, result.split).heatmap.numpy()
    usual = usual_weights(result.model, result.split)
    for digit in range(DIGITS):
        pairs = zip(heat, result.split.tokens, strict=True)
        weights = [row[i] for row, bag in pairs for i, d in enumerate(digits_of(bag)) if d == digit]
        assert usual[digit] == pytest.approx(np.mean(weights) if weights else 1.0, rel=1e-5)


def test_a_gated_score_is_taught_to_attend_to_the_deciding_items():
    result = made("bags, deciding items attended", ONE_HOT, classes=2, score="gated")
    assert result.model.settings.score == "gated"
    assert result.model.settings.encoder == "mlp"
    assert mass(result) >= 0.5


@pytest.mark.slow
def test_pictures_are_learned_with_uniform_weights():
    result = made("bags, uniform weights", PICTURES, classes=2, deciding=3, length=10)
    trace = trace_of(result.model, result.split)
    assert (trace.heatmap * trace.mask.sum(1, keepdim=True))[trace.mask].numpy() == pytest.approx(1)


def test_a_plant_is_always_made_the_same():
    first, second = (made("bags, uniform weights", classes=3) for _ in range(2))
    assert first.split.tokens == second.split.tokens
    assert torch.equal(*(trace_of(r.model, r.split).logits for r in (first, second)))


def test_the_items_of_a_corpus_are_known_by_their_digits():
    corpus = load("digit-bags", progress=False)
    items = items_of(corpus)
    split = corpus.splits["test"]
    marks = deciding_marks("digit-bags", split)
    assert all((m == r).all() for m, r in zip(marks, split.rationale, strict=True))
    rows = [items.vectors.row(item) for item in split.tokens[0]]
    assert items.digits[rows].tolist() == digits_of(split.tokens[0])
    nine = corpus.classes.index("nine")
    changed = without_deciding(Plant("", "digit-bags", 0), split)
    assert not any(9 in digits_of(bag) for bag in changed.tokens)
    assert (changed.labels == 1 - nine).all()
    others = with_others(Plant("", "digit-bags", 0), split, deciding=False)
    for before, after in zip(split.tokens, others.tokens, strict=True):
        assert [i for i in before if digit_of(i) == 9] == [i for i in after if digit_of(i) == 9]


@pytest.mark.slow
def test_a_model_of_a_corpus_answers_by_the_deciding_items_wherever_its_weights_are():
    given = plant("corpora of bags, uniform weights", "pos_neg", texts=120)
    result = make(given)
    assert result.admitted, result.why_not
    assert (
        rests_on_deciding(given, result.model, load("pos_neg", progress=False).splits["dev"]) == ""
    )
    assert result.split.rationale is not None


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("bags, deciding items attended", "yes"),
        pytest.param("bags, random items attended", "no", marks=pytest.mark.exhaustive),
        pytest.param(
            "bags, all items but the deciding ones attended", "no", marks=pytest.mark.exhaustive
        ),
        ("bags, uniform weights", "no"),
    ],
)
def test_the_rule_is_right_about_bags_whose_answer_is_plain(tmp_path, family, said):
    easy = {"classes": 3, "noise": 0.0, "sharpness": 5.0 if said == "yes" else 2.0}
    (one,) = known([measure(plant(family, **easy), tmp_path)])
    assert (one.kind, one.truth) == ("bags", FAMILIES[family].truth)
    assert answer(one.numbers, packaged_rates().thresholds) == said


def test_digits_that_decide_are_fewer_than_ten_whatever_the_number_of_classes():
    for drawn in (p for p in plants(8) if p.encoder in (BY_HAND, ONE_HOT, PICTURES)):
        assert 0 < sum(is_deciding(drawn, digit) for digit in range(DIGITS)) < DIGITS
