"""A pipeline's own settings are followed, or refused by their names: its numbers are those of calling it."""

import numpy as np
import pytest
import transformers as hf
from tiny_transformers import tiny_model, tiny_tokenizer
from tiny_vision import plain_vision, processor, saved_pictures
from tokenizers.processors import BertProcessing
from wording import refused

import heedmap as hm

TEXTS = ["A great film. A great film. bad plot is unwatchable", "bad", "the plot is bad, a film ."]
ROWS = [{"text": text, "label": str(i % 2)} for i, text in enumerate(TEXTS)]
PAIRS = [("a great film is bad , " * 7, "the plot"), ("bad", "the plot is unwatchable " * 8)]
pytestmark = pytest.mark.filterwarnings(
    "ignore::heedmap.terminal.output.Note"
)  # of texts that are cut


def pipeline(model=None, tokenizer=None, **settings):
    return hf.pipeline(
        "text-classification",
        model=model or tiny_model("bert"),
        tokenizer=tokenizer or tiny_tokenizer("bert"),
        **settings,
    )


def called(pipe, inputs):
    """The probabilities (B, C) that the pipeline itself gives, one text at a time."""
    names = pipe.model.config.id2label
    scores = [{each["label"]: each["score"] for each in pipe(one, top_k=99)} for one in inputs]
    return np.array([[of_text[names[i]] for i in range(len(names))] for of_text in scores])


@pytest.mark.parametrize(
    "settings",
    [
        {"truncation": True, "max_length": 6},
        {"truncation": "only_first", "max_length": 7},
        {"max_length": 5},
        {"truncation": False, "max_length": 5},
        {"truncation": True},
        {"truncation": True, "max_length": 500},
        {"padding": "max_length", "max_length": 20},
        {"padding": True, "truncation": True, "max_length": 9},
        {"function_to_apply": "softmax"},
        {"top_k": None},
        {"top_k": 1, "batch_size": 2},
        {"return_token_type_ids": False, "stride": 2},
    ],
    ids=str,
)
def test_a_pipelines_settings_give_its_own_numbers(settings):
    pipe = pipeline(**settings)
    expected = called(pipe, TEXTS)
    run = hm.open_model(pipe, ROWS)
    np.testing.assert_allclose(run.predict_proba(TEXTS), expected, atol=1e-6)
    assert pipe.tokenizer.model_max_length == 32
    np.testing.assert_array_equal(called(pipe, TEXTS), expected)


def test_where_a_pipeline_cuts_is_kept_with_the_run_and_in_what_is_explained(tmp_path):
    pipe = pipeline(truncation=True, max_length=6)
    expected = called(pipe, TEXTS)
    hm.open_model(pipe, ROWS, out=tmp_path / "run")
    run = hm.open_run(tmp_path / "run")
    np.testing.assert_allclose(run.predict_proba(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(hm.explain(pipe, TEXTS[0]).probabilities, expected[0], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"function_to_apply": "sigmoid"}, ["function_to_apply", "'sigmoid'", "problem_type"]),
        ({"function_to_apply": "none"}, ["function_to_apply", "'none'"]),
        ({"add_special_tokens": False}, ["add_special_tokens = False"]),
        ({"truncation": "only_second", "max_length": 6}, ["truncation = 'only_second'"]),
        (
            {"padding": "max_length", "max_length": 20, "return_attention_mask": False},
            ["return_attention_mask = False"],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("use", [hm.check, lambda pipe: hm.explain(pipe, TEXTS[0])])
def test_settings_that_are_not_followed_are_refused_by_name(settings, named, use):
    with refused(*named):
        use(pipeline(**settings))


def test_a_pipeline_cuts_pairs_too_or_says_what_is_not_followed():
    tokenizer = tiny_tokenizer("bert")
    tokenizer.backend_tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    pipe = pipeline(tokenizer=tokenizer, truncation=True, max_length=28)
    rows = [{"text": a, "query": b, "label": str(i)} for i, (a, b) in enumerate(PAIRS)]
    expected = called(pipe, [{"text": a, "text_pair": b} for a, b in PAIRS])
    run = hm.open_model(pipe, rows, query="query")
    np.testing.assert_allclose(run.predict_proba(PAIRS), expected, atol=1e-6)
    for name, value in (("truncation", "only_first"), ("return_token_type_ids", False)):
        changed = pipeline(
            tokenizer=tokenizer, **{"truncation": True, "max_length": 28, name: value}
        )
        hm.open_model(changed, ROWS)  # of single texts it changes nothing
        with refused(f"{name} = {value!r}"):
            hm.open_model(changed, rows, query="query")
        with refused(f"{name} = {value!r}"):
            hm.explain(changed, "bad film", query="great")


def test_the_one_number_of_a_regression_is_not_squashed_unnoticed():
    model = tiny_model("bert", classes=1)
    with refused("function_to_apply = 'none'", "'sigmoid'"):  # what it applies by default
        hm.open_model(pipeline(model), ROWS)
    model.config.problem_type = "regression"
    pipe = pipeline(model)
    rows = [{"text": text, "label": i} for i, text in enumerate(TEXTS)]
    run = hm.open_model(pipe, rows)
    np.testing.assert_allclose(run.predict_proba(TEXTS), called(pipe, TEXTS), atol=1e-5)


def test_a_label_of_several_has_the_pipelines_own_probability():
    model = tiny_model("bert", classes=3)
    model.config.problem_type = "multi_label_classification"
    pipe = pipeline(model)
    run = hm.open_model(pipe, [{"text": text} for text in TEXTS], output="class1")
    np.testing.assert_allclose(run.predict_proba(TEXTS)[:, 1], called(pipe, TEXTS)[:, 1], atol=1e-6)
    with refused("function_to_apply = 'sigmoid'", "'softmax'"):
        hm.open_model(pipeline(model, function_to_apply="softmax"), ROWS, output="class1")


def test_a_pipeline_of_pictures_too(tmp_path):
    pictures = saved_pictures(tmp_path)

    def of_pictures(**settings):
        return hf.pipeline(
            "image-classification",
            model=plain_vision("vit"),
            image_processor=processor(),
            **settings,
        )

    hm.open_model(of_pictures(top_k=1, timeout=3), pictures, progress=False)
    with refused("function_to_apply", "'sigmoid'"):
        hm.open_model(of_pictures(function_to_apply="sigmoid"), pictures, progress=False)


@pytest.mark.parametrize(
    ("name", "value"), [("truncation_side", "left"), ("split_special_tokens", True)]
)
def test_what_was_set_on_a_tokenizer_after_it_was_made_is_read_too(name, value):
    texts = ["a great film [SEP] " * 9 + "bad plot", "a [SEP] film"]
    model, tokenizer = tiny_model("bert"), tiny_tokenizer("bert")
    setattr(tokenizer, name, value)
    rows = [{"text": text, "label": str(i)} for i, text in enumerate(texts)]
    run = hm.open_model((model, tokenizer), rows)
    expected = called(pipeline(model, tokenizer, truncation=True), texts)
    np.testing.assert_allclose(run.predict_proba(texts), expected, atol=1e-6)
    assert name not in tokenizer.init_kwargs
