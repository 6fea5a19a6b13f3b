"""The adversary's weights are saved, and imposing them again gives the numbers of the table."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import small_corpus, small_pairs, watched
from rich.console import Console
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.experiments.methods import adversary_weights
from heedmap.experiments.methods.adversary_weights import FILE, pack, rows_kept, weights_of
from heedmap.report.card import card

FEW = {"permutations": 3, "instances": 8}
CLOSE = 1e-5


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with tiny classifiers and eleven short texts, one of a single word; eight are audited."""
    root = tmp_path_factory.mktemp("adversary")
    for name in ("bert", "llama", "bart"):
        tiny_model(name).save_pretrained(root / name)
        tiny_tokenizer().save_pretrained(root / name)
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {"text": " ".join(rng.choice(words, n)), "label": int(i % 2)}
        for i, n in enumerate([1, 2, *rng.integers(3, 8, 9)])
    ]
    (root / "films.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return root


def audited(place, architecture="bert", out=None, **settings):
    run = hm.open_model(place / architecture, place / "films.jsonl", out=out, **settings)
    return run, hm.audit(run, **FEW)


def printed(audit):
    console = Console(width=200, file=io.StringIO())
    console.print(card(audit))
    return console.file.getvalue()


@pytest.fixture(scope="module")
def kept(place, tmp_path_factory):
    """A finished audit in its folder."""
    folder = tmp_path_factory.mktemp("runs") / "bert"
    run, audit = audited(place, out=folder)
    return SimpleNamespace(run=run, audit=audit, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("bert", {}),
        ("bert", {"view": "rollout"}),
        pytest.param(
            "bert", {"view": "gradient", "layer": 1, "head": 2}, marks=pytest.mark.exhaustive
        ),
        pytest.param("bert", {"view": "effective"}, marks=pytest.mark.exhaustive),
        pytest.param("llama", {"view": "received", "head": 1}, marks=pytest.mark.exhaustive),
        pytest.param("llama", {"view": "rollout", "layer": 1}, marks=pytest.mark.exhaustive),
        pytest.param("bart", {"view": "received"}, marks=pytest.mark.exhaustive),
        ("bart", {"view": "gradient"}),
    ],
)
def test_imposed_again_the_weights_do_what_the_table_says(place, tmp_path, architecture, settings):
    run, audit = audited(place, architecture, tmp_path / "run", **settings)
    table = audit.to_dataframe("adversary")
    found = [hm.check_adversary(hm.open_run(tmp_path / "run"), row) for row in (0, 3)]
    found += [hm.check_adversary(run, row) for row in range(len(table))]
    for row, check in zip([0, 3, *range(len(table))], found, strict=True):
        assert check.tvd == pytest.approx(table["tvd"][row], abs=CLOSE)
        assert check.jsd == pytest.approx(table["jsd"][row], abs=CLOSE)
    assert table["jsd"].max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
def test_a_model_of_ours_is_checked_at_the_same_door(tmp_path, pairs):
    corpus = small_pairs() if pairs else small_corpus()
    sizes = {"embedding_size": 8, "hidden_size": 8, "epochs": 1}
    run = hm.train(corpus, encoder="average", min_df=1, out=tmp_path / "run", **sizes)
    table = hm.audit(run, permutations=3).to_dataframe("adversary")
    assert not (tmp_path / "run" / "tables" / FILE).exists(), "the weights are the heat map there"
    for row in range(len(table)):
        check = hm.check_adversary(run, row)
        assert check.jsd == pytest.approx(table["jsd"][row], abs=CLOSE)
        assert check.tvd <= (0.05 if pairs else 0.01) + CLOSE
        if pairs:
            assert check.tvd == pytest.approx(table["tvd"][row], abs=CLOSE)
    assert table["jsd"].max() > 0.1


@pytest.mark.slow
def test_a_table_without_its_weights_is_made_again_and_weights_without_their_table(kept, place):
    tables = kept.folder / "tables"
    before = {path.name: path.read_bytes() for path in tables.iterdir()}
    for lost in (FILE, "adversary.parquet"):
        (tables / lost).unlink()
        announced = []
        with watched(step=announced.append):
            hm.audit(hm.open_run(kept.folder), **FEW)
        assert announced == ["adversary", "report"]
        assert {path.name: path.read_bytes() for path in tables.iterdir()} == before


