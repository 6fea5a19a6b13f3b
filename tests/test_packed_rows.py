"""Many rows are packed, and read as the list that they were."""

from dataclasses import replace

import numpy as np
import pytest

from heedmap.data import rows as rows_module
from heedmap.data.rows import BLOCK, PackedRows, Row, chosen, column, gathered
from heedmap.data.splits import fill_splits, sampled, within_limits
from heedmap.settings.data import DataSettings

RNG = np.random.default_rng(3)
WORDS = ["a", "film", "É", "\ud800", "", "sehr gut", "日本"]


def plain_row(i):
    words = [WORDS[j] for j in RNG.integers(len(WORDS), size=RNG.integers(6))]
    return Row(f"line {i}", words, str(RNG.choice(["good", "bad"])), written=" ".join(words))


def rich_row(i):
    """Return a row with something that a packed one would lose."""
    row = plain_row(i)
    extra = [
        {"rationale": np.ones(len(row.tokens), dtype=bool)},
        {"query": ["what", "?"]},
        {"candidates": ("good", "bad")},
        {"target": 0},
        {"choices": ("he", "she")},
        {"amount": 0.5},
    ]
    return replace(row, **extra[i % len(extra)])


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK", 4)
    monkeypatch.setattr(rows_module, "MANY", 6)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 23])
@pytest.mark.parametrize("kind", ["plain", "raw", "mixed", "rich"])
def test_packed_rows_are_read_as_the_rows_that_they_were(count, kind, few_are_many):
    rows = [plain_row(i) for i in range(count)]
    if kind == "raw":
        rows = [replace(row, written=None) for row in rows]
    if kind == "mixed":
        rows = [row if i % 7 else rich_row(i) for i, row in enumerate(rows)]
    if kind == "rich":
        rows = [rich_row(i) for i in range(count)]
    packed = PackedRows(rows)
    assert len(packed) == count
    assert [repr(row) for row in packed] == [repr(row) for row in rows]
    for i in range(-count, count):
        assert repr(packed[i]) == repr(rows[i])
    assert repr(list(packed[1:-1:2])) == repr(rows[1:-1:2])
    with pytest.raises(IndexError):
        packed[count]
    for name in ("key", "tokens", "label", "written", "query", "rationale"):
        assert repr([*column(packed, name)]) == repr([getattr(row, name) for row in rows])


def test_a_block_needs_less_than_half_of_the_memory_of_its_rows(monkeypatch):
    monkeypatch.setattr(rows_module, "MANY", BLOCK)
    import tracemalloc

    def made(wrap):
        tracemalloc.start()
        rows = wrap(
            Row(f"line {i}", [*WORDS * 3], "good", written=f"{i:100d}") for i in range(BLOCK)
        )
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(rows) == BLOCK
        return size

    assert made(PackedRows) < 0.5 * made(list)


@pytest.mark.parametrize("count", [0, 5, 6, 17])
def test_many_rows_are_packed_and_fewer_are_a_list(count, few_are_many):
    rows = [plain_row(i) for i in range(count)]
    assert isinstance(gathered(iter(rows)), PackedRows if count >= 6 else list)
    assert list(gathered(iter(rows))) == rows


def test_all_rows_chosen_are_the_same_object(few_are_many):
    rows = PackedRows(plain_row(i) for i in range(9))
    assert chosen(rows, lambda label: True) is rows
    assert list(chosen(rows, lambda label: label == "good")) == [
        row for row in rows if row.label == "good"
    ]


def test_splits_of_packed_rows_are_those_of_the_list(few_are_many):
    rows = [plain_row(i) for i in range(200)]
    settings = DataSettings(source="x", min_tokens=2, max_tokens=4, train_texts=40, test_texts=12)
    expected, counts = within_limits(rows, settings)
    fitting, same_counts = within_limits(PackedRows(rows), settings)
    assert list(fitting) == list(expected)
    assert counts == same_counts
    assert 0 < len(fitting) < 200
    for name, part in fill_splits({"all": fitting}, settings).items():
        assert list(part) == list(fill_splits({"all": list(expected)}, settings)[name])
        drawn, rest = sampled(part, name, settings)
        expected_rows, expected_rest = sampled(list(part), name, settings)
        assert (list(drawn), rest) == (list(expected_rows), expected_rest)
