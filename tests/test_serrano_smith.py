"""The reproduction of Serrano & Smith, small but complete."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import contents
from pandas.testing import assert_frame_equal
from safetensors.torch import load_file
from scipy import stats
from wording import refused

import heedmap.papers.serrano_smith.paper as paper
from heedmap.data.load import load
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.papers.kit.registry import figures as figures_of
from heedmap.papers.kit.render import markdown
from heedmap.papers.kit.reproduction import Cell
from heedmap.papers.serrano_smith.claims import claims, learned, over_seeds, relative
from heedmap.papers.serrano_smith.numbers import Trial, quartiles
from heedmap.papers.serrano_smith.paper import reproduce
from heedmap.papers.serrano_smith.result import result
from heedmap.papers.serrano_smith.settings import MODELS, RECIPES, SerranoSmithSettings
from heedmap.papers.serrano_smith.training import (
    Training,
    dropout,
    flat,
    new_model,
    texts_for,
    word_vectors,
)
from heedmap.runs.listing import describe
from heedmap.runs.open import open_run
from heedmap.training.fit import fit
from heedmap.training.objective import Progress

TINY = {
    "epochs": 1, "vector_epochs": 1, "embedding_size": 8, "hidden_size": 8, "least_count": 2, "seeds": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus():
    return load("reviews", tokenizer="sentences", train_texts=120, test_texts=40)


def settings_of(corpus, **options):
    return SerranoSmithSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **{**TINY, **options}
    )


@pytest.fixture(scope="module")
def vectors(corpus):
    parts = [corpus.splits["train"], corpus.splits["dev"]]
    return word_vectors(parts, settings_of(corpus))


def test_word_vectors_have_norm_one_and_rare_words_share_one(corpus, vectors):
    words, matrix = vectors
    counts = {}
    for name in ("train", "dev"):
        for text in flat(corpus.splits[name]):
            for word in text:
                counts[word] = counts.get(word, 0) + 1
    assert words == sorted(word for word, count in counts.items() if count >= 2)
    assert len(words) < len(counts)
    norms = matrix.norm(dim=1)
    assert norms[[0, 2, 3]].eq(0).all()
    assert torch.allclose(norms[4:], torch.ones(len(words)))
    assert norms[1] == pytest.approx(1)
    again = word_vectors([corpus.splits["train"], corpus.splits["dev"]], settings_of(corpus))
    assert torch.equal(again[1], matrix)


@pytest.mark.parametrize("name", MODELS)
def test_models_start_as_the_paper_says(corpus, vectors, name):
    words, matrix = vectors
    model = new_model(name, words, matrix, corpus.classes, settings_of(corpus), seed=0)
    assert torch.equal(model.embedding.weight, matrix)
    assert model.encoder.size == 8
    assert model.score.hidden.weight.shape == (8, 8)
    assert isinstance(model, HierarchicalClassifier) == name.startswith("han")
    for key, value in model.named_parameters():
        if "weight_hh" in key:
            for gate in (value.T @ value).unsqueeze(
                0
            ):  # three gates, stacked: columns are orthonormal
                assert torch.allclose(gate, torch.eye(len(gate)), atol=1e-5)
        elif "bias_hh" in key:  # started as an LSTM's, by the released code
            quarter = len(value) // 4
            assert value.nonzero().flatten().tolist() == [*range(quarter, 2 * quarter)]
            assert value.sum() == quarter
        elif value.dim() == 1:
            assert value.eq(0).all()
    assert model.decoder.out_features == len(corpus.classes)
    other = new_model(name, words, matrix, corpus.classes, settings_of(corpus), seed=1)
    assert not torch.equal(other.decoder.weight, model.decoder.weight)


@pytest.mark.parametrize("name", ["han-cnn", "flan-none"])
def test_dropout_is_of_the_training_alone_and_goes_with_it(corpus, vectors, name):
    model = new_model(name, *vectors, corpus.classes, settings_of(corpus), seed=0)
    split = corpus.splits["test"]
    batch = model.encoded(texts_for(name, split), split.labels).batch(range(6))
    plain = model.eval()(batch)[0]
    with dropout(model, settings_of(corpus)):
        assert torch.equal(model.eval()(batch)[0], plain)
        first, second = (model.train()(batch)[0] for _ in range(2))
        assert not torch.equal(first, second)
        logits = torch.stack([model(batch)[0] for _ in range(60)])
        assert 0.1 < logits.eq(0).float().mean() < 0.5  # AllenNLP drops the logits themselves
    assert torch.equal(model.train()(batch)[0], plain)


def training_of(corpus, vectors, name="flan-none", **options):
    settings = settings_of(corpus, **options)
    model = new_model(name, *vectors, corpus.classes, settings, seed=0)
    train, dev = (
        model.encoded(texts_for(name, corpus.splits[part]), corpus.splits[part].labels)
        for part in ("train", "dev")
    )
    return Training(name, model, train, dev, settings, 0), settings


def test_the_rate_is_halved_after_every_epoch_without_a_better_one(corpus, vectors):
    training, settings = training_of(corpus, vectors)
    progress = Progress()
    rates = []
    for accuracy in (0.5, 0.6, 0.6, 0.55, 0.7, 0.7):
        training.on_epoch(progress)
        rates.append(training.optimizer.param_groups[0]["lr"] / settings.learning_rate)
        progress.scores.append({"accuracy": accuracy})
    assert rates == [1, 1, 1, 0.5, 0.25, 0.25]


def test_patience_is_longer_without_an_encoder(corpus, vectors):
    for name, patience in (("flan-none", 10), ("flan-rnn", 5)):
        training, _ = training_of(corpus, vectors, name)
        for done in range(1, 15):
            progress = Progress(epochs_done=done, best_epoch=2)
            assert training.is_finished(progress) == (done - 1 - 2 >= patience)
    for given, trained in ((3, 12), (15, 60), (60, 60), (80, 80)):
        assert training_of(corpus, vectors, "flan-none", epochs=given)[0].epochs == trained


def test_a_resumed_training_ends_at_the_same_weights(corpus, vectors, tmp_path):
    whole, settings = training_of(corpus, vectors)
    with dropout(whole.model, settings):
        fit(whole)
    first, _ = training_of(corpus, vectors)
    first.epochs = 2
    with dropout(first.model, settings):
        fit(first, tmp_path / "it")
    second, _ = training_of(corpus, vectors)
    with dropout(second.model, settings):
        fit(second, tmp_path / "it")
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name])


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "made"
    return reproduce(corpus, out=out, name="imdb", workers=1, **TINY)


def test_every_model_has_a_table_its_weights_and_a_place_in_the_result(made):
    assert made.models == list(MODELS)
    assert made.missing == 0
    text = (made.folder / "result.md").read_text(encoding="utf-8")
    for model in MODELS:
        marked = f"{model} †" if model in learned(made.rows).failed else model
        assert text.count(f"| {marked} |") >= 12
        assert (made.folder / "parts" / f"{model}-0.safetensors").exists()
        assert not (made.folder / "parts" / f"{model}-0.checkpoints").exists()
    assert "another IMDB than the paper's" in text
    assert text.count("## Claim") == 6


def test_one_sentence_has_no_ranking_and_is_counted(made, corpus):
    trial = made.rows[0]
    short = [len(text) == 1 for text in corpus.splits["test"].tokens]
    assert (~trial.asked).tolist() == short
    assert sum(short) > 0
    shares, _ = trial.flip_table()
    assert sum(shares.values()) == pytest.approx(1)
    assert np.isnan(trial.smallest[~trial.asked]).all()


def test_the_tables_are_those_of_the_saved_weights(made, corpus):
    words = json.loads((made.folder / "words.json").read_text(encoding="utf-8"))
    vectors = load_file(made.folder / "vectors.safetensors")["vectors"]
    for trial in made.rows:
        cell = Cell(f"{trial.model}-{trial.seed}", {"model": trial.model, "seed": trial.seed})
        model = new_model(trial.model, words, vectors, corpus.classes, made.settings, trial.seed)
        saved = load_file(made.folder / "parts" / f"{cell}.safetensors")
        model.load_state_dict({name.removeprefix("model."): v for name, v in saved.items()})
        again = paper.erased(cell, model.eval(), corpus.splits["test"])
        # To rounding: a product's last digit depends on where its numbers lie in memory.
        assert_frame_equal(again.to_pandas(), trial.table.to_pandas(), atol=1e-6)


def test_it_is_read_back_and_not_made_again(made, corpus, monkeypatch):
    before = contents(made.folder)
    monkeypatch.setattr(paper, "compute", pytest.fail)
    again = reproduce(corpus, out=made.folder, name="imdb", workers=1, **TINY)
    pairs = zip(again.rows, made.rows, strict=True)
    assert all(str(a.table.to_pylist()) == str(b.table.to_pylist()) for a, b in pairs)
    assert contents(made.folder) == before
    assert paper.PAPER.read(made.folder).notes == made.notes
    assert [figure.key for figure in figures_of(made.folder)] == [
        "efficiency", "erased", "differences",
    ]  # fmt: skip


@pytest.mark.slow
def test_its_folder_is_told_from_a_run(made):
    assert describe(made.folder).state == "reproduction"
    with refused("paper"):
        open_run(made.folder)


@pytest.mark.exhaustive
def test_workers_do_not_change_a_byte(made, corpus, tmp_path):
    reproduce(corpus, out=tmp_path / "two", name="imdb", workers=2, **TINY)
    assert contents(tmp_path / "two") == contents(made.folder)


def test_other_settings_are_refused_and_nothing_is_lost(made, corpus):
    before = contents(made.folder)
    with refused("epochs: 1 -> 2"):
        reproduce(corpus, out=made.folder, name="imdb", **{**TINY, "epochs": 2})
    assert contents(made.folder) == before


def test_a_damaged_part_is_named(made, corpus):
    path = made.folder / "parts" / "flan-none-0.parquet"
    good = path.read_bytes()
    try:
        path.write_bytes((made.folder / "parts" / "flan-cnn-0.parquet").read_bytes())
        with refused("flan-none-0.parquet", made.folder / "manifest.json"):
            reproduce(corpus, out=made.folder, name="imdb", workers=1, **TINY)
    finally:
        path.write_bytes(good)


def test_texts_of_words_are_refused(tmp_path):
    with refused("reviews", "sentences", "words"):
        reproduce(load("reviews"), out=tmp_path / "no")


def test_texts_that_are_all_too_long_to_learn_from_are_refused(corpus, tmp_path):
    with refused("50 sentences", "1 words", "--most-words"):
        reproduce(corpus, out=tmp_path / "no", most_words=1)


def test_long_texts_are_left_out_of_train_and_dev_and_stay_in_test(corpus, tmp_path):
    found = reproduce(
        corpus, out=tmp_path / "some", models=("flan-none",), workers=1, **TINY, most_sentences=1
    )
    short = {
        name: sum(len(text) == 1 for text in corpus.splits[name].tokens)
        for name in ("train", "dev")
    }
    assert f"train {short['train']}, dev {short['dev']}, test 40" in found.notes[0]


def trial(model="han-rnn", seed=0, **columns):
    rows = len(columns["count_exact"])
    base = {
        "model": [model] * rows, "seed": [seed] * rows, "label": [0] * rows, "predicted": [0] * rows,
        "n_tokens": [4] * rows,
    }  # fmt: skip
    return Trial(model, seed, pa.table({**base, **columns}))


FLIPS = {
    "n_tokens": [4, 4, 4, 4, 1],
    "flip_top": [1.0, 1.0, 0.0, 0.0, None],
    "flip_random": [1.0, 0.0, 0.0, 0.0, None],
    "js_top": [0.4, 0.3, 0.1, 0.0, None],
    "js_random": [0.1, 0.1, 0.2, 0.0, None],
    "count_exact": [1, 1, 2, 0, None],
    "count_attention": [1, 2, 0, 0, None],
    "count_gradient": [1, 1, 4, 0, None],
    "count_product": [1, 1, 2, 0, None],
    "count_random": [[2, 4], [1, 1], [0, 2], [0, 0], None],
    "mass_attention": [0.5, 0.75, None, None, None],
    "empty_flips": [False, True, False, True, None],
}


def test_the_decision_flip_table_is_of_texts_of_more_than_one_item():
    shares, p = trial(**FLIPS).flip_table()
    assert shares == {"both": 0.25, "top": 0.25, "random": 0.0, "neither": 0.5}
    assert p == 1.0  # one text alone


def test_efficiency_is_of_the_texts_that_some_set_flips_and_a_ranking_that_never_does_counts_0():
    one = trial(**FLIPS)
    assert np.array_equal(one.efficiency("attention"), [1, 0.5, 0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(one.efficiency("random"), [0.375, 1, 0.5, np.nan, np.nan], equal_nan=True)
    assert one.fractions("attention").tolist() == [0.25, 0.5, np.inf]
    assert quartiles(one.fractions("attention"))[1] == 0.5
    assert one.removed("attention").tolist() == [0.5, 0.75]
    assert all(np.isnan(value) for value in quartiles(np.array([])))


def test_the_paper_counts_a_text_that_only_the_bias_changes_as_changed_by_every_ranking():
    one = trial(**FLIPS)
    assert one.only_all == 0.25  # of the four asked, the last
    assert one.paper_counts("attention").tolist()[:4] == [1, 2, 0, 4]
    assert one.paper_counts("random").tolist()[:4] == [2, 1, 0, 4]
    other = trial(**{**FLIPS, "empty_flips": [True, False, True, False, None]})
    assert other.only_all == 0
    assert other.paper_counts("attention").tolist()[:4] == [1, 2, 4, 0]


def test_a_text_whose_random_rankings_are_almost_the_best_does_not_outweigh_the_others():
    columns = {**FLIPS, "n_tokens": [100] * 5, "count_exact": [98, 100, 2, 0, None]}
    columns |= {"count_attention": [99, 0, 4, 0, None]}
    columns |= {"count_random": [[98, 98], [100, 101], [8, 8], [0, 0], None]}
    expected = [np.nan, -1, (2 / 4 - 2 / 8) / (1 - 2 / 8), np.nan, np.nan]
    np.testing.assert_allclose(relative(trial(**columns)), expected)


def many(model, seed, **better):
    """Make 200 texts of ten items; `better` says how often a ranking is as good as the smallest set."""
    rng = np.random.default_rng(seed)
    size = 200
    columns = {
        "label": [0, 1] * (size // 2),
        "predicted": [0, 1] * (size // 2),
        "n_tokens": [10] * size,
        "flip_top": (rng.random(size) < better.get("top", 0.3)).astype(float),
        "flip_random": (rng.random(size) < 0.05).astype(float),
        "js_top": rng.random(size),
        "js_random": rng.random(size),
        "count_exact": [2] * size,
        "count_random": [[8] * 5] * size,
    }
    for name in ("attention", "gradient", "product"):
        columns[f"count_{name}"] = np.where(rng.random(size) < better[name], 2, 8)
    return trial(model, seed, **columns)


def test_claims_hold_where_every_model_shows_them():
    trials = [many(model, 0, attention=0.3, gradient=0.6, product=0.95) for model in MODELS]
    found = claims(trials)
    assert [claim.verdict for claim in found] == ["survives"] * 5 + ["undecided"]


def test_a_claim_falls_with_one_model_and_stays_open_with_equal_ones():
    trials = [many(model, 0, attention=0.3, gradient=0.6, product=0.95) for model in MODELS[:5]]
    trials.append(many(MODELS[5], 0, attention=0.9, gradient=0.3, product=0.3, top=0.9))
    verdicts = [claim.verdict for claim in claims(trials)]
    assert verdicts[:5] == ["survives", "does not", "survives", "does not", "undecided"]


def test_a_model_that_has_not_learned_neither_refutes_a_claim_nor_lets_it_survive():
    trials = [many(model, 0, attention=0.3, gradient=0.6, product=0.95) for model in MODELS[:5]]
    bad = many(MODELS[5], 0, attention=0.9, gradient=0.3, product=0.3, top=0.9)
    guess = pa.array([0] * len(bad.table))
    bad = replace(
        bad,
        table=bad.table.set_column(bad.table.column_names.index("predicted"), "predicted", guess),
    )
    found = claims([*trials, bad])
    assert {claim.verdict for claim in found} == {"undecided"}
    assert all("not learned, not counted †" in claim.numbers[-1] for claim in found[:5])
    assert all("with one seed the spread over trainings is not known" in c.basis for c in found)


@pytest.mark.parametrize("changed", [0, 3, 19])
def test_a_share_of_19_texts_has_the_exact_interval_even_where_it_is_0_or_1(changed):
    table = many("han-none", 0, attention=0.3, gradient=0.6, product=0.95).table.slice(0, 19)
    tops = pa.array([1.0] * changed + [0.0] * (19 - changed))
    table = table.set_column(table.column_names.index("flip_top"), "flip_top", tops)
    one = replace(many("han-none", 0, attention=0.3, gradient=0.6, product=0.95), table=table)
    decisive = claims([one])[1].decisive
    exact = stats.binomtest(changed, 19).proportion_ci(method="exact")
    assert decisive[1:4] == pytest.approx((0.5 - changed / 19, 0.5 - exact.high, 0.5 - exact.low))
    assert decisive.low < decisive.high


def test_two_models_of_equal_texts_have_no_interval_of_their_difference():
    equal = {"count_attention": [8] * 200, "count_random": [[8] * 5] * 200}
    trials = [
        many(model, 0, attention=0.3, gradient=0.6, product=0.95)
        for model in ("han-none", "han-rnn")
    ]
    for i, one in enumerate(trials):
        table = one.table
        for name, values in equal.items():
            column = table.column_names.index(name)
            table = table.set_column(column, name, pa.array(values, table[name].type))
        trials[i] = replace(one, table=table)
    assert claims(trials)[-1].numbers[0].endswith("difference +0.000 (no interval)")


def test_over_seeds_the_mean_is_that_of_the_seeds_means_whichever_texts_have_a_number():
    first, second = np.array([1.0, np.nan, 3.0, np.nan]), np.array([3.0, 5.0, np.nan, np.nan])
    found = over_seeds([first, second])
    assert found.mean() == pytest.approx(3.0)
    assert found.tolist() == [1.5, 3.75, 3.75]
    assert over_seeds([first]).tolist() == [1.0, 3.0]
    assert over_seeds([np.full(3, np.nan)] * 2).size == 0


def test_over_seeds_the_interval_holds_the_mean_as_often_as_it_should():
    rng, held, times = np.random.default_rng(0), 0, 400
    for _ in range(times):
        text = rng.normal(size=60)
        seeds = [
            np.where(rng.random(60) < p, text + rng.normal(size=60), np.nan) for p in (0.9, 0.4)
        ]
        low, high = mean_interval(over_seeds(seeds).tolist())
        held += low < 0 < high
    assert 0.92 < held / times < 0.98


def test_where_no_decision_changes_there_is_a_result_all_the_same(made):
    table = made.rows[0].table
    for i, name in enumerate(table.column_names):
        if name.startswith("count_"):
            kept = table[name].to_pylist()
            zeros = [
                None if x is None else [0.0] * len(x) if isinstance(x, list) else 0 for x in kept
            ]
            table = table.set_column(i, name, pa.array(zeros, table[name].type))
    found = result(replace(made, rows=[replace(made.rows[0], table=table)]))
    assert [figure.key for figure in found.figures] == ["differences"]
    assert "too few texts that erasure changes" in markdown(found)


def test_texts_of_one_sentence_alone_have_a_result_without_rankings(corpus, tmp_path):
    parts = {
        name: replace(
            split, tokens=[text[:1] for text in split.tokens], rationale=None, written=None
        )
        for name, split in corpus.splits.items()
    }
    single = replace(corpus, splits=parts)
    found = reproduce(single, out=tmp_path / "one", workers=1, **TINY | {"models": ("han-none",)})
    assert np.isnan(found.rows[0].certified)
    assert figures_of(tmp_path / "one") == []
    assert "–" in markdown(result(found))


def test_every_recipe_is_valid_and_says_what_is_not_the_papers(made):
    for name, recipe in RECIPES.items():
        settings_of_recipe = {**made.settings.model_dump(), **recipe.options}
        SerranoSmithSettings.of(**settings_of_recipe)
        assert bool(recipe.not_theirs) == (name not in ("imdb-10", "yahoo", "amazon", "yelp"))
    assert any("instead of 15" in text for text in made.differences)
