"""The wording of messages, pinned once: refusals, warnings and notes, against `wording.txt`.

Other tests check a message's kind and what it names, with `wording.py`. To write a better sentence, change it
in the code, run

    HEEDMAP_SNAPSHOT=1 pytest tests/test_wording.py

and read what `git diff tests/wording.txt` shows. A further message is one more case in a table below.
"""

import gzip
import json
import os
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from wording import naming

import heedmap as hm
from heedmap.data.matching import match
from heedmap.data.vocabulary import Vocabulary, read_vectors
from heedmap.errors import check_installed
from heedmap.experiments.rates import read_rates
from heedmap.files import manifest
from heedmap.files.overwriting import write_file

PINNED = Path(__file__).with_name("wording.txt")
TEXTS = [f"This is text {i} !" for i in range(40)]
LABELS = [i % 2 for i in range(40)]
ROWS = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
LINES = [f"{text},{i % 2}" for i, text in enumerate(TEXTS)]
CSV = "\n".join(["text,label", *LINES])
CLASSES = {f"{'ab'[i % 2]}/{i}.txt": text for i, text in enumerate(TEXTS)}
MODEL = ("audit", "--model", "./none", "--data", "reviews")


def lines(rows):
    """A JSONL file of these rows."""
    return "\n".join(map(json.dumps, rows))


def joined(texts, labels, kind="jsonl"):
    """A file of these texts and labels."""
    return lines({"text": text, "label": label} for text, label in zip(texts, labels, strict=True))


# The content of a file, or of files by their names, and the options that it is read with.
FILES = {
    "CSV without a column of texts": ("a.csv", CSV.replace("text,", "body of it,", 1), {}),
    "CSV of two columns of texts": (
        "a.csv", "review of it,reply,label\n" + "a fine old film,no it is not,1\n" * 9, {},
    ),
    "CSV without a column of labels": ("a.csv", CSV.replace(",label", ",stars of it", 1), {}),
    "CSV without the named column": ("a.csv", CSV, {"text": "title"}),
    "CSV of one column": ("a.csv", CSV.replace(",", "^"), {}),
    "CSV without a header": ("a.tsv", CSV.partition("\n")[2].replace(",", "\t"), {}),
    "CSV with a row for a header": (
        "a.csv", CSV.partition("\n")[2], {"text": "This is text 0 !", "label": "0"},
    ),
    "CoNLL file for texts": ("a.conll", "Ada PER\nmet O", {}),
    "CoNLL file in another encoding": ("a.conll", "Ada PER", {"encoding": "cp1252"}),
    "CoNLL file without a word": ("a.conll", "", {}),
    "CSV with two columns of one name": ("a.csv", CSV.replace("label", "text", 1), {}),
    "CSV with a field too many": ("a.csv", f"{CSV}\ngood, bad,1", {}),
    "CSV with a label of two lines": ("a.csv", f'{CSV}\ngood,"1\n0"', {}),
    "CSV with carriage returns": ("a.csv", CSV.replace("text 7", "text\r7"), {}),
    "CSV with numbers as labels": (
        "a.csv", "text,label\n" + "".join(f"a,{i / 7}\n" for i in range(51)), {},
    ),
    "CSV without a row": ("a.csv", "text,label\n", {}),
    "CSV whose texts are empty": ("a.csv", "text,label\n ,1\n ,0\n", {}),
    "CSV of one class": ("a.csv", CSV.replace(",0", ",1"), {}),
    "CSV that is empty": ("a.csv", "", {}),
    "CSV in Windows-1252": ("a.csv", CSV.replace("text 7", "schön").encode("cp1252"), {}),
    "CSV that is not UTF-8": ("a.csv", CSV.encode() + b"\x81\x00,1\n", {}),
    "CSV in UTF-16 without its mark": ("a.csv", CSV.encode("utf-16-le"), {}),
    "CSV in another encoding than named": ("a.csv", CSV.replace("t 7", "ö"), {"encoding": "ascii"}),
    "CSV with missing values": ("a.csv", CSV.replace("This is text 7 !", "null"), {}),
    "CSV with HTML": ("a.csv", CSV.replace(" !", "<br />"), {}),
    "CSV with texts in brackets": ("a.csv", CSV.replace("This", "[This").replace(" !", "]"), {}),
    "CSV of texts without spaces": ("a.csv", CSV.replace("This is text ", "这是一篇很长的文章"), {}),
    "CSV with a word too few": ("a.csv", CSV, {"min_tokens": 99}),
    "query that is the text": ("a.csv", CSV, {"query": "text"}),
    "separator that is not there": ("a.csv", CSV.replace(",", "^"), {"separator": ";"}),
    "separator of two characters": ("a.csv", CSV, {"separator": ";;"}),
    "separator of a file without one": ("a.jsonl", lines(ROWS), {"separator": ";"}),
    "encoding that there is not": ("a.csv", CSV, {"encoding": "klingon"}),
    "tokenizer that there is not": ("a.csv", CSV, {"tokenizer": "chars"}),
    "compressed file that is cut": ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], {}),
    "XLSX that is none": ("a.xlsx", "PK", {}),
    "XLSX that is text": ("a.xlsx", CSV, {}),
    "JSON that is broken": ("a.jsonl", lines(ROWS) + '\n{"text": ', {}),
    "JSON of texts alone": ("a.json", json.dumps(TEXTS), {}),
    "JSON of columns": ("a.json", json.dumps({"text": TEXTS, "label": LABELS}), {}),
    "JSON with infinite labels": ("a.jsonl", '{"text": "a", "label": Infinity}', {}),
    "JSON with a name twice": ("a.jsonl", '{"text": "a", "text": "b", "label": 1}', {}),
    "JSON with lists of labels": ("a.jsonl", lines({**row, "label": [1, 0]} for row in ROWS), {}),
    "JSON with lists of words": ("a.jsonl", lines({**r, "text": r["text"].split()} for r in ROWS), {}),
    "JSON with numbers among words": (
        "a.jsonl", lines({"text": ["a", 3 if i == 3 else "b"], "label": i % 2} for i in range(6)), {},
    ),
    "JSON with ids that are none": ("a.jsonl", lines({**row, "id": {"a": 1}} for row in ROWS), {}),
    "several labels in one": ("a.jsonl", joined(TEXTS, ["a|b", "a", "b", "a"] * 10), {}),
    "labels that are truth values and numbers": ("a.jsonl", joined(TEXTS, [True, 1] * 20), {}),
    "fastText with several labels": ("a.txt", "__label__a one\n" * 9 + "__label__a __label__b two", {}),
    "text file that is no table": ("a.txt", "A text.\nAnd one more.\n", {}),
    "splits of test alone": ("a.jsonl", lines({**row, "split": "test"} for row in ROWS), {}),
}  # fmt: skip

