"""`heedmap audit --fail-on`: a pipeline can stop on an answer."""

import json

import numpy as np
import pytest
from making import write_rows
from wording import stopped

from heedmap.cli.report import fails
from heedmap.data.load import load
from heedmap.experiments.rule import ANSWERS
from heedmap.runs.train import train


@pytest.mark.parametrize(
    ("fail_on", "failing"), [(None, set()), ("no", {"no"}), ("in-part", {"in part", "no"})]
)
def test_it_fails_on_the_answer_that_is_named_and_on_worse_ones(fail_on, failing):
    assert {answer for answer in ANSWERS if fails(answer, fail_on)} == failing


def test_another_answer_is_one_clear_line(heedmap):
    done = heedmap("audit", "--data", "nowhere.csv", "--fail-on", "maybe")
    assert (done.code, done.out) == (2, "")
    assert "expected no or in-part, got 'maybe'" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.fixture(scope="module")
def even_run(tmp_path_factory):
    """A run that predicts well with even weights: its map highlights nothing."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("even")
    rows = [
        {
            "text": " ".join([("good", "bad")[i % 2], *rng.choice(list("abcdefgh"), 8)]),
            "label": i % 2,
        }
        for i in range(400)
    ]
    data = write_rows(folder / "texts.jsonl", rows)
    corpus = load(data)
    sizes = {"encoder": "average", "embedding_size": 16, "hidden_size": 16}
    train(corpus, **sizes, score="uniform", epochs=10, learning_rate=0.01, out=folder / "run")
    return folder / "run"


@pytest.mark.slow
def test_the_card_is_printed_before_the_command_fails(heedmap, even_run):
    plain = heedmap(
        "audit", "--run", even_run, "--permutations", "5", "--instances", "50", "--json"
    )
    assert (plain.code, json.loads(plain.out)["bottom_line"]["answer"]) == (0, "no")
    for fail_on in ("no", "in-part"):
        done = heedmap("audit", "--run", even_run, "--fail-on", fail_on)
        assert done.code == 1
        assert "No, this map should not be shown" in done.out
        assert done.err.splitlines()[-1] == f"heedmap: the answer is “no”: --fail-on {fail_on}"
    # Options that are given again may be some of them; another value is refused, with the difference.
    again = ("audit", "--run", even_run, "--permutations", "5", "--json", "--fail-on", "no")
    assert heedmap(*again).out == plain.out
    other = heedmap("audit", "--run", even_run, "--permutations", "6", "--fail-on", "no")
    stopped(other, even_run, "other settings", "permutations: 5 -> 6", "--overwrite")
    assert "instances" not in other.err
