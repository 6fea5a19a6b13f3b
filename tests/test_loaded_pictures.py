"""Classifiers of pictures that transformers has loaded: put on trial as a copy, and left as they are."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers as hf
from PIL import Image
from tiny_transformers import tiny_model, tiny_tokenizer
from tiny_vision import SIZE, VISION, plain_vision, processor, saved_pictures, saved_vision
from wording import refused

import heedmap as hm
from heedmap.data.pictures import read_picture
from heedmap.huggingface.attention_hook import Visitor

CLOSE = 1e-5  # of logits and weights, in float32
QUICK = {"permutations": 3, "progress": False}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return saved_pictures(tmp_path_factory.mktemp("pictures"))


class Look(Visitor):
    """Keep the weights of each layer, by the number of its call."""

    def __init__(self):
        self.found = {}

    def weights(self, call, weights):
        self.found[call.index] = weights


@pytest.mark.parametrize("kind", VISION)
def test_a_loaded_model_answers_and_attends_as_by_itself_and_stays_as_it_is(kind, pictures):
    model, prepare = plain_vision(kind).train(), processor()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config, written = model.config.to_dict(), prepare.to_json_string()
    learned = [parameter.requires_grad for parameter in model.parameters()]
    run = hm.open_model((model, prepare), pictures, progress=False)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [parameter.requires_grad for parameter in model.parameters()] == learned
    assert (model.config.to_dict(), prepare.to_json_string()) == (config, written)
    test = run.corpus.splits["test"]
    images = [Image.fromarray(read_picture(pictures / key)) for key in test.keys]
    expected = model.eval()(**prepare(images, return_tensors="pt"), output_attentions=True)
    batch = run.model.batch(test.texts, range(len(test)))
    torch.testing.assert_close(run.model.logits(batch), expected.logits, atol=CLOSE, rtol=0)
    look = Look()
    with torch.no_grad(), run.model.adapter.visiting(look):
        run.model.model(**run.model.inputs(batch))
    for call, own in zip(run.model.calls, expected.attentions, strict=True):
        torch.testing.assert_close(look.found[call], own, atol=CLOSE, rtol=0)


def test_the_run_of_a_pipeline_is_that_of_the_saved_folder_and_is_kept(pictures, tmp_path):
    pipe = hf.pipeline(
        "image-classification", model=plain_vision("vit"), image_processor=processor()
    )
    run = hm.open_model(pipe, pictures, out=tmp_path / "kept", progress=False)
    audit = hm.audit(run, **QUICK)
    folder = saved_vision(tmp_path / "model")
    of_folder = hm.audit(hm.open_model(folder, pictures, progress=False), **QUICK)
    assert audit.tables.keys() == of_folder.tables.keys()
    for name, table in of_folder.tables.items():
        pd.testing.assert_frame_equal(
            audit.tables[name].to_pandas(), table.to_pandas(), check_exact=True
        )
    assert audit.bottom_line.sentence == of_folder.bottom_line.sentence
    opened = hm.open_run(tmp_path / "kept")
    again = hm.audit(opened, **QUICK)
    assert again.tables["leave_one_out"].equals(of_folder.tables["leave_one_out"])
    path = str(pictures / "dog" / "1.png")
    assert hm.explain(opened, path).to_dict() == hm.explain(run, path).to_dict()
    assert "a model from memory (ViTForImageClassification)" in str(hm.explain(run, path))
    hm.open_model(pipe, pictures, out=tmp_path / "kept", progress=False)  # the same again
    kept = hf.AutoModelForImageClassification.from_pretrained(tmp_path / "kept" / "model")
    assert torch.equal(kept.classifier.weight, pipe.model.classifier.weight)


def test_an_audit_of_a_loaded_model_is_saved_with_it(pictures, tmp_path):
    run = hm.open_model((plain_vision("dinov2"), processor()), pictures, progress=False)
    hm.audit(run, **QUICK).save(tmp_path / "kept")
    again = hm.open_run(tmp_path / "kept")
    texts = run.corpus.splits["test"].texts
    both = [r.model.logits(r.model.batch(texts, range(len(texts)))) for r in (run, again)]
    assert torch.equal(*both)


def test_a_loaded_model_is_explained_and_checked_without_a_folder_of_pictures(pictures, tmp_path):
    pair = plain_vision("deit"), processor()
    explained = hm.explain(pair, str(pictures / "owl" / "2.jpg"))
    assert "patches" in str(explained)
    folder = saved_vision(tmp_path, "deit")
    of_folder = hm.explain(folder, str(pictures / "owl" / "2.jpg"))
    np.testing.assert_array_equal(explained.attention, of_folder.attention)
    checks = [hm.check(pair), hm.check(folder)]
    assert checks[0].result == checks[1].result
    assert all(checks)


def test_a_class_of_the_users_own_that_computes_the_same_is_opened(pictures):
    class Named(hf.ViTForImageClassification):
        pass

    model = Named(plain_vision("vit").config)
    run = hm.open_model((model, processor()), pictures, progress=False)
    assert run.model.architecture == "ViTForImageClassification"


def test_a_model_that_computes_something_else_after_loading_is_refused(pictures):
    class Doubled(hf.ViTForImageClassification):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            output.logits = 2 * output.logits
            return output

    model = Doubled(plain_vision("vit").config)
    model.load_state_dict(plain_vision("vit").state_dict())
    with refused("Doubled", "logits differ"):
        hm.open_model((model, processor()), pictures, progress=False)


class Brighter(hf.ViTImageProcessorPil):
    """A processor that adds to what it makes, which its file does not say."""

    def __call__(self, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made["pixel_values"] = made["pixel_values"] + 0.1
        return made


def test_a_processor_that_makes_something_else_after_loading_is_refused(pictures):
    class ViTImageProcessor(Brighter):
        pass

    mine = ViTImageProcessor(**{k: v for k, v in processor().to_dict().items() if k[0] != "_"})
    with refused(
        "an image processor that makes the same", "ViTImageProcessor does not", "AutoImageProcessor"
    ):
        hm.open_model((plain_vision("vit"), mine), pictures, progress=False)


def headless():
    return plain_vision("vit").vit


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (
            lambda: plain_vision("vit"),
            ["(model, image processor)", "ViTForImageClassification", "alone"],
        ),
        (processor, ["(model, image processor)", "ViTImageProcessorPil", "alone"]),
        (
            lambda: (processor(), plain_vision("vit")),
            ["(model, image processor)", "(image processor, model)", "swap"],
        ),
        (
            lambda: (plain_vision("vit"), tiny_tokenizer("bert")),
            [
                "(model, image processor)",
                "pictures",
                "ViTForImageClassification",
                "AutoImageProcessor",
            ],
        ),
        (
            lambda: (tiny_model("bert"), processor()),
            [
                "(model, tokenizer)",
                "texts",
                "BertForSequenceClassification",
                "ViTImageProcessorPil",
                "AutoTokenizer",
            ],
        ),
        (lambda: (headless(), processor()), ["a classifier of pictures", "ViTModel", "classes"]),
        (
            lambda: (plain_vision("vit"), "vit"),
            ["image processor", "ViTForImageClassification", "str"],
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_what_to_give(source, named, pictures):
    with refused(*named, kind=TypeError):
        hm.open_model(source(), pictures, progress=False)


def test_what_is_wrong_with_a_loaded_model_is_said_without_a_folders_name(pictures):
    sides = {"height": 20, "width": 20}
    other = hf.ViTImageProcessorPil(size=sides)
    swin = hf.SwinForImageClassification(
        hf.SwinConfig(image_size=SIZE, patch_size=4, embed_dim=8, depths=[1], num_heads=[1])
    )
    cases = [
        (plain_vision("vit"), other, ["an image processor", "16", "16", "in memory", "20", "20"]),
        (swin, processor(), ["the model in memory", "swin", "windows"]),
    ]
    for model, prepare, named in cases:
        with refused(*named) as error:
            hm.open_model((model, prepare), pictures, progress=False)
        assert "/tmp" not in str(error.value)
    pair = plain_vision("vit"), processor()
    with refused("reviews", "a folder of pictures"):
        hm.open_model(pair, "reviews", progress=False)
    with refused("list", "a folder of pictures"):
        hm.open_model(pair, ["a text"], progress=False)
    with refused("--output", "several labels"):
        hm.open_model(pair, pictures, output="cat", progress=False)


def test_a_body_that_is_saved_without_its_head_is_refused(tmp_path, pictures):
    headless().save_pretrained(tmp_path)
    processor().save_pretrained(tmp_path)
    with refused("a trained classifier of pictures", "classifier.bias"):
        hm.open_model(tmp_path, pictures, progress=False)
