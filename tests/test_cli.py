import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from conftest import QUICK, WORDS
from wording import refused, stopped

import heedmap as hm
from heedmap.files import storage

SLOW = pytest.mark.slow


def command(*arguments, **options):
    """The installed command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from heedmap.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def finish(process):
    """Exit code and what it said on stderr; its pipes are closed."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def test_help_names_every_command(heedmap):
    done = heedmap("--help")
    assert done.code == 0
    for name in ("audit", "train", "report", "list"):
        assert name in done.out


def test_help_does_not_wait_for_torch():
    code = "import sys; sys.argv = ['heedmap', '--help']\nfrom heedmap.cli import main\nmain()\n"
    check = (
        "import atexit, sys\natexit.register(lambda: print(sorted(sys.modules), file=sys.stderr))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", check + code], capture_output=True, text=True, check=True
    )
    for heavy in ("'torch'", "'datasets'", "'scipy'", "'altair'", "'pandas'", "'pyarrow'"):
        assert heavy not in done.stderr


def test_a_command_sets_its_process_up_and_restores_it_for_who_called_it(heedmap, monkeypatch):
    usual = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32", "LRU_CACHE_CAPACITY": "256"}
    seen = []

    def list_seen(*_, **__):
        seen.append(({n: os.environ[n] for n in usual}, signal.getsignal(signal.SIGTERM)))

    monkeypatch.setattr(sys.modules["heedmap.cli.main"], "app", list_seen)
    handler = signal.getsignal(signal.SIGTERM)
    for name in usual:
        monkeypatch.delenv(name, raising=False)
    assert heedmap("list").code == 0
    assert seen[-1][0] == usual
    assert seen[-1][1] != handler
    assert not set(usual) & set(os.environ)
    for name in usual:
        monkeypatch.setenv(name, "7")
    assert heedmap("list").code == 0
    assert set(seen[-1][0].values()) == {os.environ[name] for name in usual} == {"7"}
    assert signal.getsignal(signal.SIGTERM) == handler
    monkeypatch.undo()  # the real commands again, of which this one ends in an error
    before = {name: os.environ.get(name) for name in usual}
    assert heedmap("no-such-command").code == 2
    assert signal.getsignal(signal.SIGTERM) == handler
    assert {name: os.environ.get(name) for name in usual} == before


def test_one_command_goes_from_a_file_to_a_card_and_a_report(heedmap, csv_file, tmp_path):
    done = heedmap("audit", "--data", csv_file, "--out", tmp_path / "run", *QUICK)
    assert done.code == 0, done.err
    assert "Should you heed the heat map?" in done.out
    assert str(tmp_path / "run" / "report.html") in done.out
    files = {
        p.relative_to(tmp_path / "run").as_posix()
        for p in (tmp_path / "run").rglob("*")
        if p.is_file()
    }
    assert files == {
        "settings.toml", "vocabulary.json", "model.safetensors", "training.json",
        "findings.json", "report.html",
        *(f"tables/{name}.parquet" for name in (
            "instances", "relevance", "gradient", "leave_one_out", "integrated_gradients", "highlights",
            "importance_mass", "agreement", "baselines", "opposing_mass", "permutation", "erasure",
            "decision_flips", "class_erasure", "eraser", "adversary", "smallest_change", "alternatives",
            "better_maps",
        )), "tables/about.json", "manifest.json",
    }  # fmt: skip
    findings = json.loads((tmp_path / "run" / "findings.json").read_text())["findings"]
    assert [f["key"] for f in findings][:3] == ["skill", "needed", "sufficient"]


def test_train_audit_report_and_list_walk_the_same_road(heedmap, csv_file, tmp_path):
    run = tmp_path / "runs" / "mine"
    trained = heedmap("train", "--data", csv_file, "--out", run, *QUICK)
    assert "epoch 1 is best on dev" in trained.out
    assert "trained" in heedmap("list", tmp_path / "runs").out
    card = heedmap("audit", "--run", run)
    assert card.code == 0, card.err
    (line,) = heedmap("list", tmp_path / "runs").out.splitlines()[1:]
    assert str(run) in line.split(), "a path is whole, to be copied"
    answer = json.loads((run / "findings.json").read_text())["bottom_line"]["answer"]
    assert re.search(rf"\b{answer}\b", line)
    assert re.search(r"\b[01]\.\d{3}\b", line), "how accurate"
    # The audit prints the head of the card, and the report all of it.
    head, whole = card.out.splitlines(), heedmap("report", run).out.splitlines()
    assert head[-1] == f"The whole card: heedmap report {run}"
    counted = next(i for i, text in enumerate(head) if "questions for comparison" in text)
    assert whole[:counted] == head[:counted]
    short, long = (" ".join(" ".join(text).replace("│", " ").split()) for text in (head, whole))
    for finding in json.loads((run / "findings.json").read_text())["findings"]:
        assert finding["question"] in long
        assert finding["question"] not in short


