import json

import numpy as np
import pytest
import torch
from conftest import random_pairs, random_texts, small_corpus, watched
from wording import refused, warned

from heedmap.data.corpus import Corpus, Split
from heedmap.data.load import load
from heedmap.data.vocabulary import UNKNOWN_WORD, Vocabulary
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import jensen_shannon
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.papers.jain_wallace.baselines import COLUMNS, _train, baselines
from heedmap.papers.jain_wallace.frozen import freeze, lexical, log_odds_attention, text_by_text
from heedmap.papers.jain_wallace.no_attention import NoAttention
from heedmap.papers.jain_wallace.regularised import regularised
from heedmap.papers.jain_wallace.substitution import substitution
from heedmap.runs.open import open_run
from heedmap.runs.train import train
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.training.evaluation import scores_of
from heedmap.training.log_odds import LogOdds, fit_log_odds

GOOD, BAD = [f"good{i}" for i in range(6)], [f"bad{i}" for i in range(6)]
FILLERS = [f"w{i}" for i in range(30)]
SMALL = {"embedding_size": 12, "hidden_size": 16, "min_df": 1, "learning_rate": 0.01, "epochs": 2}


def planted(count=240, seed=0, noise=0.0):
    """Two words of the class, two stop words and some that say nothing, in random order.

    `noise`: the share of texts that are labelled the other way.
    """
    rng = np.random.default_rng(seed)
    splits = {}
    for name, size in (("train", count), ("dev", count // 4), ("test", count // 4)):
        labels = np.arange(size) % 2
        tokens = []
        for label in labels:
            words = [*rng.choice(GOOD if label else BAD, 2), "the", "of"]
            words += list(rng.choice(FILLERS, rng.integers(2, 7)))
            tokens.append([str(words[i]) for i in rng.permutation(len(words))])
        labels = np.where(rng.random(size) < noise, 1 - labels, labels)
        splits[name] = Split([f"{name}-{i}" for i in range(size)], tokens, labels.astype(np.int64))
    return Corpus("planted", ["bad", "good"], splits, DataSettings(source="planted"))


@pytest.fixture(scope="module")
def corpus():
    return planted()


@pytest.fixture(scope="module")
def attention(corpus):
    return train(corpus, **SMALL)


@pytest.fixture(scope="module")
def odds(corpus, attention):
    return fit_log_odds(corpus, attention.model.vocabulary)


def test_log_odds_find_the_planted_words(corpus, odds):
    assert set(odds.extreme(1)) <= set(GOOD)
    assert set(odds.extreme(0)) <= set(BAD)
    test = corpus.splits["test"]
    assert scores_of(odds.logits(test.tokens), test.labels)["accuracy"] == 1


def test_marks_the_unknown_word_and_stop_words_have_no_coefficient(odds):
    none = [*range(4), *odds.vocabulary.encode(["the", "of"])[1:-1].tolist()]
    assert odds.coefficients[none].isnan().all()
    assert odds.coefficients.isnan().sum() == len(none)


def test_the_logit_is_the_mean_coefficient_of_the_different_words(odds):
    # Of the row of length 1: the sum over the square root of the count.
    def z(*words):
        return float(odds.logits([words])[0, 1])

    def b(word):
        return float(odds.coefficients[odds.vocabulary.encode([word])[1]])

    nothing = z("the", "never-seen")
    assert z("good0", "good0", "the") - nothing == pytest.approx(b("good0"))
    assert z("good0", "bad1") - nothing == pytest.approx((b("good0") + b("bad1")) / 2**0.5)


def test_the_words_of_a_class_are_ordered_and_those_that_say_nothing_are_not_among_them():
    vocabulary = Vocabulary(["a", "b", "c", "d", "e"])
    values = torch.tensor([torch.nan] * 4 + [0.0, 2.0, -1.0, 3.0, torch.nan])
    odds = LogOdds(vocabulary, values, None)
    assert odds.extreme(1) == ["d", "b"]
    assert odds.extreme(1, 1) == ["d"]
    assert odds.extreme(0) == ["c"]
    with refused("class 0"):
        LogOdds(vocabulary, values.abs(), None).extreme(0)


def test_frozen_weights_are_the_softmax_of_the_coefficients_and_uniform_where_there_is_none(
    attention,
):
    vocabulary = attention.model.vocabulary
    coefficients = torch.full((len(vocabulary),), torch.nan, dtype=torch.float64)
    for word, value in (("good0", 2.0), ("bad0", -1.0), ("w0", 0.0)):
        coefficients[vocabulary.encode([word])[1]] = value
    texts = [["good0", "the", "bad0", "w0"], ["the", "of"], ["of", "bad0", UNKNOWN_WORD]]
    split = Split(["a", "b", "c"], texts, np.array([1, 0, 0]))
    batch = attention.model.batch(texts, range(3))
    weights = log_odds_attention(lexical(coefficients), batch)
    e2, e1, e0 = np.exp([2.0, 1.0, 0.0])
    total = e2 + e1 + e0
    wanted = [[e2 / total, 0, e1 / total, e0 / total], [0.5, 0.5, 0, 0], [0, 1, 0, 0]]
    assert torch.allclose(weights, torch.tensor(wanted, dtype=weights.dtype))
    found = freeze(attention.model, split, lexical(coefficients))
    assert found.bare.tolist() == [False, True, False]
    trace = attention.model.trace(batch)
    assert torch.equal(found.own, trace.logits)
    imposed = attention.model.logits_from(attention.model.embed(batch), batch, weights[:, None])
    assert torch.allclose(found.logits, imposed, atol=1e-6)


def test_attention_beside_log_odds_text_by_text_is_what_each_text_alone_gives(
    corpus, attention, odds
):
    model, test = attention.model, corpus.splits["test"]
    found = text_by_text(model, corpus)
    for i, text in enumerate(test.tokens):
        batch = model.batch([text], [i])
        trace = model.trace(batch)
        weights = log_odds_attention(lexical(odds.coefficients), batch)
        swapped = model.logits_from(model.embed(batch), batch, weights[:, None]).softmax(-1)
        own = trace.logits.softmax(-1)
        assert found["n_tokens"][i] == len(text)
        assert found["predicted"][i] == int(own.argmax())
        assert found["max_attention"][i] == pytest.approx(float(trace.attention.max()), abs=1e-6)
        apart = jensen_shannon(trace.attention[0], weights)
        assert found["jsd"][i] == pytest.approx(float(apart), abs=1e-6)
        assert found["tvd"][i] == pytest.approx(float((own - swapped).abs().sum()) / 2, abs=1e-6)


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_a_model_trained_under_frozen_weights_has_just_them_and_keeps_them_in_its_folder(
    encoder, tmp_path, csv_file
):
    corpus = load(csv_file)
    run = train(corpus, encoder=encoder, score="log_odds", out=tmp_path / "run", **SMALL)
    wanted = lexical(fit_log_odds(corpus, run.model.vocabulary).coefficients)
    texts = corpus.splits["test"].tokens
    batch = run.model.batch(texts, range(len(texts)))
    weights = log_odds_attention(wanted, batch)
    assert torch.equal(run.model.trace(batch).attention[:, 0], weights)
    again = open_run(tmp_path / "run").model
    assert torch.equal(again.score.table, wanted.table)
    assert torch.equal(again.trace(batch).logits, run.model.trace(batch).logits)
    assert torch.equal(again.trace(batch).attention[:, 0], weights)


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_without_a_token_the_frozen_weights_are_those_of_the_shorter_text(corpus, encoder):
    model = train(corpus, encoder=encoder, score="log_odds", **{**SMALL, "epochs": 1}).model
    texts = [["good0", "the", "bad0", "w0"], ["the", "good1"], ["of"], ["w1", "w1", "of", "nobody"]]
    batch = model.batch(texts, range(4))
    found = logits_without_each(model, batch, texts)
    for row, text, slow in zip(found, texts, reread_without_each(model, texts), strict=True):
        assert torch.allclose(row[: len(text)], slow, atol=1e-6, equal_nan=True)
        for t in range(len(text) if len(text) > 1 else 0):
            shorter = text[:t] + text[t + 1 :]
            alone = model.trace(model.batch([shorter], [0])).logits[0]
            assert torch.allclose(row[t], alone, atol=1e-6)


def test_no_gradient_flows_through_frozen_weights(corpus):
    model = train(corpus, score="log_odds", **{**SMALL, "epochs": 1}).model
    batch = model.batch(corpus.splits["test"].tokens[:6], range(6))
    trace = model.trace(batch)
    ways = [gradient_importance(model, batch, trace, path=path) for path in ("closed", "open")]
    assert torch.allclose(*ways, atol=1e-7)
    assert ways[0].abs().max() > 0


def test_frozen_weights_are_not_trained(corpus, odds):
    model = train(corpus, score="log_odds", **SMALL).model
    assert torch.equal(model.score.table, lexical(odds.coefficients).table)
    assert not list(model.score.parameters())


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_the_regulariser_draws_attention_to_the_log_odds(encoder):
    noisy = planted(count=400, noise=0.15)  # else the first epoch is perfect, and the last
    run = train(noisy, encoder=encoder, **{**SMALL, "epochs": 4})
    odds = fit_log_odds(noisy, run.model.vocabulary)
    scores, test = lexical(odds.coefficients), noisy.splits["test"]
    pulled = _train(noisy, run.settings, TextClassifier, towards=scores)
    before = freeze(run.model, test, scores).divergence.mean()
    after = freeze(pulled, test, scores).divergence.mean()
    assert after < 0.9 * before


def test_the_regulariser_is_the_mean_divergence_on_top_of_the_loss(attention, odds):
    scores = lexical(odds.coefficients)
    batch = attention.model.batch(random_texts((5, 2, 1)), range(3))
    outputs, weights = attention.model(batch)

    def base(outputs, attention, batch):
        return outputs.sum()

    found = regularised(base, scores, strength=3.0)(outputs, weights, batch) - outputs.sum()
    each = jensen_shannon(weights[:, 0], log_odds_attention(scores, batch))
    assert torch.allclose(found, 3 * each.mean(), atol=1e-6)


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_weights_of_zero_do_not_break_the_regularised_training(corpus, odds, normaliser):
    settings = train(corpus, normaliser=normaliser, **{**SMALL, "epochs": 1}).settings
    model = _train(corpus, settings, TextClassifier, towards=lexical(odds.coefficients))
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
def test_without_attention_a_prediction_does_not_depend_on_the_padding(encoder):
    settings = ModelSettings(encoder=encoder, embedding_size=12, hidden_size=16)
    torch.manual_seed(0)
    model = NoAttention(settings, Vocabulary(FILLERS), ["0", "1"]).eval()
    texts = [["w1", "w2", "w3"], ["w4"] * 30, ["w5"]]
    together = model.logits(model.batch(texts, range(3)))
    for text, found in zip(texts, together, strict=True):
        assert torch.allclose(model.logits(model.batch([text], [0]))[0], found, atol=1e-6)
    assert not torch.allclose(together[0], together[1], atol=1e-3)


def test_a_model_without_attention_learns_and_is_not_put_on_trial(corpus, attention):
    model = _train(corpus, attention.settings, NoAttention)
    test = corpus.splits["test"]
    batch = model.batch(test.tokens, range(len(test)))
    assert scores_of(model.logits(batch), test.labels)["accuracy"] > 0.9
    assert not isinstance(model, AttentionClassifier)
    assert not hasattr(model, "trace")


def test_words_of_the_other_class_flip_more_predictions_in_attended_than_in_random_places(
    corpus, attention, odds
):
    rows = {}
    for row in substitution(attention.model, corpus.splits["test"], odds, count=2):
        rows[row["variant"]] = row
    attended, control = rows["2 most attended replaced"], rows["2 at random replaced"]
    assert attended["flipped"] > control["flipped"] + 0.2
    assert attended["tvd"] > control["tvd"] + 0.05
    assert attended["all_replaced"] == control["all_replaced"] == 0


def test_of_a_short_text_every_word_is_replaced_and_such_texts_are_counted(attention, odds):
    texts = [["good0"], ["w1", "good1", "the", "good2", "good3"], ["good0"] * 6]
    split = Split(["a", "b", "c"], texts, np.array([1, 1, 1]))
    attended, control = substitution(attention.model, split, odds)
    assert attended["all_replaced"] == control["all_replaced"] == 2
    alone = split.take([0])
    attended, control = substitution(attention.model, alone, odds)
    assert attended["flipped"] == control["flipped"] == 1
    word = odds.extreme(0)[0]  # of one word the first substitute is used
    before, after = (
        attention.model.trace(attention.model.batch([[w]], [0])).logits.softmax(-1)[0, 1]
        for w in ("good0", word)
    )
    assert attended["tvd"] == pytest.approx(float(before - after), abs=1e-6)


def test_the_table_has_a_row_a_variant_and_can_be_written_as_json(corpus, attention):
    steps = []
    with watched(lambda done, text: steps.append((done, text))):
        rows = baselines(corpus, **SMALL)
    assert [row["variant"] for row in rows] == [
        "logistic regression", "no attention", "attention", "log-odds at test",
        "log-odds in training", "regularised", "5 most attended replaced",
        "5 at random replaced", "1 most attended replaced", "1 at random replaced",
    ]  # fmt: skip
    assert all(tuple(row) == COLUMNS for row in rows)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    named = {row["variant"]: row for row in rows}
    assert named["attention"]["agreement"] == 1
    assert named["log-odds in training"]["jsd"] == 0
    assert named["regularised"]["jsd"] < named["attention"]["jsd"]
    assert named["no attention"]["jsd"] is None
    assert all(row["accuracy"] > 0.9 for row in rows[:6])
    done = [share for share, _ in steps]
    assert done == sorted(done)
    assert done[-1] == pytest.approx(1)
    halfway = [share for share, text in steps if text.startswith("no attention, ")]
    assert halfway[-1] == pytest.approx(0.5)
    given = baselines(corpus, attention=attention)
    assert given == rows


def test_where_no_word_speaks_for_a_class_that_is_said_and_no_words_are_replaced():
    few = planted(count=8)
    with warned("planted", "no words replaced", "class 1"):
        rows = baselines(few, seed=0, **SMALL)
    assert [row["variant"] for row in rows][-1] == "regularised"


def test_a_trained_model_that_is_not_what_was_asked_for_is_refused(corpus, attention):
    with refused("('cnn', 'additive', 0)", "('lstm', 'additive', 0)"):
        baselines(corpus, encoder="cnn", attention=attention)
    with refused("epochs"):
        baselines(corpus, attention=attention, epochs=2)
    with refused("planted", "planted"):
        baselines(planted(seed=1), attention=attention)
    with refused("score", "additive or dot", "log_odds"):
        baselines(corpus, score="log_odds")


def test_log_odds_need_single_texts_of_two_classes_with_words_that_are_no_stop_words(tmp_path):
    with refused("small", "two classes", "3 classes"):
        baselines(small_corpus(classes=3))
    pairs = random_pairs((3, 4))
    split = Split(["a", "b"], [list(p) for p in pairs], np.array([0, 1]), queries=[["q"], ["q"]])
    told = Corpus(
        "told",
        ["0", "1"],
        dict.fromkeys(("train", "dev", "test"), split),
        DataSettings(source="told"),
    )
    with refused("told", "two classes", "pairs"):
        train(told, score="log_odds", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    stops = Split(["a", "b"], [["the"], ["of"]], np.array([0, 1]))
    few = Corpus(
        "few",
        ["0", "1"],
        dict.fromkeys(("train", "dev", "test"), stops),
        DataSettings(source="few"),
    )
    with refused("few", "stop words"):
        train(few, score="log_odds", **SMALL)


def test_logistic_regression_on_real_films_is_as_good_as_few_words_are(real_data):
    films = load(real_data / "sst", dataset="sst")
    odds = fit_log_odds(films, Vocabulary.build(films.splits["train"].tokens, 1))
    test = films.splits["test"]
    # Such an L1 keeps hardly any word: a logistic regression on all of them has .78 to .80.
    assert (odds.coefficients.nan_to_num() != 0).sum() < 1000
    assert 0.71 < scores_of(odds.logits(test.tokens), test.labels)["accuracy"] < 0.77
    assert "worst" in odds.extreme(0, 20)
