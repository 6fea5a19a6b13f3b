"""Rules for the tests themselves."""

import ast
from itertools import combinations, product
from pathlib import Path

import pytest
from pairwise import SINGLE_TEXTS, rows

FILES = sorted(Path(__file__).parent.glob("*.py"))
MODULES = [path for path in FILES if path.name.startswith("test_")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_test_module_is_imported(path):
    """What several share is in a module that is no test: `conftest`, `making`, `oracles` and the like."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    assert not [name for name in names if name.split(".")[-1].startswith("test_")]
    assert not [name for name in names if name.split(".")[0] == "tests"]


def asserts(function, checks):
    """Whether it has an assertion, or calls what raises when something is wrong."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in checks:
                return True
    return False


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_test_asserts(path):
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    checks = {"raises", "warns", "assert_close", "assert_allclose", "assert_array_equal"}
    checks |= {"assert_frame_equal", "refused", "warned", "stopped", "check_numbers"}
    checks |= {f.name for f in functions if not f.name.startswith("test_") and asserts(f, checks)}
    tests = [f for f in functions if f.name.startswith("test_")]
    assert not [f.name for f in tests if not asserts(f, checks)]


def test_pairwise_choices_meet_in_few_rows():
    choices = {**SINGLE_TEXTS, "classes": [2, 3], "kind": ["words", "sentences"]}
    chosen = rows(choices)
    for (i, first), (j, second) in combinations(enumerate(choices.values()), 2):
        met = {(row[i], row[j]) for row in chosen}
        assert met == set(product(first, second))
    assert len(chosen) <= 36, "the largest pair has 30"
