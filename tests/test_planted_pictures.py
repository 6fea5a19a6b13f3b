"""Planted pictures: patches are the words of planted texts, and the weights are where the family says."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.choice import kind_of, known
from heedmap.calibration.construction import as_read, weights_of
from heedmap.calibration.cue_families import cue_construction
from heedmap.calibration.families import draw, families, make, plants
from heedmap.calibration.hand_layers import the_nearest
from heedmap.calibration.measure import measure
from heedmap.calibration.planted_pictures import (
    DRAWN,
    SIDE,
    ReadsWords,
    digit_of,
    digits,
    patterns,
    side_of,
)
from heedmap.calibration.plants import (
    FAITHFUL,
    OF_PICTURES,
    PICTURES_BY_HAND,
    VIT,
    VIT_ON_DIGITS,
    Drawing,
    cue,
    cues_of,
    is_cue,
    scores_of,
    vocabulary_of,
    write_texts,
)
from heedmap.calibration.trained import with_some_lacking
from heedmap.calibration.trained_transformer import on_words
from heedmap.calibration.transformer_routes import needs_the_rationale
from heedmap.data.vocabulary import SPECIAL
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.rule import answer

FAMILIES = {name: f for name, f in families().items() if name.startswith("pictures, ")}
SET_BY_HAND = [name for name, family in FAMILIES.items() if PICTURES_BY_HAND in family.makers]
RIGHT = "pictures, deciding patch attended"


def plant(name, encoder=PICTURES_BY_HAND, **options):
    given = {"classes": 2, "length": 16, "texts": 40, "noise": 0.0, "margin": 4.0, **options}
    return replace(draw(FAMILIES[name], encoder, given.pop("seed", 0)), **given)


def made(name, encoder=PICTURES_BY_HAND, **options):
    result = make(plant(name, encoder, **options))
    assert result.admitted, result.why_not
    return result


def trace_of(result):
    return result.model.trace(result.model.batch(result.split.texts, range(len(result.split))))


def mass_on_rationale(result):
    heat = trace_of(result).heatmap.numpy()
    pairs = zip(heat, result.split.rationale, strict=True)
    return np.mean([row[: len(m)][m].sum() for row, m in pairs])


def pixels_of(model, text):
    """The picture of a text as transformers' own model is given it, (1, 3, height, width)."""
    vectors = model.tokenizer.pictures.vectors(
        np.array([model.tokenizer.pictures.row(name) for name in text])
    )
    side = model.grid.columns
    patches = vectors.reshape(side, side, 3, SIDE, SIDE).transpose(2, 0, 3, 1, 4)
    return torch.from_numpy(patches.reshape(1, 3, side * SIDE, side * SIDE))


def test_a_grid_has_thirty_right_and_thirty_wrong_pictures_of_every_truth():
    drawn = [p for p in plants(6) if kind_of(p) == "pictures"]
    for truth in ("right", "wrong"):
        assert sum(FAMILIES[p.family].truth == truth for p in drawn) >= 60
    assert {f.truth for f in FAMILIES.values()} == {
        "right",
        "words",
        "part",
        "between",
        "wrong",
        "open",
    }
    assert {p.encoder for p in drawn} == {*OF_PICTURES}
    assert all(side_of(p) ** 2 == p.length for p in drawn)


@pytest.mark.parametrize("encoder", OF_PICTURES)
def test_every_text_of_a_picture_has_as_many_words_as_there_are_patches(encoder):
    given = plant(RIGHT, encoder, length=25)
    split = write_texts(given, 30, "test")
    assert {len(text) for text in split.tokens} == {25}
    assert all(any(map(is_cue, text)) for text in split.tokens)


def test_a_word_is_shown_as_the_same_pattern_and_with_noise_as_nearly_the_same():
    given = plant(RIGHT)
    vocabulary = vocabulary_of(given, write_texts(given, 40, "test"))
    (plain,) = patterns(given, vocabulary, 1).pixels
    noisy = patterns(given, vocabulary, 8)
    assert {*np.unique(plain)} == {-1.0, 1.0}
    assert len({row.tobytes() for row in plain}) == len(vocabulary.words)
    assert np.linalg.matrix_rank(plain) == len(plain)
    assert np.abs(noisy.pixels.mean(0) - plain).mean() < 0.25
    assert noisy.seen == 4
    assert [*noisy.unseen] == [4, 5, 6, 7]


def test_the_digits_of_the_audit_are_others_than_those_to_learn_from():
    given = plant(RIGHT, VIT_ON_DIGITS, classes=3)
    vocabulary = vocabulary_of(given, write_texts(given, 40, "test"))
    glyphs = digits(given, vocabulary, DRAWN)
    half = {row.tobytes() for row in glyphs.pixels[: glyphs.seen].reshape(-1, 3 * SIDE**2)}
    rest = {row.tobytes() for row in glyphs.pixels[glyphs.seen :].reshape(-1, 3 * SIDE**2)}
    assert not half & rest
    shown = {word: digit_of(given, word) for word in vocabulary.words}
    assert {digit for word, digit in shown.items() if is_cue(word)} == set(range(6))
    assert {digit for word, digit in shown.items() if not is_cue(word)} == set(range(6, 10))
    assert {digit_of(given, cue(2, k)) for k in range(8)} == {4, 5}


