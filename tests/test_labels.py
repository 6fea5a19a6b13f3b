"""The order of classes is the same in every process."""

import json
import os
import subprocess
import sys

import pytest

from heedmap.data.labels import ordered
from heedmap.data.load import load

SEEDS = range(6)
LABELS = ("nan", "0", "1", "01", "+1")


def of_every_hash_seed(code):
    """What a program prints, under several seeds of Python's string hashes."""
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in SEEDS
    }


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ("10 9 2", "2 9 10"),
        ("2.5 -1 1e1", "-1 2.5 1e1"),
        ("10,5 9,5 2", "2 9,5 10,5"),
        ("10,5 9.5 2", "10,5 2 9.5"),
        ("pos neg", "neg pos"),
        ("10 9 other", "10 9 other"),
        ("1 +1 01 0", "0 +1 01 1"),
        ("9007199254740993 9007199254740992", "9007199254740992 9007199254740993"),
        ("1 nan 0", "0 1 nan"),
        ("10 9 inf -inf", "-inf 10 9 inf"),
        ("nan NaN 1 0 -nan", "-nan 0 1 NaN nan"),
    ],
)
def test_classes_stand_by_number_if_all_are_numbers_and_else_by_name(labels, classes):
    for given in (labels.split(), labels.split()[::-1]):
        assert ordered([*given, *given]) == classes.split()


def test_the_order_of_classes_does_not_depend_on_the_process():
    code = (
        "from heedmap.data.labels import ordered\n"
        "print(ordered('nan 0 1 inf'.split()), ordered('1 01 +1 1.0 0 00'.split()))"
    )
    assert len(of_every_hash_seed(code)) == 1


@pytest.mark.slow
def test_a_corpus_has_one_fingerprint_in_every_process(tmp_path):
    lines = [{"text": f"a text of {i}", "label": name} for i in range(20) for name in LABELS]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code = (
        "from heedmap.data.load import load\n"
        f"corpus = load({str(path)!r})\nprint(corpus.classes, corpus.fingerprint())"
    )
    (found,) = of_every_hash_seed(code)
    assert found.startswith(str(ordered(set(LABELS) - {"nan"})))  # which says that there is none


@pytest.mark.filterwarnings("ignore:.*equal as numbers")
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (("1", "01", "+1"), ["+1", "01", "1"]),
        (("0", "1"), ["0", "1"]),
        (("2", "10"), ["2", "10"]),
        (("0.5", "0.50"), ["0.5", "0.50"]),
    ],
)
def test_labels_of_a_csv_that_are_written_differently_are_different(tmp_path, labels, classes):
    rows = "".join(f"some text {i},{labels[i % len(labels)]}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("text,label\n" + rows)
    assert load(tmp_path / "a.csv").classes == classes
