"""What is recorded while a model is trained, and that the training does not notice."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import QUICK, contents, small_corpus, small_pairs, watched
from wording import refused, stopped

from heedmap.data.load import load
from heedmap.importance.gradients import influence
from heedmap.runs.open import open_run
from heedmap.runs.train import train
from heedmap.settings.training import TrainSettings
from heedmap.training import dynamics, fit
from heedmap.training.checkpoint import save_checkpoint
from heedmap.training.dynamics import is_recorded, relevance_of
from heedmap.training.initialisation import init_model, kind_for

SMALL = {
    "encoder": "lstm",
    "embedding_size": 6,
    "hidden_size": 8,
    "epochs": 2,
    "min_df": 1,
    "batch_size": 8,
}


def recorded(corpus=None, **settings):
    return train(corpus or small_corpus(), record_dynamics=True, **{**SMALL, **settings})


@pytest.fixture(scope="module")
def run():
    return recorded()


def rows_of(run, split="test"):
    return [row for row in run.dynamics.to_pylist() if row["split"] == split]


def test_a_training_is_recorded_often_at_first_and_then_regularly():
    steps = [step for step in range(1001) if is_recorded(step)]
    assert steps == [0, 10, 50, 100, 150, 200, 250, 500, 750, 1000]


def test_a_recorded_training_ends_with_the_same_weights(run):
    plain = train(small_corpus(), **SMALL)
    ours, theirs = run.model.state_dict(), plain.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert run.training.scores == plain.training.scores
    assert plain.dynamics is None


def test_the_first_the_last_and_every_epochs_last_step_are_there(run):
    steps = sorted({row["step"] for row in rows_of(run)})
    in_epoch = -(-len(run.corpus.splits["train"]) // 8)
    assert {0, in_epoch, 2 * in_epoch} <= set(steps)
    assert set(steps) - {in_epoch, 2 * in_epoch} == {
        step for step in range(2 * in_epoch) if is_recorded(step)
    } - {in_epoch}


def test_every_recorded_step_has_the_same_texts(run):
    by_step = {}
    for row in rows_of(run):
        by_step.setdefault(row["step"], []).append(row["row"])
    assert len({tuple(rows) for rows in by_step.values()}) == 1
    assert all(rows == sorted(set(rows)) for rows in by_step.values())


def test_the_first_record_is_of_the_model_before_its_first_step(run):
    model, _, _ = init_model(run.corpus, run.settings, kind_for(run.corpus, run.settings.model))
    model.eval()
    split = run.corpus.splits["test"]
    for row in rows_of(run)[:10]:
        at = row["row"]
        tokens, label = split.tokens[at], int(split.labels[at])
        trace = model.trace(model.batch([split.texts[at]], [at]))
        gold = torch.tensor([label])
        assert row["step"] == 0
        assert row["tokens"] == tokens
        assert (row["label"], row["predicted"]) == (label, int(trace.predicted))
        np.testing.assert_allclose(row["attention"], trace.heatmap[0].numpy(), rtol=2e-3, atol=1e-6)
        expected = relevance_of(trace, gold)[0].numpy()
        np.testing.assert_allclose(row["relevance"], expected, rtol=2e-3, atol=1e-5)
        loss = torch.nn.functional.cross_entropy(trace.logits, gold)
        assert row["loss"] == pytest.approx(float(loss), rel=1e-5)


def test_tokens_are_recorded_once(run):
    assert all((row["tokens"] is None) == (row["step"] > 0) for row in rows_of(run))


def test_of_the_dev_split_only_predictions_are_kept(run):
    rows = rows_of(run, "dev")
    assert rows
    assert all(
        row[name] is None
        for row in rows
        for name in ("tokens", "attention", "relevance", "influence")
    )


def test_the_attention_weighs_the_relevance_to_the_labels_log_odds(run):
    for row in rows_of(run):
        log_odds = np.dot(np.float64(row["attention"]), np.float64(row["relevance"]))
        assert row["loss"] == pytest.approx(np.log1p(np.exp(-log_odds)), abs=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_influence_is_the_change_of_the_labels_log_probability_by_a_gate(classes):
    corpus = (
        small_corpus() if classes == 2 else load("reviews-stars", train_texts=60, test_texts=12)
    )
    run = train(corpus, **{**SMALL, "epochs": 1})
    model, split = run.model.double(), run.corpus.splits["test"]
    rows = [0, 3, 5]
    batch = model.batch([split.texts[row] for row in rows], rows)
    gold = torch.from_numpy(split.labels[rows])
    found = influence(model, batch, gold)
    embedded = model.embed(batch).detach()
    small = 1e-5

    def log_probability(gates):
        with torch.no_grad():
            logits = model.logits_from(embedded * gates.unsqueeze(-1), batch)
        return logits.log_softmax(-1).gather(-1, gold[:, None])[:, 0]

    positions = model.token_positions(batch)
    for i in range(len(rows)):
        where = positions[i].nonzero().flatten().tolist()
        for token, place in enumerate(where):
            up = torch.ones(embedded.shape[:2], dtype=embedded.dtype)
            up[i, place] += small
            down = 2 - up
            slope = (log_probability(up) - log_probability(down))[i] / (2 * small)
            assert float(found[i, token]) == pytest.approx(float(slope), rel=1e-4, abs=1e-8)


def test_the_relevance_for_one_of_more_classes_is_less_the_mean_of_the_others():
    corpus = load("reviews-stars", train_texts=60, test_texts=12)
    model = train(corpus, **{**SMALL, "epochs": 1}).model
    split = corpus.splits["test"]
    trace = model.trace(model.batch(split.texts[:2], [0, 1]))
    gold = torch.from_numpy(split.labels[:2])
    each = trace.readout.relevance[:, 0] + trace.readout.bias
    for i, label in enumerate(gold.tolist()):
        others = [c for c in range(each.shape[-1]) if c != label]
        expected = each[i, :, label] - each[i][:, others].mean(-1)
        torch.testing.assert_close(relevance_of(trace, gold)[i], expected)


def test_relevance_that_only_rounding_tells_apart_is_recorded_as_equal(run):
    model, split = run.model, run.corpus.splits["test"]
    trace = model.trace(model.batch(split.texts[2:6], [2, 3, 4, 5]))
    exact = relevance_of(trace, torch.zeros(4, dtype=torch.long))
    values = trace.readout.relevance.clone()
    values[:, :, 1] = values[:, :, 0] * (1 + 1e-7)
    same = replace(trace, readout=replace(trace.readout, relevance=values))
    found = relevance_of(same, torch.zeros(4, dtype=torch.long))
    assert torch.equal(found[:, 0], found[:, 1])
    torch.testing.assert_close(found[:, 0], exact[:, 0])
    torch.testing.assert_close(found[:, 2:], exact[:, 2:])


@pytest.mark.parametrize("encoder", ["average", "lstm"])
def test_influence_of_words_that_repeat_does_not_depend_on_the_batch(encoder):
    run = recorded(encoder=encoder, epochs=1)
    model, words = run.model, run.corpus.splits["train"].tokens[3]
    text = [*words, *words[::-1]]
    wide = [text, *run.corpus.splits["test"].texts]
    gold = torch.zeros(len(wide), dtype=torch.long)
    alone = influence(model, model.batch([text], [0]), gold[:1])[0]
    among = influence(model, model.batch(wide, list(range(len(wide)))), gold)[0, : len(text)]
    ranks = [values.sign() + (values[:, None] > values).sum(1) for values in (alone, among)]
    assert torch.equal(*ranks)
    if encoder == "average":  # the place of a word is nothing to it
        assert torch.equal(among, among.flip(0))


def test_pairs_are_recorded_without_relevance():
    run = recorded(small_pairs(), epochs=1)
    rows = rows_of(run)
    assert rows
    assert all(row["relevance"] is None and row["attention"] and row["influence"] for row in rows)


def test_at_most_so_many_texts_are_recorded(monkeypatch):
    monkeypatch.setattr(dynamics, "TEXTS", 3)
    run = recorded(epochs=1)
    assert (
        len({row["row"] for row in rows_of(run)})
        == len({row["row"] for row in rows_of(run, "dev")})
        == 3
    )


def test_a_stopped_training_goes_on_and_records_the_same_bytes(tmp_path):
    class Stop(Exception):
        pass

    def stop(done, text):
        if done > 0.7:
            raise Stop

    recorded(out=tmp_path / "whole")
    with pytest.raises(Stop), watched(stop):
        recorded(out=tmp_path / "stopped")
    assert len(list((tmp_path / "stopped" / "dynamics").iterdir())) == 1
    recorded(out=tmp_path / "stopped")
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")


def test_a_saved_run_has_what_was_recorded(csv_file, tmp_path):
    corpus = load(csv_file)
    saved, in_memory = recorded(corpus, out=tmp_path / "run"), recorded(corpus)
    assert saved.dynamics.equals(in_memory.dynamics)
    assert open_run(tmp_path / "run").dynamics.equals(in_memory.dynamics)
    train(corpus, out=tmp_path / "plain", **SMALL)
    assert open_run(tmp_path / "plain").dynamics is None


def test_a_training_resumed_at_a_scheduled_step_records_it_once(tmp_path, monkeypatch):
    settings = {"batch_size": 6, "epochs": 3}  # 10 steps in an epoch
    whole = recorded(**settings)

    def stopped(path, progress, objective):
        save_checkpoint(path, progress, objective)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit, "save_checkpoint", stopped)
        with pytest.raises(KeyboardInterrupt):
            recorded(out=tmp_path / "run", **settings)
    assert is_recorded(10)
    assert recorded(out=tmp_path / "run", **settings).dynamics.equals(whole.dynamics)


def test_a_damaged_record_is_named(tmp_path):
    saved = recorded(out=tmp_path / "run", epochs=1)
    (part,) = (saved.folder / "dynamics").iterdir()
    part.write_bytes(b"nothing")
    with refused(part.name):
        _ = saved.dynamics


def test_texts_of_sentences_are_recorded_by_sentence():
    corpus = load("reviews", tokenizer="sentences", train_texts=40, test_texts=8)
    run = recorded(corpus, epochs=1)
    split = corpus.splits["test"]
    rows = rows_of(run)
    assert all(len(row["attention"]) == len(split.tokens[row["row"]]) for row in rows)
    assert all(len(row["influence"]) == len(row["attention"]) for row in rows)


def test_the_switch_of_the_command(heedmap, csv_file, tmp_path):
    done = heedmap(
        "train", "--data", csv_file, "--record-dynamics", "--out", tmp_path / "run", *QUICK
    )
    assert done.code == 0
    assert (tmp_path / "run" / "dynamics" / "0000.parquet").exists()
    plain = heedmap("train", "--data", csv_file, "--out", tmp_path / "run", *QUICK)
    stopped(plain, "record_dynamics: True -> False")
    other = heedmap("train", "--model", "somewhere", "--data", csv_file, "--record-dynamics")
    stopped(other, "--record-dynamics", "--model")


def test_nothing_is_recorded_unless_asked():
    assert TrainSettings().record_dynamics is False
