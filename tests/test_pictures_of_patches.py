"""A vision transformer on trial: whole pictures as transformers reads them, and patches left out by hand."""

import numpy as np
import pytest
import torch
from tiny_vision import CLASSES, SIZE, VISION, plain_vision, processor, saved_pictures, saved_vision

import heedmap as hm
from heedmap.data.pictures import read_picture
from heedmap.experiments.rates import packaged_rates
from heedmap.huggingface.attention_hook import Visitor
from heedmap.importance.deletions import reread_without_each
from heedmap.models.layered import Layered
from heedmap.models.trace import Model

CLOSE = 1e-5  # of logits and weights, in float32


@pytest.fixture(scope="module", params=VISION)
def opened(request, tmp_path_factory):
    """Return the kind of a model, the run of it and some pictures, and their pixels in the run's order."""
    folder = tmp_path_factory.mktemp("vision")
    run = hm.open_model(
        saved_vision(folder / "model", request.param),
        saved_pictures(folder / "data"),
        progress=False,
    )
    keys = run.corpus.splits["test"].keys
    colours = [read_picture(folder / "data" / key) for key in keys]
    return request.param, run, processor()(colours, return_tensors="pt")["pixel_values"]


def test_it_is_a_model_like_any_other(opened):
    _, run, _ = opened
    assert isinstance(run.model, Model)
    assert isinstance(run.model, Layered)
    assert run.model.classes == CLASSES
    assert run.settings.nouns.items == "patches"


