import numpy as np
import pytest
import torch
from conftest import random_pairs, random_texts, small_model

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


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
@pytest.mark.parametrize(("classes", "steps"), [(2, 2), (3, 8)])
def test_integrated_gradients_are_the_sum_over_the_path_written_out(encoder, classes, steps):
    model = small_model(encoder, classes=classes).double()
    model.embedding.weight.mul_(3)
    batch = model.batch(random_texts((6, 1, 3)), range(3))
    trace = model.trace(batch)
    embedded = model.embed(batch)
    start = embedded.clone()
    for row, size in enumerate((6, 1, 3)):
        start[row, 1 : 1 + size] = 0  # the marks before and after the tokens stay
    places, weights = np.polynomial.legendre.leggauss(steps)
    slope = torch.zeros_like(embedded)
    for place, weight in zip(places, weights, strict=True):
        point = (start + (1 + place) / 2 * (embedded - start)).requires_grad_()
        y = log_odds(model.logits_from(point, batch), trace.predicted).sum()
        slope += weight / 2 * torch.autograd.grad(y, point)[0]
    signed = ((embedded - start) * slope).sum(-1)
    values, error = integrated_gradients(model, batch, trace, steps=steps)
    assert torch.allclose(values, signed[:, 1:-1].abs() * batch.mask, atol=1e-8)
    assert (values > 0).equal(batch.mask)
    y, at_start = (
        log_odds(model.logits_from(x, batch), trace.predicted) for x in (embedded, start)
    )
    assert torch.allclose(error, (signed.sum(-1) - (y - at_start)).abs(), atol=1e-8)


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
