"""Audits of many texts: asked in chunks, with tables that are not in memory and pages of some of the texts."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import small_corpus
from made_audits import make_audit
from made_windows import tables_of

import heedmap as hm
from heedmap.data import assembly, load
from heedmap.data.compact import CompactStrings, CompactTokens
from heedmap.data.corpus import Split
from heedmap.experiments import chunks, intervals
from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.findings import pooled
from heedmap.files import table_folder, tables
from heedmap.files.content_hash import tables_hash
from heedmap.files.tables import mapped_table, parquet, release_mapped, row_groups, rows_of
from heedmap.report import drawn_texts
from heedmap.report.figures import figures
from heedmap.report.page import page, pages
from heedmap.report.text_data import chosen_rows
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.train import train

DRAWN_IN_TURN = {"permutation": {"median_tvd", "mean_tvd", "flipped", "chance_tvd", "largest_tvd",
                                 "uniform_chance", "uniform_largest"},
                 "adversary": {"search_jsd", "search_found"}}  # fmt: skip
"""Columns whose random numbers are drawn text after text, by table."""
SMALL = {"embedding_size": 8, "hidden_size": 8, "epochs": 2, "min_df": 1}
SHORT = {"permutations": 30}


@pytest.fixture(
    scope="module", params=["average", pytest.param("lstm", marks=pytest.mark.exhaustive)]
)
def run(request):
    return train(small_corpus(2, 150), encoder=request.param, **SMALL)


@pytest.fixture(scope="module")
def whole(run):
    return audit(run, **SHORT)


@pytest.fixture
def chunked(monkeypatch):
    """Make chunks of so many texts, and leave tables of more than so many bytes on the disk."""

    def make(texts, large=1 << 22):
        monkeypatch.setattr(chunks, "TEXTS", texts)
        monkeypatch.setattr(table_folder, "LARGE", large)
        monkeypatch.setattr(tables, "WIDE", 2 * large)
        monkeypatch.setattr(tables, "GROUP", texts)

    return make


def assert_equal_but_for_draws(one, other):
    assert list(one.tables) == list(other.tables)
    for name, table in one.tables.items():
        same = other.tables[name]
        assert same.schema.equals(table.schema), name
        for column in set(table.column_names) - DRAWN_IN_TURN.get(name, set()):
            values, others = (list(flat(t[column].to_pylist())) for t in (table, same))
            numbers = all(isinstance(value, float | int | None) for value in values)
            expected = pytest.approx(others, abs=2e-5, nan_ok=True) if numbers else others
            assert values == expected, (name, column)


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
            yield len(value)
        else:
            yield np.nan if value is None else value


@pytest.mark.parametrize("size", [7, 1, 50, 49])
def test_chunks_have_the_numbers_of_all_texts_together(run, whole, chunked, size):
    chunked(size)
    assert len(whole.tables["instances"]) == 50
    asked = audit(run, **SHORT)
    if size < 50:
        drawn = asked.tables["permutation"]["mean_tvd"], whole.tables["permutation"]["mean_tvd"]
        assert drawn[0] != drawn[1], "it was asked in chunks"
    assert_equal_but_for_draws(asked, whole)


@pytest.mark.parametrize(
    ("sizes", "ends"),
    [
        ([], [0]),
        ([0], [1]),
        ([4, 4, 4], [2, 3]),
        ([9, 1, 9, 9], [1, 2, 3, 4]),
        ([1, 1, 1, 1, 7], [3, 5]),
        ([8, 0, 0], [3]),
    ],
)
def test_a_chunk_has_so_many_texts_and_words_at_most(chunked, monkeypatch, sizes, ends):
    chunked(3)
    monkeypatch.setattr(chunks, "WORDS", 8)
    tokens = [["w"] * size for size in sizes]
    made = chunks.chunks_of(Split([str(i) for i in sizes], tokens, np.zeros(len(sizes), int)))
    assert [chunk.end for chunk in made] == ends
    assert [chunk.start for chunk in made] == [0, *ends[:-1]]
    assert [chunk.number for chunk in made] == list(range(len(made)))


@pytest.mark.exhaustive
def test_chunks_of_a_folder_have_the_bytes_of_those_in_memory_and_leave_nothing(
    run, chunked, tmp_path
):
    chunked(7, large=0)
    in_memory = audit(run, **SHORT)
    kept = in_memory.save(tmp_path / "kept")
    made = audit(run_in(run, tmp_path / "made"), **SHORT)
    assert tables_hash(made.tables) == tables_hash(in_memory.tables)
    assert {f.name for f in (tmp_path / "made/tables").iterdir()} == {
        f.name for f in (kept / "tables").iterdir()
    }
    read = open_audit(tmp_path / "made")
    assert tables_hash(read.tables) == tables_hash(in_memory.tables)
    assert read.findings == in_memory.findings
    manifest = json.loads((tmp_path / "made/manifest.json").read_text())
    assert not [name for name in manifest["files"] if "chunks" in name]


def run_in(run, folder):
    """The same run, trained again into a folder."""
    return train(run.corpus, encoder=run.settings.model.encoder, out=folder, **SMALL)


def test_an_audit_in_chunks_goes_on_where_it_was_stopped(run, chunked, tmp_path, monkeypatch):
    chunked(7, large=0)
    audit(run_in(run, tmp_path / "whole"), **SHORT)
    stopped, asked = run_in(run, tmp_path / "stopped"), []
    make = chunks._ChunkContext._make

    def stop(context, name):
        asked.append((context._first_row, name))
        if len(asked) == 31:
            raise KeyboardInterrupt
        return make(context, name)

    with monkeypatch.context() as patch:
        patch.setattr(chunks._ChunkContext, "_make", stop)
        with pytest.raises(KeyboardInterrupt):
            audit(stopped, **SHORT)
        done = asked[:-1]
        asked.clear()
        patch.setattr(
            chunks._ChunkContext,
            "_make",
            lambda context, name: (asked.append((context._first_row, name)), make(context, name))[
                1
            ],
        )
        audit(stopped, **SHORT)
    assert not set(done) & set(asked), "nothing was asked twice"
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def contents(folder):
    """The bytes of a run's tables and findings by name, whatever the run is called."""
    files = {path.name: path.read_bytes() for path in (folder / "tables").glob("*.parquet")}
    return {**files, "findings": (folder / "findings.json").read_text().replace(folder.name, "")}


