"""Planted models, and what is chosen and measured on them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration import trained_transformer as teaching
from heedmap.calibration.by_hand import planted_by_hand
from heedmap.calibration.calibrate import calibrate
from heedmap.calibration.choice import auc, choose, edges, is_right, is_wrong, levels, rate
from heedmap.calibration.measure import Measured, Number, measure, plants, read_measured
from heedmap.calibration.plants import (
    CUES,
    LEAST_TEXTS,
    RIGHT,
    WRONG,
    Plant,
    check_texts,
    is_attended,
    number_of,
    vocabulary_of,
    with_other_cues,
    write_texts,
)
from heedmap.calibration.trained import is_admitted, trained_plant
from heedmap.calibration.transformer import planted_transformer, spaced
from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.experiments.bottom_line import answer
from heedmap.experiments.findings import level_of
from heedmap.experiments.rates import (
    DECISIVE,
    FILE,
    RULES,
    packaged_rates,
    rates_beside,
    read_rates,
)
from heedmap.files.identity import source_identity

KINDS = (*RIGHT, *WRONG)


def plant(kind="faithful", family="by hand", **more):
    share = more.pop("share", 1.0 if kind in RIGHT else 0.0)
    return Plant(family, kind, share, more.pop("seed", 0), texts=more.pop("texts", 40), **more)


def made(one):
    split = write_texts(one, one.texts, "test")
    return planted_by_hand(one, split, vocabulary_of(one, split)), split


def traced(one):
    model, split = made(one)
    return model.trace(model.batch(split.texts, range(len(split)))), split


# --- the plants are what they are said to be --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_deciding_words_decide(kind, classes):
    trace, split = traced(plant(kind, classes=classes))
    assert (trace.predicted.numpy() == split.labels).mean() >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_follows_the_deciding_words_to_another_class(kind):
    one = plant(kind)
    model, split = made(one)
    other = with_other_cues(one, split)
    assert (other.labels != split.labels).all()
    predicted = model.trace(model.batch(other.texts, range(len(other)))).predicted.numpy()
    assert (predicted == other.labels).mean() >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_lie_where_the_kind_says(kind):
    trace, split = traced(plant(kind, sharpness=4.0, noise=0.0))
    for padded, words in zip(trace.heat.numpy(), split.tokens, strict=True):
        heat = padded[: len(words)]
        place = next(i for i, word in enumerate(words) if word.startswith("cue"))
        if kind in RIGHT:
            assert heat.argmax() == place
        elif kind == "deceptive":
            assert heat.argmax() == place + 1
        elif kind == "reversed":
            assert heat.argmin() == place
        elif kind == "uniform":
            assert (heat == heat[0]).all()
        else:
            assert heat.max() > 1.5 / len(words)


def test_of_a_partly_faithful_plant_the_map_is_right_in_its_share_of_the_texts():
    one = plant("partly", share=0.25, texts=400, deciding=3)
    trace, split = traced(one)
    right = []
    for heat, words in zip(trace.heat.numpy(), split.tokens, strict=True):
        kinds = {is_attended(one, number_of(word)) for word in words if word.startswith("cue")}
        assert len(kinds) == 1  # a text has deciding words of one kind
        right.append(words[int(heat.argmax())].startswith("cue"))
    assert np.mean(right) == pytest.approx(0.25, abs=0.08)


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_margin_is_the_plants(kind):
    trace, _ = traced(plant(kind, margin=6.0))
    top = trace.logits.topk(2, dim=-1).values
    assert float((top[:, 0] - top[:, 1]).median()) == pytest.approx(6.0, rel=1e-4)


def test_every_states_carry_the_text_where_the_attention_is_irrelevant():
    trace, _ = traced(plant("irrelevant"))
    relevance = trace.readout.relevance[:, 0]
    first = relevance[:, :1].expand_as(relevance)[trace.mask]
    assert torch.allclose(relevance[trace.mask], first, atol=1e-5)


@pytest.mark.parametrize("kind", [*KINDS, "partly"])
def test_a_planted_transformer_attends_as_the_plant_of_our_own(kind):
    one = plant(kind, share=0.5) if kind == "partly" else plant(kind)
    split = write_texts(one, 12, "test")
    vocabulary = vocabulary_of(one, split)
    ours = planted_by_hand(one, split, vocabulary)
    theirs = planted_transformer(one, split, vocabulary)
    a = ours.trace(ours.batch(split.texts, range(12)))
    b = theirs.trace(theirs.batch(spaced(split).tokens, range(12)))
    assert torch.allclose(a.heat, b.heat, atol=1e-5)
    assert (a.predicted == b.predicted).all()
    if kind not in ("irrelevant", "partly"):  # theirs passes on a mean, ours a sum
        assert torch.allclose(a.logits.diff(), b.logits.diff(), rtol=1e-3, atol=1e-3)


def test_the_same_plant_is_made_of_the_same_bytes():
    first, second = (traced(plant("partly", share=0.5))[0] for _ in range(2))
    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.heat, second.heat)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lstm", "cnn"])
def test_a_trained_plant_rests_on_the_deciding_words(family):
    one = plant("faithful", family)
    split = write_texts(one, 40, "test")
    words = vocabulary_of(one, write_texts(one, 800, "train"), split)
    model, accuracies = trained_plant(one, words)
    assert is_admitted(accuracies)
    trace = model.trace(model.batch(split.texts, range(40)))
    assert (trace.predicted.numpy() == split.labels).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["faithful", "reversed"])
def test_a_trained_transformer_attends_as_its_plant_and_rests_on_the_deciding_words(kind):
    one = plant(kind, "bert", length=10)
    split = write_texts(one, 40, "test")
    words = vocabulary_of(one, write_texts(one, 800, "train"), split)
    model, accuracies = teaching.trained_transformer(one, words)
    assert is_admitted(accuracies)
    trace = model.trace(model.batch(spaced(split).tokens, range(40)))
    assert (trace.predicted.numpy() == split.labels).mean() >= 0.9
    on_cues = [
        float(heat[: len(marks)][torch.from_numpy(marks)].sum())
        for heat, marks in zip(trace.heat, split.rationale, strict=True)
    ]
    own = planted_by_hand(one, split, words)
    planted = own.trace(own.batch(split.texts, range(40))).heat
    aimed = [
        float(heat[: len(marks)][torch.from_numpy(marks)].sum())
        for heat, marks in zip(planted, split.rationale, strict=True)
    ]
    assert np.mean(on_cues) == pytest.approx(np.mean(aimed), abs=0.1)


@pytest.mark.slow
def test_a_transformer_that_has_not_learned_the_plants_weights_is_not_admitted(monkeypatch):
    one = plant("deceptive", "bert", length=10)
    words = vocabulary_of(one, write_texts(one, 800, "train"))
    monkeypatch.setattr(teaching, "EPOCHS", 1)
    _, accuracies = teaching.trained_transformer(one, words)
    assert accuracies == (0.0, 0.0)


def test_a_model_that_does_not_follow_the_deciding_words_is_not_admitted():
    assert is_admitted((0.95, 0.9))
    assert not is_admitted((0.99, 0.5))
    assert not Measured(plant(), {}, (0.5, 0.99)).admitted


def test_what_makes_a_plant_hard_varies_independently():
    every = [p for p in plants(40) if p.family == "by hand"]
    values = np.array(
        [[p.classes, p.margin, p.sharpness, p.deciding, p.length] for p in every], float
    )
    correlations = np.corrcoef(values.T)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 0.15
    assert len({str(p) for p in plants(8)}) == len(plants(8)) == len({p.file for p in plants(8)})


# --- on a user's texts ------------------------------------------------------------------------------------


def hosts(count, words=12):
    return Split(
        [str(i) for i in range(count)],
        [[f"own{i}", *["my"] * (words - 1)] for i in range(count)],
        np.zeros(count, dtype=np.int64),
    )


def test_deciding_words_are_written_into_a_users_own_texts():
    own = hosts(150)
    split = write_texts(plant(deciding=2), 40, "test", own)
    assert all(len(text) == 12 for text in split.tokens)
    assert all(sum(word.startswith("cue") for word in text) == 2 for text in split.tokens)
    assert not any(text[-1].startswith("cue") for text in split.tokens)
    assert len({text[0] for text in split.tokens if text[0].startswith("own")}) > 20
    assert all(
        not word.startswith("cue") for text in own.tokens for word in text
    )  # left as they were


def test_a_corpus_too_small_to_plant_on_says_the_least_size():
    assert len(check_texts(hosts(LEAST_TEXTS), "mine")) == LEAST_TEXTS
    with pytest.raises(
        InputError, match=r"mine: expected at least 100 texts of 8 words .* got 99 of 99"
    ):
        check_texts(hosts(LEAST_TEXTS - 1), "mine")
    with pytest.raises(InputError, match="got 0 of 300"):
        check_texts(hosts(300, words=7), "mine")


# --- the edges and the rates ------------------------------------------------------------------------------


def numbers(*shares, width=0.0):
    return [Number(x, x - width, x + width) for x in shares]


def test_edges_leave_one_in_twenty_on_the_wrong_side():
    wrong, right = numbers(*np.linspace(0, 0.6, 40)), numbers(*np.linspace(0.3, 1, 40))
    for_edge, against_edge = edges(wrong, right)
    assert sum(n.low >= for_edge for n in wrong) == 2
    assert sum(n.high <= against_edge for n in right) == 2


def test_where_right_and_wrong_are_apart_the_edges_meet_in_the_middle():
    for_edge, against_edge = edges(numbers(*[0.1] * 20), numbers(*[0.9] * 20))
    assert for_edge == against_edge == pytest.approx(0.5, abs=0.01)


def test_with_more_questions_each_may_be_wrong_less_often():
    wrong, right = numbers(*[0.0] * 40), numbers(*np.linspace(-1, 1, 40))
    _, alone = edges(wrong, right, 1)
    _, of_ten = edges(wrong, right, 10)
    assert sum(n.high <= alone for n in right) == 2
    assert sum(n.high <= of_ten for n in right) == 0


def test_of_too_few_plants_there_are_no_edges():
    assert edges(numbers(*[0.1] * 9), numbers(*[0.9] * 20)) == (None, None)


def test_the_auc_is_that_of_pairs_and_its_interval_has_a_length_at_one():
    rng = np.random.default_rng(0)
    right, wrong = rng.normal(0.5, 1, 30), rng.normal(0, 1, 40)
    area, low, high = auc(right.tolist(), wrong.tolist())
    assert area == pytest.approx(np.mean(right[:, None] > wrong[None]))
    assert low < area < high
    perfect, low, high = auc([1.0] * 12, [0.0] * 12)
    assert (perfect, high) == (1.0, 1.0)
    assert 0.7 < low < 0.95
    assert auc([], [1.0])[1:] == (0.0, 1.0)


def test_the_interval_of_the_auc_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    truth = 0.856  # of normals 1.5 apart: Φ(1.5 / √2)
    held = []
    for _ in range(300):
        _, low, high = auc(rng.normal(1.5, 1, 20).tolist(), rng.normal(0, 1, 30).tolist())
        held.append(low <= truth <= high)
    assert 0.91 <= np.mean(held) <= 0.99


def measured(share, number, seed, key="found_leave_one_out"):
    kind = "faithful" if share == 1 else "irrelevant" if share == 0 else "partly"
    return Measured(plant(kind, share=share, seed=seed), {key: number})


def test_edges_are_chosen_on_even_seeds_and_judged_on_odd_ones():
    """On the odd seeds wrong plants reach .95: the edge that the even ones gave does not hold."""
    even = [measured(0.0, Number(0.1, 0.05, 0.15), 2 * i) for i in range(20)]
    even += [measured(1.0, Number(0.9, 0.85, 0.95), 2 * i) for i in range(20)]
    odd = [measured(1.0, Number(0.9, 0.85, 0.95), 2 * i + 1) for i in range(20)]
    good = [measured(0.0, Number(0.1, 0.05, 0.15), 2 * i + 1) for i in range(20)]
    bad = [measured(0.0, Number(0.95, 0.9, 1.0), 2 * i + 1) for i in range(20)]
    held = choose([*even, *odd, *good], "test").questions["found_leave_one_out"]
    assert held.for_edge == pytest.approx(0.5)
    assert held.false_for == rate([False] * 20)
    assert held.power == rate([True] * 20)
    failed = choose([*even, *odd, *bad], "test").questions["found_leave_one_out"]
    assert failed.for_edge is None
    assert not failed.tells


def test_plants_that_are_not_admitted_are_not_counted():
    some = [measured(s, Number(s, s, s), i) for s in (0.0, 1.0) for i in range(40)]
    out = [
        replace(measured(0.0, Number(1.0, 1.0, 1.0), i), accuracies=(0.5, 0.5)) for i in range(40)
    ]
    assert choose([*some, *out], "x") == choose(some, "x")


def test_a_partly_faithful_plant_up_to_one_half_counts_as_wrong():
    assert is_wrong(measured(0.5, Number(0, 0, 0), 0))
    assert not is_wrong(measured(0.75, Number(0, 0, 0), 0))
    assert not is_right(measured(0.75, Number(0, 0, 0), 0))


# --- rates ------------------------------------------------------------------------------------------------


def test_the_packaged_rates_are_of_these_rules_and_hold_what_they_promise():
    rates = packaged_rates()
    assert rates.rules == RULES
    for question in rates.questions.values():
        assert question.false_for.share <= 0.05 or question.for_edge is None
        assert question.false_against.share <= 0.05 or question.against_edge is None
    assert all(rates.questions[key].tells for key in DECISIVE)
    assert rates.verdicts["wrong"]["yes"].share <= 0.05
    assert rates.verdicts["right"]["no"].share <= 0.05


def test_a_question_that_cannot_tell_gives_no_level():
    question = packaged_rates().questions[DECISIVE[0]]
    assert level_of(0.99, 1.0, question) == "for"
    assert level_of(-0.1, 0.1, question) == "against"
    assert level_of(0.99, 1.0, question.model_copy(update={"auc_low": 0.6})) == "for comparison"
    assert level_of(float("nan"), float("nan"), question) == "cannot tell"
    assert level_of(0.99, 1.0, None) == "for comparison"


def test_rates_of_another_version_are_refused(tmp_path):
    path = tmp_path / FILE
    path.write_text(packaged_rates().model_copy(update={"rules": RULES + 1}).to_json())
    with pytest.raises(
        InputError, match=rf"version {RULES} .* got version {RULES + 1}.*heedmap calibrate"
    ):
        read_rates(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="heedmap calibrate"):
        read_rates(path)


def test_rates_of_the_same_texts_are_found_beside_the_run(tmp_path):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    own = packaged_rates().model_copy(update={"data": source_identity(str(texts)), "name": "mine"})
    (tmp_path / "runs" / "calibration-mine").mkdir(parents=True)
    (tmp_path / "runs" / "calibration-mine" / FILE).write_text(own.to_json())
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / FILE).write_text("not JSON")
    run = tmp_path / "runs" / "mine-lstm"
    assert rates_beside(run, str(texts)) == own
    texts.write_text("text,label\na,c\n")
    assert rates_beside(run, str(texts)) is None


def calibration(folder, of, **changed):
    folder.mkdir(parents=True, exist_ok=True)
    found = packaged_rates().model_copy(update={"data": source_identity(str(of)), **changed})
    (folder / FILE).write_text(found.to_json())
    return found


def without_edges():
    questions = packaged_rates().questions
    none = questions[DECISIVE[0]].model_copy(update={"for_edge": None})
    return {**questions, DECISIVE[0]: none}


def test_of_several_calibrations_of_the_same_texts_the_one_of_the_most_plants_is_used(tmp_path):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    for name, count in (("a", 30), ("b", 200), ("c", 90)):
        calibration(tmp_path / "runs" / name, texts, plants=count)
    assert rates_beside(tmp_path / "runs" / "mine", str(texts)).plants == 200


def test_a_calibration_that_is_too_small_to_decide_is_passed_over_with_a_warning(tmp_path):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    calibration(tmp_path / "runs" / "small", texts, plants=22, questions=without_edges())
    with pytest.warns(UserWarning, match="22 planted models are too few for the edges"):
        assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None


def test_damaged_rates_are_passed_over_wherever_they_were_cut(tmp_path):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    calibration(tmp_path / "runs" / "cut", texts)
    path = tmp_path / "runs" / "cut" / FILE
    whole = path.read_bytes()
    for size in (20, 300, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.warns(UserWarning, match="passed over, for it is not what `heedmap calibrate`"):
            assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None
        with pytest.raises(InputError, match="expected the rates that `heedmap calibrate` writes"):
            read_rates(path)


def edited(key, value, where=()):
    """Another value in the text of the rates, whose hash is that of the packaged ones or made anew."""

    def edit(values):
        place = values
        for name in where:
            place = place[name]
        place[key] = value

    return edit


FIRST = ("questions", DECISIVE[0])


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize(
    "edit",
    [
        edited("for_edge", -1, FIRST),
        edited("for_edge", float("nan"), FIRST),
        edited("against_edge", float("-inf"), FIRST),
        edited("against_edge", 0.9, FIRST),
        edited("for_edge", 1.5, FIRST),
        edited("auc", 0.1, FIRST),
        edited("auc_low", float("nan"), FIRST),
        edited("auc_high", 2, FIRST),
        edited("count", 999, (*FIRST, "power")),
        edited("count", -1, (*FIRST, "power")),
        edited("n", 3, (*FIRST, "power")),
        edited("low", 0.0, (*FIRST, "power")),
        edited("high", float("nan"), (*FIRST, "false_for")),
        edited("count", 300, ("verdicts", "wrong", "yes")),
        edited("yes", {"count": 0, "n": 0, "low": 0.0, "high": 1.0}, ("verdicts", "wrong")),
        edited("wrong", {}, ("verdicts",)),
        edited("questions", {}),
        edited("verdicts", {}),
        edited("plants", -5),
        edited("plants", "many"),
        edited("more", 1),
    ],
)
def test_rates_that_no_calibration_has_are_passed_over(tmp_path, edit, hashed):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    calibration(tmp_path / "runs" / "edited", texts)
    path = tmp_path / "runs" / "edited" / FILE
    values = json.loads(path.read_text())
    edit(values)
    if not hashed:
        del values["sha256"]
    path.write_text(json.dumps(values, indent=1))
    with pytest.warns(UserWarning, match="passed over, for it is not what `heedmap calibrate`"):
        assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None


def test_another_digit_of_the_rates_is_noticed_and_files_without_a_hash_are_read(tmp_path):
    texts = tmp_path / "mine.csv"
    texts.write_text("text,label\na,b\n")
    rates = calibration(tmp_path / "runs" / "mine-too", texts)
    path = tmp_path / "runs" / "mine-too" / FILE
    values = json.loads(path.read_text())
    stated = values.pop("sha256")
    path.write_text(json.dumps(values, indent=1))
    assert rates_beside(tmp_path / "runs" / "mine", str(texts)) == rates
    values["questions"][DECISIVE[0]]["for_edge"] += 0.001
    path.write_text(json.dumps(values | {"sha256": stated}, indent=1))
    with pytest.warns(UserWarning, match="its content is not what its hash is of"):
        assert rates_beside(tmp_path / "runs" / "mine", str(texts)) is None


def test_a_calibration_replaces_no_larger_one_and_shares_no_folder_with_a_run(tmp_path):
    calibration(tmp_path / "large", "x", data=None)
    before = (tmp_path / "large" / FILE).read_bytes()
    with pytest.raises(InputError, match="holds a calibration of 753 planted models, more than"):
        calibrate(str(tmp_path / "large"), seeds=2)
    assert (tmp_path / "large" / FILE).read_bytes() == before
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.toml").write_text("")
    with pytest.raises(InputError, match="holds a run"):
        calibrate(tmp_path / "run", seeds=2)


def test_an_edge_that_is_not_certainly_more_often_right_than_wrong_is_not_used():
    """One in twenty wrong maps lies above the edge, and hardly more of the right ones."""

    def plants_of(kind, share, numbers):
        return [
            Measured(Plant("by hand", kind, share, seed), {"some": Number(x, x - 0.01, x + 0.01)})
            for seed, x in enumerate(numbers)
        ]

    even = np.repeat(np.linspace(0, 0.5, 40), 2)
    wrong = plants_of("uniform", 0.0, even)
    weak = choose([*plants_of("faithful", 1.0, even + 0.01), *wrong], "x")
    strong = choose([*plants_of("faithful", 1.0, even + 0.4), *wrong], "x")
    assert weak.questions["some"].for_edge is weak.questions["some"].against_edge is None
    assert weak.questions["some"].power.count == weak.questions["some"].caught.count == 0
    assert strong.questions["some"].for_edge is not None
    assert strong.questions["some"].against_edge is not None
    assert strong.questions["some"].caught.share > 0.5


# --- the whole way ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", ["by hand", "transformer by hand"])
def test_the_bottom_line_is_right_about_plants_through_the_whole_audit(family, tmp_path):
    rates = packaged_rates()
    for kind in KINDS:
        one = plant(kind, family, seed=1, length=12)
        found = measure(one, tmp_path, None)
        said = answer(levels(rates, found))
        assert said == ("yes" if kind in RIGHT else "no"), kind
        assert read_measured(tmp_path / one.file) == found
        kept = (tmp_path / one.file).stat().st_mtime_ns
        assert measure(one, tmp_path, None) == found
        assert (tmp_path / one.file).stat().st_mtime_ns == kept, "read, not made again"


def test_a_damaged_file_of_numbers_is_made_again(tmp_path):
    path = tmp_path / "x.json"
    for content in ("", "{", "[]", json.dumps({"plant": {}})):
        path.write_text(content)
        assert read_measured(path) is None
    assert CUES % 4 == 0  # every share in quarters is exact
