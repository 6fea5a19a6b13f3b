"""Measure what the tests protect: draw small mistakes in the package and count those that a test notices.

    python scripts/mutants.py draw 60 --seed 1 > mutants.json
    python scripts/mutants.py judge mutants.json verdicts.json -m "slow or not slow"

A mutant is one change of one function: a comparison or an operator swapped for another, an integer one higher,
a condition inverted, a statement dropped. It is judged by the test files that import the changed module (by
those that name it, as a command does, where none imports it): the files that import least first, and of these
at most FILES, until a test fails or its seconds of processor time are over. The tests are collected once; each
mutant is judged in a fork of that process, in which the function's code is replaced. Processes that tests start
find the changed source through PYTHONPATH. Further options are pytest's.

The same mutants, judged before and after a change of the tests, show whether the change costs protection.
"""

import argparse
import ast
import gc
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import CodeType, FunctionType

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
FILES = 8
SWAPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.And: "or", ast.Or: "and",
}  # fmt: skip


def parts(node):
    """Yield the nodes of a function that can be changed: no annotations, defaults or nested strings."""
    for child in node.body if isinstance(node, ast.FunctionDef) else ast.iter_child_nodes(node):
        if isinstance(child, ast.arguments | ast.JoinedStr):
            continue
        changeable = child.value if isinstance(child, ast.AnnAssign) else child
        if changeable is not None:
            yield changeable
            yield from parts(changeable)


def replacement(node):  # noqa: PLR0911 - one for each kind of mistake
    """Return the source that replaces a node's, or None where nothing of it is changed."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"({ast.unparse(left)}) {SWAPS[type(operator)]} ({ast.unparse(right)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in SWAPS:
            return f"(({ast.unparse(left)}) {SWAPS[type(operator)]} ({ast.unparse(right)}))"
        case ast.BoolOp(op=operator, values=values):
            return (
                "(" + f" {SWAPS[type(operator)]} ".join(f"({ast.unparse(v)})" for v in values) + ")"
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"bool({ast.unparse(operand)})"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return f"{value + 1}"
        case (
            ast.Expr(value=ast.Call())
            | ast.AugAssign()
            | ast.Raise()
            | ast.Continue()
            | ast.Break()
        ):
            return "pass"
    return None


def candidates(path):
    """Yield every mutant of a file: where it is, what stands there and what would stand there instead."""
    text = path.read_text("utf-8")

    def functions(node, names=()):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield ".".join((*names, child.name)), child
            elif isinstance(child, ast.ClassDef):
                yield from functions(child, (*names, child.name))

    for name, function in functions(ast.parse(text)):
        for node in parts(function):
            if (new := replacement(node)) is not None:
                yield {
                    "module": path.relative_to(SOURCE).as_posix(), "function": name,
                    "from": [node.lineno, node.col_offset], "to": [node.end_lineno, node.end_col_offset],
                    "old": ast.get_source_segment(text, node), "new": new,
                }  # fmt: skip


def draw(number, seed):
    """Draw mutants from all rooms in turn, so that a large room has no more of them than a small one."""
    generator, rooms = random.Random(seed), {}
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE / "heedmap").parts[0]
        rooms.setdefault(room if "." not in room else ".", []).extend(candidates(path))
    for mutants in rooms.values():
        generator.shuffle(mutants)
    order = [m for rank in range(number) for ms in rooms.values() for m in ms[rank : rank + 1]]
    return order[:number]


def changed(mutant):
    """Return the source of the mutant's module with the change in it."""
    lines = (SOURCE / mutant["module"]).read_text("utf-8").encode().splitlines(keepends=True)
    (row, start), (last, end) = mutant["from"], mutant["to"]
    old = b"".join(lines[row - 1 : last])
    tail = len(lines[last - 1]) - end
    assert old[start : len(old) - tail].decode() == mutant["old"], "the source has moved on"
    lines[row - 1 : last] = [old[:start] + mutant["new"].encode() + old[len(old) - tail :]]
    return b"".join(lines).decode()