def test_list_of_nothing_says_how_to_begin(heedmap, tmp_path):
    done = heedmap("list", tmp_path)
    assert done.code == 0
    assert "heedmap audit --data reviews" in done.out
    nowhere = heedmap("list", tmp_path / "nix")
    stopped(nowhere, tmp_path / "nix")


def test_a_text_that_begins_with_a_minus_is_answered_with_how_to_give_it(heedmap):
    for text in ("-wackelig", "-5 degrees", "- dull"):
        done = heedmap("explain", "runs/none", text)
        stopped(done, "--", "a minus", "heedmap explain --help")


def test_the_default_run_folder_is_named_after_the_settings(
    heedmap, csv_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    heedmap("train", "--data", csv_file, *QUICK)
    assert Path("runs/texts-average-additive-softmax-0/model.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["audit"], ["--data", "--model", "--run"]),
        (["train"], ["--data", "reviews"]),
        (["audit", "--data", "missing.csv"], ["missing.csv", ".jsonl"]),
        (
            ["audit", "--data", "reviews", "--encoder", "rnn"],
            ["--encoder", "lstm, cnn, average, gru, small-cnn, mlp or none", "'rnn'", "cnn?"],
        ),
        (["audit", "--data", "reviews", "--epochs", "0"], ["epochs = 0", "1"]),
        (["audit", "--data", "reviews", "--epochs", "many"], ["--epochs", "heedmap audit --help"]),
        (["audit", "--data", "reviews", "--vectors", "none.txt", "--out", "v"], ["none.txt"]),
        (["audit", "--nonsense"], ["--nonsense", "`heedmap audit --help`"]),
        (["report"], ["'folder'", "`heedmap report --help`"]),
        (["audit", "--run", "nowhere"], ["nowhere", "settings.toml", "heedmap list"]),
        (["report", "nowhere"], ["nowhere", "settings.toml", "heedmap list"]),
        (["dance"], ["'dance'", "`heedmap --help`"]),
    ],
)
def test_bad_options_are_one_clear_line_and_exit_code_2(
    heedmap, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.chdir(tmp_path)
    done = heedmap(*arguments)
    stopped(done, *named)
    assert done.err.startswith("heedmap: ")
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("*.toml")), "nothing half-written"


@pytest.mark.parametrize("arguments", [[], ["reproduce"]])
def test_without_a_command_the_help_is_shown(heedmap, arguments):
    done = heedmap(*arguments)
    assert done.code == 0
    assert done.out.startswith("Usage: heedmap")
    assert not done.err


def test_bad_settings_of_the_audit_are_found_before_the_training(heedmap, csv_file, tmp_path):
    done = heedmap("audit", "--data", csv_file, "--out", tmp_path / "run", "--epsilon", "2", *QUICK)
    stopped(done, "epsilon = 2.0", "1")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["audit", "train"])
def test_bad_settings_of_the_training_are_found_before_the_texts_are_read(
    heedmap, tmp_path, command
):
    unreadable = tmp_path / "texts.csv"
    unreadable.write_text("")
    done = heedmap(command, "--data", unreadable, "--out", tmp_path / "run", "--epochs", "0")
    stopped(done, "epochs = 0", "1")
    done = heedmap(command, "--data", unreadable, "--out", tmp_path / "run", "--hidden-size", "0")
    stopped(done, "hidden_size = 0", "4")


def test_other_settings_are_refused_with_the_difference(heedmap, csv_file, tmp_path):
    heedmap("train", "--data", csv_file, "--out", tmp_path / "run", *QUICK)
    done = heedmap("audit", "--data", csv_file, "--out", tmp_path / "run", *QUICK, "--seed", 1)
    stopped(done, "train.seed: 0 -> 1", "--overwrite")
    assert heedmap(
        "audit", "--data", csv_file, "--out", tmp_path / "run", *QUICK, "--seed", 1, "--overwrite"
    ).code == 0  # fmt: skip


def test_another_audit_of_the_same_model_is_refused_unless_insisted_on(heedmap, csv_file, tmp_path):
    asked = ("audit", "--data", csv_file, "--out", tmp_path / "run", *QUICK, "--instances")
    assert heedmap(*asked, 9).code == 0
    done = heedmap(*asked, 5)
    stopped(done, "audit.instances: 9 -> 5", "--overwrite")
    done = heedmap(*asked, 5, "--overwrite")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "run" / "findings.json").read_text())["about"]["audited"] == 5


