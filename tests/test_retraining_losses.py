"""The losses of trained adversaries and of deception, against loops and explicit numbers."""

import math

import numpy as np
import pytest
import torch
from conftest import random_texts, small_model

from heedmap.data.batches import Ragged
from heedmap.experiments.questions.deception import masses
from heedmap.experiments.variants import Adversary, Penalty
from heedmap.measures import kullback_leibler
from heedmap.retraining.adversary import AdversaryObjective, Target, directed
from heedmap.retraining.base import without_marked
from heedmap.retraining.deception import (
    DeceptiveObjective,
    penalty,
    read_blocked,
    with_penalty,
)
from heedmap.retraining.reading import read
from heedmap.settings.training import TrainSettings
from heedmap.training.objective import Progress

SETTINGS = TrainSettings(epochs=2, batch_size=4)
LENGTHS = (5, 1, 2, 9, 3, 4)


def encoded_by(model, lengths=LENGTHS, seed=0):
    labels = np.arange(len(lengths)) % 2
    return model.encoded(random_texts(lengths, seed), labels)


def target_of(model, split):
    return Target(*read(model, split))


@pytest.fixture
def trained():
    """A base model, another one to train, and a split."""
    base, other = small_model(seed=0), small_model(seed=1)
    other.requires_grad_(True)
    return base, other, encoded_by(base)


def adversary_of(trained, how):
    base, other, split = trained
    target = target_of(base, split)
    return AdversaryObjective(other, split, split, SETTINGS, how, (target, target))


def slowly(base, other, split, how):
    """The adversary's loss in plain loops over texts and tokens."""
    total = 0.0
    for row in range(len(split)):
        p, q = (read(m, split)[0][row].softmax(-1).tolist() for m in (base, other))
        a, b = (read(m, split)[1][row].tolist() for m in (base, other))
        total += 0.5 * sum(abs(x - y) for x, y in zip(p, q, strict=True))
        first, second = (b, a) if how.direction == "adversary" else (a, b)
        total -= how.strength * sum(x * math.log(x / y) for x, y in zip(first, second, strict=True))
    return total


@pytest.mark.parametrize("direction", ["adversary", "base"])
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_the_adversarys_loss_is_that_of_a_plain_loop(trained, direction, strength):
    how = Adversary(strength, direction)
    objective = adversary_of(trained, how)
    batch = objective.batch(np.array([3, 0, 1, 5, 4, 2]))
    loss = objective.loss(objective.model, batch)
    assert loss.item() == pytest.approx(slowly(*trained, how), abs=1e-5)
    scores = objective.scores()
    assert scores["loss"] * len(LENGTHS) == pytest.approx(slowly(*trained, how), abs=1e-5)


def test_a_model_is_no_adversary_of_itself(trained):
    base, _, split = trained
    target = target_of(base, split)
    objective = AdversaryObjective(base, split, split, SETTINGS, Adversary(1.0), (target, target))
    scores = objective.scores()
    assert scores["tvd"] == scores["jsd"] == 0
    assert scores["kl"] == pytest.approx(0, abs=1e-7)


def test_the_directions_of_kl_differ_and_one_is_unbounded():
    base, flat = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]])
    one, other = directed("adversary", flat, base), directed("base", flat, base)
    assert float(one) == pytest.approx(0.5 * math.log(5 / 9) + 0.5 * math.log(5))
    assert float(other) == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))
    far = torch.tensor([[0.0, 1.0]])
    assert float(directed("base", far, base)) > 0.9 * 20
    assert float(directed("adversary", far, base)) == pytest.approx(-math.log(0.1))


def test_padding_and_weights_of_0_give_no_nan_in_value_or_gradient():
    own = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], requires_grad=True)
    base = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    for direction in ("adversary", "base"):
        value = directed(direction, own, base).sum()
        (slope,) = torch.autograd.grad(value, own)
        assert torch.isfinite(value)
        assert torch.isfinite(slope).all()
    assert kullback_leibler(base, base).tolist() == [0, 0]


def test_the_adversary_with_the_lowest_loss_on_dev_is_kept_and_patience_ends_it(trained):
    objective = adversary_of(trained, Adversary(0.1, patience=2))
    progress = Progress(scores=[{"loss": -1.0}], best_epoch=0, epochs_done=1)
    assert objective.is_better({"loss": -1.5}, progress)
    assert not objective.is_better({"loss": -1.0}, progress)
    assert not objective.is_finished(progress)
    progress.epochs_done = 3
    assert objective.is_finished(progress)