def test_a_changed_large_table_is_made_again(run, chunked, tmp_path):
    chunked(7, large=0)
    held = run_in(run, tmp_path / "run")
    audit(held, **SHORT)
    path = tmp_path / "run/tables/gradient.parquet"
    before = path.read_bytes()
    path.write_bytes(before[:-1] + b"x")
    with pytest.warns(UserWarning, match="not as heedmap wrote it"):
        audit(held, **SHORT)
    assert path.read_bytes() == before


def test_pairs_are_asked_all_together(chunked):
    from conftest import small_pairs

    chunked(3)
    pairs = train(small_pairs(30), **SMALL)
    assert not chunks.takes_chunks(pairs.model, pairs.corpus.splits["test"])


# --- tables that are not in memory ------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[0], [1], [3, 0, 2], [5, 1]])
def test_a_table_in_groups_of_rows_is_read_as_it_was(tmp_path, sizes):
    parts, start = [], 0
    for size in sizes:
        rows = range(start, start + size)
        parts.append(
            pa.table(
                {
                    "row": pa.array(rows, pa.int64()),
                    "tokens": pa.array([["a", "é"][: r % 3] for r in rows], pa.list_(pa.string())),
                    "x": pa.array([None if r == 1 else r / 3 for r in rows], pa.float64()),
                }
            )
        )
        start += size
    path = tmp_path / "t.parquet"
    with path.open("wb") as file:
        row_groups(file, iter(parts))
    mapped, whole = mapped_table(path), pa.concat_tables(parts)
    assert mapped.to_pylist() == whole.to_pylist()
    assert tables_hash({"t": mapped}) == tables_hash({"t": whole})
    release_mapped()
    assert mapped.to_pylist() == whole.to_pylist()
    for rows in ([], [0], [0, 2], list(range(start))):
        chosen = np.array([row for row in rows if row < start], dtype=np.int64)
        assert rows_of(mapped, chosen).to_pylist() == [whole.to_pylist()[row] for row in chosen]


def test_a_damaged_large_table_is_refused_in_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(pa.table({"row": [0, 1]}))[:-6])
    with pytest.raises(hm.InputError, match="damaged"):
        mapped_table(path)


# --- texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lists", [[], [[]], [["a"], [], ["b", "a", "\ud800é"], ["x"] * 300]])
def test_compact_sequences_are_the_lists_that_they_are_made_of(lists):
    tokens, strings = CompactTokens(lists), CompactStrings(" ".join(x) for x in lists)
    assert list(tokens) == lists
    assert tokens == lists
    assert [len(tokens), len(strings)] == [len(lists)] * 2
    assert list(strings) == [" ".join(x) for x in lists]
    assert tokens[1:3] == lists[1:3]
    assert strings[-2:] == [" ".join(x) for x in lists][-2:]
    if lists:
        assert tokens[-1] == lists[-1]
    with pytest.raises(IndexError):
        tokens[len(lists)]