@pytest.mark.filterwarnings("ignore:.*HTML in 60 of 60 texts")
def test_tags_in_a_text_are_text_in_the_report(heedmap, tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = [
        {
            "text": f"<script>alert({i})</script> <b>{WORDS[i % 7]}</b> fine & well {i % 2}",
            "label": i % 2,
        }
        for i in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = heedmap(
        "audit", "--data", path, "--tokenizer", "spaces", "--out", tmp_path / "run", *QUICK
    )
    assert done.code == 0, done.err
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_an_unexpected_error_is_one_line_without_a_traceback(heedmap, monkeypatch):
    def broken(root):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("heedmap.runs.listing.list_runs", broken)
    done = heedmap("list")
    assert done.code == 1
    assert done.err.startswith("heedmap: internal error (ZeroDivisionError: oh)")
    assert len(done.err.splitlines()) == 1


def test_a_full_disk_is_one_line_and_the_old_result_survives(
    heedmap, csv_file, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    heedmap("audit", "--data", csv_file, "--out", run, *QUICK)
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("heedmap.files.storage.os.fsync", full)
    done = heedmap("report", run)
    assert done.code == 2
    assert "No space left on device" in done.err
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


def test_the_library_raises_what_the_command_prints(tmp_path):
    with refused("settings.toml", "heedmap list"):
        hm.open_run(tmp_path)


@pytest.fixture
def big_csv(tmp_path):
    path = tmp_path / "big.csv"
    words = [" ".join(WORDS[(i * k) % 40] for k in range(1, 25)) for i in range(3000)]
    # One label in nine is wrong: a dev score of 1 would end the training before it can be interrupted.
    lines = [
        f"{'good' if i % 2 else 'bad'} {words[i]},{(i + (i % 9 == 0)) % 2}" for i in range(3000)
    ]
    lines.insert(0, "text,label")
    path.write_text("\n".join(lines) + "\n")
    return path


def wait_for(path, process, seconds=120):
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.02)


@SLOW
@pytest.mark.parametrize(
    ("number", "exit_code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        pytest.param(signal.SIGTERM, 143, "terminated", marks=pytest.mark.exhaustive),
    ],
)
def test_a_signal_keeps_what_is_done_and_the_same_command_goes_on(
    tmp_path, big_csv, number, exit_code, said
):
    run = tmp_path / "run"
    arguments = ("train", "--data", big_csv, "--out", run, "--epochs", "5", "--hidden-size", "16")
    process = command(*arguments)
    wait_for(run / "checkpoint.safetensors", process)
    process.send_signal(number)
    code, err = finish(process)
    assert code == exit_code, err
    assert f"{said}; run the same command again to resume" in err
    assert "Traceback" not in err
    assert not list(run.glob(".*")), "no half-written file"
    code, err = finish(command(*arguments))
    assert code == 0, err
    whole = command(*arguments[:3], "--out", tmp_path / "whole", *arguments[5:])
    assert finish(whole)[0] == 0
    assert (run / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


@pytest.mark.exhaustive
@SLOW
def test_an_audit_killed_in_the_middle_goes_on_to_the_same_tables(tmp_path, big_csv):
    run = tmp_path / "run"
    options = ("--epochs", "1", "--hidden-size", "16", "--embedding-size", "16")
    assert finish(command("train", "--data", big_csv, "--out", run, *options))[0] == 0
    shutil.copytree(run, tmp_path / "whole")
    few = ("--instances", "60", "--permutations", "10")
    process = command("audit", "--run", run, *few)
    wait_for(run / "tables" / "leave_one_out.parquet", process)  # then the gradient is listed too
    process.kill()
    finish(process)
    kept = (run / "tables" / "gradient.parquet").stat().st_mtime_ns
    for folder in (run, tmp_path / "whole"):
        code, err = finish(command("audit", "--run", folder, *few))
        assert code == 0, err
    assert (run / "tables" / "gradient.parquet").stat().st_mtime_ns == kept
    for path in sorted((run / "tables").glob("*.parquet")):
        assert path.read_bytes() == (tmp_path / "whole" / "tables" / path.name).read_bytes()


@SLOW
def test_a_really_full_disk_keeps_the_old_result(tmp_path, csv_file):
    run = tmp_path / "run"
    assert finish(command("audit", "--data", csv_file, "--out", run, *QUICK))[0] == 0
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    limit = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "from heedmap.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", limit, "report", str(run)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    changed = [p for p, content in before.items() if p.read_bytes() != content]
    assert [p.name for p in changed] in ([], ["findings.json"])
    assert not [p for p in run.rglob(".*") if p.is_file()]


@SLOW
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_fills_up_while_training_is_one_clear_line(tmp_path, csv_file):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        code, err = finish(
            command("train", "--data", csv_file, "--out", disk / "run", "--epochs", "1")
        )
        assert code == 2
        *progress, last = err.splitlines()
        assert "No space left on device" in last
        assert all(
            " training: " in line or line.endswith(" starting") or " reading " in line
            for line in progress
        ), progress
        assert not [p for p in disk.rglob(".*") if p.is_file()]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


COMMANDS = ("audit", "train", "retrain", "report", "list", "calibrate", "check", "support", "picture",
            "figures", "eraser", "reproduce snell", "reproduce jain-wallace")  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_short_help_that_fits_and_ends_with_examples(
    heedmap, monkeypatch, command
):
    monkeypatch.setenv("COLUMNS", "80")
    done = heedmap(*command.split(), "-h")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "-q, --quiet" in done.out
    if not command.startswith("reproduce"):
        assert f"Examples:\n  heedmap {command}" in done.out
    assert heedmap(*command.split(), "-V").out == heedmap("--version").out


def test_the_help_has_the_options_in_groups_with_their_choices(heedmap):
    text = heedmap("audit", "--help").out
    heads = [line[:-1] for line in text.splitlines() if re.match(r"[A-Z][a-z ]+:$", line)]
    assert heads == [
        "Options", "Data", "Model", "Training", "Transformer", "Audit", "General", "Examples", "What is asked",
    ]  # fmt: skip
    assert "--encoder [lstm|cnn|average|gru|small-cnn|mlp|none]" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["audt"], "No such command 'audt'. Did you mean 'audit'? See `heedmap --help`"),
        (["train", "--data", "reviews", "--encoder", "ltsm"], "did you mean lstm? See"),
        (["check", "x", "--dtype", "float23"], "expected float32, bfloat16 or float16, got"),
        (
            ["explain", "x", "-5 stars"],
            "No such option: -5; put -- before a text that",
        ),
        (
            ["explain", "x", "--jsn"],
            "No such option: --jsn (Possible options: --json); see `heedmap explain",
        ),
        (["reproduce", "snel"], "Did you mean 'snell'?"),
    ],
)
def test_what_was_misspelt_is_told_with_the_nearest(heedmap, arguments, expected):
    done = heedmap(*arguments)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert expected in done.err


