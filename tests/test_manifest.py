"""heedmap removes and replaces only what it wrote, follows no link, and waits for no pipe."""

import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest
import torch
from conftest import QUICK, WORDS, contents, stamped
from wording import refused, stopped, warned

from heedmap.files import manifest
from heedmap.files.listing import File
from heedmap.files.manifest import Manifest
from heedmap.files.storage import write_atomically
from heedmap.files.table_folder import TableFolder, clear
from heedmap.runs.audit import audit
from heedmap.runs.conclusions import remove_conclusions, write_conclusions
from heedmap.runs.folder import RUN_FILES, RunFolder
from heedmap.runs.model_files import is_trained, write_model
from heedmap.runs.occupancy import holds_another
from heedmap.runs.open import open_run
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings

AUDIT = ("--instances", "9", "--permutations", "2")


@pytest.fixture
def root(tmp_path):
    """A folder with a manifest, and one file that it lists."""
    folder = tmp_path / "root"
    Manifest(folder).start()
    manifest.write(folder / "a" / "one.txt", "one")
    return folder


def test_a_file_is_listed_by_name_size_and_hash(root):
    listing = json.loads((root / "manifest.json").read_text())
    assert listing["files"] == {
        "a/one.txt": {
            "size": 3,
            "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
        }
    }


def test_the_same_files_give_the_same_manifest_in_any_order(tmp_path):
    for folder, names in (("x", "abc"), ("y", "cba")):
        Manifest(tmp_path / folder).start()
        for name in names:
            manifest.write(tmp_path / folder / name, name)
    assert (tmp_path / "x/manifest.json").read_bytes() == (
        tmp_path / "y/manifest.json"
    ).read_bytes()


def test_what_was_written_is_read_and_replaced_and_removed_again(root):
    path = root / "a" / "one.txt"
    assert manifest.read(path) == b"one"
    manifest.write(path, "two")
    assert manifest.read(path) == b"two"
    assert Manifest(root).load().replaced == {}
    manifest.remove(root / "a")
    assert os.listdir(root) == ["manifest.json"]


def test_a_file_that_was_changed_is_not_read_and_never_lost(root):
    path = root / "a" / "one.txt"
    path.write_text("mine")
    with refused(path, root / "manifest.json"):
        manifest.read(path)
    with warned(path, "one.txt.changed"):
        manifest.write(path, "two")
    path.write_text("mine too")
    with warned(path, "one.txt.changed-2"):
        manifest.remove(root / "a")
    files = {p.name: p.read_text() for p in (root / "a").iterdir()}
    assert files == {"one.txt.changed": "mine", "one.txt.changed-2": "mine too"}


def test_a_file_that_is_not_listed_is_neither_replaced_nor_removed_nor_read(root):
    (root / "a" / "mine.txt").write_text("mine")
    with refused(root / "a" / "mine.txt", "a file"):
        manifest.write(root / "a" / "mine.txt", "other")
    with refused(root / "a" / "mine.txt", root / "manifest.json"):
        manifest.read(root / "a" / "mine.txt")
    manifest.remove(root / "a")
    assert os.listdir(root / "a") == ["mine.txt"]


def test_a_process_that_is_killed_before_or_after_the_rename_leaves_a_file_that_is_listed(root):
    path, two = root / "a" / "one.txt", File.of(b"two")
    Manifest(root).claim({"a/one.txt": two})  # killed before the file is written
    assert manifest.read(path) == b"one"
    path.write_text("two")  # killed before the manifest is settled
    assert manifest.read(path) == b"two"
    Manifest(root).settle()
    assert Manifest(root).load().replaced == {}
    assert Manifest(root).load().files == {"a/one.txt": two}


def test_what_was_to_be_replaced_and_was_not_is_listed_as_it_is(root):
    path = root / "a" / "one.txt"
    Manifest(root).claim({"a/one.txt": File.of(b"two")})  # killed before the file is written
    Manifest(root).settle()
    assert manifest.read(path) == b"one"
    listing = Manifest(root).load()
    assert (listing.files, listing.replaced) == ({"a/one.txt": File.of(b"one")}, {})


