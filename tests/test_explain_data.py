"""Many instances of every kind, explained by one command: each as it is explained by itself."""

import csv
import io
import json

import numpy as np
import pytest
from pair_transformers import pair_tokenizer
from PIL import Image
from safetensors.numpy import save_file
from tiny_askers import plain
from tiny_regressions import saved_number_model
from tiny_transformers import tiny_model, tiny_tokenizer
from tiny_vision import picture, saved_pictures, saved_vision
from wording import refused, stopped, warned

import heedmap as hm
from heedmap.data.unlabelled import read_unlabelled
from heedmap.huggingface.logging import quiet
from heedmap.runs.explain_data import explain_data
from heedmap.settings.data import DataSettings

TEXTS = ["A great film.", "the plot is unwatchable, bad", "bad"]
WIDTH = 4


def save(folder, model, tokenizer=None, **values):
    for name, value in values.items():
        setattr(model.config, name, value)
    with quiet():
        model.save_pretrained(folder)
        (tokenizer or tiny_tokenizer()).save_pretrained(folder)
    return folder


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def explained(heedmap, model, data, *options):
    """What the command gives of data as JSON, by key."""
    done = heedmap("explain", model, "--data", data, "--json", "--quiet", *options)
    assert done.code == 0, done.err
    values = json.loads(done.out)
    return {each.pop("id"): each for each in values}


def alone(heedmap, model, *arguments):
    done = heedmap("explain", model, *arguments, "--json", "--quiet")
    assert done.code == 0, done.err
    return json.loads(done.out)


def columns(heedmap, model, data, *options):
    """The names of the columns of the table, and the keys in their order."""
    done = heedmap("explain", model, "--data", data, "--quiet", *options)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    return [*rows[0]], [*dict.fromkeys(row["id"] for row in rows)]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_words_that_a_tagger_is_asked_about(heedmap, tmp_path):
    model = save(tmp_path / "model", plain("bert", of_masks=False))
    rows = [
        {"text": text, "target": word}
        for text, word in zip(TEXTS, ["film", "plot", 1], strict=True)
    ]
    by_word = explained(heedmap, model, write(tmp_path / "words.jsonl", rows))
    for (key, found), row in zip(by_word.items(), rows, strict=True):
        assert found == alone(heedmap, model, row["text"], "--target", str(row["target"])), key
    for word, told in (
        ("Berlin", "does not stand in the text"),
        ("a", "stands in the text 2 times"),
    ):
        absent = write(tmp_path / "absent.jsonl", [{"text": "a film a", "target": word}])
        done = heedmap("explain", model, "--data", absent, "--quiet")
        stopped(done, "line 1", "in the column target a word of the text", "1 to 3", word, told)
    tagged = {"tokens": ["A", "great", "film"], "ner_tags": ["O", "PER", "LOC"]}
    outside = {"tokens": ["bad"], "ner_tags": ["O"]}
    tags = write(tmp_path / "tags.jsonl", [tagged, outside])
    with warned("2 of 4 words labelled O"):
        explain_data(str(model), DataSettings.of(source=str(tags)))
    by_label = explained(heedmap, model, tags)
    assert [*by_label] == ["line 1, word 2", "line 1, word 3"]
    assert by_label["line 1, word 3"] == alone(heedmap, model, "A great film", "--target", "film")
    unlabelled = write(tmp_path / "plain.jsonl", [{"tokens": tagged["tokens"]}, {"text": "bad"}])
    names, keys = columns(heedmap, model, unlabelled, "--text-column", "tokens")
    assert keys == [f"line 1, word {i}" for i in (1, 2, 3)]
    assert names == columns(heedmap, *text_model(tmp_path))[0]
    with warned("1 of 4 rows are empty"):
        explain_data(str(model), DataSettings.of(source=str(unlabelled), text="tokens"))


