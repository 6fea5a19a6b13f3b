"""Texts that occur several times: one observation each, and counted wherever they are shown."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit
from made_scans import MAPS, normal, results
from made_windows import tables_of
from making import write_rows
from rich.console import Console

import heedmap as hm
from heedmap.data.load import load, load_corpus
from heedmap.data.rows import Row
from heedmap.data.splits import also_in
from heedmap.experiments.findings import to_json
from heedmap.experiments.intervals import of_mean, of_share
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.scan import _best_map
from heedmap.experiments.registry import make_findings
from heedmap.experiments.repeats import text_numbers
from heedmap.report.card import card
from heedmap.report.page import page
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings


def printed(audit):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(card(audit))
    return " ".join(console.export_text().replace("│", " ").split())


@pytest.mark.parametrize(
    ("tokens", "queries", "numbers"),
    [
        ([], None, []),
        ([["a"]], None, [0]),
        ([["a", "b"], ["b", "a"], ["a", "b"], ["ab"], ["a b"]], None, [0, 1, 0, 2, 3]),
        ([["a"], ["a"], ["a"]], [["x"], ["y"], ["x"]], [0, 1, 0]),
        ([["a"], []], [[], ["a"]], [0, 1]),
    ],
)
def test_the_same_tokens_and_the_same_query_are_the_same_text(tokens, queries, numbers):
    columns = {"tokens": pa.array(tokens, pa.list_(pa.string()))}
    if queries is not None:
        columns["query"] = pa.array(queries, pa.list_(pa.string()))
    assert text_numbers(pa.table(columns)).tolist() == numbers


def test_texts_read_in_windows_are_the_same_if_all_their_windows_are():
    tables = tables_of([0, 0, 1, 1, 2, 2])
    words = [["a"], ["b", "c"], ["a"], ["b", "d"], ["a"], ["b", "c"]]
    at = tables["instances"].column_names.index("tokens")
    tables["instances"] = tables["instances"].set_column(at, "tokens", pa.array(words))
    assert text_numbers(by_text(tables)["instances"]).tolist() == [0, 1, 0]


def repeated_tables(times=50):
    """Twelve texts, each as often; tau and whether the answer is right are the text's own."""
    taus = np.random.default_rng(0).normal(0.49, 0.26, 12)
    text = np.tile(np.arange(12), times)
    n = len(text)
    agreement = {f"tau_{a}": taus[text] for a in (
        "attention_gradient", "attention_leave_one_out", "attention_integrated_gradients",
        "gradient_leave_one_out",
    )}  # fmt: skip
    agreement |= {name.replace("tau", "p"): np.ones(n) for name in agreement}
    tables = {
        "instances": pa.table(
            {
                "tokens": [[f"w{t}", "x"] for t in text], "n_tokens": [2] * n,
                "label": text % 2, "predicted": np.where(text < 9, text % 2, 1 - text % 2),
            }
        ),
        "integrated_gradients": pa.table(
            {"importance": [[1.0, 2.0]] * n, "completeness_error": [0.0] * n}
        ),
        "agreement": pa.table(agreement),
    }  # fmt: skip
    return tables, taus


def test_twelve_texts_repeated_fifty_times_have_the_intervals_of_twelve_texts():
    tables, taus = repeated_tables()
    found = {f.key: f for f in make_findings(tables, AuditSettings(), ["a", "b"])}
    skill, tau = found["skill"], found["agreement_gradient"]
    assert (skill.low, skill.high) == pytest.approx(of_share((np.arange(12) < 9).astype(float)))
    assert (tau.low, tau.high) == pytest.approx(of_mean(taus, bounds=(-1.0, 1.0)))
    assert tau.high - tau.low > 0.2  # [.465, .508] when 600 texts were counted
    for finding in (skill, tau):
        assert (finding.n, finding.distinct) == (600, 12)
    (json,) = to_json([tau])
    assert json["distinct"] == 12
    assert json["no_interval"] == ""


def test_a_single_text_however_often_has_no_interval_and_says_why():
    tables, _ = repeated_tables()
    one = {name: table.take(np.repeat(0, 300)) for name, table in tables.items()}
    found = {f.key: f for f in make_findings(one, AuditSettings(), ["a", "b"])}
    tau = found["agreement_gradient"]
    assert math.isnan(tau.low)
    assert math.isnan(tau.high)
    assert tau.level == "for comparison"
    assert tau.no_interval == "no interval of fewer than 5 distinct texts (here 1)"
    low, high = found["skill"].low, found["skill"].high
    assert (low, high) == pytest.approx(of_share(np.ones(1)))