@pytest.mark.parametrize("where", ["the file", "a folder above it", "the temporary name"])
def test_no_link_is_followed_when_a_file_is_written(root, tmp_path, where):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    if where == "the file":
        (root / "b.txt").symlink_to(other / "thesis.txt")
        path = root / "b.txt"
    elif where == "a folder above it":
        (root / "b").symlink_to(other)
        path = root / "b" / "thesis.txt"
    else:
        (root / ".b.txt.partial").symlink_to(other / "thesis.txt")
        manifest.write(root / "b.txt", "new")
        assert (root / "b.txt").read_text() == "new"
        path = None
    if path is not None:
        with refused(root, "a link"):
            manifest.write(path, "new")
        with refused(root, "a link"):
            Manifest(root).refuse_taken(["b", "b.txt"])
    assert {p.name: p.read_text() for p in other.iterdir()} == {"thesis.txt": "years of work"}


@pytest.mark.parametrize("kind", ["link", "broken link", "second name", "pipe", "socket"])
def test_what_is_in_a_temporary_files_place_is_not_written_to(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    mine, partial = Path("mine.txt"), Path(".a.txt.partial")
    mine.write_text("mine")
    if kind == "link":
        partial.symlink_to(mine)
    elif kind == "broken link":
        partial.symlink_to("nowhere.txt")
    elif kind == "second name":
        os.link(mine, partial)
    elif kind == "pipe":
        os.mkfifo(partial)
    else:
        with socket.socket(socket.AF_UNIX) as file:
            file.bind(str(partial))
    write_atomically(Path("a.txt"), "new")
    assert {p.name: p.read_text() for p in Path().iterdir()} == {"a.txt": "new", "mine.txt": "mine"}


@pytest.mark.parametrize("names", [["../x"], ["/etc/passwd"], ["a/../../x"], ["a//b"], [""], ["."]])
def test_a_manifest_of_somebody_else_names_nothing_outside_its_folder(tmp_path, names):
    files = {name: {"size": 1, "sha256": "0"} for name in names}
    (tmp_path / "manifest.json").write_text(json.dumps({"heedmap": 1, "files": files}, indent=1))
    with refused(tmp_path / "manifest.json"):
        Manifest(tmp_path).load()


# Whole commands


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An audited run and its texts."""
    place = tmp_path_factory.mktemp("made")
    rows = [
        f"{'good' if i % 2 else 'bad'} {WORDS[i % 40]} {WORDS[i % 7]},{i % 2}" for i in range(60)
    ]
    (place / "texts.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return place


@pytest.fixture
def place(made, heedmap, tmp_path, monkeypatch):
    """A copy of all that, in which commands run."""
    monkeypatch.chdir(made)
    if not (made / "run").exists():
        assert heedmap("audit", "--data", "texts.csv", "--out", "run", *QUICK, *AUDIT).code == 0
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return Path("run")


def audited(*more):
    return ("audit", "--data", "texts.csv", "--out", "run", *QUICK, *AUDIT, *more)


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_a_folder_with_another_programs_settings_is_left_alone(heedmap, place, more):
    shutil.rmtree(place)
    for name in ("texts/a.txt", "model/b.py", "extra/c", "tables/d.parquet", "report.html"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine")
    (place / "settings.toml").write_text('[default]\nhost = "localhost"\n')
    before = stamped(".")
    for command in (audited(*more), ("train", *audited(*more)[1:-4], *more)):
        done = heedmap(*[part for part in command if part not in AUDIT or command[0] == "audit"])
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        stopped(done, "run", "settings.toml", "--out")
    assert stamped(".") == before


@pytest.mark.filterwarnings("default:.*not as heedmap wrote it", "default:.*left alone")
def test_overwriting_a_run_leaves_the_users_files_and_names_them(heedmap, place):
    mine = ["notes.md", "tables/mine.parquet", "tables/weights.safetensors", "extra/mine/x.txt"]
    for name in mine:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine")
    (place / "report.html").write_text("with my remarks")
    done = heedmap(*audited("--seed", "1", "--overwrite"))
    assert done.code == 0, done.err
    assert [name for name in mine if (place / name).read_text() != "mine"] == []
    assert (place / "report.html.changed").read_text() == "with my remarks"
    assert "tables/mine.parquet, tables/weights.safetensors" in done.err
    assert heedmap("report", "run").code == 0


def test_a_first_audit_removes_nothing_of_the_users_tables(heedmap, place):
    shutil.rmtree(place / "tables")
    for name in ("report.html", "findings.json"):
        (place / name).unlink()
    Manifest(place).settle()
    (place / "tables").mkdir()
    (place / "tables" / "mine.parquet").write_text("mine")
    (place / "tables" / "mine.safetensors").write_text("mine")
    assert heedmap("audit", "--run", "run", *AUDIT).code == 0
    assert (place / "tables" / "mine.parquet").read_text() == "mine"
    assert (place / "tables" / "mine.safetensors").read_text() == "mine"


def test_a_table_of_the_users_in_a_tables_place_is_refused_before_anything_is_computed(
    heedmap, place
):
    manifest.remove(place / "tables")
    (place / "tables").mkdir()
    (place / "tables" / "instances.parquet").write_text("mine")
    before = stamped(".")
    done = heedmap("audit", "--run", "run", *AUDIT)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    stopped(done, "run/tables/instances.parquet", "a file")
    assert stamped(".") == before


def test_tables_that_are_a_link_to_a_folder_of_the_users_are_refused(heedmap, place):
    shutil.move(place / "tables", "mine")
    (place / "tables").symlink_to(Path("mine").absolute())
    before = stamped(".")
    for more in (("--seed", "1", "--overwrite"), ("--instances", "8", "--overwrite")):
        done = heedmap(*audited(*more))
        stopped(done, "run/tables", "a link")
    assert stamped(".") == before


def test_a_run_without_its_manifest_is_refused_in_one_line_and_left_alone(heedmap, place):
    (place / "manifest.json").unlink()
    before = stamped(".")
    for command in (
        ("figures", "run", "--list"),
        ("report", "run"),
        ("explain", "run", "good good"),
        ("audit", "--run", "run", *AUDIT),
        audited(),
        audited("--seed", "1", "--overwrite"),
    ):
        done = heedmap(*command)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        stopped(done, "run", "manifest.json", "--out")
    (entry,) = json.loads(heedmap("list", ".", "--json").out)
    assert entry["state"] == "unreadable"
    assert stamped(".") == before


NAMES = [
    *(name for name in RUN_FILES if "." in name),
    "manifest.json", "tables/about.json", "tables/instances.parquet",
]  # fmt: skip
KINDS = [("pipe", name) for name in NAMES]
KINDS += [(kind, "settings.toml") for kind in ("folder", "socket", "broken link")]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_nothing_waits_for_what_is_no_file(heedmap, place, name, kind):
    path = place / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as file:
            file.bind(str(path))
    else:
        path.symlink_to("nowhere")
    assert heedmap("list", ".").code == 0
    for command in (("report", "run"), ("explain", "run", "good good")):
        done = heedmap(*command)
        assert done.code in (0, 2), done.err
        assert "internal error" not in done.err


def test_saving_an_audit_elsewhere_removes_nothing_of_the_users(place, tmp_path):
    result = audit(open_run(place), instances=9, permutations=2)
    folder = tmp_path / "copy"
    result.save(folder)
    (folder / "tables" / "mine.parquet").write_text("mine")
    result.save(folder)
    assert (folder / "tables" / "mine.parquet").read_text() == "mine"
    other = tmp_path / "other" / "tables"
    other.mkdir(parents=True)
    (other / "mine.parquet").write_text("mine")
    with refused("other", "--out"):
        result.save(other.parent)
    assert os.listdir(other) == ["mine.parquet"]


# Kills

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}


def killed_at(step, work, root):
    """Run work in a fork that is killed at one of its file operations; whether it was."""

    def count(event, args):
        nonlocal left
        opens = (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_CREAT)
        )
        if (opens or event in CHANGES) and str(root) in str(args[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    left = step
    child = os.fork()
    if child == 0:
        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def settings(**train):
    return RunSettings.of(
        fingerprint="0",
        data=DataSettings(source="x"),
        model=ModelSettings(),
        train=TrainSettings.of(**train),
    )


def trained(root, wanted, overwrite=False):
    """What a training does with its folder, without the training."""
    with RunFolder.locked(root, wanted) as folder:
        if not holds_another(folder, wanted, overwrite) and is_trained(folder, wanted):
            folder.tidy()
            return
        folder.begin(wanted, resume=not overwrite)
        for epoch in range(2):
            manifest.write(folder.dynamics / f"{epoch}.parquet", f"{epoch} {wanted.train.seed}")
            manifest.write(folder.checkpoint, f"epoch {epoch}")
        tensors = {"weight": torch.full((2,), float(wanted.train.seed))}
        folder.write_settings(wanted)
        write_model(folder, ["a"], ["x", "y"], tensors)
        folder.tidy()


def concluded(root, text):
    """What an audit does with its folder."""
    folder = RunFolder(root)
    folder.manifest.refuse_taken(["report.html", "tables"])
    tables = TableFolder(folder.tables, text)
    if Manifest(root).load().tables != text:
        remove_conclusions(folder)
        clear(folder.tables)
    for name in ("one", "two"):
        if tables.get(name) is None:
            tables.put(name, f"{text} {name}".encode())
    write_conclusions(folder, text, {folder.report.name: text * 2})
    folder.tidy()


WORK = {
    "a first run": lambda root: trained(root, settings(seed=1)),
    "a run over another": lambda root: trained(root, settings(seed=2), overwrite=True),
    "a first audit": lambda root: concluded(root, "a"),
    "another audit": lambda root: concluded(root, "b"),
}
BEFORE = {
    "a first run": [],
    "a run over another": ["a first run", "a first audit"],
    "a first audit": ["a first run"],
    "another audit": ["a first run", "a first audit"],
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each try is a fork")
@pytest.mark.parametrize(
    "what",
    # The others take the same steps, which `test_protocol` kills at every operation, without torch.
    [pytest.param(what, marks=[pytest.mark.exhaustive] * bool(BEFORE[what][1:])) for what in WORK],
)
def test_work_that_is_killed_at_any_file_operation_ends_the_same_when_done_again(tmp_path, what):
    def fresh():
        shutil.rmtree(root, ignore_errors=True)
        if start.exists():
            shutil.copytree(start, root)

    root, start = tmp_path / "root", tmp_path / "start"
    for name in BEFORE[what]:
        WORK[name](root)
    if root.exists():
        shutil.copytree(root, start)
    WORK[what](root)
    whole, step = contents(root), 1
    fresh()
    while killed_at(step, lambda: WORK[what](root), root):
        WORK[what](root)
        assert contents(root) == whole, step
        step += 1
        fresh()
    assert step > 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 0.01", "epsilon = 0.3"),
        ("[train]", "[trained]"),
        ("epochs = 1", "epochs = 9"),
        ('source = "', 'source = "elsewhere/'),
    ],
)
def test_settings_that_were_edited_are_refused(heedmap, place, old, new):
    path = place / "settings.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    commands = [("report", "run"), ("explain", "run", "good good"), ("audit", "--run", "run")]
    for command in commands:
        done = heedmap(*command)
        if command[0] == "explain" and "source" in old:
            assert done.code == 0, "it reads no texts"
        else:
            assert (done.code, done.err.count("\n")) == (2, 1), done.err
            assert "settings.toml" in done.err
            assert "internal error" not in done.err


def test_findings_of_any_shape_do_not_end_the_list_of_all_runs(heedmap, place):
    finding = {"key": "skill", "value": 0.5}
    shapes = [
        [], 1, {}, {"bottom_line": {}, "findings": []}, {"bottom_line": {"answer": 1}, "findings": []},
        {"bottom_line": {"answer": "yes"}, "findings": 7},
        {"bottom_line": {"answer": "yes"}, "findings": [finding, 3]},
        {"bottom_line": {"answer": "yes"}, "findings": [finding | {"value": "x"}]},
        {"bottom_line": [], "findings": {}},
    ]  # fmt: skip
    for shape in shapes:
        manifest.write(place / "findings.json", json.dumps(shape))
        done = heedmap("list", ".", "--json")
        assert done.code == 0, done.err
        (entry,) = json.loads(done.out)
        assert (entry["state"], "findings.json" in entry["why"]) == ("unreadable", True)


def test_a_flipped_bit_in_what_a_result_rests_on_is_noticed(heedmap, place):
    for name in ("training.json", "tables/instances.parquet", "model.safetensors", "findings.json"):
        path = place / name
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        command = ("list", ".") if name == "findings.json" else ("explain", "run", "good good")
        done = heedmap(*command)
        assert done.code == (0 if command[0] == "list" else 2), name
        assert "not as heedmap wrote it" in done.err or "unreadable" in done.out
        path.write_bytes(content)
