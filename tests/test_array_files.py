"""Folders of arrays: what stands in npz, safetensors and Parquet files, as a run that a folder keeps."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from tiny_audits import QUICK
from wording import refused, stopped

import heedmap as hm
from heedmap.data.array_files import read_arrays
from heedmap.files.manifest import Manifest
from heedmap.nouns import INSTANCES
from heedmap.runs.audit import audit_as, open_audit, rewrite
from heedmap.runs.from_arrays import from_array_files
from heedmap.settings.run import RunSettings

SIZES = (4, 6, 1, 9, 5, 0, 7, 2)
NAMES = ("glad", "sad")


def made(rows=1):
    """Arrays of instances of SIZES with `rows` rows of weights, one array each for all items."""
    rng = np.random.default_rng(rows)
    raw = [rng.random((rows, n)) + 0.1 for n in SIZES]
    attention = np.concatenate([a / a.sum(1, keepdims=True) for a in raw], axis=1)
    values = rng.normal(size=(rows, sum(SIZES), 3))
    flat = {"attention": attention, "values": values}
    if rows == 1:
        flat = {name: array[0] for name, array in flat.items()}
    head = {"weight": 2 * rng.normal(size=(2, 3)), "bias": np.array([0.25, -0.5])}
    return {**flat, **head, "lengths": np.array(SIZES), "labels": np.arange(len(SIZES)) % 2}


def instances_of(arrays):
    """The same as lists of arrays, one per instance, as Python gives them to `hm.from_arrays`."""
    ends = np.cumsum(SIZES)[:-1]
    axis = arrays["attention"].ndim - 1
    return {
        "attention": np.split(arrays["attention"], ends, axis=axis),
        "values": np.split(arrays["values"], ends, axis=axis),
        **{name: arrays[name] for name in ("weight", "bias", "labels")},
    }


def as_npz(folder, arrays):
    np.savez(folder / "arrays.npz", **arrays)


def as_offsets(folder, arrays):
    rest = {name: array for name, array in arrays.items() if name != "lengths"}
    np.savez(folder / "a.npz", offsets=np.cumsum([0, *SIZES]), **rest)


def as_safetensors(folder, arrays):
    tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
    save_file(tensors, folder / "a.safetensors")


def as_parquet(folder, arrays):
    parts = instances_of(arrays)
    columns = {name: [part.tolist() for part in parts[name]] for name in ("attention", "values")}
    pq.write_table(pa.table({**columns, "labels": parts["labels"]}), folder / "a.parquet")
    np.savez(folder / "head.npz", weight=arrays["weight"], bias=arrays["bias"])


def as_padded(folder, arrays):
    """Arrays (B, T), (B, K, T) and so on, filled up with 0 to one size."""
    rows = arrays["attention"].ndim - 1
    parts, longest = instances_of(arrays), max(SIZES)
    full = {}
    for name, axis in (("attention", rows), ("values", rows)):
        fill = [
            [(0, longest - n) if a == axis else (0, 0) for a in range(parts[name][0].ndim)]
            for n in SIZES
        ]
        full[name] = np.stack([np.pad(p, w) for p, w in zip(parts[name], fill, strict=True)])
    np.savez(folder / "arrays.npz", **{**arrays, **full})


WRITERS = (as_npz, as_padded, as_offsets, as_safetensors, as_parquet)


# In a list of lists, rows of no items have no shape.
@pytest.mark.parametrize(
    ("write", "rows"), [*((write, 1) for write in WRITERS), *((write, 2) for write in WRITERS[:4])]
)
def test_every_kind_of_file_gives_the_run_of_the_same_arrays(tmp_path, write, rows):
    arrays = made(rows)
    write(tmp_path, arrays)
    run, expected = from_array_files(tmp_path), hm.from_arrays(**instances_of(arrays))
    assert run.settings.model == expected.settings.model
    assert run.corpus.fingerprint() == expected.corpus.fingerprint()
    assert run.corpus.left_out == {"no items": 1}
    assert run.settings.data.source == str(tmp_path)


def test_padded_files_have_lengths_or_a_mask_or_are_refused(tmp_path):
    arrays = made()
    as_padded(tmp_path, arrays)
    stored = {**np.load(tmp_path / "arrays.npz")}
    lengths = stored.pop("lengths")
    keep = lengths > 0  # an instance of no items has no weights
    without_empty = {
        n: a[keep] if n in ("attention", "values", "labels") else a for n, a in stored.items()
    }
    as_npz(tmp_path, without_empty)
    with refused(str(tmp_path), "items of 0", "lengths", "mask"):
        from_array_files(tmp_path)
    mask = np.arange(max(SIZES)) < lengths[keep, None]
    as_npz(tmp_path, {**without_empty, "mask": mask})
    expected = hm.from_arrays(**instances_of(arrays))
    assert from_array_files(tmp_path).settings.model == expected.settings.model


def test_names_of_items_and_classes_stand_in_json_or_npz(tmp_path):
    names = [f"item {i}" for i in range(sum(SIZES))]
    for folder, of_items in ((tmp_path / "a", "json"), (tmp_path / "b", "npz")):
        folder.mkdir()
        more = {"items": np.array(names), "classes": np.array(NAMES)} if of_items == "npz" else {}
        as_npz(folder, {**made(), **more})
        if of_items == "json":
            content = {"items": names, "classes": NAMES}
            (folder / "names.json").write_text(json.dumps(content), encoding="utf-8")
        run = from_array_files(folder)
        assert run.classes == [*NAMES]
        assert run.corpus.splits["test"].tokens[1] == names[4:10]


@pytest.mark.parametrize("content", [[*NAMES], {"classes": NAMES}])
def test_classes_json_holds_their_names_alone_or_by_their_name(tmp_path, content):
    as_npz(tmp_path, {**made(), "labels": np.array([*NAMES] * 4)})
    (tmp_path / "classes.json").write_text(json.dumps(content))
    run = from_array_files(tmp_path)
    assert run.classes == [*NAMES]
    assert run.corpus.splits["test"].labels.tolist() == [0, 1, 0, 1, 0, 0, 1]


class Payload:
    """A pickle that leaves a trace if it is loaded."""

    def __reduce__(self):
        return (exec, ("import pathlib; pathlib.Path('loaded').touch()",))


def without(**changes):
    def write(folder):
        arrays = {**made(), **changes}
        as_npz(folder, {name: array for name, array in arrays.items() if array is not None})

    return write


def with_more(name, content):
    def write(folder):
        as_npz(folder, made())
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def pickled(folder):
    np.savez(folder / "a.npz", attention=np.array([Payload(), None], dtype=object))


def nan_in(name):
    array = made()[name].copy()
    array.flat[7] = np.nan
    return without(**{name: array})


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (lambda folder: folder.rmdir(), ["folder", "nothing"]),
        (lambda folder: None, ["attention", ".npz", "no file"]),
        (lambda folder: (folder / "a.pt").write_bytes(pickle.dumps(Payload())), ["attention", "a.pt"]),
        (pickled, ["a.npz", "attention", "pickled", "lengths"]),
        (without(attention=None), ["attention", "values"]),
        (without(values=None), ["values", "readouts", "neither"]),
        (without(lengths=np.array([*SIZES[:-1], 3])), ["attention", 35, "lengths", 34]),
        (without(lengths=np.array([1.5])), ["lengths", "float64"]),
        (without(lengths=np.array([-1, 35])), ["lengths"]),
        (without(offsets=np.array([0, 34])), ["lengths", "offsets", "both"]),
        (without(lengths=None, offsets=np.array([0, 9, 5, 34])), ["offsets", "rise"]),
        (without(lengths=None), ["attention", "lengths", "offsets", 34]),
        (without(lengths=None, attention=None, labels=None), ["attention", "values"]),
        (without(labels=np.array([*NAMES] * 4)), ["labels[0]", "'glad'", "give classes"]),
        (without(values=made()["values"][:-1]), ["values", 34, 33]),
        (nan_in("attention"), ["attention[1]", "NaN"]),
        (nan_in("values"), ["values[0]", "NaN"]),
        (without(attention=-made()["attention"]), ["attention[0]", "negative"]),
        (without(weight=np.ones((2, 5))), ["values[0]", 5, 3]),
        (without(labels=np.array([0, 1])), ["labels", 8, 2]),
        (without(atention=np.ones(3)), ["attention", "atention", "rename"]),
        (with_more("b.npz", b"PK"), ["b.npz", "npz"]),
        (with_more("b.npz", b""), ["b.npz", "npz"]),
        (with_more("b.safetensors", b"abc"), ["b.safetensors", "safetensors"]),
        (with_more("b.parquet", b"PAR1"), ["b.parquet", "parquet"]),
        (with_more("b.json", "{"), ["b.json", "json"]),
        (with_more("b.json", "[1]"), ["b.json", "object"]),
        (with_more("b.json", '["a", "b"]'), ["b.json", '{"classes": ["no", "yes"]}', "classes.json", "list"]),
        (with_more("classes.json", '["a"]'), ["classes", 2, 1]),
        (with_more("b.json", '{"classes": "no"}'), ["classes", "list of names", "str"]),
        (with_more("b.json", '{"labels": [1]}'), ["b.json", "labels", "arrays.npz"]),
        (with_more("b.json", '{"classes": ["a"]}'), ["classes", 2, 1]),
    ],
)  # fmt: skip
def test_a_malformed_folder_is_refused_in_one_line(tmp_path, write, names, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder)
    with refused(*names):
        from_array_files(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "loaded").exists(), "a pickle was loaded"


@pytest.fixture
def kept(tmp_path):
    """A folder of arrays, and the audited run that was made of it."""
    (tmp_path / "data").mkdir()
    as_npz(tmp_path / "data", made())
    run = from_array_files(tmp_path / "data", tmp_path / "run")
    return run, audit_as(run, QUICK)


def test_a_kept_run_of_arrays_is_opened_and_goes_on_where_it_stopped(kept, tmp_path):
    run, audit = kept
    again = hm.open_run(tmp_path / "run")
    assert again.settings.model == run.settings.model
    assert torch.equal(again.model.attention[2], run.model.attention[2])
    assert again.corpus.splits["test"].keys == run.corpus.splits["test"].keys
    assert again.facts == run.facts
    tables = {path: path.stat().st_mtime_ns for path in (tmp_path / "run/tables").glob("*.parquet")}
    resumed = audit_as(again, QUICK)
    assert {path: path.stat().st_mtime_ns for path in tables} == tables
    assert (resumed.findings, [*resumed]) == (audit.findings, [*audit])
    assert from_array_files(tmp_path / "data", tmp_path / "run").folder == run.folder
    assert RunSettings.read(tmp_path / "run/settings.toml").audit == QUICK, "the audit stays"


def test_card_report_export_and_compare_need_the_folder_alone(kept, tmp_path):
    _, audit = kept
    opened = open_audit(tmp_path / "run")
    assert opened.nouns == INSTANCES
    assert opened.bottom_line == audit.bottom_line
    report = (tmp_path / "run/report.html").read_bytes()
    rewrite(tmp_path / "run")
    assert (tmp_path / "run/report.html").read_bytes() == report
    assert {path.name for path in opened.export(tmp_path / "tables")} >= {
        "findings.csv",
        "maps.csv",
    }
    other = hm.from_arrays(**instances_of({**made(), "bias": np.array([0.0, 0.0])}))
    comparison = hm.compare([tmp_path / "run", audit_as(other, QUICK)])
    assert any("instances" in note for note in comparison.notes)


def test_other_arrays_need_overwrite_and_damaged_ones_are_refused(kept, tmp_path):
    others = instances_of({**made(), "bias": np.array([0.0, 0.0])})
    with refused("other settings", "--overwrite"):
        hm.from_arrays(**others, out=tmp_path / "run")
    path = tmp_path / "run/arrays/arrays.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-8] + bytes(8))
    with refused("arrays.safetensors"):
        hm.open_run(tmp_path / "run")
    path.unlink()
    with refused("damaged"):
        hm.open_run(tmp_path / "run")
    run = hm.from_arrays(**others, out=tmp_path / "run", overwrite=True)
    assert hm.open_run(tmp_path / "run").settings == run.settings


def test_arrays_are_listed_in_the_manifest_and_removed_with_the_run(kept, tmp_path):
    listed = Manifest(tmp_path / "run").load().below(["arrays"])
    assert sorted(listed) == ["arrays/arrays.safetensors", "arrays/instances.json"]


def test_a_folder_says_that_a_function_was_asked_and_does_not_go_on_without_it(tmp_path):
    words = [["a", "b"], ["b", "c", "a"]] * 4
    weight_of = {"a": 1.0, "b": 2.0, "c": 4.0}

    def predict(instances):
        weights = [np.array([weight_of[name] for name in names]) for names in instances]
        weights = [w / w.sum() for w in weights]
        said = [[weight_of[name] - 2 for name in names] for names in instances]
        z = np.array([w @ r for w, r in zip(weights, said, strict=True)])
        return 1 / (1 + np.exp(-z)), weights

    _, attention = predict(words)
    readouts = [np.array([weight_of[name] - 2 for name in names]) for names in words]
    options = {"readouts": readouts, "items": words, "predict": predict, "out": tmp_path / "run"}
    audit = audit_as(hm.from_arrays(attention, **options), QUICK)
    assert "leave_one_out" in audit.tables
    assert "reading = true" in (tmp_path / "run/settings.toml").read_text(encoding="utf-8")
    assert open_audit(tmp_path / "run").bottom_line == audit.bottom_line
    with refused("function", "predict"):
        hm.open_run(tmp_path / "run")
    again = audit_as(hm.from_arrays(attention, **options), QUICK)
    assert (again.findings, [*again]) == (audit.findings, [*audit])


def test_an_audit_of_arrays_is_saved_as_a_folder(tmp_path):
    run = hm.from_arrays(**instances_of(made()))
    audit_as(run, QUICK).save(tmp_path / "run")
    assert hm.open_run(tmp_path / "run").settings.audit == QUICK
    with refused("arrays"):
        hm.explain(tmp_path / "run", "a text")
    with refused("cpu"):
        hm.open_run(tmp_path / "run", device="cuda")


def test_the_command_audits_a_folder_and_refuses_in_one_line(heedmap, tmp_path):
    (tmp_path / "data").mkdir()
    as_npz(tmp_path / "data", made())
    out = tmp_path / "run"
    said = heedmap("audit", "--arrays", tmp_path / "data", "--out", out, "--permutations", 3)
    assert said.code == 0
    assert "instances" in said.out
    again = heedmap("audit", "--run", out, "--permutations", 3)
    assert again.code == 0
    for more, names in (
        (["--data", "reviews"], "--data"),
        (["--encoder", "lstm"], "--encoder"),
        (["--retrain"], "--retrain"),
        (["--device", "cpu"], "--device"),
        (["--permutations", 0], "permutations"),
    ):
        wrong = heedmap("audit", "--arrays", tmp_path / "data", *more)
        assert wrong.code == 2
        assert names in wrong.err
        assert len(wrong.err.splitlines()) == 1
    missing = heedmap("audit", "--arrays", tmp_path / "none")
    assert (missing.code, len(missing.err.splitlines())) == (2, 1)


def test_without_lengths_all_instances_have_the_same_shape(tmp_path):
    attention, readouts = np.full((3, 4), 0.25), np.random.default_rng(0).normal(size=(3, 4, 2))
    np.savez(tmp_path / "a.npz", attention=attention, readouts=readouts)
    assert np.array_equal(read_arrays(tmp_path)["attention"], attention)
    assert len(from_array_files(tmp_path).corpus.splits["test"]) == 3


def test_nothing_is_written_where_the_run_of_another_seed_is_none(tmp_path, heedmap):
    folder = tmp_path / "arrays"
    folder.mkdir()
    as_npz(folder, made())
    asked = ("--other-seed", tmp_path / "nowhere", "--out", tmp_path / "run")
    stopped(heedmap("audit", "--arrays", folder, *asked), "nowhere", "no run")
    assert not (tmp_path / "run").exists()
