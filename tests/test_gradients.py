import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from conftest import random_pairs, random_texts, small_model

from heedmap.importance import recurrent_integrated_gradients
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.measures import log_odds
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.pair_classifier import PairClassifier


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_times_input_is_the_slope_along_the_embedding_with_attention_held(
    encoder, classes
):
    model = small_model(encoder, classes=classes).double()
    batch = model.batch(random_texts((4, 1, 6)), range(3))
    trace = model.trace(batch)
    found = gradient_importance(model, batch, trace)
    embedded = model.embed(batch)
    step = 1e-6
    for t in range(6):
        ends = []
        for sign in (1, -1):
            moved = embedded.clone()
            moved[:, t + 1] *= 1 + sign * step
            logits = model.logits_from(moved, batch, trace.attention)
            ends.append(log_odds(logits, trace.predicted))
        slope = ((ends[0] - ends[1]) / (2 * step)).abs()
        assert torch.allclose(found[:, t], slope, atol=1e-7)


def test_gradient_ranks_are_those_of_the_probability_as_in_the_paper():
    model = small_model("lstm").double()
    batch = model.batch(random_texts((8,)), [0])
    trace = model.trace(batch)
    embedded = model.embed(batch).requires_grad_()
    p = model.logits_from(embedded, batch, trace.attention).softmax(-1)[0, 1]
    (gradient,) = torch.autograd.grad(p, embedded)
    of_p = (gradient * embedded).sum(-1)[0, 1:-1].abs()
    found = gradient_importance(model, batch, trace)[0]
    assert torch.allclose(found * (p * (1 - p)), of_p)


def test_the_gradient_of_a_saturated_prediction_does_not_vanish():
    model = small_model("lstm")
    model.decoder.weight.mul_(400)
    batch = model.batch(random_texts((8, 5)), [0, 1])
    trace = model.trace(batch)
    assert (trace.logits.softmax(-1).amax(-1) == 1).any()
    values = gradient_importance(model, batch, trace)
    assert (values[batch.mask] > 0).all()
    of_p = gradient_importance(model, batch, trace, quantity="probability")
    assert (of_p == 0).any()  # why the log-odds are the default


@pytest.mark.parametrize("pairs", [False, True])
def test_each_variant_of_the_gradient_is_what_its_name_says(pairs):
    model = small_model("cnn", classes=3, kind=PairClassifier if pairs else TextClassifier).double()
    texts = random_pairs((6, 3)) if pairs else random_texts((6, 3))
    batch = model.batch(texts, [0, 1])
    trace = model.trace(batch)
    embedded = model.embed(batch).requires_grad_()
    for path, imposed in (("closed", trace.attention), ("open", None)):
        logits = model.logits_from(embedded, batch, imposed)
        odds = log_odds(logits, trace.predicted)
        p = logits.softmax(-1).amax(-1)
        for of, target in (("log-odds", odds), ("probability", p)):
            (slope,) = torch.autograd.grad(target.sum(), embedded, retain_graph=True)
            importance = gradient_importance(model, batch, trace, path=path, quantity=of)
            assert torch.allclose(importance, (slope * embedded)[:, 1:-1].sum(-1).abs())
    closed, opened = (gradient_importance(model, batch, trace, path=p) for p in ("closed", "open"))
    assert not torch.allclose(closed, opened)


@pytest.mark.parametrize("classes", [2, 3])
def test_integrated_gradients_add_up_to_the_change_from_the_baseline(classes):
    model = small_model("lstm", classes=classes).double()
    batch = model.batch(random_texts((6, 2, 1)), range(3))
    values, error = integrated_gradients(model, batch, model.trace(batch), steps=32)
    assert values.shape == (3, 6)
    assert (values[~batch.mask] == 0).all()
    assert (error < 1e-6).all()


def test_too_few_steps_show_in_the_completeness_error():
    model = small_model("lstm").double()
    model.embedding.weight.mul_(5)
    batch = model.batch(random_texts((6,)), [0])
    coarse = integrated_gradients(model, batch, model.trace(batch), steps=2)[1]
    fine = integrated_gradients(model, batch, model.trace(batch), steps=64)[1]
    assert fine < coarse


@pytest.mark.parametrize("kind", [TextClassifier, PairClassifier])
@pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn"])
@pytest.mark.parametrize(("classes", "steps", "marks"), [(2, 2, True), (3, 8, True), (3, 3, False)])
@pytest.mark.parametrize("are_imposed", [False, True])
def test_integrated_gradients_are_the_sum_over_the_path_written_out(
    encoder, classes, steps, marks, kind, are_imposed, monkeypatch
):
    monkeypatch.setattr(recurrent_integrated_gradients, "STATES", 700)  # two steps at a time
    classes = 3 if kind is PairClassifier else classes  # the pairs have three candidates
    model = small_model(encoder, classes=classes, kind=kind).double()
    model.encoder.marks = model.encoder.marks and marks  # a GRU reads none
    model.embedding.weight.mul_(3)
    sizes = (6, 1, 3)
    texts = random_pairs(sizes) if kind is PairClassifier else random_texts(sizes)
    batch = model.batch(texts, range(3))
    trace = model.trace(batch)
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(trace.attention.shape, generator=generator, dtype=torch.float64)
    weights_of_text = scores.masked_fill(~trace.support, -torch.inf).softmax(-1)
    imposed = weights_of_text if are_imposed else None
    embedded = model.embed(batch)
    start = embedded.clone()
    for row, size in enumerate(sizes):
        start[row, 1 : 1 + size] = 0  # the marks before and after the tokens stay
    slope = torch.zeros_like(embedded)
    for place, weight in points_of(encoder, steps):
        point = (start + place * (embedded - start)).requires_grad_()
        y = log_odds(model.logits_from(point, batch, imposed), trace.predicted).sum()
        slope += weight * torch.autograd.grad(y, point)[0]
    signed = ((embedded - start) * slope).sum(-1)
    values, error = integrated_gradients(model, batch, trace, steps, imposed)
    assert torch.allclose(values, signed[:, 1:-1].abs() * batch.mask, atol=1e-8)
    assert (values > 0).equal(batch.mask)
    y, at_start = (
        log_odds(model.logits_from(x, batch, imposed), trace.predicted) for x in (embedded, start)
    )
    assert torch.allclose(error, (signed.sum(-1) - (y - at_start)).abs(), atol=1e-8)