def text_model(folder):
    """A classifier of texts, and a file of texts: what other kinds have the columns of."""
    data = write(folder / "texts.jsonl", [{"text": text} for text in TEXTS])
    return save(folder / "texts", tiny_model("bert")), data


def test_words_that_masks_hide_have_their_own_two_classes(heedmap, tmp_path):
    model = save(tmp_path / "model", plain("bert", of_masks=True))
    rows = [
        {"sentence": "A great [MASK].", "answer": "film", "foil": "plot"},
        {"sentence": "[MASK] film", "answer": "bad", "foil": "great"},
        {"sentence": "the [MASK] is bad", "answer": "plot", "foil": "film"},
    ]
    found = explained(heedmap, model, write(tmp_path / "masks.jsonl", rows))
    assert [each["classes"] for each in found.values()] == [
        ["film", "plot"],
        ["bad", "great"],
        ["film", "plot"],
    ]
    for (key, each), row in zip(found.items(), rows, strict=True):
        asked = ("--target", row["answer"], "--foil", row["foil"])
        assert each == alone(heedmap, model, row["sentence"], *asked), key
    named = [{"a": row["sentence"], "b": row["answer"], "c": row["foil"]} for row in rows]
    options = ["--text-column", "a", "--label-column", "b", "--foil-column", "c"]
    again = explained(heedmap, model, write(tmp_path / "named.jsonl", named), *options)
    assert again == found
    bad = write(tmp_path / "bad.jsonl", [rows[0], {**rows[1], "sentence": "no mask"}])
    stopped(heedmap("explain", model, "--data", bad), "line 2", "one [MASK]")


def test_numbers_and_one_label_of_several(heedmap, tmp_path):
    _, data = text_model(tmp_path)
    of_number = saved_number_model(tmp_path / "number")
    several = save(
        tmp_path / "several",
        tiny_model("bert", classes=3),
        problem_type="multi_label_classification",
        id2label={0: "class0", 1: "class1", 2: "class2"},
    )
    for model, options in ((of_number, []), (several, ["--output", "class1"])):
        found = explained(heedmap, model, data, *options)
        for each, text in zip(found.values(), TEXTS, strict=True):
            assert each == alone(heedmap, model, text, *options)
        assert len(columns(heedmap, model, data, *options)[1]) == 3


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*no label column")
def test_pairs_with_the_usual_names_are_found_by_a_run_of_pairs(heedmap, tmp_path):
    model = save(tmp_path / "model", tiny_model("bert"), pair_tokenizer("bert"))
    rows = [{"premise": text, "hypothesis": "the plot", "label": "class0"} for text in TEXTS]
    data = write(tmp_path / "pairs.jsonl", rows)
    run = hm.open_model(model, data, out=tmp_path / "run", progress=False)
    found = explained(heedmap, run.folder, data)
    assert explained(
        heedmap, run.folder, data, "--text-column", "premise", "--query-column", "hypothesis"
    ) in (found, dict(reversed(found.items())))
    for each in found.values():
        query = " ".join(each["query"])
        assert each == alone(heedmap, run.folder, each["text"], "--query", query)
    alone_run = hm.open_model(model, ["bad", "a film"], out=tmp_path / "single", progress=False)
    named = ["--text-column", "premise", "--query-column", "hypothesis"]
    stopped(heedmap("explain", alone_run.folder, "--data", data, *named), "text 0", "no query")
    assert len(explained(heedmap, model, data, *named)) == 3  # a model without data reads both
    texts = write(tmp_path / "texts.jsonl", [{"text": "bad"}])
    stopped(heedmap("explain", run.folder, "--data", texts), "the query", "--query-column")


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_folder_of_pictures(heedmap, tmp_path):
    model, data = saved_vision(tmp_path / "model"), saved_pictures(tmp_path / "data", 1)
    Image.fromarray(picture(7)).save(data / "own.png")
    (data / "notes.txt").write_text("none")
    found = explained(heedmap, model, data)
    assert [*found] == ["cat/0.jpg", "dog/1.png", "owl/2.jpg", "own.png"]
    for key, each in found.items():
        assert each == alone(heedmap, model, str(data / key)), key
    with warned("1 of 5 files are no pictures"):
        explain_data(str(model), DataSettings.of(source=str(data)))
    names, keys = columns(heedmap, model, data)
    assert keys == [*found]
    assert names == columns(heedmap, *text_model(tmp_path))[0]
    stopped(heedmap("explain", model, "--data", data / "own.png"), "a folder of pictures")
    (tmp_path / "none").mkdir()
    stopped(heedmap("explain", model, "--data", tmp_path / "none"), "got none")
    stopped(
        heedmap("explain", model, "--data", data, "--id-column", "a"), "--id-column", "pictures"
    )


