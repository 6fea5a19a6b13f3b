"""Runs of token classifiers and masked language models: opened, kept, audited, explained, refused."""

import json

import datasets
import numpy as np
import pytest
import torch
from packed_texts import content
from tiny_askers import LABELS, plain
from tiny_transformers import tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.experiments.bottom_line import kind_of
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.loading import load_classifier, load_for_training
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.tasks import Task
from heedmap.huggingface.verification import verify
from heedmap.report.text_data import pack_texts
from heedmap.retraining.restricted import check

FEW = {"permutations": 3, "instances": 8, "minutes": "all"}
TAGS = [
    {"tokens": ["A", "great", "film", "."], "ner_tags": ["O", "PER", "LOC", "O"]},
    {"tokens": ["the", "unwatchable", "plot"], "ner_tags": ["O", "LOC", "PER"]},
    {"tokens": ["bad"], "ner_tags": ["PER"]},
]
MASKS = [
    {"sentence": "A great [MASK].", "answer": "film", "foil": "plot"},
    {"sentence": "[MASK]", "answer": "plot", "foil": "film"},
    {"sentence": "the [MASK] is bad", "answer": "film", "foil": "plot"},
]


def save(folder, *, of_masks):
    with quiet():
        plain("bert", of_masks=of_masks).save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
    return folder


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture(params=[False, True], ids=["tags", "masks"])
def place(request, tmp_path):
    """A folder with a model and texts that ask about words, and whether masks hide these."""
    save(tmp_path / "model", of_masks=request.param)
    write(tmp_path / "texts.jsonl", MASKS if request.param else TAGS)
    return tmp_path, request.param


def test_a_run_has_the_classes_of_words_and_is_opened_again(place):
    folder, of_masks = place
    run = hm.open_model(folder / "model", folder / "texts.jsonl", out=folder / "run")
    assert run.model.classes == (["film", "plot"] if of_masks else LABELS)
    assert run.corpus.splits["test"].labels.tolist() == ([0, 1, 0] if of_masks else [1, 2, 2, 1, 1])
    again = hm.open_run(folder / "run")
    assert again.corpus.fingerprint() == run.corpus.fingerprint()
    assert again.model.classes == run.model.classes
    texts = run.corpus.splits["test"].texts
    batches = [each.model.batch(texts, range(len(texts))) for each in (run, again)]
    assert torch.equal(run.model.logits(batches[0]), again.model.logits(batches[1]))
    hidden = {"target": "film", "foil": "plot"} if of_masks else {"target": "film"}
    assert again.explain("the [MASK]" if of_masks else "the film", **hidden).tokens[1][:2] == "→ "


def test_an_audit_says_which_word_was_asked_about_and_borrows_no_rates(place):
    folder, of_masks = place
    audit = hm.audit(hm.open_model(folder / "model", folder / "texts.jsonl"), **FEW)
    instances = audit.tables["instances"]
    assert instances["target"].to_pylist() == ([2, 0, 1] if of_masks else [1, 2, 1, 2, 0])
    assert kind_of(audit) == (
        "masked language model" if of_masks else "transformer of token classes"
    )
    assert "not known" in audit.bottom_line.rates
    leave_one_out = audit.tables["leave_one_out"]["importance"].to_pylist()
    # A masked word says nothing, and the word that is tagged says something.
    of_target = leave_one_out[0][instances["target"][0].as_py()]
    assert (abs(of_target) < 1e-5) == of_masks
    assert audit.settings.nouns.instance == ("text" if of_masks else "token")


def test_the_verification_passes(place):
    folder, _ = place
    result = verify(*load_classifier(folder / "model"))
    assert result.refusal is None
    assert {check.name for check in result.checks} > {"as loaded", "padded as unpadded"}


