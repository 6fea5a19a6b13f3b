"""Files as other tools write them: Prodigy, doccano, Label Studio, Kaggle's words in rows, CLAM, `datasets`."""

import csv
import json

import numpy as np
import pytest
from wording import refused, warned

import heedmap as hm
from heedmap.data.load import load_corpus
from heedmap.data.unlabelled import read_unlabelled
from heedmap.data.unlabelled_words import read_unlabelled_words
from heedmap.settings.data import DataSettings


def lines_of(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def audited(path, classes, **settings):
    return load_corpus(DataSettings(source=str(path), training=False, **settings), classes)


# --- annotation tools -------------------------------------------------------------------------------------


def prodigy(i, **answered):
    return {
        "text": f"A film of number {i}.", "meta": {"source": "films"}, "_input_hash": 17 * i,
        "_task_hash": 19 * i, "_session_id": None, "_view_id": "classification", **answered,
        "answer": ("accept", "reject", "ignore")[i % 3], "_timestamp": 1700000000 + i,
    }  # fmt: skip


@pytest.mark.parametrize("in_memory", [False, True])
def test_only_what_was_accepted_in_prodigy_has_its_label(tmp_path, in_memory):
    rows = [prodigy(i, label="POS" if i % 2 else "NEG") for i in range(60)]
    corpus = hm.load(
        rows if in_memory else lines_of(tmp_path / "p.jsonl", rows), test_texts=60, progress=False
    )
    read = {"".join(text.split()) for part in corpus.splits.values() for text in part.written or ()}
    assert read == {"".join(row["text"].split()) for row in rows if row["answer"] == "accept"}
    assert corpus.left_out == {"answer reject": 20, "answer ignore": 20}
    kept = corpus.in_memory.files() if in_memory else {}
    assert not kept or set(json.loads(kept["all.jsonl"].split(b"\n")[0])) == {
        "text", "label", "answer", "heedmap:place",
    }  # fmt: skip


def test_a_choice_of_prodigy_is_the_label(tmp_path):
    options = [{"id": name, "text": name.title()} for name in ("good", "bad")]
    rows = [
        prodigy(
            i, options=options, accept=[options[i % 2]["id"]], config={"choice_style": "single"}
        )
        for i in range(60)
    ]
    split = audited(lines_of(tmp_path / "p.jsonl", rows), ["bad", "good"]).splits["test"]
    assert split.labels.tolist() == [1 - i % 2 for i in range(0, 60, 3)]
    assert split.keys[:2] == ["line 1", "line 4"]


def test_answers_of_questions_are_no_verdicts(tmp_path):
    rows = [
        {"text": f"text {i}", "label": "ab"[i % 2], "answer": ("accept", "Rome")[i % 2]}
        for i in range(40)
    ]
    assert len(audited(lines_of(tmp_path / "a.jsonl", rows), ["a", "b"]).splits["test"]) == 40


def test_a_list_of_one_label_is_that_label_and_none_is_missing(tmp_path):
    rows = [
        {
            "id": i,
            "text": f"A film of number {i}.",
            "label": [["pos"], ["neg"], []][i % 3],
            "Comments": [],
        }
        for i in range(30)
    ]
    corpus = audited(lines_of(tmp_path / "doccano.jsonl", rows), ["neg", "pos"])
    assert corpus.splits["test"].labels.tolist() == [1 - i % 3 for i in range(30) if i % 3 < 2]
    assert corpus.left_out == {"label missing": 10}
    rows[4]["label"] = ["pos", "neg"]
    with refused("line 5", "one label per text", "pos"):
        audited(lines_of(tmp_path / "doccano.jsonl", rows), ["neg", "pos"])


def label_studio(i, *choices, cancelled=False):
    results = [
        {
            "value": {"choices": [choice]}, "id": f"r{i}", "from_name": "sentiment",
            "to_name": "text", "type": "choices", "origin": "manual",
        }
        for choice in choices
    ]  # fmt: skip
    annotation = {
        "id": i, "completed_by": 1, "result": results, "was_cancelled": cancelled, "ground_truth": False,
    }  # fmt: skip
    return {
        "id": i, "annotations": [annotation], "file_upload": "films.csv", "drafts": [],
        "predictions": [], "data": {"text": f"A film of number {i}."}, "meta": {}, "inner_id": i,
        "total_annotations": 1, "cancelled_annotations": int(cancelled), "project": 1,
    }  # fmt: skip


def test_label_studios_json_is_read_as_texts_with_the_annotators_choice(tmp_path):
    tasks = [label_studio(i, ("good", "bad")[i % 2], cancelled=i == 7) for i in range(40)]
    tasks[3]["annotations"] *= 2  # two annotators who agree
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps(tasks))
    corpus = audited(path, ["bad", "good"])
    split = corpus.splits["test"]
    assert split.keys == [str(i) for i in range(40) if i != 7]
    assert split.labels.tolist() == [1 - i % 2 for i in range(40) if i != 7]
    assert corpus.left_out == {"label missing": 1}
    tasks[4] = label_studio(4, "good", "bad")
    path.write_text(json.dumps(tasks))
    with refused(path, "row 5", "one label per text", "good", "bad"):
        audited(path, ["bad", "good"])


