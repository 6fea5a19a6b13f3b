"""`heedmap export`: findings, maps and tables with ids and names; nothing is replaced by accident."""

import errno
import gc
import json
import math
import os
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_audits import CLASSES, make_audit, put_tables
from tiny_audits import KINDS, tiny_audit
from wording import refused, stopped

import heedmap as hm
from heedmap.report.exported_tables import exported_tables
from heedmap.report.token_maps import PLACES, token_maps
from heedmap.runs.audited import Audit

FORMATS = ("csv", "jsonl", "parquet")
OWN = {"about", "findings", "by_class", "maps", "columns"}


@pytest.fixture(scope="module")
def audit() -> Audit:
    return make_audit()


@pytest.fixture(scope="module")
def tiny() -> Audit:
    return tiny_audit("own")


@pytest.fixture
def folder(audit, tmp_path):
    """A run folder with the tables of an audit."""
    return put_tables(audit, tmp_path / "run")


def changed(audit, **columns):
    """The audit with other columns in `instances`."""
    instances = audit.tables["instances"]
    for name, values in columns.items():
        place = instances.column_names.index(name)
        instances = instances.set_column(place, name, pa.array(values, instances[name].type))
    return replace(audit, tables={**audit.tables, "instances": instances})


def rows_of(path):
    """A file's rows, from whichever format."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    frame = pd.read_csv(path, keep_default_na=False)
    return frame.to_dict("records")


def test_a_folder_has_a_file_per_table(audit, tmp_path):
    for file_format in FORMATS:
        paths = audit.export(tmp_path / file_format, file_format)
        names = {path.relative_to(tmp_path / file_format).as_posix() for path in paths}
        assert names == {f"{name}.{file_format}" for name in OWN | {f"tables/{t}" for t in audit}}
        for path in paths:
            table = exported_tables(audit)[
                path.relative_to(tmp_path / file_format).with_suffix("").as_posix()
            ]
            assert len(rows_of(path)) == table.num_rows


def test_a_workbook_has_a_sheet_per_table(audit, tmp_path):
    (path,) = audit.export(tmp_path / "out", "xlsx")
    assert path == tmp_path / "out" / "audit.xlsx"
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == [name.rpartition("/")[2] for name in exported_tables(audit)]
    for name, table in exported_tables(audit).items():
        assert book[name.rpartition("/")[2]].max_row == table.num_rows + 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_maps_are_those_of_the_tables_token_by_token(kind):
    audit = tiny_audit(kind)
    instances = audit.tables["instances"].to_pylist()
    rows = audit.maps.replace({np.nan: None}).to_dict("records")
    expected = [
        {
            "id": text["key"], "row": row, "position": place, "token": token,
            "attention": text["attention"][place],
            "gradient": audit.tables["gradient"]["importance"][row].as_py()[place],
            "signed": audit.tables["leave_one_out"]["signed"][row].as_py()[place],
            "adversary": (audit.tables["adversary"]["attention"][row].as_py() or [None] * 99)[place],
        }
        for row, text in enumerate(instances)
        for place, token in enumerate(text["tokens"])
    ]  # fmt: skip
    assert len(rows) == len(expected)
    for row, said in zip(rows, expected, strict=True):
        for name, value in said.items():
            is_same = row[name] == value or (row[name] is None and value != value)
            assert is_same or row[name] == pytest.approx(value, rel=1e-6), (name, row, said)
    assert ("rationale" in rows[0]) == (kind == "own")
    assert ("head_mixture" in rows[0]) == (kind == "transformer")


def test_a_text_of_no_token_has_no_row_and_one_of_one_token_has_one():
    audit = make_audit(n=3, lengths=(2, 1, 3))
    empty = {name: table.slice(0, 0) for name, table in audit.tables.items()}
    assert token_maps(replace(audit, tables=empty)).num_rows == 0
    tables = {
        name: table.set_column(table.column_names.index(column), column, cut)
        for name, column in (("instances", "tokens"), ("gradient", "importance"))
        for table in [audit.tables[name]]
        for cut in [pa.array([[], *table[column].to_pylist()[1:]], table[column].type)]
    }
    instances = tables["instances"].select(["row", "key", "tokens"])
    some = replace(audit, tables={"instances": instances, "gradient": tables["gradient"]})
    maps = token_maps(some).to_pylist()
    assert [(row["row"], row["position"]) for row in maps] == [(1, 0), (2, 0), (2, 1), (2, 2)]
    assert math.isnan(maps[0]["gradient"])


def test_numbers_that_are_not_one_per_token_are_refused():
    audit = make_audit(n=2, lengths=(2, 3))
    gradient = pa.table({"row": [0, 1], "importance": [[0.1, 0.2], [0.1, 0.2]]})
    with refused("gradient", "importance", "row 1", "3 tokens", "got 2"):
        token_maps(replace(audit, tables={**audit.tables, "gradient": gradient}))


def test_a_map_that_a_text_does_not_have_is_empty(audit, tmp_path):
    audit.export(tmp_path, "csv")
    rows = pd.read_csv(tmp_path / "maps.csv")
    sampled = audit.tables["integrated_gradients"]["importance"].to_pylist()
    missing = {i for i, numbers in enumerate(sampled) if numbers is None or numbers != numbers}
    alone = {i for i, numbers in enumerate(sampled) if numbers is not None and len(numbers) == 1}
    empty = rows[rows["integrated_gradients"].isna()]
    assert set(empty["row"]) == missing | alone
    assert missing


def test_texts_have_their_ids_and_classes_their_names(audit, tmp_path):
    audit.export(tmp_path, "jsonl")
    instances = rows_of(tmp_path / "tables" / "instances.jsonl")
    table = audit.tables["instances"].to_pylist()
    assert [row["id"] for row in instances] == [row["key"] for row in table]
    assert [row["predicted"] for row in instances] == [CLASSES[row["predicted"]] for row in table]
    assert [row["label"] for row in instances] == [CLASSES[row["label"]] for row in table]
    for row, said in zip(instances, table, strict=True):
        assert [row[f"probabilities: {name}"] for name in CLASSES[:2]] == said["probabilities"]
        assert "key" not in row
    gradient = rows_of(tmp_path / "tables" / "gradient.jsonl")
    assert [row["id"] for row in gradient] == [row["key"] for row in table]
    by_class = rows_of(tmp_path / "by_class.jsonl")
    assert {row["class"] for row in by_class} == set(CLASSES[:2])


def test_numbers_per_class_keep_their_unit(tiny):
    said = exported_tables(tiny)["columns"].to_pylist()
    ranges = {(row["table"], row["column"]): row["range"] for row in said}
    for name in tiny.classes:
        assert ranges["tables/instances", f"probabilities: {name}"] == "0 to 1"
        assert ranges["tables/relevance", f"bias: {name}"] == "logits"


def test_a_text_without_a_label_and_an_audit_of_one_class(audit, tmp_path):
    one = replace(changed(audit, label=[None] * 40, predicted=[0] * 40), classes=["a<b"])
    shares = one.tables["instances"].drop_columns("probabilities")
    shares = shares.append_column("probabilities", pa.array([[1.0]] * 40))
    one = replace(one, tables={"instances": shares, "gradient": one.tables["gradient"]})
    one.export(tmp_path, "csv")
    rows = rows_of(tmp_path / "tables" / "instances.csv")
    assert {row["label"] for row in rows} == {""}
    assert {row["predicted"] for row in rows} == {"a<b"}
    assert {row["probabilities: a<b"] for row in rows} == {1.0}


def test_lists_of_classes_are_lists_of_names(audit):
    guidance = pa.table({"row": [0, 1], "predicted": [0, 1], "uniform": [[0, 1, 1], None]})
    made = exported_tables(replace(audit, tables={**audit.tables, "guidance": guidance}))
    rows = made["tables/guidance"].to_pylist()
    assert rows == [
        {"id": "key<0>", "row": 0, "predicted": "a<b", "uniform": ["a<b", "plain", "plain"]},
        {"id": "key<1>", "row": 1, "predicted": "plain", "uniform": None},
    ]


def test_the_table_of_an_unknown_package_is_written_as_it_is(audit):
    other = pa.table(
        {"row": [0, 1], "score": [0.5, None], "when": pa.array([0, 1], pa.timestamp("s"))}
    )
    audit = replace(audit, tables={**audit.tables, "maps": other})
    made = exported_tables(audit)
    assert made["tables/maps"].column_names == ["id", "row", "score", "when"]
    assert "token" in made["maps"].column_names  # the table of that name does not take its place


def test_every_column_that_is_written_is_described(tiny):
    tables = exported_tables(tiny)
    said = tables["columns"].to_pylist()
    written = [
        (name, column)
        for name, table in tables.items()
        if name not in ("about", "columns")
        for column in table.column_names
    ]
    assert [(row["table"], row["column"]) for row in said] == written
    assert not [row for row in said if not row["meaning"]]
    assert {row["column"] for row in said if row["table"] == "maps"} >= {
        column.name for column in PLACES.described if column.name != "text"
    }


def test_about_has_the_bottom_line_and_counts_every_table(tiny):
    tables = exported_tables(tiny)
    about = dict(zip(*tables["about"].to_pydict().values(), strict=True))
    assert about["bottom line"] == tiny.bottom_line.sentence
    assert about["heedmap"] == hm.__version__
    assert about["how sure"] == tiny.bottom_line.rates
    for name, table in tables.items():
        if name not in ("about", "columns"):
            assert about[name].startswith(f"{table.num_rows:,} rows. One row per "), name


@pytest.mark.parametrize("file_format", [*FORMATS, "xlsx"])
def test_the_same_audit_gives_the_same_bytes_and_is_not_refused(audit, tmp_path, file_format):
    first = {path: path.read_bytes() for path in audit.export(tmp_path / "a", file_format)}
    again = audit.export(tmp_path / "a", file_format)  # the same content: nothing is replaced
    other = make_audit().export(tmp_path / "b", file_format)
    assert [path.read_bytes() for path in again] == [*first.values()]
    assert [path.read_bytes() for path in other] == [*first.values()]


def test_another_content_is_replaced_only_with_overwrite(audit, tmp_path):
    audit.export(tmp_path, "csv")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.csv")}
    fewer = make_audit(n=20)
    with refused("about.csv", "--overwrite"):
        fewer.export(tmp_path, "csv")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.csv")} == before
    fewer.export(tmp_path, "csv", overwrite=True)
    assert len(rows_of(tmp_path / "tables" / "instances.csv")) == 20


def test_a_file_of_somebody_else_is_never_replaced_in_a_folder(audit, tmp_path):
    (tmp_path / "maps.csv").write_text("mine")
    for overwrite in (False, True):
        with refused("maps.csv"):
            audit.export(tmp_path, "csv", overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["maps.csv"]
    assert (tmp_path / "maps.csv").read_text() == "mine"


@pytest.mark.parametrize("link", ["findings.csv", "tables", "about.csv"])
def test_no_link_is_followed(audit, tmp_path, link):
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "target"
    target.mkdir() if link == "tables" else target.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / link).symlink_to(target)
    for overwrite in (False, True):
        with refused(link, "link"):
            audit.export(out, "csv", overwrite=overwrite)
    assert [path.name for path in out.iterdir()] == [link]
    assert [*target.iterdir()] == [] if link == "tables" else target.read_text() == "mine"


def test_no_link_is_followed_by_a_single_file(audit, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "x.csv").symlink_to(tmp_path / "mine.txt")
    with refused("x.csv", "link"):
        audit.save(tmp_path / "x.csv")
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("file_format", FORMATS)
def test_save_writes_the_findings_by_the_ending(audit, tmp_path, file_format):
    path = tmp_path / f"x.{file_format}"
    assert audit.save(path) == path
    assert [row["key"] for row in rows_of(path)] == audit.to_dataframe()["key"].tolist()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    make_audit(n=20).save(path)  # replaces it, as it does a page
    assert rows_of(path)[0]["n"] == 20


def test_save_says_that_a_folder_is_in_a_files_place(audit, tmp_path):
    (tmp_path / "x.csv").mkdir()
    with refused("x.csv", "a folder"):
        audit.save(tmp_path / "x.csv")


def test_the_texts_that_were_audited_are_never_replaced(audit, tmp_path):
    source = tmp_path / "mine.csv"
    source.write_text("text,label")
    data = audit.settings.data.model_copy(update={"source": str(source)})
    mine = replace(audit, settings=audit.settings.model_copy(update={"data": data}))
    with refused("mine.csv", "read from it"):
        mine.export(source, overwrite=True)
    with refused("mine.csv", "read from it"):
        mine.save(source)
    assert source.read_text() == "text,label"


def test_what_heedmap_wrote_in_the_folder_of_the_texts_is_none_of_them(
    heedmap, audit, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    data = audit.settings.data.model_copy(update={"source": "."})
    mine = replace(audit, settings=audit.settings.model_copy(update={"data": data}))
    put_tables(mine, tmp_path / "run")
    for file_format in ("md", "tex"):
        assert heedmap("card", "run", "--format", file_format).code == 0
        assert heedmap("card", "run", "--format", file_format, "--overwrite").code == 0
    (tmp_path / "a.md").write_text("a text")
    stopped(heedmap("card", "run", "--out", "a.md", "--overwrite"), "a.md", "read from it")
    assert (tmp_path / "a.md").read_text() == "a text"


def test_save_writes_everything_to_a_workbook(audit, tmp_path):
    audit.save(tmp_path / "x.XLSX")
    book = openpyxl.load_workbook(tmp_path / "x.XLSX")
    assert book.sheetnames[:4] == ["about", "findings", "by_class", "maps"]


def test_a_run_folder_cannot_be_without_texts(audit, tmp_path):
    with refused("holds the texts", "texts=False"):
        audit.save(tmp_path / "run", texts=False)
    with refused("x.docx", ".html, .csv, .jsonl, .xlsx, .parquet"):
        audit.save(tmp_path / "x.docx")


def test_a_run_is_no_folder_for_an_export(audit, folder):
    before = sorted(folder.rglob("*"))
    with refused("found a run", "export"):
        audit.export(folder, "parquet", overwrite=True)
    assert sorted(folder.rglob("*")) == before


def test_the_format_and_the_name_of_a_file_must_agree(audit, tmp_path):
    with refused("x.csv", ".jsonl"):
        audit.export(tmp_path / "x.csv", "jsonl")
    with refused("'ods'", "csv, jsonl, xlsx, parquet"):
        audit.export(tmp_path, "ods")
    (tmp_path / "folder.csv").mkdir()
    for name in ("x.json", "x.tsv", "x.pdf"):
        with refused(name, ".csv, .jsonl, .xlsx, .parquet"):
            audit.export(tmp_path / name)
        assert not (tmp_path / name).exists()
    audit.export(tmp_path / "folder.csv")  # a folder is one, whatever its name
    assert (tmp_path / "folder.csv" / "maps.csv").exists()


def test_the_command_writes_beside_the_run_and_names_the_files(heedmap, folder, audit):
    done = heedmap("export", folder)
    assert done.code == 0, done.err
    out = folder / "export"
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names == {f"{name}.csv" for name in OWN | {f"tables/{table}" for table in audit}}
    assert done.out.splitlines() == [
        f"Exported: {out / name}.csv" for name in exported_tables(audit)
    ]
    assert heedmap("export", folder).code == 0


def test_the_command_takes_the_format_from_the_name(heedmap, folder, tmp_path):
    done = heedmap("export", folder, "--out", tmp_path / "all.xlsx")
    assert (done.code, done.out) == (0, f"Exported: {tmp_path / 'all.xlsx'}\n")
    stopped(
        heedmap("export", folder, "--out", tmp_path / "all.xlsx", "--format", "csv"),
        "all.xlsx",
        ".csv",
    )
    (tmp_path / "all.xlsx").write_text("mine")
    stopped(heedmap("export", folder, "--out", tmp_path / "all.xlsx"), "all.xlsx", "--overwrite")
    assert heedmap("export", folder, "--out", tmp_path / "all.xlsx", "--overwrite").code == 0


def test_the_command_refuses_what_is_no_audited_run(heedmap, tmp_path):
    stopped(heedmap("export", tmp_path), "no run there")
    stopped(heedmap("export", tmp_path, "--format", "ods"), "'ods'")


def test_without_openpyxl_nothing_is_written(heedmap, folder, monkeypatch):
    monkeypatch.setattr("heedmap.errors.find_spec", lambda name: None)
    stopped(heedmap("export", folder, "--format", "xlsx"), "openpyxl", "heedmap[excel]")
    assert not (folder / "export").exists()


def test_a_disk_too_full_for_a_workbook_is_one_line_and_leaves_nothing(
    audit, tmp_path, monkeypatch
):
    monkeypatch.setattr("openpyxl.worksheet._writer.create_temporary_file", lambda: "/dev/full")
    with refused("IO_ENOSPC", "TMPDIR"):
        audit.export(tmp_path / "a.xlsx")
    gc.collect()  # what openpyxl still says when its sheets are deleted would be a warning, an error here
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_full_disk_is_one_line_in_each_format(audit, tmp_path, monkeypatch, file_format):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("heedmap.files.storage.os.fsync", full)
    with refused("cannot be written", "No space left"):
        audit.export(tmp_path / f"a.{file_format}")
    assert not [*tmp_path.iterdir()]