@pytest.mark.slow
def test_an_audit_in_memory_takes_the_weights_along_when_it_is_saved(place, kept, tmp_path):
    run, audit = audited(place)
    with refused("in memory"):
        hm.check_adversary(run, 1)
    audit.save(tmp_path / "saved")
    kept.audit.save(tmp_path / "copied")
    for name in ("saved", "copied"):
        assert (tmp_path / name / "tables" / FILE).read_bytes() == (
            kept.folder / "tables" / FILE
        ).read_bytes()


@pytest.mark.slow
def test_an_audit_with_other_settings_clears_the_weights_of_the_one_before(place, tmp_path):
    run, _ = audited(place, out=tmp_path / "run")
    first = (tmp_path / "run" / "tables" / FILE).read_bytes()

    def stop(name):
        if name == "gradient":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(step=stop):
        hm.audit(run, **{**FEW, "epsilon": 0.02}, overwrite=True)
    assert not (tmp_path / "run" / "tables" / FILE).exists()
    hm.audit(run, **{**FEW, "epsilon": 0.02})
    assert (tmp_path / "run" / "tables" / FILE).read_bytes() != first


@pytest.mark.parametrize("row", ["a", None, 1.5, True])
def test_a_row_that_is_no_number_is_a_type_error(kept, row):
    with refused("number", "begin at 0", kind=TypeError):
        hm.check_adversary(kept.run, row)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (8, ["adversary.parquet", "0 to 7", "8"]),
        (-1, ["adversary.parquet", "0 to 7", "-1"]),
        (5, [FILE, "manifest.json"]),
    ],
)
def test_what_cannot_be_imposed_is_one_clear_line(kept, tmp_path, row, named):
    kept.audit.save(tmp_path / "run")
    (tmp_path / "run" / "tables" / FILE).write_bytes(b"no tensors")
    with refused(*named):
        hm.check_adversary(hm.open_run(tmp_path / "run"), row)


def test_a_run_that_was_not_audited_is_one_clear_line(place, tmp_path):
    run = hm.open_model(place / "bert", place / "films.jsonl", out=tmp_path / "run")
    with refused(tmp_path / "run", "adversary", "heedmap audit --run"):
        hm.check_adversary(run, 0)


@pytest.mark.slow
def test_of_more_weights_than_there_is_room_for_the_shortest_texts_are_kept_and_counted(
    kept, place, tmp_path, monkeypatch
):
    lengths = kept.run.model.lengths([kept.run.corpus.splits["test"].tokens[i] for i in range(11)])
    monkeypatch.setattr(
        adversary_weights, "MOST", 4 * 4 * 20
    )  # four heads, twenty positions in all
    run, audit = audited(place, out=tmp_path / "run")
    path = tmp_path / "run" / "tables" / FILE
    rows = rows_kept(path)
    sizes = {row: weights_of(path, row).shape for row in rows}
    assert 0 < len(rows) < 8
    assert all(shape[0] == 4 for shape in sizes.values())
    assert sum(shape[1] for shape in sizes.values()) <= 20
    assert max(shape[1] for shape in sizes.values()) <= sorted(lengths)[len(rows)]
    told = f"weights kept for {len(rows)} of 8 searched texts, the shortest"
    assert told in printed(audit)
    assert told.removeprefix("weights ") in (tmp_path / "run" / "report.html").read_text()
    left_out = next(row for row in range(8) if row not in rows)
    with refused(f"row {left_out}"):
        hm.check_adversary(run, left_out)
    assert "weights kept for" not in printed(kept.audit)


def test_the_file_gives_back_what_was_packed():
    generator = torch.Generator().manual_seed(0)
    given = {7: torch.rand(4, 3, generator=generator), 2: torch.rand(1, 5, generator=generator)}
    content = pack(given)
    assert content == pack(dict(reversed(given.items()))), "in any order the same bytes"
    assert rows_kept(content) == [2, 7]
    assert rows_kept(pack({})) == []


def test_what_was_packed_is_read_row_by_row(tmp_path):
    given = {7: torch.rand(4, 3), 2: torch.rand(1, 5), 3: torch.rand(2, 0)}
    (tmp_path / FILE).write_bytes(pack(given))
    for row, weights in given.items():
        assert torch.equal(weights_of(tmp_path / FILE, row), weights)
    assert weights_of(tmp_path / FILE, 1) is None