def test_whole_pictures_are_answered_as_transformers_answers_them(opened):
    kind, run, pixels = opened
    texts = run.corpus.splits["test"].texts
    trace = run.model.trace(run.model.batch(texts, range(len(texts))))
    expected = plain_vision(kind)(pixel_values=pixels).logits
    torch.testing.assert_close(trace.logits, expected, atol=CLOSE, rtol=0)
    alone = run.model.logits(run.model.batch(texts, range(len(texts))))
    torch.testing.assert_close(alone, expected, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_weights_of_each_layer_are_those_that_transformers_reports(opened, layer):
    kind, run, pixels = opened
    model, texts = run.model, run.corpus.splits["test"].texts
    batch = model.batch(texts, range(len(texts)))
    reported = plain_vision(kind)(pixel_values=pixels, output_attentions=True).attentions

    class Look(Visitor):
        found = None

        def weights(self, call, weights):
            if call.index == model.calls[layer]:
                Look.found = weights

    with torch.no_grad(), model.adapter.visiting(Look()):
        model.model(**model.inputs(batch))
    torch.testing.assert_close(Look.found, reported[layer], atol=CLOSE, rtol=0)


def test_the_answer_under_other_weights_is_that_of_transformers_with_them(opened):
    kind, run, pixels = opened
    model, texts = run.model, run.corpus.splits["test"].texts
    trace = model.trace(model.batch(texts, range(len(texts))))
    noise = torch.rand(trace.attention.shape, generator=torch.Generator().manual_seed(2))
    weights = noise / noise.sum(-1, keepdim=True)
    plain = plain_vision(kind)
    size = weights.shape[-1]
    imposed = weights.view(len(texts), model.heads, -1, size)

    def replaced(module, args, output):
        """Return what the last layer's attention gives with the imposed weights in the read rows."""
        states = args[0]
        value = module.v_proj(states).view(len(states), size, model.heads, -1).transpose(1, 2)
        own = output[1].clone()
        own[:, :, : imposed.shape[2]] = imposed  # the first row, or all
        context = (own @ value).transpose(1, 2).flatten(2)
        return module.o_proj(context), own

    last = [m for name, m in plain.named_modules() if name.endswith(".attention")][-1]
    handle = last.register_forward_hook(replaced)
    expected = plain(pixel_values=pixels).logits
    handle.remove()
    found = model.predict(trace, weights.unsqueeze(0))[0]
    torch.testing.assert_close(found, expected, atol=CLOSE, rtol=0)
    assert (found - trace.logits).abs().max() > 1e-3


def plain_without(plain, pixels, left_out):
    """Read one picture by transformers' parts, without some patches of the embeddings' output."""
    body = plain.base_model
    states = body.embeddings(pixels.unsqueeze(0))
    first = states.shape[1] - (SIZE // 4) ** 2
    kept = [i for i in range(states.shape[1]) if i - first not in left_out]
    states = states[:, kept]
    for layer in body.layers if hasattr(body, "layers") else body.encoder.layer:
        states = layer(states)
    states = body.layernorm(states)
    if hasattr(plain, "distillation_classifier"):
        return (plain.cls_classifier(states[:, 0]) + plain.distillation_classifier(states[:, 1]))[
            0
        ] / 2
    if plain.classifier.in_features == 2 * states.shape[2]:
        mean = (
            states[:, first:].mean(1) if states.shape[1] > first else torch.zeros_like(states[:, 0])
        )
        return plain.classifier(torch.cat([states[:, 0], mean], dim=1))[0]
    return plain.classifier(states[:, 0])[0]


@torch.no_grad()
def test_a_patch_is_left_out_by_leaving_out_its_position(opened):
    kind, run, pixels = opened
    model, texts, plain = run.model, run.corpus.splits["test"].texts, plain_vision(kind)
    # In one batch: whole, without one, without many, and with one patch alone.
    gone = [set(), {5}, {0, 1, 7, 15}, set(range(16)) - {9}]
    kept = [
        [name for i, name in enumerate(text) if i not in out]
        for text, out in zip(texts, gone, strict=False)
    ]
    found = model.logits(model.batch(kept, range(len(kept))))
    for row, out in enumerate(gone):
        expected = plain_without(plain, pixels[row], out)
        torch.testing.assert_close(found[row], expected, atol=CLOSE, rtol=0)


@torch.no_grad()
def test_leave_one_out_is_a_loop_over_the_patches(opened):
    kind, run, pixels = opened
    model, texts, plain = run.model, run.corpus.splits["test"].texts[:2], plain_vision(kind)
    found = reread_without_each(model, texts)
    for row in range(2):
        expected = torch.stack([plain_without(plain, pixels[row], {i}) for i in range(16)])
        torch.testing.assert_close(found[row].float(), expected, atol=CLOSE, rtol=0)


@torch.no_grad()
def test_a_masked_patch_is_grey_in_the_picture_itself(opened):
    kind, run, pixels = opened
    model, texts = run.model, run.corpus.splits["test"].texts
    found = model.logits(model.batch([model.mask_token(texts[0], 6)], [0]))
    covered = pixels[0].clone()
    covered[:, 4:8, 8:12] = 0.0  # row 1, column 2: the mean colour, by which pictures are centred
    expected = plain_vision(kind)(pixel_values=covered.unsqueeze(0)).logits
    torch.testing.assert_close(found, expected, atol=CLOSE, rtol=0)
    assert texts[0][6].endswith("=r1c2")


def test_gradients_by_the_patches_are_those_through_the_pixels(opened):
    kind, run, pixels = opened
    model, texts = run.model, run.corpus.splits["test"].texts[:1]
    batch = model.batch(texts, [0])
    embedded = model.embed(batch).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(model.logits_from(embedded, batch)[0, 1], embedded)
    plain = plain_vision(kind)
    leaf = pixels[:1].clone().requires_grad_()
    (by_pixels,) = torch.autograd.grad(plain(pixel_values=leaf).logits[0, 1], leaf)
    # Through the projection: the gradient by a patch's pixels is its weights' by the embedding's.
    projection = plain.base_model.embeddings.patch_embeddings.projection.weight.flatten(1)
    at_pixels = gradient[0, model.token_positions(batch)[0]] @ projection
    patches = by_pixels[0].reshape(3, 4, 4, 4, 4).permute(1, 3, 0, 2, 4).reshape(16, -1)
    torch.testing.assert_close(at_pixels, patches, atol=CLOSE, rtol=1e-4)


def test_an_audit_asks_a_picture_all_questions_and_borrows_no_rates(opened):
    _, run, _ = opened
    audit = hm.audit(run, permutations=5, progress=False)
    assert np.isfinite(np.concatenate(audit["leave_one_out"]["importance"].tolist())).all()
    wrong = packaged_rates().kinds["pictures"].of("wrong").n
    said = f"On {wrong} wrong maps" if run.model.reads == "first" else "no map of this kind"
    assert said in audit.bottom_line.rates
    assert "words" not in str(audit)