def points_of(encoder, steps):
    """Points from 0 to 1 and weights: Gauss-Legendre's of recurrent models, else Clenshaw-Curtis's."""
    if encoder in ("lstm", "gru"):
        places, weights = np.polynomial.legendre.leggauss(steps)
        return zip((1 + places) / 2, weights / 2, strict=True)
    places = (1 - np.cos(np.arange(steps + 1) * np.pi / steps)) / 2
    # The weights with which every power x^d up to the n-th has the integral 1 / (d + 1).
    powers = np.arange(steps + 1)
    weights = np.linalg.solve(places ** powers[:, None], 1 / (powers + 1))
    return zip(places, weights, strict=True)


def captums(model, batch, steps):
    """Captum's integrated gradients through the embeddings, and the completeness error."""
    trace, embedded = model.trace(batch), model.embed(batch)
    baseline = embedded.masked_fill(model.token_positions(batch).unsqueeze(-1), 0.0)

    def target(points):
        times = len(points) // len(embedded)
        logits = model.logits_from(points, batch.repeated(times))
        return log_odds(logits, trace.predicted.repeat(times))

    values, error = IntegratedGradients(target).attribute(
        embedded, baselines=baseline, n_steps=steps, return_convergence_delta=True
    )
    return values.sum(-1)[:, 1:-1].abs() * batch.mask, error.abs()


def test_integrated_gradients_of_recurrent_models_are_those_of_captum():
    """Of texts of 1 to 40 words, in single precision, and of saturated predictions."""
    for encoder in ("lstm", "gru"):
        model = small_model(encoder, classes=3)
        model.decoder.weight.mul_(50)
        batch = model.batch(random_texts((40, 1, 2, 17)), range(4))
        found = integrated_gradients(model, batch, model.trace(batch), 50)
        for ours, theirs in zip(found, captums(model, batch, 50), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5 * float(found[0].max()))


@pytest.mark.parametrize("encoder", ["cnn", "average"])
def test_halved_steps_read_only_the_points_between(encoder, monkeypatch):
    """The first texts are refined in another batch; the numbers are those of one reading of all points."""
    model = small_model(encoder, classes=3).double()
    model.embedding.weight.mul_(5)
    texts = random_texts((1, 2, 6, 9))
    batch = model.batch(texts, [10, 11, 12, 13])
    readings, read = {}, []
    logits_from = model.logits_from
    monkeypatch.setattr(
        model,
        "logits_from",
        lambda path, *others: read.append(len(path)) or logits_from(path, *others),
    )
    integrated_gradients(model, batch, model.trace(batch), 4, readings=readings)
    assert sum(read) == 5 * 4
    for steps, rows in ((8, (12, 10)), (16, (12,))):
        part = model.batch([texts[row - 10] for row in rows], rows)
        trace = model.trace(part)
        read.clear()
        found = integrated_gradients(model, part, trace, steps, readings=readings)
        assert sum(read) == steps // 2 * len(rows)
        for refined, at_once in zip(
            found, integrated_gradients(model, part, trace, steps), strict=True
        ):
            assert torch.allclose(refined, at_once, atol=1e-12)
    # Of a text that was read with other steps, all points are read.
    read.clear()
    integrated_gradients(model, batch, model.trace(batch), 8, readings=readings)
    assert sum(read) == 9 * 4


def test_how_many_points_are_read_at_a_time_changes_nothing(monkeypatch):
    model = small_model("cnn").double()
    batch = model.batch(random_texts((6, 2, 1)), range(3))
    trace = model.trace(batch)
    whole = integrated_gradients(model, batch, trace, 6)
    monkeypatch.setattr("heedmap.importance.integrated_gradients.POSITIONS", 30)
    for found, expected in zip(integrated_gradients(model, batch, trace, 6), whole, strict=True):
        assert torch.allclose(found, expected, atol=1e-12)


def test_under_imposed_weights_no_other_word_has_any_part():
    """States without context, and all weight on the third word."""
    model = small_model("average").double()
    batch = model.batch(random_texts((6, 4)), range(2))
    imposed = torch.zeros(2, 1, 6, dtype=torch.float64)
    imposed[:, :, 2] = 1.0
    trace = model.trace(batch)
    values, error = integrated_gradients(model, batch, trace, 16, imposed)
    assert values.gt(0).nonzero().tolist() == [[0, 2], [1, 2]]
    assert (error < 1e-6).all()
    assert integrated_gradients(model, batch, trace, 16)[0].gt(0).sum() == 10