def _refuse_writing(monkeypatch, folder):
    """Answer as a folder without the right to write does, which root has everywhere."""

    def without_right(path, mode):
        return not (mode & os.W_OK and Path(path).is_relative_to(folder))

    def denied(path, *rest, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "access", without_right)
    monkeypatch.setattr(storage, "_without_links", denied)


@pytest.mark.slow
def test_json_is_all_that_is_printed_and_holds_the_answer(heedmap, csv_file, tmp_path, monkeypatch):
    run = tmp_path / "runs" / "mine"
    said = heedmap("audit", "--data", csv_file, "--out", run, *QUICK, "--json")
    assert said.code == 0, said.err

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(said.out, parse_constant=refuse)
    parts = ["schema_version", "bottom_line", "about", "findings", "rates"]
    assert list(found) == ["folder", "report", *parts]
    assert found["bottom_line"]["answer"] in ("yes", "no", "cannot tell")
    assert json.loads(heedmap("report", run, "--json").out) == found
    _refuse_writing(monkeypatch, run)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        reported = heedmap("report", run, "--json")
    assert json.loads(reported.out) == found
    assert "read-only" in reported.err
    monkeypatch.undo()
    (listed,) = json.loads(heedmap("list", tmp_path, "--json").out)
    assert (listed["folder"], listed["state"]) == (str(run), "audited")
    assert listed["answer"] == found["bottom_line"]["answer"]
    (run / "findings.json").write_text("{")
    assert "unreadable" in heedmap("list", tmp_path).out
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        reported = heedmap("report", run)
    assert reported.code == 0
    assert "kept as findings.json.changed" in reported.err
    assert "unreadable" not in heedmap("list", tmp_path).out


def test_a_list_names_calibrations_and_reproductions_too(heedmap, tmp_path):
    for name, mark in (("one", "calibration.md"), ("two", "result.md")):
        (tmp_path / name).mkdir()
        (tmp_path / name / mark).touch()
    kinds = [line.split()[1] for line in heedmap("list", tmp_path).out.splitlines()[1:]]
    assert kinds == ["calibration", "reproduction"]


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "heedmap", "-V"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"heedmap {hm.__version__}\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("heedmap cal", ["calibrate"]),
        ("heedmap train --encoder c", ["cnn"]),
        ("heedmap reproduce s", ["serrano-smith", "snell", "survey"]),
    ],
)
def test_the_shell_completes_commands_options_and_choices(heedmap, monkeypatch, words, completed):
    monkeypatch.setenv("_HEEDMAP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert heedmap().out.split() == completed