def test_one_text_is_explained_at_its_word(place):
    folder, of_masks = place
    text = "A great [MASK]." if of_masks else "A great film."
    asked = {"target": "film", "foil": "plot" if of_masks else None}
    explanation = hm.explain(folder / "model", text, **asked)
    model, tokenizer = plain("bert", of_masks=of_masks), tiny_tokenizer()
    encoding = tokenizer(text, return_tensors="pt")
    encoding.pop("token_type_ids", None)
    logits = model(**encoding).logits[0, 3]  # of [CLS] a great film . [SEP]
    if of_masks:
        logits = logits[tokenizer.convert_tokens_to_ids(["film", "plot"])]
    assert np.allclose(explanation.probabilities, logits.softmax(-1), atol=1e-5)
    assert explanation.tokens[2].startswith("→ ")
    with refused("the word that the model is asked about", "--target"):
        hm.explain(folder / "model", text)


def test_words_that_cannot_be_asked_about_are_refused(tmp_path):
    tagger, masked = (save(tmp_path / name, of_masks=name == "masks") for name in ("tags", "masks"))
    with refused("a word of the text", "2 times"):
        hm.explain(tagger, "bad bad", target="bad")
    assert hm.explain(tagger, "bad bad", target="2").tokens == ["bad", "→ bad"]
    with refused("a masked language model", "leave it out"):
        hm.explain(tagger, "bad", target="bad", foil="film")
    with refused("as its foil", "none"):
        hm.explain(masked, "[MASK]", target="film")
    with refused("one entry each", "un, ##watch, ##able"):
        hm.explain(masked, "[MASK]", target="film", foil="unwatchable")
    rows = write(tmp_path / "rows.jsonl", [{**MASKS[0], "foil": "unwatchable"}, MASKS[1]])
    with refused("line 1", "one entry each", "unwatchable"):
        hm.open_model(masked, rows)


def test_options_of_another_task_are_refused(tmp_path):
    tagger, masked = (save(tmp_path / name, of_masks=name == "masks") for name in ("tags", "masks"))
    tags, masks = write(tmp_path / "t.jsonl", TAGS), write(tmp_path / "m.jsonl", MASKS)
    for model, data, options, said in (
        (tagger, tags, {"foil": "x"}, "--foil-column x"),
        (masked, masks, {"asked": "all"}, "--asked all"),
        (tagger, tags, {"query": "x"}, "--query-column x"),
        (masked, masks, {"tokenizer": "sentences"}, "--tokenizer sentences"),
        (tagger, tags, {"output": "PER"}, "--output PER"),
    ):
        with refused(said, "leave it out"):
            hm.open_model(model, data, **options)


def test_the_task_is_known_without_the_weights(tmp_path):
    tagger, masked = (save(tmp_path / name, of_masks=name == "masks") for name in ("tags", "masks"))
    assert (find_model(tagger).task, find_model(masked).task) == (Task.WORDS, Task.MASKS)
    assert find_model(tagger).outputs()[0] == LABELS
    assert len(find_model(masked).outputs()[0]) == 2
    assert find_model(tagger).labels() is None
    assert find_model(masked).labels() is None
    with quiet():
        classifier, _ = load_for_training(masked, ["no", "yes"])  # as a body to fine-tune
    assert type(classifier).__name__ == "BertForSequenceClassification"


def test_labels_have_the_names_that_a_data_set_gives_their_numbers(tmp_path):
    tagger = save(tmp_path / "tags", of_masks=False)
    names = ["LOC", "PER", "O"]  # in another order than the model's
    features = datasets.Features(
        tokens=datasets.Sequence(datasets.Value("string")),
        ner_tags=datasets.Sequence(datasets.ClassLabel(names=names)),
    )
    tags = {"tokens": [["a", "great", "film"], ["bad"]], "ner_tags": [[2, 1, 0], [1]]}
    given = datasets.Dataset.from_dict(tags, features=features)
    given.to_parquet(tmp_path / "texts.parquet")
    for data in (given, tmp_path / "texts.parquet"):
        corpus = hm.open_model(tagger, data).corpus
        labels = [corpus.classes[label] for label in corpus.splits["test"].labels]
        assert labels == ["PER", "LOC", "PER"]


