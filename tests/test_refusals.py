"""Impossible options: one line each, exit code 2, before anything is computed or written."""

import os
import stat
from pathlib import Path

import pytest
from conftest import QUICK, stamped
from wording import refused

import heedmap as hm
from heedmap.files.storage import refuse_file, refuse_place, refuse_special, write_atomically
from heedmap.settings.audit import AuditSettings
from heedmap.settings.training import TrainSettings

AUDIT = ("audit", "--data", "texts.csv")
TRAIN = ("train", "--data", "texts.csv")
MODEL = ("audit", "--data", "texts.csv", "--model", "none")
TUNE = ("train", "--data", "texts.csv", "--model", "none")
JAIN = ("reproduce", "jain-wallace", "sst", "--data", "texts.csv")
SPARSE = ("reproduce", "drozdyuk", "--data", "texts.csv")
PICTURE = ("picture", "none", "--text", "a text")

TABLE = [
    # seeds: 64 bits of a settings file, and what torch takes
    *((base, "--seed", value) for base in (AUDIT, TRAIN, MODEL, TUNE, PICTURE)
      for value in (-1, 2**63, 2**64, 10**30)),
    # sizes that no memory holds
    *((base, option, value) for base in (AUDIT, TRAIN) for option in ("--hidden-size", "--embedding-size")
      for value in (0, -1, 65_537, 10**9, 10**12, 2**64)),
    (AUDIT, "--hidden-size", 65_536),
    (TRAIN, "--embedding-size", 65_536, "--hidden-size", 65_536),
    *((base, option, value) for base in (AUDIT, TRAIN, TUNE) for option in ("--batch-size", "--epochs")
      for value in (0, -1, 2**31, 10**12, 2**64)),
    *((base, option, value) for base in (AUDIT, MODEL) for option in ("--instances", "--permutations")
      for value in (0, -1, 10**12, 2**64)),
    (AUDIT, "--permutations", 10_001),
    *((MODEL, "--batch-tokens", value) for value in (0, -1, 2**18 + 1, 10**12)),
    *((TUNE, "--max-positions", value) for value in (0, -1, 10**12)),
    *((base, option, value) for base in (AUDIT, MODEL, TRAIN, TUNE) for option in (
          "--max-tokens", "--min-tokens") for value in (0, -1, 10**12)),
    *((base, "--min-df", value) for base in (AUDIT, TRAIN) for value in (0, -1, 10**12)),
    # numbers that are none
    *((base, "--learning-rate", value) for base in (AUDIT, TRAIN, TUNE, SPARSE)
      for value in ("nan", "inf", "-inf", "0", "-1", "many")),
    *((AUDIT, "--epsilon", value) for value in ("nan", "inf", "0", "1", "-0.1", "few")),
    *((SPARSE, "--alpha", value) for value in ("nan", "inf", "0", "1.5", "-1")),
    # words
    *((AUDIT, option, value) for value in ("", "x", "words ")
      for option in ("--encoder", "--score", "--normaliser", "--tokenizer", "--leave-one-out",
                     "--gradient-path", "--gradient-of", "--rules", "--dataset")),
    *((MODEL, option, value) for value in ("", "x")
      for option in ("--head", "--view", "--long-texts", "--dtype", "--layer")),
    *((base, "--data", "") for base in (AUDIT, TRAIN, MODEL, SPARSE, JAIN)),
    *((base, "--model", "") for base in (AUDIT, TRAIN, SPARSE)),
    ((*AUDIT, "--vectors"), ""), (("audit",), "--run", ""), (("report",), ""), (("figures",), ""),
    (("check",), ""), (("check",), "none", "--dtype", "x"), (("picture", "none", "--text"), ""),
    # the text column as label
    (AUDIT, "--text-column", "text", "--label-column", "text"),
    (TRAIN, "--text-column", "label"),
    (MODEL, "--label-column", "text"),
    (AUDIT, "--query-column", "text"),
    *((AUDIT, option, value) for option in ("--text-column", "--label-column") for value in ("", "none")),
    # papers
    *((JAIN, "--seeds", value) for value in (0, -1, 10_001, 10**12)),
    *((JAIN, option, value) for option in ("--train-texts", "--test-texts", "--instances", "--epochs")
      for value in (0, -1, 10**12)),
    *((JAIN, option, value) for option in ("--encoders", "--scores", "--rules") for value in ("", "x", ",")),
    *((SPARSE, option, value) for value in (0, -1, 10**12)
      for option in ("--seeds", "--train-texts", "--test-texts", "--epochs", "--batch-size",
                     "--adversary-epochs", "--max-tokens")),
    *((SPARSE, "--activations", value) for value in ("", ",", "relu", "softmax,softmax")),
    (SPARSE, "--pooling", "last"),
    # names too long for the system
    *((base, "y" * 300) for base in (
        ("report",), ("figures",), ("check",), ("audit", "--run"), (*AUDIT, "--vectors"), ("train", "--data"),
        (*JAIN, "--vectors"), (*AUDIT, "--model"),
    )),
    # figures
    (("figures", "."), "--format", ""), (("figures", "."), "--only", ","),
    # places
    *((base, "--out", value) for base in (AUDIT, TRAIN, MODEL, TUNE, JAIN, SPARSE, ("figures", "."), PICTURE,
                                          ("support",))
      for value in ("", "texts.csv/below", "/dev/null/x", "loop", "pipe/x", "y" * 300, f"no/{'y' * 300}",
                    "/" + "y/" * 2100, "dangling/x")),
    *((base, "--out", value) for base in (AUDIT, TRAIN, MODEL, TUNE, JAIN, SPARSE, ("figures", "."))
      for value in ("texts.csv", "/dev/null", "/dev/zero", "pipe", "dangling")),
    *((base, "--out", value) for base in (PICTURE, ("support",))
      for value in ("/dev/null", "pipe", "folder", ".")),
]  # fmt: skip


