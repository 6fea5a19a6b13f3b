"""The texts that the page carries: a slow, obvious decoder gives the numbers of the tables back."""

import math

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit
from made_windows import tables_of
from packed_texts import unpacked

from heedmap.report import text_data
from heedmap.report.examples import Example, choose_examples
from heedmap.report.text_data import MARKS, chosen_rows, pack_texts


def close(found, weights):
    largest, values = found
    assert largest == pytest.approx(max(map(abs, weights), default=0.0), rel=1e-6)
    assert len(values) == len(weights)
    return all(
        abs(x - w) <= largest / 254 * (1 + 1e-6) for x, w in zip(values, weights, strict=True)
    )


@pytest.mark.parametrize("block", [1, 7, 250])
@pytest.mark.parametrize(("n", "gold"), [(1, True), (40, True), (40, False)])
def test_the_page_has_the_numbers_of_the_tables(n, gold, block, monkeypatch):
    monkeypatch.setattr(text_data, "BLOCK", block)
    audit = make_audit(n=n, gold=gold)
    tables = audit.tables
    index, texts = unpacked(
        pack_texts(tables, audit.classes, choose_examples(tables, audit.classes))
    )
    rows = {name: table.to_pylist() for name, table in tables.items()}
    assert len(texts) == n
    for row, maps in enumerate(texts):
        instance = rows["instances"][row]
        assert index["tokens"][row] == instance["tokens"]
        assert index["key"][row] == instance["key"]
        assert index["predicted"][row] == instance["predicted"]
        assert index["confidence"][row] == pytest.approx(max(instance["probabilities"]), rel=1e-3)
        expected = {
            "learned attention": instance["attention"],
            "adversarial attention": rows["adversary"][row]["attention"],
            "gradient": rows["gradient"][row]["importance"],
            "leave-one-out": rows["leave_one_out"][row]["signed"],
            "integrated gradients": rows["integrated_gradients"][row]["importance"],
            **({MARKS: [float(mark) for mark in instance["rationale"]]} if gold else {}),
        }
        if len(instance["tokens"]) == 1:
            expected["adversarial attention"] = None
        for name, weights in expected.items():
            if weights is None or any(math.isnan(w) for w in weights):
                assert maps.get(name) is None
            else:
                assert close(maps[name], weights)
        assert {name for name in maps if name not in expected} == set()


def test_facts_are_the_numbers_of_each_text():
    audit = make_audit(n=12)
    index, _ = unpacked(pack_texts(audit.tables, audit.classes, []))
    facts = {fact["name"]: fact["values"] for fact in index["facts"]}
    jsd = audit.tables["adversary"]["jsd"].to_pylist()
    assert facts["largest JSD"] == [pytest.approx(x, rel=1e-3) for x in jsd]
    assert index["level"] is None
    assert index["label"] == audit.tables["instances"]["label"].to_pylist()


def test_windows_of_a_text_are_rows_of_their_own():
    tables = tables_of([0, 0, 1, 2, 2, 2])
    index, texts = unpacked(pack_texts(tables, ["a", "b"], []))
    assert index["key"] == ["k0#0", "k0#1", "k1", "k2#0", "k2#1", "k2#2"]
    for maps, weights in zip(texts, tables["instances"]["attention"].to_pylist(), strict=True):
        assert close(maps["learned attention"], weights)


def test_a_map_of_zeros_and_a_text_without_tokens():
    instances = {
        "row": [0, 1], "key": ["a", "b"], "tokens": pa.array([["x", "y"], []], pa.list_(pa.string())),
        "n_tokens": [2, 0], "label": [None, 0], "predicted": [0, 0],
        "probabilities": [[1.0], [1.0]], "attention": pa.array([[0.0, 0.0], []], pa.list_(pa.float64())),
    }  # fmt: skip
    index, texts = unpacked(pack_texts({"instances": pa.table(instances)}, ["only"], []))
    assert [maps["learned attention"] for maps in texts] == [(0.0, [0.0, 0.0]), (0.0, [])]
    assert index["label"] == [None, 0]
    assert index["expected"] == [None, 1.0]


def test_a_page_shows_all_texts_or_the_extremes_and_an_even_sample(monkeypatch):
    monkeypatch.setattr(text_data, "MOST", 100)
    assert chosen_rows([np.arange(100.0)], [3]) == list(range(100))
    rng = np.random.default_rng(0)
    first, second = rng.random(1000), rng.random(1000)
    second[:500] = np.nan
    rows = chosen_rows([first, second], [7, 8])
    assert rows == sorted(set(rows))
    assert len(rows) == 100
    assert {7, 8, *first.argsort()[:5], *first.argsort()[-5:]} <= set(rows)
    assert {np.nanargmin(second), np.nanargmax(second)} <= set(rows)
    gaps = np.diff(rows)
    assert gaps.max() < 30  # the others are spread over the whole data
    assert chosen_rows([first, second], [7, 8]) == rows


def test_the_sample_is_stated(monkeypatch):
    monkeypatch.setattr(text_data, "MOST", 10)
    audit = make_audit(n=40)
    packed = pack_texts(audit.tables, audit.classes, [Example(39, "the last", "by rule.")])
    index, texts = unpacked(packed)
    assert (len(packed.rows), packed.total, len(texts)) == (10, 40, 10)
    assert index["key"][index["examples"][0]["row"]] == "key<39>"