# --- a word in each row -----------------------------------------------------------------------------------

SENTENCES = [
    [("Thousands", "NNS", "O"), ("in", "IN", "O"), ("London", "NNP", "B-geo")],
    [("Ada", "NNP", "B-per"), (".", ".", "O")],
    [("Iraq", "NNP", "B-geo")],
    [("Rome", "NNP", "B-geo"), ("sleeps", "VBZ", "O")],
]


def write_kaggle(path, head=("Sentence #", "Word", "POS", "Tag"), every=False, encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for number, sentence in enumerate(SENTENCES, 1):
            for place, word in enumerate(sentence):
                writer.writerow([f"Sentence: {number}" if every or place == 0 else "", *word])
    return path


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("named", [{}, {"text": "Word", "label": "Tag"}])
def test_a_word_in_each_row_is_read_as_sentences(tmp_path, every, named):
    head = ("sentence_idx", "word", "pos", "tag") if every and not named else None
    path = write_kaggle(tmp_path / "ner.csv", *([head] if head else []), every=every)
    classes = ["O", "B-geo", "B-per"]
    corpus = audited(path, classes, asks="words", asked="all", raw=True, **named)
    whole = [[word for word, *_ in sentence] for sentence in SENTENCES]
    split = corpus.splits["test"]
    asked = [
        (" ".join(words), place, sentence[place][2])
        for words, sentence in zip(whole, SENTENCES, strict=True)
        for place in range(len(words))
    ]
    labels = [classes[label] for label in split.labels]
    texts = ["".join(tokens) for tokens in split.tokens]
    assert list(zip(texts, split.targets.tolist(), labels, strict=True)) == asked
    assert split.keys[3:5] == ["line 5, word 1", "line 5, word 2"]
    assert [note for note in corpus.notes if "read as 4 sentences" in note]
    explained = read_unlabelled_words(
        DataSettings(source=str(path), asks="words", asked="all", raw=True, **named)
    )
    # Words labelled O are not asked about, so that a text stands there for each other word.
    assert explained.texts == [text for text, _, label in asked if label != "O"]
    assert [note for note in explained.notes if "read as 4 sentences" in note]


def test_a_word_in_each_row_without_numbers_of_sentences_is_refused(tmp_path):
    path = write_kaggle(tmp_path / "ner.csv", ("nr", "Word", "POS", "Tag"))
    with refused(path, "a sentence in each row", "Word", "sentence_id"):
        audited(path, ["O", "B-geo", "B-per"], asks="words", raw=True)


# --- folders ----------------------------------------------------------------------------------------------


def test_clams_splits_beside_the_labels_are_the_splits(tmp_path):
    names = [f"patient_{i:03}_node_{i % 5}" for i in range(40)]
    rng = np.random.default_rng(0)
    for name in names:
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(4, 3)).astype(np.float32))
    rows = "".join(f"c{i},{name},{('normal', 'tumor')[i % 2]}\n" for i, name in enumerate(names))
    (tmp_path / "labels.csv").write_text(f"case_id,slide_id,label\n{rows}")
    shuffled = rng.permutation(names).tolist()
    splits = {"train": shuffled[:24], "dev": shuffled[24:30], "test": shuffled[30:38]}
    columns = [[*splits[name], *[""] * 24][:24] for name in ("train", "dev", "test")]
    fold = [",".join([str(i), *row]) for i, row in enumerate(zip(*columns, strict=True))]
    (tmp_path / "splits_0.csv").write_text("\n".join([",train,val,test", *fold, ""]))
    of_bool = [f"{name},{name in splits['train']},False,False" for name in names]
    (tmp_path / "splits_0_bool.csv").write_text("\n".join([",train,val,test", *of_bool, ""]))
    with warned("splits", "splits_0.csv"):
        corpus = hm.load(str(tmp_path), progress=False)
    assert {name: {*part.keys} for name, part in corpus.splits.items()} == {
        name: {*of_split} for name, of_split in splits.items()
    }
    assert corpus.left_out["split column says 'not in splits_0.csv'"] == 2


