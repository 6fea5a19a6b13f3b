"""The script that keeps each room within its budget of lines and code tokens."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "budgets.py"
# Code tokens: 3 of `class Greeting:`, 8 of `def say(name) -> str:`, the string, `return` and the f-string.
SOURCE = '''"""A docstring is no code."""
# Nor is a comment.
class Greeting:
    """Nor is this."""

    def say(name) -> str:  # nor this
        """Nor are these two lines: {name}
        """
        'this is'
        return f"hello {name + f'{name!r}'}"
'''
FILES = {
    "src/heedmap/__init__.py": "a = 1\n",
    "src/heedmap/data/greeting.py": SOURCE,
    "src/heedmap/data/deep/empty.py": "",
    "src/heedmap/report/page.html": "<p>\n</p>\n",
    "studies/src/heedmap_studies/papers/paper.py": "b = [2]\n\n",
    "tests/test_it.py": "",
}
BUDGETS = """# Why there are budgets: lines = 99
"heedmap in all" = { lines = 11, tokens = 17 }
heedmap = { lines = 1, tokens = 3 }
"heedmap/data" = { lines = 10, tokens = 14 } # tokens = 99

"heedmap_studies in all" = { lines = 2, tokens = 5 }
"heedmap_studies/papers" = { lines = 2, tokens = 5 }
"TypeScript and templates" = { lines = 2 }
tests = { lines = 0, tokens = 0 }
"""


@pytest.fixture
def compare(monkeypatch, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def run(budgets, *options):
        """Return the lines of faults, and the file's text afterwards."""
        file, faults = tmp_path / "budgets.toml", []
        file.write_text(budgets)
        monkeypatch.setattr(sys, "argv", ["budgets.py", str(tmp_path), *options])
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as stop:
            faults = stop.code.splitlines()
        return faults, file.read_text()

    return run


def test_rooms_at_their_budgets_pass_and_are_printed(compare, capsys):
    assert compare(BUDGETS) == ([], BUDGETS)
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["heedmap/data", "10", "10", "14", "14"] in table
    assert ["TypeScript", "and", "templates", "2", "2", "-", "-"] in table


def test_rooms_above_their_budgets_fail_with_a_line_each(compare):
    faults, _ = compare(
        BUDGETS.replace("10, tokens = 14", "9, tokens = 13").replace(" = 3", " = 2")
    )
    assert faults == [
        "heedmap: 3 tokens, at most 2",
        "heedmap/data: 10 lines, at most 9; 14 tokens, at most 13",
    ]


def test_rooms_without_a_line_and_lines_without_a_room_fail(compare):
    faults, _ = compare(BUDGETS.replace("heedmap/data", "heedmap/dates"))
    assert [fault.split(":")[0] for fault in faults] == ["heedmap/data", "heedmap/dates"]
    faults, _ = compare(BUDGETS.replace("2, tokens = 5", "2"))
    assert faults[1] == "heedmap_studies/papers: 5 tokens, at most 0"


def test_lowering_changes_only_numbers_above_the_present_ones(compare):
    generous = BUDGETS.replace("= 14 ", "= 1_400 ").replace("{ lines = 2,", "{ lines = 30,")
    assert compare(generous, "--lower") == ([], BUDGETS)
    tight = BUDGETS.replace("= 14 ", "= 13 ")
    faults, text = compare(tight.replace("11, tokens", "12, tokens"), "--lower")
    assert (faults, text) == (["heedmap/data: 14 tokens, at most 13"], tight)