def code_objects(code, name=""):
    """Yield every function's code in a module's or class's, with its qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from code_objects(constant)


def infect(mutant, folder):
    """Replace the function's code in this process, and the package's for processes that tests start."""
    text, name = changed(mutant), name_of(SOURCE / mutant["module"])
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, folder / "src", ignore=ignored, copy_function=os.link)
    (folder / "src" / mutant["module"]).unlink()
    (folder / "src" / mutant["module"]).write_text(text, "utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder / "src"), *sys.path])
    module = importlib.import_module(name)
    code = module.__spec__.loader.source_to_code(text.encode(), module.__file__)
    new = dict(code_objects(code))[mutant["function"]]
    functions = [
        f for f in gc.get_objects()
        if type(f) is FunctionType and f.__code__.co_filename == module.__file__
        and f.__code__.co_qualname == mutant["function"]
    ]  # fmt: skip
    assert functions, "no such function is alive"
    for function in functions:
        if len(function.__code__.co_freevars) == len(new.co_freevars):
            function.__code__ = new


def importers(dotted, folder):
    """Return the files in a folder that import a module."""
    package, _, stem = dotted.rpartition(".")
    pattern = (
        rf"(?:from|import) {re.escape(dotted)}\b|from {re.escape(package)} import [^)]*?\b{stem}\b"
    )
    return [p for p in sorted(folder.rglob("*.py")) if re.search(pattern, p.read_text("utf-8"))]


def judges(module):
    """Return the names of the test files that judge a module of the package, the nearest first."""
    path = SOURCE / module
    stem = path.stem if path.stem != "__init__" else path.parent.name
    texts = {f: f.read_text("utf-8") for f in sorted(TESTS.glob("*.py")) if f.name != "conftest.py"}
    direct = {*importers(name_of(path), TESTS)} & {*texts}
    nearest = importers(name_of(path), SOURCE)
    named = re.compile(rf"\"{stem.replace('_', '[-_ ]')}\b")  # as a command is
    beside = re.compile(rf"{re.escape(name_of(path).rpartition('.')[0])}\b")
    for found in (
        direct,
        {file for other in nearest for file in importers(name_of(other), TESTS)} & {*texts},
        {file for file, text in texts.items() if named.search(text)},
        {file for file, text in texts.items() if beside.search(text)},
    ):
        if files := tests_among(found, texts):
            break

    def distance(file):
        # A file of the module's name, then what imports it itself, then what imports the fewest others.
        imports = len(re.findall(r"heedmap[.\w]* import", texts[file]))
        return stem not in file.name, file not in found, imports, file.name

    return [file.name for file in sorted(files, key=distance)[:FILES]]


def name_of(path):
    """Return a module's name with dots."""
    dotted = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


def tests_among(found, texts):
    """Return the test files among these, and those that import a helper of these or run it as a program."""
    helpers = "|".join(file.stem for file in found if not file.name.startswith("test_"))
    used = re.compile(rf"^from ({helpers}) import|\"({helpers})\.py\"", re.M)
    files = {*found, *(file for file, text in texts.items() if helpers and used.search(text))}
    return {file for file in files if file.name.startswith("test_")}


class Judge:
    """A pytest plugin that runs the collected tests once per mutant, each time in a fork."""

    def __init__(self, mutants, target, seconds):
        self.mutants, self.target, self.seconds = mutants, target, seconds

    def pytest_runtestloop(self, session):
        """Judge every mutant that has no verdict yet, so that an interrupted command goes on."""
        items = session.items
        verdicts = json.loads(self.target.read_text()) if self.target.exists() else []
        for mutant in self.mutants[len(verdicts) :]:
            names, begun = judges(mutant["module"]), time.monotonic()
            session.items = sorted(
                (item for item in items if item.path.name in names),
                key=lambda item: (
                    item.get_closest_marker("slow") is not None,
                    names.index(item.path.name),
                ),
            )
            verdict = self.verdict(session, mutant)
            took = round(time.monotonic() - begun, 1)
            verdicts.append(
                {**mutant, "tests": len(session.items), "seconds": took, "killed by": verdict}
            )
            self.target.write_text(json.dumps(verdicts, indent=1))
        return True

    def verdict(self, session, mutant):
        """Return the test that failed, or None where none did in the time there is."""
        with tempfile.TemporaryDirectory() as place:
            told = Path(place, "verdict")
            child = os.fork()
            if not child:
                os.setpgid(0, 0)
                # Processor time, so that a busy machine judges as a quiet one does.
                resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 5))
                self.run(session, mutant, Path(place), told)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if told.exists():
                return json.loads(told.read_text())
            return None if status == -signal.SIGXCPU else f"exit {status}"

    def run(self, session, mutant, place, told):
        """Run the tests in the child until one fails."""
        failed = None
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        try:
            infect(mutant, place)
            session.config._tmp_path_factory._basetemp = place / "tmp"
            (place / "tmp").mkdir()

            class Watch:
                def pytest_runtest_logreport(self, report):
                    nonlocal failed
                    if report.failed:
                        failed = failed or report.nodeid
                        session.shouldfail = "killed"

            session.config.pluginmanager.register(Watch())
            for index, item in enumerate(session.items):
                after = session.items[index + 1] if index + 1 < len(session.items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if failed:
                    break
        except BaseException as error:
            failed = failed or f"{type(error).__name__}: {error}"
        told.write_text(json.dumps(failed))
        os._exit(0)


def main():
    """Draw mutants, or judge those of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    drawing = commands.add_parser("draw")
    drawing.add_argument("number", type=int)
    drawing.add_argument("--seed", type=int, default=0)
    judging = commands.add_parser("judge")
    judging.add_argument("mutants", type=Path)
    judging.add_argument("verdicts", type=Path)
    judging.add_argument("--seconds", type=int, default=60, help="of a mutant's tests")
    options, further = parser.parse_known_args()
    if options.command == "draw":
        print(json.dumps(draw(options.number, options.seed), indent=1))
        return
    mutants = json.loads(options.mutants.read_text())
    files = sorted(set().union(*(judges(mutant["module"]) for mutant in mutants)))
    os.chdir(ROOT)
    pytest.main([*(f"tests/{name}" for name in files), "-p", "no:cacheprovider", *further],
                plugins=[Judge(mutants, options.verdicts, options.seconds)])  # fmt: skip
    verdicts = json.loads(options.verdicts.read_text())
    missed = [verdict for verdict in verdicts if verdict["killed by"] is None]
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} mutants were noticed; missed:")
    for v in missed:
        print(f"{v['module']}:{v['from'][0]} {v['function']}: {v['old']!r} -> {v['new']!r}")


if __name__ == "__main__":
    main()
