"""Where a classifier's attention comes from: what is read off recorded trainings (Snell et al.)."""

import math

import numpy as np
import pytest
import torch
from conftest import small_corpus, small_pairs
from scipy.integrate import solve_ivp
from wording import refused

from heedmap.data.load import load
from heedmap.papers.snell import classification
from heedmap.papers.snell.attraction import rows_of_seed
from heedmap.papers.snell.classification_figures import STARTS, toy, toy_model
from heedmap.papers.snell.proxies import Logistic
from heedmap.papers.snell.records import Record, agreement, crossing, matches, record_of
from heedmap.runs.train import train

SMALL = {"hidden_size": 6, "embedding_size": 8, "steps": 12, "seeds": 2, "proxy_epochs": 2}


def made(attention, relevance, right, dev, steps=(0, 10, 20)):
    """Make a record by hand: lists by step and text, all texts of the same length."""
    values = {
        "attention": torch.tensor(attention),
        "relevance": torch.tensor(relevance),
        "influence": torch.tensor(relevance),
    }
    count, length = values["attention"].shape[1:]
    return Record(
        np.array(steps),
        [["a"] * length] * count,
        np.zeros(count, dtype=np.int64),
        torch.ones(count, length, dtype=torch.bool),
        values,
        np.array(right, dtype=bool),
        np.array(dev, dtype=np.float64),
    )


def by_name(rows, quantity, choice):
    return next(r for r in rows if (r["quantity"], r["choice"]) == (quantity, choice))


@pytest.fixture(scope="module")
def recorded():
    run = train(
        small_corpus(), encoder="lstm", embedding_size=6, hidden_size=8, epochs=2, min_df=1,
        batch_size=8, record_dynamics=True,
    )  # fmt: skip
    return run.dynamics


def test_a_record_has_every_number_at_its_place(recorded):
    record = record_of(recorded)
    for row in recorded.to_pylist():
        if row["split"] == "test":
            at = int(np.flatnonzero(record.steps == row["step"])[0])
            texts = sorted(r["row"] for r in recorded.to_pylist()
                           if r["split"] == "test" and r["step"] == 0)  # fmt: skip
            n = texts.index(row["row"])
            assert record.labels[n] == row["label"]
            assert record.right[at, n] == (row["predicted"] == row["label"])
            for name, values in record.values.items():
                assert values[at, n][record.mask[n]].tolist() == pytest.approx(row[name])
            break
    dev = [r["predicted"] == r["label"] for r in recorded.to_pylist()
           if r["split"] == "dev" and r["step"] == record.steps[-1]]  # fmt: skip
    assert record.dev[-1] == pytest.approx(np.mean(dev))


def test_the_agreement_is_that_of_a_plain_loop():
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        count, size = 7, 45
        first = torch.randint(0, 5, (count, size), generator=rng).float()
        second = torch.randint(0, 5, (count, size), generator=rng).float()
        lengths = torch.randint(1, size + 1, (count,), generator=rng)
        mask = torch.arange(size) < lengths[:, None]
        expected = []
        for u, v, length in zip(first.tolist(), second.tolist(), lengths.tolist(), strict=True):
            best = u.index(max(u[:length]))
            above = sum(x > v[best] for x in v[:length])
            expected.append(above < math.ceil(0.05 * length))
        assert agreement(first, second, mask).match == pytest.approx(np.mean(expected))
        assert matches(first, second.unsqueeze(0), mask)[0] == pytest.approx(np.mean(expected))


def test_a_curve_crosses_a_level_at_the_first_checkpoint_above_it():
    steps, other = np.array([0, 10, 20, 30]), np.array([0.5, 0.6, 0.8, 0.9])
    found = crossing(steps, np.array([0.1, 0.2, 0.6, 0.3]), 0.3, other)
    assert (found.step, found.value) == (20, 0.8)
    assert (found.between, found.value_between) == (pytest.approx(12.5), pytest.approx(0.65))


def test_a_curve_that_falls_again_has_crossed():
    found = crossing(
        np.array([0, 10, 20]), np.array([0.0, 0.9, 0.1]), 0.5, np.array([0.5, 0.7, 0.9])
    )
    assert found.step == 10


def test_a_level_that_is_reached_but_not_exceeded_is_not_crossed():
    found = crossing(np.array([0, 10]), np.array([0.0, 0.5]), 0.5, np.array([0.5, 0.7]))
    assert all(math.isnan(one) for one in found)


def test_a_curve_above_the_level_from_the_start_crosses_it_there():
    found = crossing(np.array([0, 10]), np.array([0.4, 0.5]), 0.1, np.array([0.5, 0.7]))
    assert found == (0.0, 0.5, 0.0, 0.5)


