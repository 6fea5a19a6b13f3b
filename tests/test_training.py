import json

import numpy as np
import pytest
import torch
from conftest import small_corpus, watched
from wording import refused, warned

from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.runs.train import train
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings
from heedmap.training import attention
from heedmap.training.attention import AttentionObjective, batch_loss
from heedmap.training.evaluation import evaluate
from heedmap.training.fit import fit, record_epoch
from heedmap.training.objective import Progress

SMALL = {"embedding_size": 12, "hidden_size": 16, "min_df": 1, "learning_rate": 0.01}


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_every_model_learns_a_label_that_one_word_gives_away(encoder, normaliser):
    run = train(small_corpus(size=300), encoder=encoder, normaliser=normaliser, epochs=6, **SMALL)
    assert evaluate(run.model, run.encoded(run.corpus.splits["test"]))["roc_auc"] > 0.97


def test_more_than_two_classes_are_learned_and_selected_by_accuracy():
    run = train(small_corpus(classes=4, size=120), encoder="average", epochs=12, **SMALL)
    assert "roc_auc" not in run.training.scores[0]
    best = [scores["accuracy"] for scores in run.training.scores]
    assert run.training.best_epoch == int(np.argmax(best))
    assert max(best) > 0.9


def test_the_same_seed_gives_the_same_weights_and_another_one_others():
    one, two, other = (
        train(small_corpus(), epochs=2, seed=seed, **SMALL).model.state_dict() for seed in (3, 3, 4)
    )
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert not all(torch.equal(one[k], other[k]) for k in one)


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the very thing that must not move
    train(small_corpus(), epochs=1, encoder="average", **SMALL)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    slow = {**SMALL, "learning_rate": 1e-4}  # no score of 1, which ends a training
    whole = train(small_corpus(), epochs=4, **slow).model.state_dict()

    class Stop(Exception):
        pass

    def stop(done, text):
        if text.endswith("epoch 3 of 4"):
            raise Stop

    with pytest.raises(Stop), watched(stop):
        train(small_corpus(), epochs=4, out=tmp_path / "run", **slow)
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    epochs = []
    with watched(lambda done, text: epochs.append(text)):
        run = train(small_corpus(), epochs=4, out=tmp_path / "run", **slow)
    assert set(epochs) >= {"training, epoch 3 of 4", "training, epoch 4 of 4"}
    assert not any("epoch 2" in text for text in epochs)
    assert len(run.training.scores) == 4
    assert all(torch.equal(whole[k], v) for k, v in run.model.state_dict().items())
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_a_training_says_with_how_many_threads_each_part_of_it_ran(tmp_path, monkeypatch):
    slow = {**SMALL, "learning_rate": 1e-4}

    def stop(done, text):
        if text.endswith("epoch 2 of 3"):
            raise KeyboardInterrupt

    assert train(small_corpus(), epochs=1, **slow).training.threads == [torch.get_num_threads()]
    with pytest.raises(KeyboardInterrupt), watched(stop):
        train(small_corpus(), epochs=3, out=tmp_path / "run", **slow)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)  # asked of torch, not acted on
    train(small_corpus(), epochs=3, out=tmp_path / "run", **slow)
    kept = json.loads((tmp_path / "run" / "training.json").read_text())
    assert kept["threads"] == [1, 7]


def test_a_training_ends_where_nothing_can_be_better():
    run = train(small_corpus(size=300), encoder="average", epochs=30, **SMALL)
    scores = [epoch["roc_auc"] for epoch in run.training.scores]
    assert scores[-1] == 1
    assert len(scores) < 30
    assert run.training.best_epoch == len(scores) - 1


def test_by_the_codes_rule_the_first_epoch_is_never_the_best():
    corpus = small_corpus(size=300)
    one = train(corpus, encoder="average", epochs=1, **SMALL)
    assert one.training.best_epoch == 0
    split = one.encoded(corpus.splits["dev"])
    for first, best in ((True, 0), (False, 1)):
        settings = TrainSettings(epochs=3, first_epoch=first)
        objective = AttentionObjective(one.model, split, split, settings)
        progress = Progress()
        for accuracy in (0.9, 0.6, 0.5):
            objective.scores = lambda accuracy=accuracy: {"accuracy": accuracy}
            record_epoch(progress, objective)
        assert progress.best_epoch == best