def test_a_corpus_of_many_texts_is_the_same_corpus(csv_file, monkeypatch):
    few = hm.load(csv_file)
    monkeypatch.setattr(assembly, "MANY", 1)
    monkeypatch.setattr(load, "MANY", 1)
    many = hm.load(csv_file)
    assert isinstance(many.splits["test"].tokens, CompactTokens)
    assert many.fingerprint() == few.fingerprint()
    for name, split in few.splits.items():
        assert list(many.splits[name].keys) == split.keys
        assert list(many.splits[name].written) == split.written
        assert many.splits[name].take([1, 0]).tokens == split.take([1, 0]).tokens
    assert (
        audit(train(many, **SMALL), **SHORT).findings
        == audit(train(few, **SMALL), **SHORT).findings
    )


# --- findings and pages -----------------------------------------------------------------------------------


def test_the_mean_of_many_texts_is_held_as_often_in_groups(monkeypatch):
    monkeypatch.setattr(intervals, "GROUPS", 150)
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(200):
        low, high = intervals.of_mean(rng.exponential(size=1200), seed=seed)
        held += low <= 1 <= high
    assert 0.90 <= held / 200 <= 0.99


def test_groups_keep_the_occurrences_of_a_text_together(monkeypatch):
    values, clusters = np.repeat(np.arange(40.0) % 7, 50), np.repeat(np.arange(40), 50)
    alone = intervals.of_mean(values, clusters)
    monkeypatch.setattr(intervals, "GROUPS", 20)
    low, high = intervals.of_mean(values, clusters)
    assert high - low > 0.5 * (alone[1] - alone[0]), "not as of 2000 texts"


@pytest.fixture
def few_drawn(monkeypatch):
    monkeypatch.setattr(drawn_texts, "ALL", 60)
    monkeypatch.setattr("heedmap.report.text_data.MOST", 40)
    monkeypatch.setattr("heedmap.report.page.MOST", 40)


@pytest.fixture(scope="module")
def hundred():
    return audit(train(small_corpus(2, 300), encoder="average", **SMALL), **SHORT)


def test_a_page_of_very_many_texts_says_which_it_draws(few_drawn, hundred):
    made = hundred
    shown = drawn_texts.with_drawn_texts(made)
    for name, table in shown.tables.items():
        if "row" in table.column_names:
            assert table["row"].to_pylist() == list(range(len(table))) or name == "class_erasure"
    keys = shown.tables["instances"]["key"].to_pylist()
    assert len(keys) == 40
    rows = [made.tables["instances"]["key"].to_pylist().index(key) for key in keys]
    assert rows == sorted(rows)
    for name in ("n_tokens", "entropy"):
        values = made.tables["instances"][name].to_numpy()
        assert values[rows].max() == values.max()
        assert values[rows].min() == values.min()
    for name in ("permutation", "gradient"):
        assert shown.tables[name].drop(["row"]).equals(made.tables[name].take(rows).drop(["row"]))
    files = dict(pages(made, "report.html"))
    assert [*files] == ["report.html"]
    assert "holds 40 of the 100 audited texts" in " ".join(files["report.html"].split())
    assert "The figures draw the 40 texts" in files["report.html"]
    counts = [
        int(n.split()[2]) for figure in figures(made) for n in [figure.n] if n.startswith("n = ")
    ]
    assert len(counts) > 5
    assert max(counts) <= 40


def test_its_findings_are_those_of_all_texts(few_drawn, hundred):
    made = hundred
    shown = drawn_texts.with_drawn_texts(made)
    assert shown.findings == made.findings
    assert tables_hash(made.tables)[:12] in page(made)
    assert bottom_line(shown, shown.rates) == bottom_line(made, made.rates)


def test_of_a_text_in_windows_all_are_drawn_or_none(few_drawn):
    rng = np.random.default_rng(1)
    texts = np.repeat(np.arange(50), rng.integers(1, 4, 50))
    assert len(texts) > 60
    made = replace(make_audit(n=60), tables=tables_of(texts))
    shown, whole = pooled(drawn_texts.with_drawn_texts(made)), pooled(made)
    keys = shown.tables["instances"]["key"].to_pylist()
    rows = [whole.tables["instances"]["key"].to_pylist().index(key) for key in keys]
    assert 0 < len(rows) < 50
    for name, table in shown.tables.items():
        of_rows = whole.tables[name].to_pandas()
        expected = of_rows[of_rows["row"].isin(rows)].reset_index(drop=True)
        expected["row"] = np.searchsorted(rows, expected["row"])
        pd.testing.assert_frame_equal(
            table.to_pandas(), expected, check_dtype=False, obj=f"table {name}"
        )


def test_up_to_the_limit_all_texts_are_drawn(few_drawn):
    made = make_audit(n=60)
    assert drawn_texts.with_drawn_texts(made) is made
    assert len(chosen_rows([np.arange(60.0)], [])) == 40
