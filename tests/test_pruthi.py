"""The reproduction of Pruthi et al.'s classification tasks, small but complete."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import contents, small_corpus, small_pairs
from tiny_transformers import reviews_classifier
from wording import refused, stopped

from heedmap.data.load import load
from heedmap.papers.kit.registry import figures as figures_of
from heedmap.papers.kit.render import markdown
from heedmap.papers.pruthi.filler import with_filler
from heedmap.papers.pruthi.paper import read, reproduce
from heedmap.papers.pruthi.published import AUTHORS, REPLICATED
from heedmap.papers.pruthi.result import result
from heedmap.papers.pruthi.settings import MODELS, TASKS

TINY = {"seeds": 2, "epochs": 2, "penalties": (2.0,), "workers": 1, "forbidden": "mark0,mark1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return reproduce(small_corpus(), out=tmp_path_factory.mktemp("runs") / "made", **TINY)


def test_every_model_has_lines_for_each_penalty_and_without_the_words(made):
    lines = [line[:3] for line in result(made).summary.lines]
    names = ("without the words", "λ = 0", "λ = 2")
    expected = [(model, name) for model in MODELS for name in names]
    assert [(line[0], line[1].removesuffix(" †"), line[2]) for line in lines] == [
        (*one, "ours") for one in expected
    ]
    marked = {
        f"{model}, {name}" for model, name in expected if [model, f"{name} †", "ours"] in lines
    }
    assert marked == set(made.learned.failed)
    assert marked <= {f"{model}, λ = 0" for model in made.models}


def test_a_model_that_has_not_learned_without_penalty_is_shown_and_lets_no_claim_survive(made):
    for claim in result(made).claims:
        for model, number in zip(MODELS, claim.numbers, strict=True):
            failed = f"{model}, λ = 0" in made.learned.failed
            assert ("not learned without penalty, not counted †" in number) == failed
            assert not (failed and claim.verdict == "survives")
    assert len(result(made).claims) == 3
    assert [f.key for f in figures_of(made.folder)] == ["deception-embedding", "deception-bilstm"]


def test_published_numbers_stand_beside_their_tasks_as_of_other_texts(made):
    settings = made.settings.model_copy(update={"task": "pronoun"})
    found = result(replace(made, settings=settings))
    lines = {tuple(line[:3]): line[3:5] for line in found.summary.lines}
    assert lines["embedding", "λ = 0", "Pruthi et al."] == ["100 %", "99.2 %"]
    assert lines["embedding", "λ = 0", "replication, five seeds"] == ["99.9 %", "90.1 %"]
    assert "Published numbers are of other texts" in markdown(found)
    assert {task for task, _, _ in AUTHORS} == set(TASKS)
    assert {model for _, model, _ in AUTHORS} == {*MODELS, "bert-mean", "bert-max"}
    assert set(REPLICATED) < set(AUTHORS)


def test_it_is_read_back_and_not_made_again(made, monkeypatch):
    before = contents(made.folder)
    monkeypatch.setattr("heedmap.retraining.trainer.fit", pytest.fail)
    monkeypatch.setattr("heedmap.runs.train.fit", pytest.fail)
    reproduce(small_corpus(), out=made.folder, **TINY)
    assert contents(made.folder) == before
    assert markdown(result(read(made.folder))) == markdown(result(made))


def test_claims_are_about_the_largest_penalty_text_by_text(made):
    frame = made.audits["embedding"].tables["deception"].to_pandas()
    present = frame[~frame["removed"] & (frame["strength"] == 2)]
    hidden = (
        present.groupby("row")["uniform"].mean() - present.groupby("row")["mass"].mean()
    ).mean()
    shown = result(made).claims[0].numbers[0].split(": ")[1].split(" ")[0]
    assert float(shown.replace("−", "-")) == pytest.approx(hidden, abs=6e-4)


def test_filler_follows_every_text_and_only_the_text_is_marked():
    corpus = small_corpus()
    filled = with_filler(corpus)
    for name, split in corpus.splits.items():
        for text, more, mask in zip(
            split.tokens, filled.splits[name].tokens, filled.splits[name].rationale, strict=True
        ):
            assert more[: len(text)] == text
            assert len(more) > len(text) + 3
            assert more[-1] == "."
            assert np.flatnonzero(mask).tolist() == list(range(len(text)))
    again = with_filler(corpus)
    assert again.splits["test"].tokens == filled.splits["test"].tokens


@pytest.mark.exhaustive
def test_bert_is_two_models_by_the_mean_of_its_heads_and_by_the_most(tmp_path):
    reviews_classifier(tmp_path / "base")
    found = reproduce(
        load("reviews", train_texts=60, test_texts=24), out=tmp_path / "out",
        **{**TINY, "forbidden": "and,the,was"}, models=("bert",), base=tmp_path / "base", bert_epochs=1,
        task="sst-filler",
    )  # fmt: skip
    assert found.models == ["bert-mean", "bert-max"]
    shown = result(found)
    lines = {tuple(line[:3]): line[3:] for line in shown.summary.lines}
    assert lines["bert-max", "λ = 0", "Pruthi et al."][:2] == ["90.8 %", "96.2 %"]
    ours = [lines[model, "λ = 0 †", "ours"] for model in found.models]  # one epoch: not learned
    assert ours[0][0] == ours[1][0]  # the same trainings, seen in two ways
    assert float(ours[1][1].split()[0]) > float(ours[0][1].split()[0])
    assert ours[0][4] == "–"
    assert "bert is base" in markdown(shown)


@pytest.mark.parametrize(
    ("corpus", "options", "named"),
    [
        (small_pairs(), {}, ["pairs"]),
        (small_corpus(), {"forbidden": "nowhere"}, ["--forbidden", "nowhere"]),
        (small_corpus(), {"models": ("bilstm", "bilstm")}, ["models", "bilstm, bilstm"]),
        (small_corpus(), {"penalties": (-1.0,)}, ["penalties = (-1.0,)"]),
        (small_corpus(), {"models": ("bert",)}, ["--base", "bert"]),
        (small_corpus(), {"base": "m"}, ["--base", "bert"]),
        (small_corpus(), {"models": ("bert",), "base": "m"}, ["tokens"]),
    ],
)
def test_bad_input_is_refused(corpus, options, named, tmp_path):
    with refused(*named):
        reproduce(corpus, out=tmp_path / "out", **{**TINY, "epochs": 1, **options})


def test_sentences_are_refused(tmp_path):
    corpus = load("reviews", tokenizer="sentences", train_texts=20, test_texts=10)
    with refused("sentences"):
        reproduce(corpus, out=tmp_path / "out", **TINY)


def test_the_command_lists_its_tasks_and_says_what_is_missing(heedmap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "heedmap reproduce pruthi pronoun" in heedmap("reproduce", "pruthi").out
    for arguments, *named in (
        (("sst-filler",), "--data"),
        (("gender",), "gender", "occupation"),
        (("--data", "reviews"), "--forbidden"),
    ):
        done = heedmap("reproduce", "pruthi", *arguments)
        stopped(done, *named)
    assert not list(tmp_path.iterdir())