def test_a_damaged_checkpoint_is_one_clear_line(tmp_path):
    folder = tmp_path / "run"
    run = train(small_corpus(), epochs=1, out=folder, **SMALL)
    (folder / "model.safetensors").unlink()
    (folder / "checkpoint.safetensors").write_bytes(b"rubbish")
    with refused("checkpoint.safetensors", "--overwrite"):
        train(run.corpus, epochs=1, out=folder, **SMALL)


def test_fused_adam_takes_the_steps_of_plain_adam():
    """The dense update of the whole embedding is the slowest part of training: faster, same numbers."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(50, 8, generator=generator)
    results = []
    for fused in (False, True):
        weights = start.clone().requires_grad_()
        adam = torch.optim.Adam([weights], lr=1e-3, amsgrad=True, weight_decay=1e-5, fused=fused)
        again = torch.Generator().manual_seed(1)
        for _ in range(30):
            weights.grad = torch.randn(50, 8, generator=again) * (
                torch.rand(50, 1, generator=again) < 0.1
            )
            adam.step()
        results.append(weights.detach())
    assert torch.allclose(*results, atol=1e-6)
    assert (results[0] - start).abs().min() > 0


def test_attention_has_no_weight_decay_and_everything_else_has():
    model = TextClassifier(ModelSettings(), Vocabulary(["a"]), ["x", "y"])
    others, unregularised = attention._parameter_groups(model, 1e-5)
    assert (others["weight_decay"], unregularised["weight_decay"]) == (1e-5, 0.0)
    assert {id(p) for p in unregularised["params"]} == {id(p) for p in model.score.parameters()}
    assert len(others["params"]) + len(unregularised["params"]) == len(list(model.parameters()))


def test_the_loss_is_the_weighted_sum_over_the_batch():
    outputs, labels = torch.tensor([[0.3], [-1.2]]), torch.tensor([1, 0])
    p = outputs.squeeze(1).sigmoid()
    expected = -2.5 * p[0].log() - (1 - p[1]).log()
    assert torch.allclose(batch_loss(outputs, labels, 2.5), expected)


def test_a_dev_split_of_one_class_is_scored_by_accuracy():
    corpus = small_corpus()
    dev = corpus.splits["dev"]
    corpus.splits["dev"] = dev.take(np.flatnonzero(dev.labels == 0))
    run = train(corpus, encoder="average", epochs=2, **SMALL)
    assert set(run.training.scores[0]) == {"accuracy", "f1"}


def test_pretrained_vectors_set_the_size_of_the_embedding(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("mark0 1 2 3 4 5\n")
    run = train(
        small_corpus(), encoder="average", epochs=1, vectors=path, min_df=1, out=tmp_path / "run"
    )
    assert run.settings.model.embedding_size == 5
    assert run.training.vectors == 1
    again = train(
        small_corpus(), encoder="average", epochs=1, vectors=path, min_df=1, out=tmp_path / "run"
    )
    assert torch.equal(run.model.embedding.weight, again.model.embedding.weight)


def test_padding_keeps_its_zero_vector():
    run = train(small_corpus(), encoder="cnn", epochs=2, **SMALL)
    assert (run.model.embedding.weight[0] == 0).all()


def test_a_training_that_diverges_says_so():
    with refused("diverged", "--learning-rate"):
        train(small_corpus(), encoder="average", epochs=2, **{**SMALL, "learning_rate": 1e30})


def test_progress_is_reported_step_by_step():
    corpus = small_corpus()
    model = TextClassifier(
        ModelSettings(embedding_size=4, hidden_size=8),
        Vocabulary.build(corpus.splits["train"].tokens, 1),
        ["0", "1"],
    )
    seen = []
    split = model.encoded(corpus.splits["train"].texts, corpus.splits["train"].labels)
    objective = AttentionObjective(model, split, split, TrainSettings(epochs=2))
    with watched(lambda done, text: seen.append(done)):
        fit(objective)
    assert seen == [i / 4 for i in range(1, 5)]


def test_a_vocabulary_without_a_word_is_noted():
    with warned("1000 training texts", "--min-df"):
        train(small_corpus(), encoder="average", epochs=1, min_df=1000, hidden_size=8)
