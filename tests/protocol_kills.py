"""Kill the storage protocol at each of its file operations: a program without torch, run by `test_protocol.py`.

    python protocol_kills.py ROOT > result.json

Each kind of work is done once in peace, during which another process asks for the lock at every operation, and
then once per operation, at which it is killed. What is left must be whole and listed, and the same work, done
again, must end with the same files.
"""

import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

from kill_points import Counter, tree

from heedmap.files import locking, manifest, storage
from heedmap.files.locking import BusyError, writing
from heedmap.files.manifest import MANIFEST, Manifest

ROOT = Path(sys.argv[1])
FIRST = {"a.txt": "a" * 900, "tables/b.txt": "b" * 900, "c.txt": "c"}
SECOND = {"a.txt": "A" * 500, "tables/b.txt": "b" * 900, "d.txt": "d" * 900}
USERS = {"a.txt": "changed by a user", "notes.txt": "a user's own"}


def write(files, removed=()):
    """Write files as a command does: under the lock, after what a killed one left is settled."""
    with writing(ROOT):
        listed = Manifest(ROOT)
        listed.start()
        listed.settle()
        listed.remove(*removed)
        for name, text in files.items():
            listed.write(ROOT / name, text)


def write_folder(files):
    """Write a folder whole, in place of an older one."""
    with writing(ROOT):
        listed = Manifest(ROOT)
        listed.start()
        listed.settle()
        manifest.remove(ROOT / "model")
        with manifest.folder_written(ROOT / "model") as place:
            for name, text in files.items():
                (place / name).write_text(text)


def write_unlisted():
    """Write a file into a folder without a manifest."""
    with writing(ROOT):
        storage.write_atomically(ROOT / "plain" / "page.html", "p" * 900)


def change_as_user():
    """Change a listed file and add another, as a user may."""
    for name, text in USERS.items():
        (ROOT / name).write_text(text)


MODEL = {"weights": "w" * 900, "vocabulary": "v" * 900}
# The work before, and the work that is killed.
WORK = {
    "write": ([], lambda: write(FIRST)),
    "write the same again": ([lambda: write(FIRST)], lambda: write(FIRST)),
    "replace": ([lambda: write(FIRST)], lambda: write(SECOND)),
    "remove and write": ([lambda: write(FIRST)], lambda: write(SECOND, ["tables", "c.txt"])),
    "over a user's": ([lambda: write(FIRST), change_as_user], lambda: write(SECOND)),
    "remove a user's": ([lambda: write(FIRST), change_as_user], lambda: write({}, FIRST)),
    "a folder": ([], lambda: write_folder(MODEL)),
    "a folder over another": (
        [lambda: write_folder({"weights": "old", "third": "t"})],
        lambda: write_folder(MODEL),
    ),
    "without a manifest": ([], write_unlisted),
}


def start(before):
    """Make ROOT as the work before leaves it."""
    shutil.rmtree(ROOT, ignore_errors=True)
    for work in before:
        work()


def run(work, fatal=None):
    """Do the work in a process of its own; the exit code, negative where it was killed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        Counter(ROOT, fatal).install()
        work()
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 1)


def is_refused():
    """Whether another process that asks for the lock now is told that the folder is busy."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    locking._holds.clear()  # of the process that it is a fork of
    code = 1
    try:
        with writing(ROOT):
            pass
    except BusyError:
        code = 0
    finally:
        os._exit(code)


def watch(work):
    """Do the work in a process of its own; its operations, those under the lock, and those of them at which
    others were refused.
    """
    told = ROOT.with_name(f"{ROOT.name}.told")
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return json.loads(told.read_text())
    held = []

    def ask():
        if locking._holds:
            held.append(is_refused())

    counter = Counter(ROOT, at_each=ask)
    counter.install()
    work()
    counter.root = "none"  # what is told is not counted
    told.write_text(json.dumps([counter.count, len(held), sum(held)]))
    os._exit(0)


def faults(versions, users):
    """What is wrong with what a killed process left."""
    listed = Manifest(ROOT)
    names = listed.load().files
    left = {
        n: c
        for n, c in tree(ROOT).items()
        if c != "folder" and ".partial" not in n and n != MANIFEST
    }
    for name, content in left.items():
        origin = name.partition(manifest.CHANGED)[0]
        if content in users.values():
            continue
        if content not in versions.get(origin, ()):
            yield f"{name} is not whole"
        if listed.exists and name not in names:
            yield f"{name} is not listed"
        manifest.check(ROOT / name)
    for name in users:
        if users[name] not in left.values():
            yield f"the user's {name} is lost"


def judge(before, work):
    """Kill the work at each operation, and compare."""
    start(before)
    old = tree(ROOT) if ROOT.exists() else {}
    count, held, refused = watch(work)
    end, wrong, kills = tree(ROOT), [], 0
    users = {n: t.encode() for n, t in USERS.items() if t.encode() in old.values()}
    versions = {name: {old.get(name), end.get(name)} - {None} for name in old | end}
    for fatal in range(1, count + 1):
        start(before)
        kills += run(work, fatal) == -signal.SIGKILL
        wrong += [[fatal, fault] for fault in faults(versions, users)] if ROOT.exists() else []
        if run(work) or tree(ROOT) != end:
            wrong.append([fatal, "the same work again ends otherwise"])
    return {"operations": count, "kills": kills, "held": held, "refused": refused, "wrong": wrong}


def main():
    warnings.simplefilter("ignore")  # a user's file that is set aside is said
    result = {name: judge(before, work) for name, (before, work) in WORK.items()}
    json.dump({"work": result, "torch": "torch" in sys.modules}, sys.stdout)


main()
