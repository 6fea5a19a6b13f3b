"""Pruthi et al.'s sequence tasks: what is drawn, what is penalised, what is measured."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_translations import sentences, write_tables, write_texts
from wording import refused, stopped

from heedmap.data.parallel import Pairs, load_parallel
from heedmap.models.step_decoder import Decoded, StepDecoder, StepDecoderSettings
from heedmap.papers.kit.reproduction import Cell
from heedmap.papers.pruthi import sequences
from heedmap.papers.pruthi.paper import PAPER
from heedmap.papers.pruthi.published import SEQUENCES, SEQUENCES_REPLICATED
from heedmap.papers.pruthi.sequence_result import SequenceResult
from heedmap.papers.pruthi.sequence_task import (
    END,
    NO_TARGET,
    SPECIAL,
    START,
    UNKNOWN,
    DeceptionObjective,
    Linked,
    drawn,
    evaluate,
    numbered,
    order,
    penalised,
    words_of,
)
from heedmap.papers.pruthi.settings import QUICK, SEQUENCE_TASKS, SequenceSettings

TINY = {
    "symbols": 5, "longest": 4, "pairs": 40, "held_out": 10, "size": 6, "embedding": 4, "dropout": 0.1,
    "batch_size": 8, "epochs": 2, "seeds": 2, "workers": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("task", "length", "expected"),
    [
        ("copy", 0, []), ("copy", 3, [0, 1, 2]),
        ("reverse", 1, [0]), ("reverse", 4, [3, 2, 1, 0]),
        ("bigram-flip", 0, []), ("bigram-flip", 1, [0]), ("bigram-flip", 2, [1, 0]),
        ("bigram-flip", 5, [1, 0, 3, 2, 4]), ("bigram-flip", 6, [1, 0, 3, 2, 5, 4]),
    ],
)  # fmt: skip
def test_each_task_has_its_order(task, length, expected):
    assert order(task, length) == expected


@pytest.mark.parametrize("task", ["copy", "reverse", "bigram-flip"])
def test_what_is_linked_is_the_same_symbol(task):
    found = drawn(task, 300, 7, 6, np.random.default_rng(0))
    assert {len(one) for one in found.source} == set(range(1, 7))
    symbols = {symbol for one in found.source for symbol in one}
    assert symbols == set(range(SPECIAL, SPECIAL + 7))
    for source, target, links in zip(found.source, found.target, found.links, strict=True):
        assert {j for _, j in links} == set(range(len(target)))
        assert all(source[i] == target[j] for i, j in links)


def test_a_batch_has_marks_and_links_beside_them():
    pairs = Linked([[5, 6], [7]], [[6, 5], [7]], [{(0, 1), (1, 0)}, {(0, 0)}])
    batch = pairs.batch([1, 0])
    assert batch.source.tolist() == [[START, 7, END, END], [START, 5, 6, END]]
    assert batch.lengths.tolist() == [3, 4]
    assert batch.targets.tolist() == [[7, END, NO_TARGET], [6, 5, END]]
    assert batch.telling.nonzero().tolist() == [[0, 0, 1], [1, 0, 2], [1, 1, 1]]


def test_the_penalty_is_the_whole_batch_s():
    """One symbol with all the weight on what tells it is averaged with others, not infinitely bad."""
    targets = torch.tensor([[3, END], [4, NO_TARGET]])
    logits = torch.randn(2, 2, 6, dtype=torch.float64)
    weights = torch.tensor([[[0.0, 1, 0], [0.3, 0.4, 0.3]], [[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]]])
    telling = torch.zeros(2, 2, 3, dtype=torch.bool)
    telling[0, 0, 1] = telling[1, 0, 1] = True
    share = logits.log_softmax(-1)
    plain = -(share[0, 0, 3] + share[0, 1, END] + share[1, 0, 4]) / 3
    read = Decoded(logits, weights.double())
    assert float(penalised(read, targets, telling, 0.0)) == pytest.approx(float(plain))
    expected = float(plain) - 0.7 * math.log(1 - (1 + 0.5) / 3)
    assert float(penalised(read, targets, telling, 0.7)) == pytest.approx(expected)
    # Nothing but the weights on it is left: large, not infinite.
    telling[:] = True
    assert float(penalised(read, targets, telling, 1.0)) < float(plain) + 14


def test_words_that_occur_once_are_unknown():
    words = words_of([["a", "b", "a"], ["b", "c"], ["b"]], 2)
    assert words == {"b": SPECIAL, "a": SPECIAL + 1}
    pairs = Pairs([["a", "c"]], [["b"]], [{(0, 0)}], [{(0, 0)}])
    found = numbered(pairs, words, {"b": 7})
    assert found == Linked([[SPECIAL + 1, UNKNOWN]], [[7]], [{(0, 0)}])


def test_what_is_measured_is_that_of_each_position_by_itself():
    torch.manual_seed(0)
    model = StepDecoder(StepDecoderSettings(6, 4, 0.0), 8, 8).eval()
    with torch.no_grad():
        for values in model.parameters():
            values.normal_(0, 1)
    pairs = drawn("bigram-flip", 30, 5, 5, np.random.default_rng(0))
    found = evaluate(model, pairs)
    expected = {name: [] for name in found}
    for row in range(30):
        batch = pairs.batch([row])
        steps, size = len(pairs.target[row]) + 1, len(pairs.source[row]) + 2
        own = (batch.source, batch.lengths, START, steps)
        with torch.no_grad():
            logits, weights = model(*own)
            blocked, _ = model(*own, allowed=~batch.telling)
        right = [*pairs.target[row], END]
        for step in range(steps):
            at = [i + 1 for i, j in pairs.links[row] if j == step]
            row_weights = weights[0, step].tolist()
            best = row_weights.index(max(row_weights))
            near = {i + d for i in at for d in (-1, 1)} - set(at)
            expected["accuracy"].append(int(logits[0, step].argmax()) == right[step])
            expected["mass"].append(sum(row_weights[i] for i in at))
            expected["possible"].append(bool(at))
            expected["uniform"].append(len(at) / size)
            expected["on"].append(best in at)
            expected["beside"].append(best in near)
            expected["blocked"].append(int(blocked[0, step].argmax()) == right[step])
    for name, values in found.items():
        assert sorted(values) == pytest.approx(sorted(map(float, expected[name])), abs=1e-6), name


def test_the_epoch_with_the_least_cross_entropy_is_kept_whatever_the_penalty():
    pairs = drawn("copy", 12, 4, 3, np.random.default_rng(0))
    model = StepDecoder(StepDecoderSettings(4, 4, 0.0), 7, 7)
    objective = DeceptionObjective(
        model, pairs, pairs, penalty=1.0, epochs=9, batch_size=4, learning_rate=0.1, seed=0, made_with={}
    )  # fmt: skip
    scores = objective.scores()
    batch = pairs.batch(range(12))
    with torch.no_grad():
        read = model.eval()(batch.source, batch.lengths, START, batch.targets.shape[1])
    assert scores["loss"] == pytest.approx(
        float(penalised(read, batch.targets, batch.telling, 0.0))
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "copy"
    return sequences.reproduce(task="copy", out=out, penalties=(1.0,), **TINY)


def test_each_attention_and_penalty_has_a_line_and_its_published_ones(made):
    shown = PAPER.result(made)
    assert {line[0] for line in shown.summary.lines if "†" in line[0]} == {
        f"{name} †" for name in made.learned.failed
    }
    lines = [[line[0].removesuffix(" †"), line[1]] for line in shown.summary.lines]
    theirs = ["ours", "Pruthi et al.", "replication, five seeds"]
    names = ["learned", "learned, λ = 1", "uniform", "none"]
    assert lines == [[name, who] for name in names for who in theirs]
    assert {task for task, _, _ in SEQUENCES} == set(SEQUENCE_TASKS)
    assert set(SEQUENCES) == set(SEQUENCES_REPLICATED)


def test_a_stopped_call_goes_on_to_the_same_bytes(made):
    before = {path.name: path.read_bytes() for path in made.folder.glob("result.*")}
    for name in ("learned-1-0.parquet", "none-0-1.parquet"):
        (made.folder / "parts" / name).unlink()
    assert len(PAPER.read(made.folder).rows) == 6
    sequences.reproduce(task="copy", out=made.folder, penalties=(1.0,), **TINY)
    assert {path.name: path.read_bytes() for path in made.folder.glob("result.*")} == before


def test_claims_compare_the_largest_penalty_seed_by_seed(made):
    claims = PAPER.result(made).claims
    assert len(claims) == 4
    gains = np.subtract(
        made.values(("learned", 1.0), "accuracy"), made.values(("uniform", 0.0), "accuracy")
    )
    assert f"{abs(np.mean(gains)):.3f}" in claims[2].numbers[0]
    assert made.values(("uniform", 0.0), "mass") == pytest.approx(
        made.values(("uniform", 0.0), "uniform")
    )


def test_a_model_that_has_nothing_to_hide_decides_nothing(made):
    rows = [
        {**row, "accuracy": 0.3 + row["seed"] / 100, "mass": 0.0, "uniform": 0.1}
        for row in made.rows
    ]
    claims = PAPER.result(replace(made, rows=rows)).claims
    assert {claim.verdict for claim in claims} == {"undecided"}
    able = [
        {**row, "accuracy": row["accuracy"] + 0.5 * (row["attention"] == "learned")} for row in rows
    ]
    found = PAPER.result(replace(made, rows=able)).claims
    assert [claim.verdict for claim in found] == ["survives"] * 4


@pytest.mark.exhaustive
def test_the_quick_copy_is_learned_and_its_attention_hidden(tmp_path):
    # Two of the quick budget's trainings, at half its length; what they show is the claim.
    settings = {**QUICK["sequences"], "epochs": 6, "seeds": 2, "penalties": (1.0,)}
    data = drawn("copy", settings["pairs"], settings["symbols"], 8, np.random.default_rng(0))
    held = drawn("copy", 300, settings["symbols"], 8, np.random.default_rng(1))
    found = {}
    for penalty in (0.0, 1.0):
        cell = Cell("", {"attention": "learned", "penalty": penalty, "seed": 0})
        every = sequences.SequenceSettings.of(task="copy", **settings)
        splits = sequences.Data({"train": data, "dev": held, "test": held}, 33, 33, [])
        (found[penalty],), _ = sequences.compute(
            cell, tmp_path / f"{penalty}", data=splits, settings=every
        )
    assert found[0.0]["accuracy"] > 0.9
    assert found[0.0]["mass"] > 0.7
    assert found[0.0]["blocked"] < 0.5
    assert found[1.0]["accuracy"] > 0.6
    assert found[1.0]["mass"] < found[0.0]["mass"] / 2


@pytest.mark.slow
def test_sentences_are_translated_with_their_links(tmp_path):
    write_tables(tmp_path)
    corpus = load_parallel(tmp_path, "de", "en", align="links:en-de")
    found = sequences.reproduce(
        corpus, task="translation", source="de", target="en", out=tmp_path / "out", **TINY
    )
    assert not any(math.isnan(value) for value in found.values(("none", 0.0), "bleu"))
    text = (tmp_path / "out" / "result.md").read_text()
    assert "compare-mt" not in text.replace("not to be compared with compare-mt's", "")
    theirs = replace(
        found,
        settings=found.settings.model_copy(
            update={"source": "en", "target": "de", "dataset": "multi30k"}
        ),
    )
    lines = {tuple(line[:2]): line for line in PAPER.result(theirs).summary.lines}
    assert lines["learned", "Pruthi et al."][-1] == "24.42 by compare-mt"
    assert "BLEU: ours by sacrebleu" in text
    with refused("links of the words"):
        sequences.reproduce(
            load_parallel(write_texts(tmp_path / "out"), "de", "en"),
            task="translation", out=tmp_path / "none", **TINY,
        )  # fmt: skip
    assert sum(len(one[0]) for one in sentences(12, 2)) > 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("copy", "--data", "x"), ["--data", "copy"]),
        (("copy", "--forbidden", "she"), ["--forbidden", "copy"]),
        (("pronoun", "--budget", "paper"), ["--budget", "pronoun"]),
        (("--links", "a:de-en", "--data", "x"), ["--links", "your own texts"]),
        (("reverse", "--from", "de"), ["--from", "reverse"]),
        (("reverse", "--budget", "small"), ["quick or paper", "small"]),
        (("translation", "--data", "x"), ["--links"]),
        (("translation",), ["--data", "sentences"]),
        (("transition",), ["transition", "translation"]),
        (("copy", "--penalties", "-1"), ["penalties"]),
    ],
)
def test_options_of_another_kind_of_task_are_refused(heedmap, tmp_path, words, named):
    done = heedmap("reproduce", "pruthi", *words, "--out", tmp_path / "out")
    stopped(done, *named)
    assert not (tmp_path / "out").exists()


def test_published_translations_are_found_by_the_data_set_and_not_by_a_name(tmp_path):
    def published(name, **settings):
        made = SequenceSettings.of(task="translation", source="en", target="de", **settings)
        return SequenceResult(name, made, [], tmp_path).published

    assert published("translation of multi30k") == ""
    assert published("translation of sentences", dataset="multi30k") == "translation"
