"""The reproduction of Drozdyuk et al., small but complete."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import contents, small_corpus, watched
from safetensors.torch import save
from scipy import stats
from tiny_transformers import reviews_classifier
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
from wording import refused

import heedmap.papers.drozdyuk.paper as paper
from heedmap.data.load import as_written, load
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.files.tables import read_table
from heedmap.papers.drozdyuk.adversaries import ATTACKS, attack_loss, opposite, train_attack
from heedmap.papers.drozdyuk.claims import claims
from heedmap.papers.drozdyuk.figures import figures
from heedmap.papers.drozdyuk.interventions import attack_plan, cheap_plans, judge
from heedmap.papers.drozdyuk.model import (
    ProbedClassifier,
    Texts,
    all_logits,
    new_transformer,
    numbered,
    train_transformer,
    vocabulary_of,
)
from heedmap.papers.drozdyuk.paper import intervene, reproduce
from heedmap.papers.drozdyuk.published import PUBLISHED
from heedmap.papers.drozdyuk.result import result
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.drozdyuk.trained import tokenised

TINY = {
    "size": 8, "heads": 2, "layers": 2, "feed_forward": 8, "epochs": 1, "adversary_epochs": 1,
    "adversary_hidden": 8, "batch_size": 16, "seeds": 1, "activations": ("softmax", "entmax15"),
    "dataset": "imdb",
}  # fmt: skip
ABLE = {**TINY, "size": 16, "epochs": 15, "learning_rate": 1e-2, "patience": 15, "dropout": 0.0}


def settings_of(corpus, **options):
    return DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **{**TINY, **options}
    )


@pytest.fixture(scope="module")
def corpus():
    return small_corpus()


@pytest.fixture(scope="module")
def able(corpus):
    """A transformer that has learned the small corpus, and the corpus in its numbers."""
    settings = settings_of(corpus, **ABLE)
    vocabulary = vocabulary_of(corpus.splits["train"], settings)
    texts = {n: numbered(split, vocabulary, settings) for n, split in corpus.splits.items()}
    subject = new_transformer(settings, len(vocabulary), 2, "entmax15", 0)
    accuracies = train_transformer(subject, texts["train"], texts["dev"], settings, 0)
    assert max(accuracies) == 1.0
    return subject, texts, settings


@pytest.fixture(scope="module")
def done(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction") / "run"
    return reproduce(corpus, out=folder, per_layer=True, workers=1, **TINY)


def by_name(rows, activation="softmax"):
    return {(r["intervention"], r["layers"]): r for r in rows if r["activation"] == activation}


def test_a_table_holds_every_intervention(done):
    rows = by_name(done.rows)
    per_layer = {
        "uniform",
        "activation:entmax15",
        "activation:sparsemax",
        "shuffle:positions",
        *ATTACKS,
    }
    expected = {(name, where) for name in per_layer for where in ("all", "0", "1")}
    expected |= {
        (name, "all")
        for name in ("original", "majority", "matched:entmax15", "matched:sparsemax",
                     "shuffle:weights", "shuffle:entries")
    }  # fmt: skip
    assert set(rows) == expected
    for (name, _), row in rows.items():
        assert row["n"] == 20
        assert row["drop"] == pytest.approx(rows["original", "all"]["accuracy"] - row["accuracy"])
        if name != "majority":
            # Two classes: what is not right is the other class.
            assert row["opposite_accuracy"] == pytest.approx(1 - row["accuracy"])
            assert row["flipped"] == pytest.approx(1 - row["kept"])
            assert len(row["layer_tvd"]) == 2
        assert (row["losses"] is not None) == (name in ATTACKS)
    assert rows["original", "all"]["weights_tvd"] == 0
    assert rows["original", "all"]["kept"] == 1
    assert rows["uniform", "1"]["layer_tvd"][0] == 0
    assert rows["random_k", "1"]["layer_key_distance"][0] < 1e-5
    assert rows["majority", "all"]["accuracy"] == 0.5
    assert len(read_table(done.folder / "table.parquet")) == len(done.rows)


def test_the_result_stands_in_the_folder(done):
    text = (done.folder / "result.md").read_text()
    for name, softmax, entmax in PUBLISHED:
        line = next(x for x in text.splitlines() if x.startswith(f"| {name} |"))
        assert f" {softmax:.2f} |" in line
        assert f" {entmax:.2f} |" in line
    assert "[S4]" in text
    assert len(done.claims) == 6
    assert all(claim.verdict == "undecided" for claim in done.claims)  # one seed
    assert (done.folder / "result.csv").read_text().count("\n") == len(done.rows) + 1
    words = json.loads((done.folder / "vocabulary.json").read_text())
    assert Vocabulary(words).words == words


def test_page_latex_and_figures_show_what_the_table_holds(done, heedmap, tmp_path):
    page = (done.folder / "result.html").read_text()
    for name, *values in PUBLISHED:
        assert f"<td>{name}</td>" in page
        assert all(f"<td>{value:.2f}</td>" in page for value in values)
    assert "<td>softmax †</td>" in page
    assert "† Not learned, and not counted: softmax (1 of 1 training: accuracy" in page
    for claim in done.claims:
        assert f"Claim: {claim.text}" in page
        assert any("softmax" in line and "not learned" in line for line in claim.numbers)
    assert "shuffling & 79 & .40 &" in (done.folder / "result.tex").read_text()
    listed = heedmap("figures", done.folder, "--list")
    assert [line.split()[0] for line in listed.out.splitlines()] == [
        "accuracy", "drop", "weights", "activations", "activations-of-three",
        "texts-change-of-activation", "texts-shuffling", "texts-adversarial", "texts-random-k",
        "texts-opposite",
    ]  # fmt: skip
    drawn = heedmap("figures", done.folder, "--format", "svg", "--out", tmp_path)
    assert drawn.code == 0, drawn.err
    assert (tmp_path / "drop.svg").read_text().startswith("<svg")
    drop = figures(done)[1].spec["datasets"].values()
    bars = {
        (row["dataset"], row["series"]): row["mean"] for x in drop for row in x if "mean" in row
    }
    for activation in ("softmax", "entmax15"):
        rows = by_name(done.rows, activation)
        change = "activation:entmax15" if activation == "softmax" else "activation:softmax"
        for name, drawn_as in (
            ("uniform", "uniform"), (change, "change of activation"), ("shuffle:positions", "shuffling"),
            ("adversarial_weights", "asked for other weights"), ("majority", "majority"),
        ):  # fmt: skip
            assert bars[drawn_as, activation] == pytest.approx(rows[name, "all"]["drop"], abs=1e-4)


def test_the_result_says_in_what_it_is_unlike_the_paper(done, corpus):
    assert (
        "Unlike the paper: hidden size of the adversaries 8 instead of 256." in result(done).notes
    )
    as_published = replace(done, settings=settings_of(corpus, adversary_hidden=256))
    assert not [note for note in result(as_published).notes if "Unlike" in note]


def test_texts_of_ones_own_are_neither_beside_table_1_nor_judged_by_it(done, corpus):
    rows = [
        {**row, "accuracy": 0.62, "n": 1000} if row["intervention"] == "original" else row
        for row in done.rows
    ]
    papers = replace(done, rows=rows)  # above chance, .5, and less than half of the way to .865
    assert [*papers.learned.failed] == ["softmax", "entmax15"]
    users = replace(papers, settings=settings_of(corpus, dataset=None))
    assert not users.learned.failed
    made = result(users)
    assert "other texts, so that no published number is compared" in made.notes[-1]
    tables = [part for part in made.sections if not hasattr(part, "verdict")]
    assert tables[0].title == "Accuracy under each change"
    assert tables[0].heads == ["row", "softmax, ours", "entmax15, ours"]
    shown = [*tables[0].reading.split(), *made.summary.heads, made.summary.title]
    assert not any("S4" in text or "Table 1" in text for text in shown)
    assert not any("published" in line for claim in made.claims for line in claim.numbers)
    assert any("published" in line for claim in result(papers).claims for line in claim.numbers)
    assert not any("published" in str(figure.spec) for figure in figures(users))
    assert "Table 1" in figures(papers)[0].title
    assert "Table 1" not in figures(users)[0].title


def test_the_name_of_the_data_says_whether_published_numbers_stand_beside(
    heedmap, csv_file, monkeypatch
):
    settings = []

    def stopped(corpus, **options):
        settings.append(options.get("dataset"))
        raise InputError("stopped here")

    monkeypatch.setattr(paper, "reproduce", stopped)
    for name in ("imdb", "sst", "mine"):
        assert heedmap("reproduce", "drozdyuk", name, "--data", csv_file).code == 2
    assert settings == ["imdb", "sst", None]


def test_a_reproduction_is_read_again_from_its_folder(done):
    again = paper.read(done.folder)
    assert (again.rows, again.name, again.missing) == (done.rows, done.name, 0)
    assert paper.read(done.folder.parent) is None


def test_a_stopped_run_goes_on_to_the_same_bytes(done, corpus, tmp_path, monkeypatch):
    original = paper.compute
    calls = []

    def stop_at_the_second(cell, checkpoints, *, shared):
        calls.append(cell["activation"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(cell, checkpoints, shared=shared)

    folder = tmp_path / "run"
    monkeypatch.setattr(paper, "compute", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        reproduce(corpus, out=folder, per_layer=True, workers=1, **TINY)
    assert "Not finished: 1 model is still to be run." in (folder / "result.md").read_text()
    state = torch.get_rng_state()
    reproduce(corpus, out=folder, per_layer=True, workers=1, **TINY)
    assert calls == ["softmax", "entmax15", "entmax15"]  # the finished part was not run again
    assert torch.equal(state, torch.get_rng_state())
    assert contents(folder) == contents(done.folder)


class Stop(Exception):
    pass


LONGER = {**TINY, "epochs": 3, "adversary_epochs": 2, "activations": ("softmax",), "workers": 1}


def stopped_at(words):
    def report(done, text):
        if words in text:
            raise Stop

    return report


@pytest.fixture(scope="module")
def longer(corpus, tmp_path_factory):
    """All files of a reproduction of several epochs that nobody stopped."""
    return contents(
        reproduce(corpus, out=tmp_path_factory.mktemp("longer") / "run", **LONGER).folder
    )


@pytest.mark.parametrize(
    "where", ["softmax-0: epoch 3 of 3", "softmax-0: adversarial, epoch 2 of 2",
              "softmax-0: opposite random k, epoch 2 of 2"],
)  # fmt: skip
def test_a_training_that_was_stopped_is_resumed_in_its_middle(corpus, longer, tmp_path, where):
    with pytest.raises(Stop), watched(stopped_at(where)):
        reproduce(corpus, out=tmp_path / "run", **LONGER)
    seen = []
    with watched(lambda done, text: seen.append(text)):
        reproduce(corpus, out=tmp_path / "run", **LONGER)
    assert next(text for text in seen if "epoch" in text) == where
    assert contents(tmp_path / "run") == longer


@pytest.mark.filterwarnings("ignore:.*not as heedmap wrote it")
def test_overwrite_begins_a_training_anew_that_was_stopped(corpus, longer, tmp_path):
    with pytest.raises(Stop), watched(stopped_at("opposite, epoch 2")):
        reproduce(corpus, out=tmp_path / "run", **LONGER)
    kept = tmp_path / "run" / "parts" / "softmax-0.checkpoints" / "transformer.safetensors"
    kept.write_bytes(kept.read_bytes()[:100])
    with refused("softmax-0", "transformer.safetensors", "damaged", "--overwrite"):
        reproduce(corpus, out=tmp_path / "run", **LONGER)
    reproduce(corpus, out=tmp_path / "run", overwrite=True, **LONGER)
    kept.with_name(f"{kept.name}.changed").unlink()  # a file that somebody changed is not removed
    kept.parent.rmdir()
    assert contents(tmp_path / "run") == longer


def test_another_run_in_the_folder_is_not_touched(done, corpus, tmp_path):
    before = contents(done.folder)
    with refused("alpha: 0.5 -> 0.9", "--overwrite"):
        reproduce(corpus, out=done.folder, per_layer=True, alpha=0.9, **TINY)
    assert contents(done.folder) == before
    (tmp_path / "note").write_text("mine")
    with refused(tmp_path, "--out"):
        reproduce(corpus, out=tmp_path, **TINY)
    with refused(tmp_path / "note", "--out"):
        reproduce(corpus, out=tmp_path / "note", **TINY)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.toml").write_text("version = 9")
    with refused("settings.toml", "version = 9", "1"):
        reproduce(corpus, out=tmp_path / "run", **TINY)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"activations": ("softmax", "softmax")}, ["activations", "softmax, softmax"]),
        ({"activations": ()}, ["activations"]),
        ({"activations": ("hardmax",)}, ["activations.0 = 'hardmax'", "'softmax'"]),
        ({"alpha": 1.5}, ["alpha = 1.5", "1"]),
        ({"seeds": 0}, ["seeds = 0", "1"]),
        ({"colour": 1}, ["colour = 1"]),
    ],
)
def test_bad_settings_are_said(corpus, tmp_path, options, named):
    with refused(*named):
        reproduce(corpus, out=tmp_path / "run", **{**TINY, **options})
    assert not (tmp_path / "run").exists()


def test_samples_are_counted_and_the_same_again(corpus):
    settings = settings_of(corpus, train_texts=10, test_texts=500)
    splits, notes = paper.sampled(corpus, settings)
    again, _ = paper.sampled(corpus, settings)
    assert splits["train"].keys == again["train"].keys
    assert len(splits["train"]) == 10
    assert len(splits["test"]) == 20
    assert "train 10 of 60, dev 20, test 20" in notes[0]


def test_attacks_learn_and_are_judged_on_texts_they_did_not_see(able):
    subject, texts, settings = able
    settings = settings.model_copy(update={"adversary_epochs": 6, "adversary_learning_rate": 1e-2})
    weights = {name: value.clone() for name, value in subject.model.state_dict().items()}
    for attack in ("adversarial", "adversarial_weights", "opposite"):
        adversary, losses = train_attack(attack, subject, texts["train"], settings, seed=0)
        assert losses[-1] < losses[0]
        row = judge(subject, [attack_plan(attack, adversary, None)], texts["test"], 0)[0]
        assert row["n"] == len(texts["test"])
        assert row["key_distance"] > 0.1
        again, same = train_attack(attack, subject, texts["train"], settings, seed=0)
        assert same == losses
        for one, other in zip(adversary.parameters(), again.parameters(), strict=True):
            assert torch.equal(one, other)
    for name, value in subject.model.state_dict().items():
        assert torch.equal(value, weights[name])  # the classifier is as it was


def test_a_stopped_transformer_goes_on_to_the_same_bytes(corpus, tmp_path):
    settings = settings_of(corpus, epochs=5, dropout=0.5, learning_rate=1e-2)
    vocabulary = vocabulary_of(corpus.splits["train"], settings)
    texts = {n: numbered(split, vocabulary, settings) for n, split in corpus.splits.items()}

    def trained(settings=settings, **options):
        subject = new_transformer(settings, len(vocabulary), 2, "entmax15", 0)
        scores = train_transformer(subject, texts["train"], texts["dev"], settings, 0, **options)
        return scores, save(subject.model.state_dict())

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop), watched(stopped_at("epoch 3 of")):
        trained(checkpoint=path)
    seen = []
    with watched(lambda done, text: seen.append(text)):
        again = trained(checkpoint=path)
    assert again == trained()
    assert list(dict.fromkeys(seen)) == [f"epoch {i} of 5" for i in (3, 4, 5)]
    for other in ({"alpha": 0.9}, {"learning_rate": 1e-3}):
        with refused("checkpoint.safetensors", "--overwrite"):
            trained(settings.model_copy(update=other), checkpoint=path)


def test_a_transformer_whose_patience_ended_is_not_trained_on(corpus, tmp_path):
    settings = settings_of(corpus, epochs=9, patience=1, learning_rate=1e-9)
    vocabulary = vocabulary_of(corpus.splits["train"], settings)
    texts = {n: numbered(split, vocabulary, settings) for n, split in corpus.splits.items()}
    steps = []
    for _ in range(2):
        subject = new_transformer(settings, len(vocabulary), 2, "softmax", 0)
        with watched(lambda done, text: steps.append(done)):
            scores = train_transformer(
                subject,
                texts["train"],
                texts["dev"],
                settings,
                0,
                tmp_path / "checkpoint.safetensors",
            )
        assert len(scores) == 2, "the second epoch brought nothing better"
    assert len(steps) == 2 * 4, "four batches per epoch, and none the second time"


@pytest.mark.parametrize("attack", ["adversarial_weights", "opposite_random_k"])
def test_a_stopped_attack_goes_on_to_the_same_bytes(able, tmp_path, attack):
    subject, texts, settings = able
    settings = settings.model_copy(update={"adversary_epochs": 4})

    def trained(subject=subject, layers=None, **options):
        adversary, losses = train_attack(
            attack, subject, texts["train"], settings, 0, layers, **options
        )
        return losses, save(adversary.state_dict())

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop), watched(stopped_at("epoch 3 of")):
        trained(checkpoint=path)
    seen = []
    with watched(lambda done, text: seen.append(done) if "epoch" in text else None):
        again = trained(checkpoint=path)
    assert again == trained()
    assert seen[0] > 0.5
    other = new_transformer(settings, len(subject.model.bert.embeddings.word_embeddings.weight), 2,
                            "entmax15", 1)  # fmt: skip
    for changed in ({"layers": frozenset([1])}, {"subject": other}):
        with refused("checkpoint.safetensors", "--overwrite"):
            trained(checkpoint=path, **changed)


def test_an_attack_that_diverges_says_so(able):
    subject, texts, settings = able
    wild = settings.model_copy(update={"adversary_epochs": 9, "adversary_learning_rate": 1e36})
    with refused("diverged", "adversary_learning_rate"):
        train_attack("opposite", replace(subject, activation="softmax"), texts["train"], wild, 0)


def test_the_judges_numbers_are_those_of_plain_predictions(able):
    subject, texts, _ = able
    plan = next(p for p in cheap_plans(subject, texts["dev"], 2) if p.name == "activation:softmax")
    row = judge(subject, [plan], texts["test"], 0)[0]
    softmax = ProbedClassifier(subject.model, "softmax", 2)
    expected = (all_logits(softmax, texts["test"]).argmax(1).numpy() == texts["test"].labels).mean()
    assert row["accuracy"] == expected
    own = all_logits(subject, texts["test"]).softmax(1)
    tvd = (own - all_logits(softmax, texts["test"]).softmax(1)).abs().sum(1).mean() / 2
    assert row["prediction_tvd"] == pytest.approx(float(tvd), abs=1e-6)


def test_the_swap_of_one_layer_leaves_the_others_activation(able):
    subject, texts, _ = able
    plans = {(p.name, p.where): p for p in cheap_plans(subject, texts["dev"], 2)}
    rows = judge(
        subject,
        [plans["activation:softmax", "1"], plans["activation:softmax", "all"]],
        texts["test"],
        0,
    )
    assert rows[0]["layer_tvd"][0] == 0
    assert rows[0]["layer_tvd"][1] > 0
    assert rows[1]["layer_tvd"][0] > 0


def test_the_loss_is_the_papers_with_a_radius(corpus):
    settings = settings_of(corpus, alpha=0.25, radius=1.5)
    logits, targets = torch.tensor([[0.0, 2.0], [1.0, 0.0]]), torch.tensor([1, 1])
    bce = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.tensor([2.0, -1.0]), torch.tensor([1.0, 1.0])
    )
    loss = attack_loss(logits, targets, torch.tensor([0.5, 9.0]), settings)
    torch.testing.assert_close(loss, 0.25 * bce - 0.75 * torch.tensor(1.0))
    torch.testing.assert_close(attack_loss(logits, targets, None, settings), bce)


def test_the_opposite_of_two_classes_is_the_other_and_of_more_the_next():
    assert opposite(np.array([0, 1]), 2).tolist() == [1, 0]
    assert opposite(np.array([0, 1, 2]), 3).tolist() == [1, 2, 0]


def test_three_classes(tmp_path):
    done = reproduce(small_corpus(classes=3), out=tmp_path / "run", workers=1, **TINY)
    original = by_name(done.rows)["original", "all"]
    assert original["accuracy"] + original["opposite_accuracy"] <= 1


def rows_like(drops, flipped=0.8, seeds=3, spread=0.001, **others):
    """Rows of two models with the drops given, for all that the claims look at.

    A number is the same for every seed but for a step of `spread` per seed; a list has one per seed.
    """
    names = ("original", "uniform", "activation:softmax", "activation:entmax15", "matched:softmax",
             "matched:entmax15", "shuffle:positions", "random_k", "adversarial", "opposite",
             "opposite_random_k", "adversarial_weights", "majority")  # fmt: skip
    fixed = {"adversarial": 0.03, "adversarial_weights": 0.03, "majority": 0.35, **others}

    def of(value, seed):
        return value[seed] if isinstance(value, list) else value + spread * seed

    return [
        {"activation": a, "seed": s, "intervention": name, "layers": "all", "accuracy": 0.85,
         "drop": of(fixed.get(name, drop), s), "weights_tvd": 0.5, "opposite_accuracy": 0.5,
         "flipped": of(flipped, s), "key_distance": 2.0, "kept": 0.9, "n": 2000}
        for a, drop in zip(("softmax", "entmax15"), drops, strict=True)
        for s in range(seeds) for name in names
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [
        ((0.07, 0.27), "survives"),
        ((0.07, 0.15), "survives"),
        ((0.07, 0.13), "does not"),
        ((0.27, 0.07), "does not"),
        (([0.05, 0.07, 0.09], [0.1, 0.15, 0.2]), "undecided"),
    ],
)
def test_the_first_claim_is_about_twice_the_drop(drops, verdict):
    assert claims(rows_like(drops))[0].verdict == verdict


def test_overlapping_seeds_do_not_undo_what_their_mean_shows():
    """By ranges this was undecided: the largest dense drop exceeds the smallest sparse one."""
    dense = [0.02, 0.03, 0.04, 0.03, 0.02, 0.12, 0.03, 0.02, 0.03, 0.02]
    sparse = [0.30, 0.28, 0.33, 0.31, 0.29, 0.35, 0.30, 0.10, 0.31, 0.32]
    assert max(dense) > min(sparse)
    assert claims(rows_like((dense, sparse), seeds=10))[0].verdict == "survives"


def test_the_interval_of_the_first_claim_is_students_of_the_seeds_differences():
    dense, sparse = [0.05, 0.07, 0.09], [0.1, 0.15, 0.3]
    (shuffling, *_) = claims(rows_like((dense, sparse)))[0].numbers
    excess = np.subtract(sparse, np.multiply(2, dense))
    low, high = stats.t.interval(0.95, 2, excess.mean(), stats.sem(excess))
    assert (
        f"minus twice softmax {100 * excess.mean():.1f}, "
        f"95 % interval {100 * low:.1f} to {100 * high:.1f};" in shuffling
    )


def test_one_test_that_contradicts_the_claim_is_enough_and_is_named_by_its_interval():
    rows = rows_like((0.07, 0.27))
    for row in rows:
        if (row["activation"], row["intervention"]) == ("entmax15", "random_k"):
            row["drop"] = 0.01
    claim = claims(rows)[0]
    assert claim.verdict == "does not"
    assert "random-K" in claim.numbers[2]
    assert "minus twice softmax -13." in claim.numbers[2]


@pytest.mark.parametrize(
    ("uniform", "shown"), [(0.0, False), ([0.0, 0.0, 0.1], False), (-0.01, False), (0.02, True)]
)
def test_nothing_is_said_of_models_that_do_not_use_their_attention(uniform, shown):
    """If uniform attention costs nothing, no other change can cost more: that says nothing of the claims."""
    for claim in claims(rows_like((0.07, 0.08), flipped=0.2, uniform=uniform)):
        assert claim.verdict == ("does not" if shown else "undecided")
        said = [n for n in claim.numbers if "is not shown to use its attention" in n]
        assert len(said) == (0 if shown else 2)


def test_nothing_is_said_of_models_that_have_nothing_to_lose():
    for claim in claims(rows_like((0.07, 0.27), majority=[-0.01, 0.0, 0.01])):
        assert claim.verdict == "undecided"
        assert "is not shown to be better than the majority class" in claim.numbers[-1]


@pytest.mark.parametrize(
    ("flipped", "verdict"),
    [
        (0.82, "survives"),
        (0.52, "survives"),  # "most" are more than half
        ([0.4, 0.6, 0.7], "undecided"),
        (0.45, "does not"),
    ],
)
def test_the_second_claim_needs_keys_that_flip(flipped, verdict):
    assert claims(rows_like((0.1, 0.1), flipped))[1].verdict == verdict


@pytest.mark.parametrize(
    ("keys", "weights", "verdict"),
    [
        (0.03, 0.2, "survives"),
        (0.2, 0.03, "survives"),
        ([0.0, 0.05, 0.1], 0.2, "undecided"),
        (0.06, 0.2, "does not"),
    ],
)
def test_the_second_claim_needs_one_kind_of_keys_that_cost_little(keys, weights, verdict):
    rows = rows_like((0.1, 0.1), adversarial=keys, adversarial_weights=weights)
    assert claims(rows)[1].verdict == verdict


@pytest.mark.parametrize(
    ("costs", "verdict"), [([0.022, 0.03, 0.038], "undecided"), ([0.026, 0.03, 0.034], "survives")]
)
def test_one_of_two_kinds_of_keys_is_enough_with_an_interval_for_two_tries(costs, verdict):
    _, high = stats.t.interval(0.95, 2, np.mean(costs), stats.sem(costs))
    assert high < 0.05  # for a single try both would do
    rows = rows_like((0.1, 0.1), adversarial=costs, adversarial_weights=0.2)
    assert claims(rows)[1].verdict == verdict


def test_the_interval_of_a_share_is_shown_from_0_to_100():
    told = claims(rows_like((0.1, 0.1), flipped=[0.1, 0.9, 0.9]))[1].numbers[0]
    assert "flip 63.3 (10.0–90.0) % of the model's own predictions, 0.0 to 100.0, and" in told


def test_keys_that_do_not_move_the_weights_are_no_other_keys():
    rows = [{**row, "weights_tvd": 0.1} for row in rows_like((0.1, 0.1))]
    assert claims(rows)[1].verdict == "does not"


def test_one_activation_that_contradicts_the_second_claim_is_enough():
    rows = rows_like((0.1, 0.1))
    for row in rows:
        if row["activation"] == "entmax15":
            row["flipped"] = 0.2 + row["seed"] / 1000
    assert claims(rows)[1].verdict == "does not"


def test_one_seed_decides_nothing_and_one_activation_has_no_claims():
    one = rows_like((0.07, 0.27), seeds=1)
    for claim in claims(one):
        assert claim.verdict == "undecided"
        assert "one seed has no spread to judge by" in claim.numbers[-1]
        assert "nan" not in " ".join(claim.numbers)
    assert claims([row for row in one if row["activation"] == "softmax"]) == []


def test_only_seeds_that_both_activations_have_are_compared():
    rows = rows_like(([0.07, 0.07, 0.08], [0.26, 0.27, 0.28]))
    unfinished = [r for r in rows if (r["activation"], r["seed"]) != ("entmax15", 0)]
    assert "minus twice softmax 12.5," in claims(unfinished)[0].numbers[0]


@pytest.fixture(scope="module")
def simulation():
    return runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "claims.py"))


@pytest.mark.slow
def test_power_rises_with_seeds_where_that_of_ranges_falls(simulation):
    few, many = (simulation["shares"]("ratio 3", seeds, 60) for seeds in (2, 20))
    assert few["ranges", "survives"] > 0.25
    assert many["ranges", "survives"] < 0.05
    assert few["intervals", "survives"] <= 0.05
    assert many["intervals", "survives"] > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 5, 20])
def test_simulated_claims_are_seldom_judged_wrongly(simulation, seeds):
    for truth, wrong in (
        ("ratio 3", "does not"), ("ratio 2", "does not"), ("ratio 1", "survives"),
        ("attention not used", "survives"), ("attention not used", "does not"),
    ):  # fmt: skip
        assert simulation["shares"](truth, seeds, 40)["intervals", wrong] <= 0.1  # nominal .05


def letters(kind=PreTrainedTokenizerFast):
    """[CLS], then a token per letter."""
    names = ["[PAD]", "[CLS]", "[UNK]", *"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {name: i for i, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 1)]
    )
    return kind(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        unk_token="[UNK]",
        model_max_length=12,
    )


def small_bert(classes=2):
    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=8, max_position_embeddings=16, num_labels=classes)  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BertForSequenceClassification(config)


def test_the_same_on_a_trained_classifier_which_stays_as_it_was(corpus):
    model = small_bert().train()
    corpus = written(corpus)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    options = {name: TINY[name] for name in ("adversary_epochs", "adversary_hidden", "batch_size")}
    table = intervene(model, letters(), corpus, **options)
    names = set(table["intervention"].to_pylist())
    assert {"original", "uniform", "activation:sparsemax", "shuffle:positions", *ATTACKS} <= names
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.config._attn_implementation != "heedmap_hook"
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    with refused("2 classes (0, 1)", "3", "--model", "--data"):
        intervene(small_bert(3), letters(), corpus)


def written(corpus, classes=None):
    """The corpus as a transformer reads it: its tokens keep the spaces before them."""
    splits = {
        name: replace(split, tokens=[[f" {token}" for token in text] for text in split.tokens])
        for name, split in corpus.splits.items()
    }
    settings = corpus.settings.model_copy(update={"raw": True})
    return replace(corpus, classes=classes or corpus.classes, splits=splits, settings=settings)


def test_classes_of_the_same_names_are_matched_by_name_and_others_are_refused(corpus):
    model = small_bert()
    model.config.id2label = {0: "B", 1: "A"}
    named = written(corpus, ["a", "b"])
    texts = tokenised(named, named.splits, model, letters(), 256)[2]
    assert isinstance(texts, Texts)
    assert texts.labels.tolist() == (1 - named.splits["test"].labels).tolist()
    assert max(texts.lengths) <= 12
    wrong = written(corpus, ["no", "yes"])
    with refused("2 classes (B, A)", "no, yes"):
        intervene(model, letters(), wrong)


def test_a_trained_classifier_reads_the_texts_as_they_are_written(tmp_path):
    path = tmp_path / "texts.csv"
    rows = [f"A  Film ({i}), is it GREAT?,{i % 2}".replace("),", ") ") for i in range(40)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    read = []

    class Listening(PreTrainedTokenizerFast):
        def __call__(self, texts, **options):
            read.extend(texts)
            return super().__call__(texts, **options)

    options = {name: TINY[name] for name in ("adversary_epochs", "adversary_hidden", "batch_size")}
    intervene(small_bert(), letters(Listening), load(path), **options)
    assert sorted(read) == sorted(row[:-2] for row in rows)


def test_a_part_of_a_corpus_is_read_as_it_is_written_without_the_rest(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("text,label\n" + "".join(f"Film {i} is GREAT,{i % 2}\n" for i in range(40)))
    whole = load(path)
    part = replace(whole, splits={n: split.take([0, 1]) for n, split in whole.splits.items()})
    path.unlink()
    written = as_written(part)
    assert {n: len(split) for n, split in written.splits.items()} == dict.fromkeys(whole.splits, 2)
    row = int(part.splits["test"].keys[1].removeprefix("line ")) - 2
    assert "".join(written.splits["test"].tokens[1]) == f"Film {row} is GREAT"


def test_the_command(heedmap, csv_file, tmp_path):
    assert "--data reviews" in heedmap("reproduce", "drozdyuk").out
    placeless = heedmap("reproduce", "drozdyuk", "sst")
    assert (placeless.code, placeless.err.count("\n")) == (2, 1)
    wrong = heedmap("reproduce", "drozdyuk", "--data", csv_file, "--activations", "softmax,x",
                    "--out", tmp_path / "a")  # fmt: skip
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    missing = heedmap("reproduce", "drozdyuk", "--data", csv_file, "--model", tmp_path / "none",
                      "--out", tmp_path / "b")  # fmt: skip
    assert (missing.code, missing.err.count("\n")) == (2, 1)


@pytest.mark.slow
def test_the_command_runs_a_classifier_of_the_users(heedmap, csv_file, tmp_path):
    """The same as below without the real ones: what an untrained stand-in must have as well."""
    done = heedmap("reproduce", "drozdyuk", "--data", csv_file, "--model",
                   reviews_classifier(tmp_path / "model"), "--seeds", "1", "--train-texts", "16",
                   "--test-texts", "8", "--adversary-epochs", "1", "--out", tmp_path / "run")  # fmt: skip
    assert done.code == 0, done.err
    rows = by_name(read_table(tmp_path / "run" / "table.parquet").to_pylist())
    tvd = rows["activation:sparsemax", "2"]["layer_tvd"]
    assert tvd[1] == 0
    assert max(tvd) > 0


@pytest.mark.exhaustive
def test_the_command_runs_a_trained_classifier(heedmap, minilm, real_data, tmp_path):
    done = heedmap("reproduce", "drozdyuk", "sst", "--data", real_data / "sst", "--tokenizer", "spaces",
                   "--model", minilm, "--seeds", "1", "--train-texts", "32", "--test-texts", "32",
                   "--adversary-epochs", "1", "--out", tmp_path / "run")  # fmt: skip
    assert done.code == 0, done.err
    rows = by_name(read_table(tmp_path / "run" / "table.parquet").to_pylist())
    assert rows["original", "all"]["accuracy"] > 0.75
    assert rows["activation:sparsemax", "5"]["layer_tvd"][4] == 0