# The files of a folder, and the options that it is read with.
FOLDERS = {
    "folder of nothing": ({}, {}),
    "folder without a training split": ({"test.jsonl": lines(ROWS)}, {}),
    "folder with two training splits": ({"train.csv": CSV, "train.jsonl": lines(ROWS)}, {}),
    "folder of one class": ({"pos/1.txt": "a text"}, {}),
    "folder of class folders with a column": (CLASSES, {"text": "text"}),
    "folder of texts in Windows-1252": ({**CLASSES, "b/1.txt": "schön".encode("cp1252")}, {}),
    "folder of files without an ending": (
        {name.removesuffix(".txt"): text for name, text in CLASSES.items()}, {},
    ),
    "folder with labels that training lacks": (
        {"train.csv": CSV, "test.csv": "text,label\na text,other\n"}, {},
    ),
    "folder with a test split without labels": (
        {"train.csv": CSV, "dev.csv": CSV, "test.csv": "text\n" + "\n".join(TEXTS)}, {},
    ),
    "folder with files that are not read": ({"train.csv": CSV, "train_part2.csv": CSV}, {}),
    "folder with a split in two files": ({"train/a.csv": CSV, "train/more/a.csv": CSV}, {}),
    "folder with two data sets": (
        {f"{name}/{split}.csv": CSV for name in ("imdb", "sst") for split in ("train", "test")}, {},
    ),
    "folder whose README is no YAML": ({"README.md": "---\nconfigs: [\n---\n", "a.csv": CSV}, {}),
    "folder whose README names what is not there": (
        {"README.md": "---\nconfigs:\n- config_name: a\n  data_files: none/*\n---\n", "a.csv": CSV}, {},
    ),
    "SST whose trees are broken": (
        {f"{split}.txt": "(3 (2 A) (3 film" for split in ("train", "dev", "test")}, {"dataset": "sst"},
    ),
    "bAbI whose lines are broken": (
        {f"qa1_{split}.txt": "1 Mary is here.\nWhere is Mary?\n" for split in ("train", "test")},
        {"dataset": "babi_qa1"},
    ),
    "bAbI without its files": ({"readme": "about"}, {"dataset": "babi_qa1"}),
    "SST without its files": ({"readme": "about"}, {"dataset": "sst"}),
    "CNN without its files": ({"readme": "about"}, {"dataset": "cnn"}),
    "MIMIC without its tables": ({"readme": "about"}, {"dataset": "anemia"}),
    "Yelp without its test file": (
        {"train.csv": '"1","Dull."\n"5","A ""fine"" one."\n'}, {"dataset": "yelp"},
    ),
    "Amazon that is Yelp": (
        dict.fromkeys(("train.csv", "test.csv"), '"1","Dull."\n'), {"dataset": "amazon"},
    ),
    "Yelp with a quote that is never closed": (
        dict.fromkeys(("train.csv", "test.csv"), '"1","Dull.\n'), {"dataset": "yelp"},
    ),
    "Yelp with labels from 0": (
        dict.fromkeys(("train.jsonl", "test.jsonl"), lines(ROWS)), {"dataset": "yelp"},
    ),
    "IMDB of Diao et al. without its file": ({"readme": "about"}, {"dataset": "imdb-10"}),
    "Yahoo's second part alone": ({"FullOct2007.xml.part2.gz": b"\x1f"}, {"dataset": "yahoo"}),
    "Yahoo that ends early": ({"FullOct2007.xml": "<ystfeed>\n<vespaadd>"}, {"dataset": "yahoo"}),
    "Yahoo with entities": (
        {"FullOct2007.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, {"dataset": "yahoo"},
    ),
    "SST in sentences": ({"readme": "about"}, {"dataset": "sst", "tokenizer": "sentences"}),
    "data set that there is not": ({}, {"dataset": "mnist"}),
}  # fmt: skip

# What a user types.
COMMANDS = {
    "command that there is not": ("dance",),
    "command without its argument": ("report",),
    "command with an unknown option": ("audit", "--nonsense"),
    "command with a word for a number": ("audit", "--data", "reviews", "--epochs", "many"),
    "command without data": ("audit",),
    "training without data": ("train",),
    "data that are not there": ("audit", "--data", "missing.csv"),
    "encoder that there is not": ("audit", "--data", "reviews", "--encoder", "rnn"),
    "number that is too small": ("audit", "--data", "reviews", "--epochs", "0"),
    "number that is too large": ("audit", "--data", "reviews", "--epsilon", "2"),
    "vectors that are not there": ("audit", "--data", "reviews", "--vectors", "none.txt"),
    "run that is not there": ("audit", "--run", "nowhere"),
    "audit of a run into another folder": ("audit", "--run", "nowhere", "--out", "elsewhere"),
    "variant without its run": ("audit", "--data", "reviews", "--variant", "twin"),
    "variant of a run that is not there": ("explain", "nowhere", "A text.", "--variant", "twin"),
    "report of a run that is not there": ("report", "nowhere"),
    "list of a folder that is not there": ("list", "nowhere"),
    "one run to compare": ("compare",),
    "compare with no run": ("compare", "nowhere", "elsewhere"),
    "comparison of another ending": ("compare", "nowhere", "elsewhere", "--out", "page.pdf"),
    "other seed of a run that is not there": ("retrain", "other-seed", "--run", "nowhere"),
    "model that is not there": MODEL,
    "option of an attention model alone": (*MODEL, "--encoder", "lstm"),
    "options of an attention model alone": (*MODEL, "--encoder", "lstm", "--score", "dot"),
    "head that is no number": (*MODEL, "--head", "foo"),
    "option of a run that stands": ("audit", "--run", "nowhere", "--view", "rollout"),
    "text that begins with a minus": ("explain", "nowhere", "-wackelig"),
    "text beside a file of texts": ("explain", "nowhere", "A text.", "--data", "a.csv"),
    "no text to explain": ("explain", "nowhere"),
    "two formats": ("explain", "nowhere", "A text.", "--json", "--format", "csv"),
    "answer that there is not": ("audit", "--data", "reviews", "--fail-on", "maybe"),
    "export of a run that is not there": ("export", "nowhere"),
    "export in an unknown format": ("export", "nowhere", "--format", "ods"),
    "export to a file of another format": (
        "export",
        "nowhere",
        "--out",
        "a.csv",
        "--format",
        "jsonl",
    ),
    "card of a run that is not there": ("card", "nowhere"),
    "card in an unknown format": ("card", "nowhere", "--format", "gif"),
    "calibration of no seeds": ("calibrate", "--seeds", "0"),
    "calibration of no workers": ("calibrate", "--workers", "0"),
    "paper without its data": ("reproduce", "drozdyuk", "sst"),
    "paper with an unknown normaliser": (
        "reproduce",
        "drozdyuk",
        "--data",
        "reviews",
        "--activations",
        "x",
    ),
    "paper that there is not": ("reproduce", "nobody"),
    "folder for a command's option": ("audit", "reviews"),
    "device of a model that is trained here": ("audit", "--data", "reviews", "--device", "cuda"),
    "option of a transformer for a model that is trained here": (
        "audit",
        "--data",
        "reviews",
        "--side",
        "query",
    ),
    "option of a transformer for a training": (
        "train",
        "--data",
        "reviews",
        "--max-positions",
        "64",
    ),
    "minutes of a shard": (
        "audit",
        "--data",
        "reviews",
        "--shard",
        "1/2",
        "--out",
        "o",
        "--minutes",
        "1",
    ),
    "trainings of a shard": (
        "audit",
        "--data",
        "reviews",
        "--shard",
        "1/2",
        "--out",
        "o",
        "--retrain",
    ),
    "shard beyond the last": ("audit", "--data", "reviews", "--shard", "3/2"),
    "shard of no number": ("audit", "--data", "reviews", "--shard", "half"),
    "merge of a folder that is not there": ("merge", "nowhere"),
    "sweep that is not there": ("sweep", "none.toml"),
    "engine that there is not": ("calibrate", "--engine", "spark"),
}

WEIGHTS, STATES, HEAD = [np.array([0.5, 0.5])], [np.eye(2)], np.array([[1.0, 0.0]])
FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})
# What a call of the library gets, in an empty folder.
CALLS = {
    "list without labels": lambda: hm.load(TEXTS),
    "list with too few labels": lambda: hm.load(TEXTS, labels=LABELS[:3]),
    "list with a text for labels": lambda: hm.load(TEXTS, labels="label"),
    "list of numbers": lambda: hm.load([1, "b"], labels=[0, 1]),
    "list of nothing": lambda: hm.load([], labels=[]),
    "list with half a character": lambda: hm.load(["a", "\ud800"], labels=[0, 1]),
    "list with a set for a label": lambda: hm.load(TEXTS, labels=[*LABELS[:-1], {"a"}]),
    "list with a number too long": lambda: hm.load(["a", "b"], labels=[1, 10**5000]),
    "list of texts that repeat another": lambda: hm.load([*TEXTS, TEXTS[0]], labels=[*LABELS, 0]),
    "records that are none": lambda: hm.load([{"text": "a"}, 5]),
    "records without names": lambda: hm.load([{1: "a"}]),
    "dict for a frame": lambda: hm.load({"text": TEXTS}),
    "set for a list": lambda: hm.load(set(TEXTS)),
    "frame with a list of labels": lambda: hm.load(FRAME, labels=LABELS),
    "frame without the named column": lambda: hm.load(FRAME, label="stars"),
    "frame with a list of columns": lambda: hm.load(FRAME, text=["a", "B"]),
    "frame with a separator": lambda: hm.load(FRAME, separator=";"),
    "texts from memory that are gone": lambda: hm.load("memory:0123456789abcdef"),
    "name for a corpus": lambda: hm.train("reviews"),
    "setting that there is not": lambda: hm.train(hm.load(FRAME), size=3),
    "classifier that is no folder": lambda: hm.open_model("./none", FRAME),
    "corpus for a transformer": lambda: hm.open_model("./none", hm.load(FRAME)),
    "labels that may count from 0 or 1": lambda: match("a.csv", ["1"], ("no", "yes")),
    "labels of other classes": lambda: match("a.csv", ["bad", "good"], ("no", "yes")),
    "labels of more classes": lambda: match("a.csv", ["a", "b", "c"], ("no", "yes")),
    "compressed file that grows": lambda: hm.load(
        written("a.csv.gz", gzip.compress(bytes(1 << 27), 1))
    ),
    "vectors with a number too few": lambda: read_vectors(
        written("a.txt", "good 1 2\nbad 1\n"), Vocabulary(["good", "bad"])
    ),
    "rates that are none": lambda: read_rates(written("rates.json", "not JSON")),
    "rates of another version": lambda: read_rates(written("rates.json", '{"rules": 0}')),
    "run without settings": lambda: hm.open_run("."),
    "run of another program": lambda: hm.open_run(written("run/settings.toml", "a = 1").parent),
    "file that the user changed": lambda: manifest.read(changed("one.txt", "mine")),
    "file that the user changed, in the way": lambda: manifest.write(
        changed("one.txt", "mine"), ""
    ),
    "file of the user in the way": lambda: manifest.write(changed("mine.txt", "mine"), "two"),
    "file of another content": lambda: write_file(written("a.csv", "mine"), b"two", False),
    "link in a file's place": lambda: write_file(link("b.csv", written("a.csv", "")), b"two", True),
    "export beside a run's own files": lambda: hm.Audit.export(
        None, written("run/settings.toml", "a = 1").parent
    ),
    "export in a format that there is not": lambda: hm.Audit.export(None, "out", "ods"),
    "arrays without what they weigh": lambda: hm.from_arrays(WEIGHTS),
    "arrays of other lengths": lambda: hm.from_arrays(WEIGHTS, values=[np.eye(3)], weight=HEAD),
    "arrays of another number": lambda: hm.from_arrays(WEIGHTS, values=[], weight=HEAD),
    "arrays of another head": lambda: hm.from_arrays(WEIGHTS, values=STATES, weight=np.eye(3)),
    "arrays with a weight below 0": lambda: hm.from_arrays(
        [np.array([1.5, -0.5])], values=STATES, weight=HEAD
    ),
    "arrays with a gap": lambda: hm.from_arrays(
        [np.array([np.nan, 1])], values=STATES, weight=HEAD
    ),
    "arrays of other predictions": lambda: hm.from_arrays(
        WEIGHTS, values=STATES, weight=HEAD, predictions=[0.1]
    ),
    "arrays that read without names": lambda: hm.from_arrays(
        WEIGHTS, values=STATES, weight=HEAD, predict=lambda items: None
    ),
    "bags that are pickled": lambda: hm.load(
        folder({"a.pt": b"x", "labels.csv": "slide_id,label\na,1\n"})
    ),
    "bags without a table of labels": lambda: hm.load(folder({"a.npy": b"x"})),
    "package that is not there": lambda: check_installed(
        "no_such", "excel", "a.xlsx: an Excel file"
    ),
}