def test_the_card_and_the_page_count_repeated_texts_and_say_what_the_interval_holds():
    audit = make_audit(n=40, lengths=(12, 9, 2, 20))
    instances = audit.tables["instances"]
    assert len(set(text_numbers(instances).tolist())) == 4
    audit = replace(audit, about={**audit.about, "also_in": {"train": 12, "dev": 0}})
    html = " ".join(page(audit).split())
    for text in (printed(audit), html):
        assert "36 of the 40 audited texts repeat another; intervals count each text once" in text
        assert "of the 45 test texts, some are in other splits too: 12 in train (kept)" in text
        assert "n = 40 (4 different texts)" in text
        assert "o interval of fewer than 5 distinct texts (here 4)" in text
    assert "[ ] 95 % interval over texts, of this one model" in printed(audit)
    assert "a 95 % interval over texts (of this one model, not over training seeds)" in html


def test_where_no_text_repeats_nothing_is_said_of_it():
    audit = make_audit(n=4)
    for text in (printed(audit), page(audit)):
        assert "repeat another" not in text
        assert "different texts)" not in text
        assert "other splits" not in text


# --- the scan ---------------------------------------------------------------------------------------------


def test_a_text_does_not_choose_a_map_that_is_measured_on_it():
    """Noise, every text eight times: with occurrences on both sides the winner's luck would stay."""
    values = []
    for seed in range(20):
        taus = np.repeat(0.3 * normal(10, 60, seed=seed), 8, axis=0)
        maps = [("row", layer, head) for layer in range(6) for head in range(10)]
        given = results(taus, maps)
        given.clusters = np.repeat(np.arange(10), 8)
        found = _best_map(given)
        assert found.distinct == 5
        assert found.left_out == {"used to choose the map": 40}
        values.append(found.value)
    assert abs(np.mean(values)) < 0.1  # 0.03 is one standard error; it was 0.16


def test_maps_are_certain_by_texts_and_not_by_occurrences():
    taus = np.repeat(0.45 + 0.2 * normal(8, len(MAPS)), 40, axis=0)
    assert "0 lie above" not in _best_map(results(taus)).meaning
    given = results(taus)
    given.clusters = np.repeat(np.arange(8), 40)
    assert "0 lie above" in _best_map(given).meaning


# --- across splits ----------------------------------------------------------------------------------------


def rows(*texts):
    return [{"text": text, "label": i % 2} for i, text in enumerate(texts)]


@pytest.fixture
def folder(tmp_path):
    """Of four test texts, three places are in train and one in dev."""
    write_rows(tmp_path / "train.jsonl", rows("one two", "three four", "Five six", "seven eight"))
    write_rows(tmp_path / "dev.jsonl", rows("nine ten", "one two"))
    write_rows(tmp_path / "test.jsonl", rows("one two", "one two", "five six", "eleven"))
    return tmp_path


def test_test_texts_that_other_splits_have_too_are_counted_and_kept(folder):
    corpus = load(folder)
    assert corpus.also_in == {"train": 3, "dev": 2}
    assert len(corpus.splits["test"]) == 4


def test_they_are_counted_where_only_the_test_texts_are_read(folder):
    corpus = load_corpus(DataSettings.of(source=str(folder), training=False), ["0", "1"])
    assert list(corpus.splits) == ["test"]
    assert corpus.also_in == {"train": 3, "dev": 2}


def test_a_query_is_part_of_the_text():
    def pairs(*queries):
        return [Row("k", ["one", "two"], "a", query=[query]) for query in queries]

    parts = {"train": pairs("x", "y", "x"), "dev": pairs("v"), "none": []}
    assert also_in(pairs("x", "z"), parts) == {"train": 1, "dev": 0, "none": 0}


def test_a_source_without_other_splits_says_nothing_of_them(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", rows("one", "two", "one"))
    corpus = load_corpus(DataSettings.of(source=str(path), training=False), ["0", "1"])
    assert corpus.also_in == {}


@pytest.mark.slow
def test_an_audit_says_which_of_its_texts_the_model_was_trained_on(tmp_path):
    texts = [f"word{i} and word{i + 1}" for i in range(40)]
    write_rows(tmp_path / "train.jsonl", rows(*texts))
    write_rows(tmp_path / "dev.jsonl", rows(*texts[:4]))
    write_rows(tmp_path / "test.jsonl", rows(*texts[:6], "word3 alone", "word4 alone"))
    run = hm.train(load(tmp_path), epochs=1, encoder="average", out=tmp_path / "run")
    result = hm.audit(run, permutations=5)
    assert result.about["also_in"] == {"train": 6, "dev": 4}
    for again in (result, hm.open_audit(tmp_path / "run")):
        assert "other splits too: 6 in train, 4 in dev (kept)" in printed(again)