def test_what_save_to_disk_wrote_is_refused_with_a_way_that_works(tmp_path):
    datasets = pytest.importorskip("datasets")
    columns = {"text": [f"text {i}" for i in range(40)], "label": ["a", "b"] * 20}
    saved = datasets.Dataset.from_dict(columns)
    saved.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": saved, "test": saved}).save_to_disk(tmp_path / "two")
    for name in ("one", "two"):
        with refused(
            tmp_path / name, "save_to_disk", "heedmap.load", "load_from_disk", "to_parquet"
        ):
            hm.load(str(tmp_path / name), progress=False)
        corpus = hm.load(datasets.load_from_disk(str(tmp_path / name)), progress=False)
        assert corpus.classes == ["a", "b"]


def test_splits_of_texts_without_folders_of_classes_are_no_classes(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        for i in range(20):
            (tmp_path / split / f"{i}.txt").write_text(f"text {i} of {split}")
    with refused(tmp_path, "a folder of .txt files for each class"):
        hm.load(str(tmp_path), progress=False)


# --- the column of the texts ------------------------------------------------------------------------------

LONG, OTHER = "this is film {} of mine", "and I answer to {} now"


def table(path, **columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([value.format(i) for value in columns.values()] for i in range(40))
    return str(path)


@pytest.mark.parametrize(
    ("columns", "text", "said"),
    [
        ({"Customer Comment": LONG, "City": "Rome {}", "Stars": "{}"}, "Customer Comment", True),
        ({"Remark": "x{}", "price": "{}", "Label": "a"}, "Remark", True),
        ({"Agent": OTHER, "Tweet": LONG, "label": "a"}, "Tweet", False),
        ({"Remark": "x{}"}, "Remark", False),
    ],
)
def test_the_only_column_of_texts_or_of_long_texts_is_the_text(tmp_path, columns, text, said):
    path = table(tmp_path / "a.csv", **columns)
    expected = [columns[text].format(i) for i in range(40)]
    corpus = load_corpus(DataSettings(source=path, training=False, labels_read=False), ["a", "b"])
    assert corpus.splits["test"].written == expected
    notes = [note for note in corpus.notes if f"column {text} is read" in note]
    assert len(notes) == said
    explained = read_unlabelled(DataSettings(source=path))
    assert explained.texts == expected
    assert [note for note in explained.notes if f"column {text} is read" in note] == notes


def test_of_two_columns_of_long_texts_the_one_with_nearly_a_usual_name_is_named(tmp_path):
    path = table(tmp_path / "a.csv", **{"Customer Comment": LONG, "Agent": OTHER, "label": "a"})
    with refused(path, "no text column", "'Customer Comment' may be the text", "--text-column"):
        hm.load(path, progress=False)


def test_a_column_that_was_only_looked_at_is_not_kept_with_a_run():
    records = [
        {"Remark": LONG.format(i), "name": f"Ada {i}", "label": "ab"[i % 2]} for i in range(40)
    ]
    with warned("column Remark is read"):
        kept = hm.load(records, progress=False).in_memory.files()["all.jsonl"]
    assert {*json.loads(kept.split(b"\n")[0])} == {"Remark", "label", "heedmap:place"}


def test_our_own_models_read_pairs_with_the_usual_names(tmp_path):
    path = table(tmp_path / "a.csv", premise=LONG, hypothesis=OTHER, label="a")
    settings = load_corpus(DataSettings(source=path, training=False), ["a", "b"]).settings
    assert (settings.text, settings.query) == ("premise", "hypothesis")


def test_a_file_of_one_column_is_told_to_add_the_other(tmp_path):
    with refused("a.csv", "no label column", "add a column of labels, or name", "--separator"):
        hm.load(table(tmp_path / "a.csv", text=LONG), progress=False)
    with refused("a.jsonl", "no label column", "text; add a column of labels"):
        hm.load(lines_of(tmp_path / "a.jsonl", [{"text": "a film"}] * 40), progress=False)


def test_a_command_names_no_option_that_it_has_not_without_saying_so(heedmap, tmp_path):
    path = table(tmp_path / "a.csv", **{"Customer Comment": LONG, "Agent": OTHER, "label": "a"})
    done = heedmap("reproduce", "vashishth", "x", "--pairs", path, "--out", tmp_path / "x")
    assert done.code == 2
    assert "no --text-column: change the file" in done.err
    assert "change the file" not in heedmap("audit", "--data", path).err