def written(name, content):
    """Write a file in this folder."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def changed(name, content):
    """Write a file as a user does it, in a folder that lists one.txt as heedmap wrote it."""
    manifest.Manifest(Path("run")).start()
    manifest.write(Path("run/one.txt"), "one")
    return written(f"run/{name}", content)


def link(name, target):
    """Link to a file in this folder."""
    Path(name).symlink_to(target)
    return Path(name)


def folder(files):
    """Write files into a folder."""
    Path("data").mkdir()
    for name, content in files.items():
        written(f"data/{name}", content)
    return Path("data")


def read_file(name, content, options):
    hm.load(written(name, content), **options)


def read_folder(files, options):
    hm.load(folder(files), **options)


def messages(call, *arguments):
    """What a call warns and how it is refused, one line each."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        try:
            call(*arguments)
            refusals = []
        except (ValueError, TypeError) as error:
            refusals = [f"{type(error).__name__}: {error}"]
    return [f"{note.category.__name__}: {note.message}" for note in notes] + refusals


def printed(command, *arguments):
    """What a command says beside its output."""
    return command(*arguments).err.splitlines()


def test_messages_are_worded_as_they_were_when_somebody_last_read_them(
    heedmap, tmp_path, monkeypatch
):
    cases = [
        *((case, partial(messages, read_file, *file)) for case, file in FILES.items()),
        *((case, partial(messages, read_folder, *files)) for case, files in FOLDERS.items()),
        *((case, partial(printed, heedmap, *typed)) for case, typed in COMMANDS.items()),
        *((case, partial(messages, call)) for case, call in CALLS.items()),
    ]
    found = {}
    for number, (case, say) in enumerate(cases):
        place = tmp_path / str(number)
        place.mkdir()
        monkeypatch.chdir(place)
        found[case] = [line.replace(str(place), "FOLDER") for line in say()]
    assert [case for case, lines in found.items() if not lines] == []
    assert len(found) == len(cases), "a case is there twice"
    if "HEEDMAP_SNAPSHOT" in os.environ:
        entries = ["\n".join([case, *lines]) for case, lines in found.items()]
        PINNED.write_text("\n\n".join(entries) + "\n", encoding="utf-8")
    entries = [entry.splitlines() for entry in PINNED.read_text(encoding="utf-8").split("\n\n")]
    assert found == {case: lines for case, *lines in entries}


@pytest.mark.parametrize(
    ("names", "are_named"),
    [
        (["a.csv", "line 42", 0.15], True),
        (["line 42", "a.csv"], False),
        (["line 4"], False),
        (["sv"], False),
        ([0.1], False),
        ([15], False),
        ([1], False),
        ([-1], True),
        (["..."], False),
    ],
)
def test_a_message_names_whole_words_and_numbers_in_their_order(names, are_named):
    assert (re.search(naming(*names), "a.csv, line 42: 0.15 (-1)") is not None) == are_named
    assert re.search(naming(*names), "a.csv, line 42: 0.15 (-1)\nand more") is None
