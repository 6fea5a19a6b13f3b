"""Kill a command at one of its file operations and run it again: a program, run by `test_kills.py`.

    python killing.py ROOT < jobs.json > result.json

A job: {"name", "before": [command, ...], "command": [...], "every"}. Each run starts in a fresh folder with
the commands before. The first, uninterrupted, gives the files that all others must end with. The others kill
the command at every so many operations, the middle one first, and run it again. A command is a fork of this
process, which has imported what all of them import and computed nothing.

`kill_points` says what an operation is.
"""

import importlib
import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

from kill_points import Counter, tree

ROOT = Path(sys.argv[1])


def run(command, fatal=None, report=None):
    """The exit code of a command in a process of its own, negative where it was killed; and what it said."""
    said = ROOT.with_name(f"{ROOT.name}.said")
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), said.read_text(errors="replace")
    code = 70
    try:
        os.chdir(ROOT)
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        counter = Counter(ROOT, fatal)
        counter.install()
        code = call(command)
        if report is not None:
            count = counter.count
            report.write_text(json.dumps([count, sorted(sys.modules)]))
    finally:
        os._exit(code)


def call(command):
    from heedmap import cli

    sys.argv = ["heedmap", *command]
    try:
        cli.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def draw():
    """Let altair fill its caches, which is most of what a page takes."""
    import altair

    places = {"x": "a:Q", "y": "b:Q", "color": "c:N", "tooltip": ["a:Q"], "column": "d:N"}
    altair.Chart(altair.Data(values=[])).mark_bar().encode(**places).to_dict()


def fresh(start):
    """ROOT as it was before the command."""
    shutil.rmtree(ROOT, ignore_errors=True)
    shutil.copytree(start, ROOT)


class States:
    """Copies of ROOT after uninterrupted commands, each sequence run once and kept beside ROOT."""

    def __init__(self):
        self.kept = {(): (ROOT.with_name(f"{ROOT.name}.0"), 0)}
        shutil.copytree(ROOT, self.kept[()][0])

    def after(self, *commands):
        """The copy, and how many operations the last of the commands made."""
        if commands not in self.kept:
            start, _ = self.after(*commands[:-1])
            fresh(start)
            report = ROOT.with_name(f"{ROOT.name}.count")
            code, said = run(commands[-1], report=report)
            assert code == 0, said
            count, modules = json.loads(report.read_text())
            prepare(modules)
            copy = ROOT.with_name(f"{ROOT.name}.{len(self.kept)}")
            shutil.copytree(ROOT, copy)
            self.kept[commands] = copy, count
        return self.kept[commands]


def prepare(modules):
    """Import what a command imported, so that no later fork waits for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            try:
                importlib.import_module(name)
            except Exception:
                continue
        draw()


def main():
    jobs = json.load(sys.stdin)
    states, result = States(), {}
    for job in jobs:
        before, command = tuple(map(tuple, job["before"])), tuple(job["command"])
        start, _ = states.after(*before)
        end, count = states.after(*before, command)
        whole, wrong, kills = tree(end), [], 0
        for fatal in range((job["every"] + 1) // 2, count + 1, job["every"]):
            fresh(start)
            code, said = run(command, fatal)
            kills += code == -signal.SIGKILL
            code, said = run(command)
            found = tree(ROOT)
            changed = sorted(k for k in whole.keys() | found.keys() if whole.get(k) != found.get(k))
            if code or changed:
                wrong.append([fatal, code, said.strip()[-300:], changed])
        result[job["name"]] = {"operations": count, "kills": kills, "wrong": wrong}
    json.dump(result, sys.stdout)


main()
