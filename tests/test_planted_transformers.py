"""Planted transformers: weights are where the family says, and words reach the answer by the way it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.families import draw, families, make
from heedmap.calibration.plants import (
    FAITHFUL,
    Drawing,
    is_cue,
    scores_of,
    spaced,
    vocabulary_of,
    write_texts,
)
from heedmap.calibration.trained_transformer import Lesson, on_words
from heedmap.calibration.transformer import planted_transformer
from heedmap.calibration.transformer_routes import BERT, BY_HAND, needs_the_rationale
from heedmap.calibration.xor import is_left, is_right

FAMILIES = {name: f for name, f in families().items() if {BY_HAND, BERT} & {*f.makers}}
DRAWN_TEXTS = {name: f for name, f in FAMILIES.items() if not f.on_corpora}
SET_BY_HAND = [name for name, family in FAMILIES.items() if BY_HAND in family.makers]
PAST = "transformer, answer past the attention"


def plant(name, encoder=BY_HAND, **options):
    given = {"classes": 2, "length": 12, "texts": 60, "noise": 0.0, "margin": 4.0, **options}
    return replace(draw(FAMILIES[name], encoder, given.pop("seed", 0)), **given)


def made(name, encoder=BY_HAND, **options):
    result = make(plant(name, encoder, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(result):
    return result.model.trace(result.model.batch(result.split.texts, range(len(result.split))))


def accuracy(logits, split):
    return float((logits.argmax(-1).numpy() == split.labels).mean())


def mass_on_rationale(result):
    heat = trace_of(result).heatmap.numpy()
    return np.mean(
        [h[: len(m)][m].sum() for h, m in zip(heat, result.split.rationale, strict=True)]
    )


def rows_on(result, places):
    """Weights of the last layer on some positions alone, as `Model.predict` takes them."""
    trace = trace_of(result)
    rows = places(trace.words).float()
    rows = rows / rows.sum(1, keepdim=True)
    return trace, rows[None, :, None].expand(1, *trace.attention.shape).contiguous()


def test_there_are_transformers_of_every_truth():
    for encoder in (BY_HAND, BERT):
        truths = {family.truth for family in FAMILIES.values() if encoder in family.makers}
        assert truths == {"right", "words", "part", "between", "wrong", "open"}


@pytest.mark.parametrize("name", SET_BY_HAND)
def test_transformers_set_by_hand_are_admitted_and_their_classifier_reads_one_row(name):
    drawn = draw(FAMILIES[name], BY_HAND, 0).sharpness
    result = made(name, sharpness=max(drawn, 4.0) if "cue" in name else drawn, deciding=1)
    assert result.model.reads == "first"
    assert len(result.split) == 60
    best = trace_of(result).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("transformer, cue attended", 0.5, 1.0),
        ("transformer, random words attended", 0.0, 0.2),
        ("transformer, word behind the cue attended", 0.0, 0.05),
        ("transformer, all words but the cue attended", 0.0, 0.01),
        ("transformer, evidence gathered in [SEP]", 0.0, 0.2),
        (f"{PAST}, cue attended", 0.5, 1.0),
    ],
)
def test_the_map_is_on_the_cues_or_not(name, least, most):
    assert least <= mass_on_rationale(made(name, sharpness=5.0, deciding=1)) <= most


def test_uniform_weights_are_the_same_on_all_words():
    trace = trace_of(made("transformer, uniform weights"))
    lengths = trace.mask.sum(1, keepdim=True)
    assert torch.allclose(trace.heatmap, trace.mask / lengths, atol=1e-5)


@pytest.mark.parametrize("encoder", [BY_HAND, BERT])
def test_past_the_attention_no_weights_change_the_answer(encoder):
    result = made(f"{PAST}, cue attended", encoder, sharpness=5.0, deciding=1)
    trace, rows = rows_on(result, lambda words: words >= 0)
    assert (result.model.predict(trace, rows)[0] - trace.logits).abs().max() < 1e-3
    assert accuracy(trace.logits, result.split) >= 0.9


@pytest.mark.parametrize("mark", ["[CLS]", "[SEP]"])
@pytest.mark.parametrize("encoder", [BY_HAND, pytest.param(BERT, marks=pytest.mark.exhaustive)])
def test_a_mark_that_gathered_the_evidence_gives_the_answer_alone(mark, encoder):
    result = made(f"transformer, evidence gathered in {mark}", encoder, deciding=1, sharpness=3.0)

    def at_mark(words):
        last = (words >= -1).sum(1) - 1
        place = torch.zeros_like(last) if mark == "[CLS]" else last
        return torch.arange(words.shape[1]) == place[:, None]

    trace, rows = rows_on(result, at_mark)
    assert accuracy(result.model.predict(trace, rows)[0], result.split) >= 0.9
    assert trace.attention.mean(1)[at_mark(trace.words)].mean() >= 0.25
    _, without = rows_on(result, lambda words: words >= 0)
    if encoder == BY_HAND:  # the words' own states say nothing
        assert result.model.predict(trace, without)[0].abs().max() < 1e-3


def test_the_evidence_of_a_cue_is_in_the_next_words_state():
    result = made("transformer, word behind the cue attended", sharpness=6.0, deciding=1)
    places = [int(m.argmax()) for m in result.split.rationale]

    def behind(words):
        return words == torch.tensor(places)[:, None] + 1

    trace, rows = rows_on(result, behind)
    assert accuracy(result.model.predict(trace, rows)[0], result.split) == 1.0


def test_a_trained_transformer_with_a_right_map_reads_the_answer_from_the_cues_states_alone():
    result = made("transformer, cue attended", BERT, sharpness=5.0, deciding=1, opposing=False)
    assert mass_on_rationale(result) >= 0.5
    cues = [torch.from_numpy(m) for m in result.split.rationale]

    def others(words):
        marked = torch.nn.utils.rnn.pad_sequence(cues, batch_first=True)
        return (words >= 0) & ~marked.gather(1, words.clamp(min=0))

    trace, rows = rows_on(result, others)
    assert accuracy(trace.logits, result.split) >= 0.9
    assert accuracy(result.model.predict(trace, rows)[0], result.split) <= 0.7


def test_a_transformer_that_has_the_answer_in_other_states_fails_the_check_of_right_maps():
    given = plant("transformer, random words attended", sharpness=3.0, deciding=1)
    split = write_texts(given, 60, "test")
    result = make(given)
    assert needs_the_rationale(given, result.model, split).endswith("from other words")


@pytest.mark.exhaustive
def test_the_exclusive_or_of_two_words_is_learned_and_neither_word_tells_the_class():
    result = made("transformer, XOR, both attended", BERT, sharpness=5.0, length=10)
    labels = result.split.labels
    for is_side in (is_left, is_right):
        bits = [
            next(int(w[-2]) for w in map(str.strip, t) if is_side(w)) for t in result.split.tokens
        ]
        agreement = (np.array(bits) == labels).mean()
        assert 0.3 < agreement < 0.7
    assert accuracy(trace_of(result).logits, result.split) >= 0.9


@pytest.mark.parametrize("encoder", [BY_HAND, BERT])
def test_where_evidence_is_everywhere_a_third_of_the_words_gives_the_answer(encoder):
    result = made("transformer, evidence everywhere, in all states", encoder, sharpness=4.0)
    thirds = [text[: len(text) // 3] for text in result.split.tokens]
    logits = result.model.logits(result.model.batch(thirds, range(len(thirds))))
    assert accuracy(logits, result.split) >= 0.9


def test_a_transformer_whose_map_is_right_in_half_of_the_texts():
    result = made("transformer, cue attended in 0.5 of the texts", sharpness=4.0, texts=200)
    heat = trace_of(result).heatmap.numpy()
    pairs = zip(heat, result.split.rationale, strict=True)
    on = np.array([h[: len(m)][m].sum() for h, m in pairs])
    assert np.mean(on > 0.5) == pytest.approx(0.5, abs=0.12)


def test_a_plant_is_always_made_the_same():
    options = {"sharpness": 5.0, "deciding": 1}
    first, second = (made("transformer, cue attended", BERT, **options) for _ in range(2))
    assert first.split.tokens == second.split.tokens
    assert torch.equal(trace_of(first).logits, trace_of(second).logits)


def test_texts_are_spaced_so_that_joined_they_are_the_text():
    result = made("transformer, cue attended", sharpness=5.0)
    text = result.split.tokens[0]
    assert "".join(text).split() == [word.strip() for word in text]
    assert [is_cue(w.strip()) for w in text] == result.split.rationale[0].tolist()


def test_a_lesson_puts_half_of_the_weight_on_its_mark_and_lets_it_gather():
    given = plant("transformer, cue attended")
    split = write_texts(given, 8, "test")
    vocabulary = vocabulary_of(given, split)
    cues = Drawing(scores_of(given, FAITHFUL, vocabulary))
    lesson = Lesson(cues, "gathers", "[SEP]", cues)
    ids = torch.from_numpy(vocabulary.encode(split.tokens[0]))[None]
    upper, lower = lesson.upper_target(ids), lesson.lower_target(ids)
    assert upper[0, -1] == pytest.approx(0.5)
    assert upper.sum() == pytest.approx(1.0)
    assert torch.equal(lower[0, :-1], torch.eye(ids.shape[1])[:-1])
    assert torch.allclose(lower[0, -1], on_words(cues, ids)[0])
    assert replace(lesson, lower="free").lower_target(ids) is None


def test_a_planted_transformer_has_the_weights_of_its_scores():
    given = plant("transformer, cue attended", sharpness=5.0)
    split = write_texts(given, 20, "test")
    vocabulary = vocabulary_of(given, split)
    model = planted_transformer(given, FAITHFUL, split, vocabulary)
    texts = spaced(split).texts
    heat = model.trace(model.batch(texts, range(len(texts)))).heatmap
    drawing = Drawing(scores_of(given, FAITHFUL, vocabulary))
    for row, words in zip(heat, split.tokens, strict=True):
        expected = on_words(drawing, torch.from_numpy(vocabulary.encode(words))[None])[0, 1:-1]
        assert torch.allclose(row[: len(words)], expected, atol=1e-5)