def test_the_penalty_is_minus_the_log_of_what_is_left():
    attention = torch.tensor([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0]])
    marked = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = penalty(attention, marked, torch.tensor([3, 2, 1]))
    assert found[0] == pytest.approx(-math.log(0.75))
    assert found[1:].tolist() == [0, 0], "none of it, and nothing else"


def test_the_penalty_is_finite_where_all_attention_is_impermissible():
    attention = torch.tensor([[1.0, 0.0]], requires_grad=True)
    found = penalty(attention, torch.tensor([[1.0, 0.0]]), torch.tensor([2]))
    (slope,) = torch.autograd.grad(found.sum(), attention)
    assert torch.isfinite(found).all()
    assert torch.isfinite(slope).all()
    assert found.item() == pytest.approx(-math.log(1e-12), rel=1e-4)


def test_the_penalty_is_added_per_text_whatever_the_order_of_the_batch():
    marks = Ragged([[1.0, 0.0], [0.0], [0.0, 0.0, 1.0]])

    def plain(outputs, attention, batch):
        return outputs.sum()

    model = small_model()
    split = model.encoded(random_texts((2, 1, 3)), np.zeros(3, int))
    batch = split.batch([2, 0, 1])
    outputs, attention = model(batch)
    found = with_penalty(plain, marks, 2.0)(outputs, attention, batch)
    expected = (
        outputs.sum() - 2 * (1 - attention[0, 0, 2]).log() - 2 * (1 - attention[1, 0, 0]).log()
    )
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)


def test_mass_is_undefined_without_impermissible_tokens():
    found = masses(Ragged([[0.25, 0.75], [1.0]]), Ragged([[0.0, 1.0], [0.0]]))
    assert found[0] == 0.75
    assert np.isnan(found[1])


def test_texts_lose_their_impermissible_tokens_and_are_never_empty():
    marks = Ragged([[0.0, 1.0, 0.0], [1.0, 1.0]])
    assert without_marked([["a", "he", "b"], ["he", "she"]], marks, "<unk>") == [
        ["a", "b"],
        ["<unk>"],
    ]


@pytest.mark.parametrize(
    ("rule", "scores", "better"),
    [
        ("paper", {"accuracy": 0.89, "mass": 0.2}, True),  # within 2 % and less mass
        ("paper", {"accuracy": 0.87, "mass": 0.0}, False),  # gives up too much
        ("paper", {"accuracy": 0.99, "mass": 0.5}, False),
        ("code", {"accuracy": 0.89, "mass": 0.2}, False),
        ("code", {"accuracy": 0.91, "mass": 0.9}, True),
    ],
)
def test_the_rules_choose_the_epoch(trained, rule, scores, better):
    _, model, split = trained
    marks = Ragged([[0.0] * n for n in LENGTHS])
    objective = DeceptiveObjective(
        model, split, split, SETTINGS, Penalty(1.0, ("he",), rule), (marks, marks), accuracy=0.9
    )
    progress = Progress(scores=[{"accuracy": 0.9, "mass": 0.4}], best_epoch=0, epochs_done=1)
    assert objective.is_better(scores, progress) is better
    assert not objective.is_finished(progress)


def test_where_no_epoch_is_accurate_enough_the_most_accurate_is_kept(trained):
    _, model, split = trained
    marks = Ragged([[0.0] * n for n in LENGTHS])
    objective = DeceptiveObjective(
        model, split, split, SETTINGS, Penalty(1.0, ("he",)), (marks, marks), accuracy=1.0
    )
    progress = Progress(scores=[{"accuracy": 0.5, "mass": 0.0}], best_epoch=0, epochs_done=1)
    assert objective.is_better({"accuracy": 0.6, "mass": 0.9}, progress)
    assert not objective.is_better({"accuracy": 0.4, "mass": 0.0}, progress)
    assert objective.is_better({"accuracy": 0.98, "mass": 0.9}, progress)


def test_blocked_attention_leaves_the_read_out_of_the_other_tokens_alone():
    model = small_model(seed=0)
    texts = random_texts(LENGTHS, 0)
    split = encoded_by(model)
    rng = np.random.default_rng(0)
    marks = Ragged([(rng.random(length) < 0.4).astype(float) for length in LENGTHS])
    trace = model.trace(model.batch(texts, range(len(texts))))
    found = read_blocked(model, split, marks)
    for row, length in enumerate(LENGTHS):
        expected = trace.readout.bias.clone()
        for t in range(length):
            if not marks[row][t]:
                expected += trace.attention[row, 0, t] * trace.readout.relevance[row, 0, t]
        assert torch.allclose(found[row], expected, atol=1e-6)
    assert marks[0].any()
    assert marks[0].sum() < LENGTHS[0]
