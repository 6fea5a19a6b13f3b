"""Commands killed at each of their file operations and run again end with the same files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import WORDS
from tiny_transformers import tiny_model, tiny_tokenizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each command is a fork"),
]

OWN = ("--encoder", "average", "--epochs", "2", "--embedding-size", "8", "--hidden-size", "8")
FEW = ("--instances", "6", "--permutations", "2")
TUNED = ("--epochs", "1", "--max-positions", "16", "--batch-size", "16")
TRAIN = ("train", "--data", "texts.csv", "--out", "run", *OWN)
AUDIT = ("audit", "--data", "texts.csv", "--out", "run", *OWN, *FEW)
TUNE = ("train", "--model", "tiny", "--data", "texts.csv", "--out", "run", *TUNED)
MODEL = ("audit", "--model", "tiny", "--data", "few.csv", "--out", "run", *FEW)
WALLACE = (
    "reproduce", "jain-wallace", "sst", "--data", "sst", "--encoders", "average,lstm", "--scores", "dot",
    "--seeds", "1", "--epochs", "1", "--instances", "6", "--workers", "1", "--out", "run",
)  # fmt: skip
DROZDYUK = (
    "reproduce", "drozdyuk", "--data", "texts.csv", "--activations", "softmax,entmax15", "--seeds", "1",
    "--epochs", "1", "--adversary-epochs", "1", "--train-texts", "16", "--test-texts", "8", "--workers", "1",
    "--out", "run",
)  # fmt: skip
OTHER = ("--seed", "1")
# The commands before, the one that is killed, and at every so-manieth operation; HEEDMAP_KILLS=1 kills at each.
# The storage protocol below them is killed at each operation by `test_protocol.py`: here a command of each kind
# shows that it keeps to the protocol, and `make test-all` kills the others.
JOBS = {
    "own": {
        "train": ([], TRAIN, 9),
        "train, without a folder": ([], (*TRAIN[:3], *OWN), 19),
        "train --overwrite": ([(*AUDIT, *OTHER)], (*TRAIN, "--overwrite"), 17),
        "train --overwrite of itself": ([TRAIN], (*TRAIN, "--overwrite"), 3),
        "audit": ([], AUDIT, 123),
        "audit --overwrite": ([(*AUDIT, *OTHER)], (*AUDIT, "--overwrite"), 159),
        "audit --overwrite of itself": (
            [AUDIT],
            ("audit", "--run", "run", "--instances", "5", "--permutations", "2", "--overwrite"),
            107,
        ),
        "audit --run": ([TRAIN], ("audit", "--run", "run", *FEW), 107),
        "report": ([AUDIT], ("report", "run"), 7),
        "figures": ([AUDIT], ("figures", "run", "--only", "curve", "--format", "svg"), 3),
    },
    "transformers": {
        "train --model": ([], TUNE, 47),
        "train --model --overwrite": ([TUNE], (*TUNE, "--overwrite", *OTHER), 59),
        "audit --model": ([], MODEL, 167),
        "audit --model --overwrite": ([MODEL], (*MODEL, "--view", "received", "--overwrite"), 179),
        "audit --model over a run": ([TRAIN], (*MODEL, "--overwrite"), 195),
    },
    "papers": {
        "jain-wallace": ([], WALLACE, 423),
        "jain-wallace --overwrite": ([WALLACE], (*WALLACE, "--instances", "5", "--overwrite"), 399),
        "drozdyuk": ([], DROZDYUK, 95),
        "drozdyuk --overwrite": ([DROZDYUK], (*DROZDYUK, "--alpha", ".9", "--overwrite"), 119),
    },
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with texts, a classifier and a paper's data set, all small."""
    place = tmp_path_factory.mktemp("kills") / "root"
    place.mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        words = " ".join(WORDS[j] for j in rng.integers(0, 40, 4))
        rows.append(f"{'good' if i % 2 else 'bad'} {words},{i % 2}")
    (place / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (place / "few.csv").write_text("\n".join(["text,label", *rows[:6]]) + "\n")
    (place / "sst").mkdir()
    for name, count in (("train", 30), ("dev", 10), ("test", 10)):
        lines = [
            json.dumps({"text": f"{'good' if i % 2 else 'bad'} a b c d {WORDS[i]}", "label": i % 2})
            for i in range(count)
        ]
        (place / "sst" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    tiny_model("bert").save_pretrained(place / "tiny")
    tiny_tokenizer().save_pretrained(place / "tiny")
    return place


QUICKEST = {"own": "audit", "transformers": "train --model"}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        *((kind, [name]) for kind, name in QUICKEST.items()),
        *(
            pytest.param(
                kind, [*JOBS[kind].keys() - {QUICKEST.get(kind)}], marks=pytest.mark.exhaustive
            )
            for kind in JOBS
        ),
    ],
    ids=[*QUICKEST.values(), *(f"other {kind}" for kind in QUICKEST), "papers"],
)
def test_a_command_that_is_killed_at_any_file_operation_ends_the_same_when_run_again(
    root, tmp_path, kind, names
):
    always = os.environ.get("HEEDMAP_KILLS")
    jobs = [
        {"name": name, "before": before, "command": command, "every": int(always or every)}
        for name, (before, command, every) in JOBS[kind].items()
        if name in names
    ]
    place = tmp_path / "root"
    shutil.copytree(root, place)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("killing.py"), place],
        input=json.dumps(jobs),
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    for job in jobs:
        one = found[job["name"]]
        every = job["every"]
        assert one["kills"] == len(range((every + 1) // 2, one["operations"] + 1, every)) > 0, job
    assert {name: one["wrong"] for name, one in found.items() if one["wrong"]} == {}