def test_the_paper_chooses_on_the_texts_and_dev_on_dev():
    # A is best on the test texts at step 10, on dev at step 20, where it attends elsewhere.
    flat = [[0.4, 0.3, 0.3]]
    own = made(
        [flat, [[0.8, 0.1, 0.1]], [[0.1, 0.8, 0.1]]], [flat] * 3, [[0], [1], [0]], [0, 0.5, 1]
    )
    other = made(
        [flat, [[0.1, 0.8, 0.1]], [[0.8, 0.1, 0.1]]], [flat] * 3, [[0], [1], [1]], [0, 1, 0.5]
    )
    # The twin's relevance agrees with A's attention of step 10 at its own step 10 alone.
    twin = made(
        [flat] * 3, [[[0, 1.0, 2]], [[9.0, 1, 2]], [[0, 9.0, 2]]], [[0], [0], [1]], [0, 0, 1]
    )
    proxy = {name: torch.tensor([[3.0, 2, 1]]) for name in ("bag", "logistic")}
    rows = rows_of_seed(0, [own, other], twin, proxy)
    paper, dev = by_name(rows, "uniform", "paper"), by_name(rows, "uniform", "dev")
    assert (paper["value"], paper["step"]) == (1, 10)
    assert (dev["value"], dev["step"]) == (1, 20)
    assert by_name(rows, "bag", "paper")["value"] == 1
    assert by_name(rows, "bag", "dev")["value"] == 0
    assert by_name(rows, "best", "paper") == {
        "quantity": "best", "choice": "paper", "step": 10.0, "value": 1.0
    }  # fmt: skip
    assert by_name(rows, "best", "dev")["value"] == 0
    # Nothing exceeds an agreement of 1; the other's attention is what A's is on dev at step 10.
    assert math.isnan(by_name(rows, "xi uniform", "paper")["value"])
    assert by_name(rows, "xi bag", "dev")["step"] == 10


def test_a_keyword_that_gains_relevance_first_is_seen_to():
    flat = [1 / 3] * 3
    attention = [[flat], [flat], [flat], [[0.8, 0.1, 0.1]]]
    relevance = [[[0.0] * 3], [[2.0, 0, 0]], [[2.0, 0, 0]], [[2.0, 0, 0]]]
    steps = (0, 10, 20, 30)
    record = made(attention, relevance, [[0], [1], [1], [1]], [0, 1, 1, 1], steps)
    proxy = {name: torch.tensor([[3.0, 2, 1]]) for name in ("bag", "logistic")}
    rows = rows_of_seed(0, [record, record], record, proxy)
    assert by_name(rows, "half size relevance", "keyword")["step"] == pytest.approx(5)
    assert by_name(rows, "half size attention", "keyword")["step"] == pytest.approx(25)
    assert by_name(rows, "half size relevance", "keyword")["value"] == pytest.approx(4 / 3)


def test_the_logistic_regression_knows_which_words_speak_for_a_class():
    corpus = load("reviews", train_texts=400, test_texts=50)
    found = Logistic(corpus)
    positive, negative = (
        found.relevance(["superb", "dreadful", "zzz"], 1),
        found.relevance(["superb", "dreadful", "zzz"], 0),
    )
    assert positive.tolist() == pytest.approx((-negative).tolist())
    assert positive[2] == 0
    words = {word for text in corpus.splits["train"].tokens for word in text}
    each = {word: found.relevance([word], corpus.classes.index("positive"))[0] for word in words}
    best = sorted(each, key=each.get)
    assert each[best[-1]] > 0 > each[best[0]]


def test_the_toy_model_is_the_flow_that_the_blog_describes():
    times = np.linspace(0, 2.5, 11)
    for start in STARTS:

        def flow(_, y):
            p, key, common = y
            return [(key - common) * (p < 1), p, -p]

        found = solve_ivp(flow, (0, 2.5), [start, 0, 0], t_eval=times, rtol=1e-6, max_step=1e-3)
        assert toy_model(start, times) == pytest.approx(found.y.T, abs=5e-3)


def test_the_toy_figure_has_a_slider_for_where_it_starts():
    (slider,) = toy().spec["params"]
    assert slider["bind"]["max"] == len(STARTS) - 1


def test_pairs_and_sentences_are_refused_before_anything_is_trained(tmp_path):
    for corpus, what in (
        (small_pairs(), "pairs"),
        (load("reviews", tokenizer="sentences", train_texts=40, test_texts=8), "sentences"),
    ):
        with refused("single texts of words", what):
            classification.reproduce(corpus, out=tmp_path / what)
        assert not (tmp_path / what).exists()


@pytest.mark.slow
def test_a_reproduction_is_resumed_and_drawn(heedmap, tmp_path):
    corpus = load("reviews", train_texts=60, test_texts=30)
    out = tmp_path / "out"
    found = classification.reproduce(corpus, out=out, workers=1, **SMALL)
    assert {row["seed"] for row in found.rows} == {0, 1}
    first = (out / "result.md").read_bytes()
    assert set(found.learned.models) == {"models", "twins"}
    assert ("attention? †".encode() in first) == bool(found.learned.failed)
    page = (out / "result.html").read_text()
    for text in ("What finds the keyword first?", "Two words and a linear loss"):
        assert text in page
    # One finished comparison and one finished model are read, the rest is made again.
    (out / "parts" / "1.parquet").unlink()
    rows = [row for row in found.rows if row["seed"] == 0]
    assert repr(classification.EXPERIMENT.read(out).rows) == repr(rows)
    classification.reproduce(corpus, out=out, workers=1, **SMALL)
    assert (out / "result.md").read_bytes() == first
    assert heedmap("figures", out, "--list").code == 0
    refused = heedmap(
        "reproduce", "snell", "classification", "--data", "reviews", "--out", out, "--seeds", 3
    )
    assert refused.code == 2
    assert "other settings" in refused.err


def test_what_a_part_does_not_take_is_refused(heedmap):
    for words, said in (
        (("classification",), "needs texts: --data"),
        (("copying", "--data", "reviews"), "expected no --data"),
        (
            ("classification", "--data", "reviews", "--variant-seeds", 2),
            "--variant-seeds: not of the part",
        ),
        (("multihead", "--seeds", 2), "--seeds: not of the part multihead"),
    ):
        found = heedmap("reproduce", "snell", *words)
        assert found.code == 2
        assert said in found.err