@pytest.mark.parametrize("encoder", [PICTURES_BY_HAND, VIT])
def test_a_planted_model_answers_a_whole_picture_as_transformers_own_model_does(encoder):
    result = made(RIGHT, encoder, sharpness=5.0, deciding=1, opposing=False)
    expected = whole_logits(result)
    assert torch.allclose(trace_of(result).logits[:3], expected, atol=1e-4)


def whole_logits(result):
    """The logits of transformers' model of the pixels, its embeddings being its own again."""
    vit = result.model.model.classifier.vit
    pixels = torch.cat([pixels_of(result.model, text) for text in result.split.tokens[:3]])
    with torch.no_grad():
        own = type(vit.embeddings).forward(vit.embeddings, pixels)
        states = vit(own).last_hidden_state
        return result.model.model.classifier.classifier(states[:, 0])


@pytest.mark.parametrize("name", SET_BY_HAND)
def test_pictures_set_by_hand_are_admitted_and_have_the_margin_that_was_drawn(name):
    drawn = draw(FAMILIES[name], PICTURES_BY_HAND, 0).sharpness
    result = made(name, sharpness=max(drawn, 4.0) if "patch" in name else drawn, deciding=1)
    assert result.model.reads == "first"
    best = trace_of(result).logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median().item() == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("deciding patch attended", 0.5, 1.0),
        ("random patches attended", 0.0, 0.2),
        ("patch behind the deciding one attended", 0.0, 0.05),
        ("all patches but the deciding one attended", 0.0, 0.01),
        ("answer past the attention, deciding patch attended", 0.5, 1.0),
    ],
)
def test_the_map_is_on_the_deciding_patches_or_not(name, least, most):
    assert least <= mass_on_rationale(made(f"pictures, {name}", sharpness=5.0, deciding=1)) <= most


def test_a_planted_model_has_the_weights_of_its_scores():
    given = plant(RIGHT, sharpness=5.0)
    result = make(given)
    texts = write_texts(given, given.texts, "test", FAITHFUL)
    construction = cue_construction(FAITHFUL)
    dev = construction.write(given, 200, "dev")
    words = {word for split in (dev, texts) for text in split.tokens for word in text}
    vocabulary = type(result.model.glyphs.words)(sorted(words | {*cues_of(given)}))
    drawing = Drawing(scores_of(given, FAITHFUL, vocabulary))
    weights = weights_of(result.model, texts)
    for row, text in zip(weights, texts.tokens, strict=True):
        ids = torch.from_numpy(vocabulary.encode(text))[None]
        assert torch.allclose(row, on_words(drawing, ids)[0, 1:-1], atol=1e-5)


def test_without_the_patch_behind_the_deciding_one_the_next_patch_has_its_evidence():
    result = made("pictures, patch behind the deciding one attended", sharpness=6.0, deciding=1)
    texts = result.split.tokens
    places = [int(marks.argmax()) for marks in result.split.rationale]
    shorter = [
        text[: place + 1] + text[place + 2 :] for text, place in zip(texts, places, strict=True)
    ]
    batch = result.model.batch(shorter, range(len(shorter)))
    has_next = [place + 2 < len(text) for text, place in zip(texts, places, strict=True)]
    right = result.model.logits(batch).argmax(-1).numpy() == result.split.labels
    assert right[np.array(has_next)].all()
    heat = result.model.trace(batch).heatmap.numpy()
    ahead = [row[place + 1] for row, place, has in zip(heat, places, has_next, strict=True) if has]
    assert np.mean(ahead) >= 0.5


@pytest.mark.parametrize("present", [[0, 1, 2, 3], [0, 3], [0, 2, 3], [3, 1, 0]])
def test_the_nearest_place_before_draws_most_whichever_places_there_are(present):
    draws = the_nearest(4)
    for place in present:
        before = [other for other in present if other < place]
        scores = {other: float(draws[place, other]) for other in present}
        if before:
            assert max(scores, key=scores.get) == max(before)
        else:
            assert set(scores.values()) == {0.0}


@pytest.mark.parametrize("encoder", [PICTURES_BY_HAND, VIT])
def test_past_the_attention_no_weights_change_the_answer_to_a_picture(encoder):
    name = "pictures, answer past the attention, deciding patch attended"
    result = made(name, encoder, sharpness=5.0, deciding=1)
    trace = trace_of(result)
    even = (trace.words >= 0).float()
    rows = (even / even.sum(1, keepdim=True))[None, :, None].expand(1, *trace.attention.shape)
    assert (result.model.predict(trace, rows)[0] - trace.logits).abs().max() < 1e-3


def test_a_trained_model_with_a_right_map_reads_the_answer_from_the_deciding_patches_alone():
    given = plant(RIGHT, VIT, sharpness=5.0, deciding=1, opposing=False)
    result = make(given)
    assert result.admitted, result.why_not
    assert mass_on_rationale(result) >= 0.5
    assert needs_the_rationale(given, result.model, write_texts(given, 60, "dev")) == ""


