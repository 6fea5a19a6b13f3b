"""Output to a terminal or pipe: any encoding, one line per message, and no control sequences."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import QUICK, WORDS, small_corpus
from rich.cells import cell_len
from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table

import heedmap as hm
from heedmap.data.corpus import Corpus
from heedmap.runs.train import train
from heedmap.terminal.displays import TerminalBar
from heedmap.terminal.output import cell, lenient, printable, show

SLOW = pytest.mark.slow
ONE_AND_OTHER = ["ascii", pytest.param("cp1252", marks=pytest.mark.exhaustive)]

# What a label, a column, a file or a folder may be called.
HOSTILE = {
    "escape": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "bell": "ding\x07dong",
    "line break": "one\nheedmap: forged line",
    "carriage return": "one\rheedmap: forged line",
    "other line ends": "one\x0b\x0c\x85\u2028\u2029two",
    "right to left": "cod\u202egnp.\u2066exe\u2069",
    "second control set": "a\x9b31mb\x84",
    "delete": "a\x7f\x08b",
    "markup": "[/nope][red]x[/red][link=http://x]y[/link]",
    "emoji code": ":smiley:",
    "undecodable": "caf\udce9",
    "other writing": "naïve 中文 🙂",
}
ACTS = [
    chr(i) for i in (*range(10), *range(11, 32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0x2066)
]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_printable_text_is_one_line_that_does_nothing(text):
    said = printable(text)
    assert len(said.splitlines()) == 1
    assert not any(mark in said for mark in ACTS)
    said.encode("utf-8")  # no half characters


def test_what_is_harmless_stays_as_it_is():
    for text in ("", "a plain label", "naïve 中文 🙂", "a\u200db", "[x]", "τ = 0.4 – −1"):
        assert printable(text) == text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_cell_is_shown_as_it_is_written(text):
    file = io.StringIO()
    Console(file=file, width=200).print(cell(text))
    assert file.getvalue() == printable(text) + "\n"


def streams(monkeypatch, encoding):
    """Standard output and error of an encoding, as a pipe has them; strict."""
    pipes = []
    for name in ("stdout", "stderr"):
        pipe = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
        monkeypatch.setattr(sys, name, pipe)
        pipes.append(pipe)
    return pipes


def written(pipe):
    pipe.flush()
    return pipe.buffer.getvalue().decode(pipe.encoding)


ENCODINGS = ("ascii", "cp1252", "cp437", "utf-8")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_minus_stays_a_minus_and_the_rest_is_written_out(monkeypatch, encoding):
    out, _ = streams(monkeypatch, encoding)
    show(cell("τ −0.41 “中”"), width=80)
    said = written(out)
    if encoding == "utf-8":
        assert said == "τ −0.41 “中”\n"
    else:
        assert "-0.41" in said
        assert "\\u4e2d" in said
    assert out.errors == "strict"  # the caller's stream is as it was


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_frame_is_straight_whatever_the_encoding_lacks(monkeypatch, encoding):
    out, _ = streams(monkeypatch, encoding)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(cell("Σ τ ≤ ε → …"), cell("中 “naïve” · ½"))
    show(Panel(Group(grid, Rule(), cell("σ ≤ … ε " * 20))), width=60)
    lines = written(out).splitlines()
    assert {cell_len(line) for line in lines} == {60}
    if encoding != "utf-8":
        assert lines[0] == "+" + 58 * "-" + "+"
        assert "\\u25" not in written(out)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """An audited run whose classes and folder have every hostile name."""
    base = small_corpus(classes=4)
    names = ["".join(v for v in HOSTILE.values() if "\udce9" not in v), *list(HOSTILE.values())[:3]]
    corpus = Corpus(
        HOSTILE["escape"], names, base.splits, base.settings, {HOSTILE["line break"]: 3}
    )
    folder = (
        tmp_path_factory.mktemp("runs") / f"{HOSTILE['line break']}{HOSTILE['undecodable']}[nope]中"
    )
    run = train(
        corpus, encoder="average", embedding_size=8, hidden_size=8, epochs=1, min_df=1, out=folder
    )
    hm.audit(run, permutations=5)
    return folder


@SLOW
@pytest.mark.parametrize("encoding", ONE_AND_OTHER)
@pytest.mark.parametrize(
    "arguments", [("report",), ("list",), ("figures", "--list"), ("audit", "--run")]
)
def test_every_command_that_prints_a_run_prints_it_on_any_pipe(
    heedmap_raw, monkeypatch, hostile_run, encoding, arguments
):
    out, err = streams(monkeypatch, encoding)
    code = heedmap_raw(*arguments, hostile_run)
    said, errors = written(out), written(err)
    if arguments[0] == "audit":  # the corpus of the run is no file
        assert code == 2
        assert len(errors.splitlines()) == 1
    else:
        assert (code, errors) == (0, "")
        assert said
    for text in (said, errors):
        assert not any(mark in text for mark in ACTS)
        assert not any(line.startswith("heedmap: forged") for line in text.splitlines())


@pytest.fixture
def heedmap_raw(monkeypatch):
    """The command in this process, its streams left to the test; its exit code."""
    from heedmap import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["heedmap", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as stop:
            return stop.code or 0
        return 0

    return run


@SLOW
@pytest.mark.parametrize("encoding", ONE_AND_OTHER)
def test_the_card_is_shown_from_python_on_any_pipe(monkeypatch, hostile_run, encoding):
    audit = hm.open_audit(hostile_run)
    out, _ = streams(monkeypatch, encoding)
    audit.show()
    said = written(out)
    assert "Should you heed the heat map?" in said
    assert not any(mark in said for mark in ACTS)


@SLOW
@pytest.mark.parametrize("encoding", ONE_AND_OTHER)
def test_a_process_whose_pipe_lacks_most_characters_prints_the_card_whole(hostile_run, encoding):
    command = [sys.executable, "-c", "from heedmap.cli import main; main()", "report", hostile_run]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        command, env=environment, capture_output=True, encoding=encoding, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    card = [line for line in done.stdout.splitlines() if line[0] in "+|"]
    assert {len(line) for line in card} == {80}
    assert sum("for comparison" in line for line in card) > 10
    assert "\\u25" not in done.stdout


@SLOW
def test_a_folder_with_an_undecodable_name_is_reported_and_read_again(hostile_run):
    about = json.loads((hostile_run / "findings.json").read_text(encoding="utf-8"))["about"]
    assert about["name"] == hostile_run.name
    assert hm.open_audit(hostile_run).about["name"] == hostile_run.name


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("arguments", [
    ("audit", "--data", "{}.csv"), ("audit", "--run", "{}"), ("report", "{}"), ("figures", "{}"),
    ("train", "--data", "reviews", "--vectors", "{}"), ("train", "--data", "reviews", "--encoder", "{}"),
    ("reproduce", "jain-wallace", "{}"), ("reproduce", "drozdyuk", "{}"), ("--{}",), ("{}",), ("audit", "--{}"),
])  # fmt: skip
def test_what_a_user_typed_comes_back_in_one_harmless_line(
    heedmap, tmp_path, monkeypatch, text, arguments
):
    monkeypatch.chdir(tmp_path)
    done = heedmap(*(part.format(text) for part in arguments))
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("heedmap: ")
    assert not any(mark in done.err for mark in ACTS)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_list_shows_folders_of_any_name(heedmap, tmp_path, text):
    folder = tmp_path / text
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text("no = settings\x1b[31m [/nope]")
    done = heedmap("list", tmp_path)
    assert done.code == 0, done.err
    assert not any(mark in done.out for mark in ACTS)
    assert len([line for line in done.out.splitlines() if line.startswith("heedmap:")]) == 0


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_names_of_columns_and_labels_come_back_in_one_harmless_line(
    heedmap, tmp_path, monkeypatch, text
):
    text = text.replace("\udce9", "é")
    rows = [{text: f"{WORDS[i % 9]} x", "what": text} for i in range(40)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    for columns in ((), ("--text-column", text, "--label-column", "what")):
        done = heedmap("audit", "--data", "rows.jsonl", *columns, *QUICK)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert not any(mark in done.err for mark in ACTS)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_warning_is_one_harmless_line(heedmap_raw, monkeypatch, text):
    import warnings

    def warns(root):
        warnings.warn(text, stacklevel=1)
        return []

    monkeypatch.setattr("heedmap.runs.listing.list_runs", warns)
    _, err = streams(monkeypatch, "ascii")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert heedmap_raw("list") == 0
    said = written(err)
    assert said.startswith("heedmap: note: ")
    assert len(said.splitlines()) == 1
    assert not any(mark in said for mark in ACTS)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_bar_shows_a_description_as_it_is_written(monkeypatch, text):
    _, err = streams(monkeypatch, "utf-8")
    monkeypatch.setattr(err, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    bar = TerminalBar("training")
    bar.move(0.5, text, 3.0)
    bar.end()
    assert printable(text) in written(err)


def process(*arguments, within=None, **environment):
    return subprocess.run(
        [sys.executable, "-c", "from heedmap.cli import main; main()", *arguments],
        capture_output=True, check=False, env={**os.environ, **environment}, cwd=within,
    )  # fmt: skip


@pytest.mark.parametrize("environment", [
    pytest.param({"PYTHONIOENCODING": "cp1252"}, marks=pytest.mark.exhaustive),
    pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.exhaustive),
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
])  # fmt: skip
def test_a_process_of_a_poor_locale_lists_and_refuses(tmp_path, environment):
    folder = tmp_path / "中 [/nope]"  # a folder "[" with a folder "nope]" in it
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text("version = 1")
    # By a short path: the table folds a long one in the middle of a character's name.
    done = process("list", ".", within=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    # Where the locale is ASCII, what the user typed are bytes that it cannot decode.
    bytes_ = b"\\udce4\\udcb8\\udcad"
    assert b"\\u4e2d" in done.stdout or bytes_ in done.stdout
    done = process("report", str(tmp_path / "nowhere−中"), **environment)
    assert done.returncode == 2
    assert b"nowhere-\\u4e2d: no run" in done.stderr or bytes_ + b": no run" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@SLOW
def test_the_whole_road_in_a_process_that_cannot_write_a_minus(tmp_path, csv_file):
    arguments = ("audit", "--data", str(csv_file), "--out", str(tmp_path / "run"), *QUICK)
    done = process(*arguments, PYTHONIOENCODING="cp1252")
    assert done.returncode == 0, done.stderr
    assert b"Should you heed the heat map?" in done.stdout


def test_a_closed_pipe_ends_quietly(tmp_path):
    for i in range(50):
        (tmp_path / f"run-{i}").mkdir()
        (tmp_path / f"run-{i}" / "settings.toml").write_text("version = 1")
    for arguments in (f"list {tmp_path}", "--help", "reproduce jain-wallace"):
        line = (
            f"{sys.executable} -c 'from heedmap.cli import main; main()' {arguments}"
            "; echo code $? >&2"
        )
        done = subprocess.run(
            ["bash", "-c", f"({line}) | head -c 0"], capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert done.stdout == ""


def test_lenient_leaves_streams_alone_that_cannot_be_changed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", None)
    with lenient():
        show(cell("τ"))
    assert sys.stdout.getvalue() == "τ\n"


def test_random_text_is_always_one_line_and_can_always_be_written():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        text = "".join(map(chr, rng.integers(0, 0x11000, 12)))
        said = printable(text)
        assert len(said.splitlines()) <= 1
        said.encode("utf-8")
        assert printable(said) == said


@pytest.mark.parametrize("command", ["audit", "train", "calibrate"])
def test_a_file_that_is_given_without_its_option_is_told_of_it(heedmap, csv_file, command):
    done = heedmap(command, csv_file)
    assert (done.code, done.out) == (2, "")
    assert f"did you mean --data {csv_file}?" in done.err
    assert done.err.count("\n") == 1


def test_a_folder_without_its_option_is_told_of_the_option_that_fits(heedmap, tmp_path):
    for file, option in (("settings.toml", "--run"), ("config.json", "--model")):
        folder = tmp_path / option
        folder.mkdir()
        (folder / file).write_text("")
        assert f"did you mean {option} {folder}?" in heedmap("audit", folder).err


def test_a_note_in_python_shows_no_line_of_the_callers_source(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import heedmap as hm\n"
        "hm.load(['a b', 'a b', 'c d'] * 6, ['x', 'x', 'y'] * 6)  # the caller's line\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "Note: " in done.stderr
    assert "the caller's line" not in done.stderr
    assert all("Note: " in line for line in done.stderr.splitlines())


def test_a_start_that_is_slow_is_said_unless_a_machine_reads_or_nobody():
    for more, said in (((), True), (("--json",), False), (("--quiet",), False)):
        command = [sys.executable, "-m", "heedmap", "explain", "no-such-model/name", "a", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert ("starting" in done.stderr) == said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
@pytest.mark.parametrize("redirected", [">&-", "> /dev/full", "| (exec <&-; sleep 5)"])
@pytest.mark.parametrize(
    "asked", ["-m heedmap --help", "-m heedmap", "-m heedmap reproduce", "card.py list"]
)
def test_without_a_place_to_print_a_command_ends_in_one_line_and_code_2(
    tmp_path, redirected, asked
):
    (tmp_path / "card.py").write_text(
        "from heedmap.cli import main\n"
        "from heedmap.runs import listing\n"
        "from heedmap.terminal.output import show\n"
        "listing.list_runs = lambda root: show('a card')\n"
        "main()\n"
    )
    command = f"{sys.executable} {asked}"
    script = f"sleep 1 | {command} {redirected}; exit ${{PIPESTATUS[1]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    said = done.stderr.splitlines()
    assert done.returncode == 2, said
    assert [line for line in said if "starting" not in line] == said[-1:]
    assert said[-1].startswith("heedmap: standard output ")


@pytest.mark.parametrize(("asked", "limit"), [("report runs/a", 0.9), ("check model", 0.5)])
def test_a_limit_of_memory_in_which_nothing_loads_is_one_line_at_once(tmp_path, asked, limit):
    script = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, 2 * (int({limit}e9),))\n"
        "from heedmap.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *asked.split()],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        f"heedmap: expected a limit of virtual memory of 3 GB at least, got {limit} GB; raise it (ulimit -v)\n"
    )