@pytest.fixture
def place(csv_file, tmp_path, monkeypatch):
    """The folder of a CSV, with a pipe, links in a circle and one that leads nowhere; the one to work in."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("loop", "pool")
    os.symlink("pool", "loop")
    os.symlink("nowhere", "dangling")
    os.mkdir("folder")
    return tmp_path


@pytest.mark.parametrize(
    "line", TABLE, ids=lambda line: " ".join(map(str, (*line[0], *line[1:])))[:90]
)
def test_what_cannot_be_is_one_line_and_exit_code_2_and_nothing_is_written(heedmap, place, line):
    before = stamped(place)
    done = heedmap(*line[0], *line[1:])
    assert done.code == 2, done.out + done.err
    said = done.err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("heedmap: ")
    assert stamped(place) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("value", [0, 1, 2**32, 2**63 - 1])
def test_every_seed_that_is_allowed_draws(heedmap, csv_file, tmp_path, value):
    quick = (*QUICK, "--instances", "4", "--permutations", "2")
    done = heedmap("audit", "--data", csv_file, "--out", tmp_path / "run", *quick, "--seed", value)
    assert done.code == 0, done.err
    assert hm.open_audit(tmp_path / "run").settings.audit.seed == value


def test_the_library_refuses_the_same():
    for settings, values in (
        (TrainSettings, {"seed": 2**64}), (TrainSettings, {"learning_rate": float("inf")}),
        (AuditSettings, {"epsilon": float("nan")}), (AuditSettings, {"permutations": 10**9}),
    ):  # fmt: skip
        ((name, value),) = values.items()
        with refused(f"{name} = {value}"):
            settings.of(**values)


def test_a_folder_can_be_where_nothing_is_or_an_empty_one(tmp_path):
    for name in ("new", "new/below", "caf\udce9", "a" * 200):
        refuse_file(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path)
    refuse_file(tmp_path / "link")
    refuse_file(tmp_path / "link" / "x")
    assert list(tmp_path.iterdir()) == [tmp_path / "link"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with refused("read-only"):
        refuse_file(tmp_path / "run")


def test_a_device_or_a_pipe_is_never_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with refused(path, "name of a file"):
            write_atomically(path, "text")
        with refused(path, "name of a file"):
            refuse_special(path)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_atomically(tmp_path / "plain", "a")
    write_atomically(tmp_path / "plain", "b")
    assert (tmp_path / "plain").read_text() == "b"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_folder_in_which_nothing_can_be_made_is_refused():
    for place in ("/proc/run", "/proc/run/below"):
        with refused("/proc/run: the folder cannot be made", "--out"):
            refuse_place(Path(place))