@pytest.fixture
def bags(tmp_path):
    """A folder of bags with their labels, and a run of them."""
    rng, folder = np.random.default_rng(0), tmp_path / "bags"
    folder.mkdir()
    for i in range(30):
        array = (rng.normal(size=(3 + i % 3, WIDTH)) + 2 * (i % 2)).astype(np.float32)
        np.save(folder / f"s{i}.npy", array)
    labels = "".join(f"s{i},{'tumour' if i % 2 else 'normal'}\n" for i in range(30))
    (folder / "labels.csv").write_text(f"slide_id,label\n{labels}")
    corpus = hm.load(str(folder))
    run = hm.train(corpus, epochs=2, out=tmp_path / "run", progress=False)
    return folder, run


@pytest.mark.exhaustive
def test_bags_of_a_folder_and_one_by_its_file(heedmap, bags, tmp_path):
    folder, run = bags
    found = explained(heedmap, run.folder, folder)
    assert len(found) == 30
    for key in ("s0", "s7", "s29"):
        each = alone(heedmap, run.folder, str(folder / f"{key}.npy"))
        assert found[key]["windows"] == each["windows"]
    test = run.corpus.splits["test"]
    expected = run.model.trace(run.model.batch(test.texts[:1], [0]))
    np.testing.assert_allclose(
        found[test.keys[0]]["windows"][0]["attention"], expected.attention[0, 0], atol=1e-6
    )
    # A run that is open still knows its own bags.
    new = tmp_path / "new.safetensors"
    save_file({"features": np.ones((2, WIDTH), np.float32)}, new)
    assert hm.explain(run, str(new)).tokens == ["new:0", "new:1"]
    again = run.model.trace(run.model.batch(test.texts[:1], [0]))
    assert np.array_equal(again.attention, expected.attention)
    names, keys = columns(heedmap, run.folder, folder)
    assert keys == [*found]
    assert names == columns(heedmap, *text_model(tmp_path))[0]


def test_what_is_no_bag_of_the_run_is_refused(heedmap, bags, tmp_path):
    _, run = bags
    wide = tmp_path / "wide.npy"
    np.save(wide, np.ones((2, WIDTH + 1), np.float32))
    stopped(heedmap("explain", run.folder, wide), "vectors of 4 numbers", "5")
    stopped(heedmap("explain", run.folder, "a text"), "a text", "the file of a bag")
    stopped(heedmap("explain", run.folder, wide, "--target", "a"), "--target")
    stopped(heedmap("explain", run.folder, "--data", tmp_path / "model"), "bags", "got none")


def test_the_columns_of_pairs_are_named_where_no_text_is_found(tmp_path):
    pairs = tmp_path / "pairs.csv"
    for header, (text, query) in (
        ("premise,hypothesis", ("premise", "hypothesis")),
        ("u,v", ("TEXT", "QUERY")),
    ):
        pairs.write_text(f"{header}\na film,a plot\n")
        with refused("pairs.csv", "no text column", f"--text-column {text} --query-column {query}"):
            read_unlabelled(DataSettings.of(source=str(pairs)))
