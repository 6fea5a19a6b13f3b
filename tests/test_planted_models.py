"""Planted models: what they attend to and what decides is what their kind says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.calibration.by_hand import planted_by_hand, scores_by_values
from heedmap.calibration.plants import (
    LEAST_TEXTS,
    LEAST_WORDS,
    LONGEST_TEXT,
    Design,
    Plant,
    check_texts,
    number_of,
    scores_of,
    vocabulary_of,
    with_other_cues,
    write_texts,
)
from heedmap.data.corpus import Split

SHARE = {
    **dict.fromkeys(["faithful", "proportional"], 1.0),
    **dict.fromkeys(["irrelevant", "deceptive", "reversed", "uniform"], 0.0),
    "partly": 0.5,
}
KINDS = [*SHARE]
HALF = Design("partly", 0.5)


def plant(**options):
    return Plant("a family", "by hand", options.pop("seed", 0), **options)


def made(kind, count=60, **options):
    """The model, its texts, their trace, and where the cues are (as a mask like the trace's)."""
    given, design = plant(**options), Design(kind, SHARE[kind])
    split = write_texts(given, count, "test", design)
    model = planted_by_hand(given, design, split, vocabulary_of(given, split))
    trace = model.trace(model.batch(split.texts, range(count)))
    gold = torch.zeros_like(trace.mask)
    for row, marks in zip(gold, split.rationale, strict=True):
        row[: len(marks)] = torch.from_numpy(marks)
    return model, split, trace, gold


def answers_under(model, trace, weights):
    return model.predict(trace, weights[None, :, None].to(trace.attention))[0].argmax(-1)


def alone(marks):
    """All weight, evenly, on the marked positions."""
    return marks / marks.sum(-1, keepdim=True)


def after(gold):
    return torch.cat([torch.zeros_like(gold[:, :1]), gold[:, :-1]], dim=1)


# --- texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("deciding", "opposing"), [(1, False), (1, True), (3, False), (3, True)])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_rationale_marks_the_deciding_words_which_stand_apart_and_never_last(
    classes, deciding, opposing
):
    split = write_texts(plant(classes=classes, deciding=deciding, opposing=opposing), 100, "test")
    assert np.bincount(split.labels).tolist() == [100 // classes] * classes
    assert split.labels.tolist() != [i % classes for i in range(100)]
    for tokens, marks, label in zip(split.tokens, split.rationale, split.labels, strict=True):
        assert marks.tolist() == [word.startswith("cue") for word in tokens]
        assert len(tokens) >= LEAST_WORDS
        assert not marks[-1]
        assert not (marks[1:] & marks[:-1]).any()
        of = [int(word[3]) for word in tokens if word.startswith("cue")]
        assert of.count(label) == deciding
        assert len(of) == deciding + (opposing and deciding > 1)
        assert max(of) < classes


def test_texts_are_those_of_their_seed_and_part():
    def texts(seed, part):
        return write_texts(plant(seed=seed), 20, part).tokens

    assert texts(0, "test") == texts(0, "test")
    assert texts(0, "test") != texts(0, "train")
    assert texts(0, "test") != texts(1, "test")
    assert np.mean([len(text) for text in write_texts(plant(length=30), 300, "test").tokens]) == (
        pytest.approx(30, abs=1)
    )


def test_words_are_planted_into_a_users_texts_and_long_ones_are_cut():
    own = Split(["a", "b"], [["u"] * 9, ["v"] * 200], np.array([0, 1]))
    split = write_texts(plant(), 10, "test", host_texts=own)
    assert own.tokens == [["u"] * 9, ["v"] * 200]
    assert sorted({len(text) for text in split.tokens}) == [9, LONGEST_TEXT]
    for tokens, marks in zip(split.tokens, split.rationale, strict=True):
        assert marks.sum() == 1
        assert len({word for word in tokens if not word.startswith("cue")}) == 1


def test_too_few_long_texts_to_plant_on_are_refused_with_the_least_numbers():
    texts = [["w"] * LEAST_WORDS] * LEAST_TEXTS + [["w"] * (LEAST_WORDS - 1)] * 50
    split = Split([str(i) for i in range(len(texts))], texts, np.zeros(len(texts), dtype=np.int64))
    assert len(check_texts(split, "mine.csv")) == LEAST_TEXTS
    with refused("mine.csv", f"{LEAST_TEXTS} texts of {LEAST_WORDS} words", "99 of 149"):
        check_texts(split.take(range(1, 150)), "mine.csv")


def test_other_cues_are_those_of_the_next_class():
    split = Split(["a"], [["cue0c", "w", "cue2a"]], np.array([2]), [np.array([True, False, True])])
    other = with_other_cues(plant(classes=3), split)
    assert other.tokens == [["cue1c", "w", "cue0a"]]
    assert other.labels.tolist() == [0]


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.25, 2), (0.5, 4), (0.75, 6), (1.0, 8)])
def test_the_share_of_a_partly_faithful_plant_is_that_of_its_texts(share, count):
    given, design = plant(deciding=2), Design("partly", share)
    assert sum(design.is_attended(given, k) for k in range(given.cues)) == count
    split = write_texts(given, 1000, "test", design)
    kinds = [
        {design.is_attended(given, number_of(word)) for word in text if word.startswith("cue")}
        for text in split.tokens
    ]
    assert all(len(kind) == 1 for kind in kinds)  # a text has deciding words of one kind
    assert np.mean([kind == {True} for kind in kinds]) == pytest.approx(share, abs=0.05)