def test_a_model_that_has_the_answer_in_other_patches_fails_the_check_of_right_maps():
    given = plant("pictures, random patches attended", sharpness=3.0, deciding=1)
    split = write_texts(given, 60, "test")
    assert needs_the_rationale(given, make(given).model, split).endswith("from other words")


@pytest.mark.exhaustive
def test_digits_are_learned_from_other_pictures_of_them():
    options = {"sharpness": 6.0, "deciding": 1, "opposing": False, "seed": 1}
    result = made(RIGHT, VIT_ON_DIGITS, **options)
    assert mass_on_rationale(result) >= 0.5


def test_a_fifth_of_the_texts_to_learn_from_lack_their_deciding_words_and_keep_their_labels():
    given = plant(RIGHT, VIT, classes=3, deciding=2)
    split = write_texts(given, 500, "train")
    lacking = with_some_lacking(given, split)
    assert (lacking.labels == split.labels).all()
    changed = 0
    for before, after, marks in zip(split.tokens, lacking.tokens, split.rationale, strict=True):
        if before == after:
            continue
        changed += 1
        assert not any(map(is_cue, after))
        assert {*after} <= {*before}
        assert all(
            w == v for w, v, decides in zip(before, after, marks, strict=True) if not decides
        )
    assert 0.14 < changed / len(split) < 0.26
    assert with_some_lacking(given, replace(split, rationale=None)).tokens == split.tokens


@pytest.mark.parametrize("seed", [1, 2])
def test_of_a_picture_without_its_deciding_patch_a_trained_model_is_of_two_minds(seed):
    options = {"sharpness": 6.0, "deciding": 1, "opposing": False, "margin": 6.0, "seed": seed}
    result = made(RIGHT, VIT, **options)
    pairs = zip(result.split.tokens, result.split.rationale, strict=True)
    without = [[w for w, m in zip(text, marks, strict=True) if not m] for text, marks in pairs]
    logits = result.model.logits(result.model.batch(without, range(len(without))))
    best = logits.topk(2).values
    assert (best[:, 0] - best[:, 1]).median() < 2.0


def test_while_it_learns_a_word_is_shown_in_drawn_variants_and_afterwards_in_one():
    given = plant(RIGHT, VIT)
    split = write_texts(given, 4, "test")
    vocabulary = vocabulary_of(given, split)
    glyphs = patterns(given, vocabulary)

    class Recorder:
        rows = ()

        def __call__(self, input_ids, **options):
            self.rows = (input_ids[:, 1:].numpy() - 64) // 2

    recorder = Recorder()
    ids = torch.from_numpy(np.stack([vocabulary.encode(text)[:-1] for text in split.tokens]))
    reads = ReadsWords.__new__(ReadsWords)
    torch.nn.Module.__init__(reads)
    reads.reader, reads.glyphs, reads.rng = recorder, glyphs, np.random.default_rng(0)
    words = ids[:, 1:].numpy() - len(SPECIAL)
    for training, variants in ((True, range(glyphs.seen)), (False, [glyphs.unseen.start])):
        reads.train(training)
        reads.forward(ids)
        variant, rest = np.divmod(recorder.rows, len(vocabulary.words) * given.length)
        assert {*variant.flatten().tolist()} == {*variants}
        assert (rest // given.length == words).all()
        assert (rest % given.length == np.arange(given.length)).all()


def test_a_planted_picture_is_always_made_the_same():
    options = {"sharpness": 5.0, "deciding": 1, "opposing": False}
    first, second = (made(RIGHT, VIT, **options) for _ in range(2))
    assert first.split.tokens == second.split.tokens
    assert torch.equal(trace_of(first).logits, trace_of(second).logits)


def test_as_read_a_text_names_the_patch_of_each_of_its_words():
    result = made(RIGHT, sharpness=5.0)
    given = plant(RIGHT, sharpness=5.0)
    split = write_texts(given, 5, "other")
    known_words = set(result.model.glyphs.words.words)
    split = replace(split, tokens=[[w for w in t if w in known_words] for t in split.tokens])
    for names, text in zip(as_read(result.model, split).tokens, split.tokens, strict=True):
        assert [name.partition("=")[2] for name in names] == text
        rows = [int(name.partition(":")[2].partition("=")[0]) for name in names]
        assert [row % given.length for row in rows] == [*range(len(text))]


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("pictures, deciding patch attended", "yes"),
        pytest.param(
            "pictures, all patches but the deciding one attended",
            "no",
            marks=pytest.mark.exhaustive,
        ),
        ("pictures, uniform weights", "no"),
    ],
)
def test_the_rule_is_right_about_pictures_whose_answer_is_plain(tmp_path, family, said):
    easy = {"classes": 3, "sharpness": 6.0, "deciding": 1, "opposing": False, "texts": 60}
    (one,) = known([measure(plant(family, **easy), tmp_path)])
    assert (one.kind, one.truth) == ("pictures", FAMILIES[family].truth)
    assert answer(one.numbers, packaged_rates().thresholds) == said