def test_heedmap_trains_no_token_classifier(tmp_path):
    tagger, tags = save(tmp_path / "tags", of_masks=False), write(tmp_path / "t.jsonl", TAGS)
    with refused("token classification", "does not train"):
        hm.fine_tune(tagger, tags)
    with refused("token classification", "does not train"), quiet():
        load_for_training(tagger, ["no", "yes"])
    with refused("one that answers at words"):
        check(hm.open_model(tagger, tags).model, "tagger")


def test_a_long_text_is_cut_or_read_in_the_window_with_its_word(tmp_path):
    tagger = save(tmp_path / "tags", of_masks=False)
    words = ["film"] * 60
    tags = ["LOC", *["O"] * 58, "PER"]
    rows = write(
        tmp_path / "long.jsonl",
        [{"tokens": words, "tags": tags}, {"tokens": ["bad"], "tags": ["PER"]}],
    )
    cut = hm.open_model(tagger, rows).corpus
    assert [(len(text), text.target) for text in cut.splits["test"].texts] == [(30, 0), (1, 0)]
    assert cut.left_out["longer than the model's 32 positions, its word lies beyond them"] == 1
    windows = hm.open_model(tagger, rows, long_texts="windows").corpus.splits["test"]
    assert [(len(text), text[text.target].strip()) for text in windows.texts] == [
        (30, "film"), (30, "film"), (1, "bad"),
    ]  # fmt: skip


def test_the_page_names_the_two_words_of_each_masked_text(tmp_path):
    model = save(tmp_path / "model", of_masks=True)
    texts = [*MASKS, {"sentence": "the plot [MASK] bad", "answer": "the", "foil": "bad"}]
    run = hm.open_model(model, write(tmp_path / "texts.jsonl", texts), progress=False)
    audit = hm.audit(run, **FEW, progress=False)
    index = json.loads(content(pack_texts(dict(audit.tables), audit.classes, []).index))
    assert index["choices"] == [["film", "plot"]] * 3 + [["bad", "the"]]
    named = [words[label] for words, label in zip(index["choices"], index["label"], strict=True)]
    assert named == [text["answer"] for text in texts]


@pytest.mark.parametrize("of_masks", [False, True])
def test_a_model_in_memory_is_opened_too(tmp_path, of_masks):
    rows = write(tmp_path / "texts.jsonl", MASKS if of_masks else TAGS)
    given = (plain("bert", of_masks=of_masks), tiny_tokenizer())
    run = hm.open_model(given, rows, out=tmp_path / "run")
    assert run.facts["reads"] == "target"
    assert hm.open_run(tmp_path / "run").model.classes == run.model.classes


def test_a_picture_of_a_tagger_points_to_an_explanation_that_works(heedmap, tmp_path):
    tagger = save(tmp_path / "tags", of_masks=False)
    refused_picture = heedmap("picture", tagger, "a great film")
    assert refused_picture.code == 2
    assert '"TEXT" --target WORD` shows its map' in refused_picture.err
    explained = heedmap("explain", tagger, "a great film", "--target", "film")
    assert explained.code == 0
    assert "film" in explained.out


@pytest.mark.filterwarnings("ignore:.*no test token", "ignore:.*repeat another")
def test_notes_on_classes_and_repeats_speak_of_tokens(tmp_path):
    rows = [{"tokens": ["A", "text"], "ner_tags": ["PER", "PER"]}] * 26
    save(tmp_path / "model", of_masks=False)
    data = write(tmp_path / "texts.jsonl", rows)
    run = hm.open_model(tmp_path / "model", data, progress=False)
    assert run.corpus.notes == [
        "2 of 3 classes have no test token: 'O', 'LOC'",
        "tokens that repeat another: 50 of 52 in test (kept)",
    ]
    audit = hm.audit(run, permutations=3, progress=False)
    page = audit.save(tmp_path / "report.html").read_text("utf-8")
    assert "have no test token" in page
    assert "no test text" not in page
    assert "n = 52 (1 different sentence)" in page
    assert "different token" not in page