# --- what decides -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_deciding_words_decide_and_those_of_another_class_change_the_answer(kind, classes):
    given = plant(classes=classes, sharpness=4.0)
    model, split, trace, _ = made(kind, 90, classes=classes, sharpness=4.0)
    assert (trace.predicted.numpy() == split.labels).mean() > 0.9
    other = with_other_cues(given, split)
    again = model.trace(model.batch(other.texts, range(90)))
    assert (again.predicted.numpy() == other.labels).mean() > 0.9


@pytest.mark.parametrize("margin", [1.5, 12.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_median_margin_is_the_plants(kind, margin):
    _, _, trace, _ = made(kind, margin=margin, classes=3)
    best = trace.logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(margin, rel=1e-4)


@pytest.mark.parametrize("kind", ["faithful", "reversed", "uniform", "proportional"])
def test_the_answer_is_read_from_the_states_of_the_deciding_words(kind):
    model, split, trace, gold = made(kind, noise=0.001)
    assert answers_under(model, trace, alone(gold)).tolist() == split.labels.tolist()
    # All states but theirs say nothing of the label.
    rest = answers_under(model, trace, alone(trace.mask & ~gold)).numpy()
    assert (rest == split.labels).mean() < 0.75


def test_the_answer_of_a_deceptive_plant_is_read_from_the_states_after_the_deciding_words():
    model, split, trace, gold = made("deceptive", noise=0.001)
    assert answers_under(model, trace, alone(after(gold))).tolist() == split.labels.tolist()
    rest = answers_under(model, trace, alone(trace.mask & ~after(gold))).numpy()
    assert (rest == split.labels).mean() < 0.75


def test_under_any_weights_an_irrelevant_plant_answers_the_same():
    model, _, trace, _ = made("irrelevant", classes=3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        scores = 3 * torch.randn(trace.mask.shape, generator=generator)
        weights = scores.masked_fill(~trace.mask, -torch.inf).softmax(-1)
        logits = model.predict(trace, weights[None, :, None])[0]
        assert torch.allclose(logits, trace.logits, atol=1e-4)


def test_the_margin_of_an_irrelevant_plant_does_not_depend_on_the_texts_length():
    _, _, trace, _ = made("irrelevant", noise=0.0)
    margins = trace.logits.diff(dim=-1).abs()
    assert trace.mask.sum(-1).unique().numel() > 5
    assert margins.min().item() == pytest.approx(margins.max().item(), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_answered_alone_as_among_others(kind):
    model, split, trace, _ = made(kind, 12, classes=3)
    for i, text in enumerate(split.texts):
        alone = model.logits(model.batch([text], [0]))[0]
        assert torch.allclose(alone, trace.logits[i], atol=1e-4)


def test_of_a_partly_faithful_plant_either_holds_in_its_share_of_the_texts():
    model, split, trace, gold = made("partly", 200)
    words = [next(w for w in text if w.startswith("cue")) for text in split.tokens]
    attended = torch.tensor([HALF.is_attended(plant(), number_of(word)) for word in words])
    even = alone(trace.mask & ~gold)
    moved = (model.predict(trace, even[None, :, None])[0] - trace.logits).abs().amax(-1)
    assert (moved[attended] > 1).all()
    assert moved[~attended].max() < 1e-3
    mass = (trace.heatmap * gold).sum(-1)
    assert mass[attended].min() > 0.5
    assert mass[~attended].median() < 0.3


# --- what is attended to ----------------------------------------------------------------------------------


def mass_on_gold(kind, **options):
    _, _, trace, gold = made(kind, **options)
    return (trace.heatmap * gold).sum(-1), (trace.heatmap * after(gold)).sum(-1), trace


def test_a_faithful_map_is_on_the_deciding_words():
    """A score of 4 above others, of about 15: e⁴ / (e⁴ + 14) = .8."""
    mass, _, _ = mass_on_gold("faithful", sharpness=4.0)
    assert mass.mean() == pytest.approx(0.79, abs=0.05)
    assert mass_on_gold("faithful", sharpness=2.0)[0].mean() == pytest.approx(0.34, abs=0.06)


def test_a_deceptive_map_is_on_the_words_after_them():
    mass, following, _ = mass_on_gold("deceptive", sharpness=4.0)
    assert following.mean() == pytest.approx(0.79, abs=0.05)
    assert mass.max() < 0.1


def test_a_reversed_map_is_on_all_words_but_them():
    mass, _, trace = mass_on_gold("reversed", sharpness=4.0)
    assert mass.max() < 0.01
    rest = trace.heatmap[trace.heatmap > 0.01] * trace.mask.sum(-1).float().mean()
    assert rest.mean() == pytest.approx(1.0, abs=0.1)


def test_a_uniform_map_is_even():
    _, _, trace = mass_on_gold("uniform")
    even = trace.mask / trace.mask.sum(-1, keepdim=True)
    assert torch.allclose(trace.heatmap, even.to(trace.heatmap), atol=1e-7)


def test_an_irrelevant_maps_weights_know_nothing_of_the_deciding_words():
    shares = [
        (mass * trace.mask.sum(-1)).mean().item()
        for mass, _, trace in (mass_on_gold("irrelevant", seed=seed) for seed in range(12))
    ]
    assert np.mean(shares) == pytest.approx(1.0, abs=0.3)  # as an even map's


def test_a_proportional_maps_weights_are_the_sizes_of_what_the_words_add():
    model, split, trace, _ = made("proportional")
    size = model.embedding.weight.abs().sum(-1)
    for row, text in enumerate(split.tokens):
        sizes = size[model.vocabulary.encode(text)[1:-1]]
        heat = trace.heatmap[row][: len(text)]
        assert torch.allclose(heat, sizes / sizes.sum(), atol=1e-5)
    assert scores_by_values(np.array([[[0.5, -1.5]], [[0.0, 0.0]]]))[0].tolist() == [
        np.log(2.0),
        0.0,
    ]


def test_the_scores_of_a_plant_do_not_depend_on_the_texts():
    given = plant()
    vocabulary = vocabulary_of(given, write_texts(given, 30, "test", HALF))
    scores = scores_of(given, HALF, vocabulary)
    assert np.array_equal(scores, scores_of(given, HALF, vocabulary))
    assert not np.allclose(scores, scores_of(replace(given, seed=1), HALF, vocabulary))
