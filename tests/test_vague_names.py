"""The script that keeps names which say nothing out of the package."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "vague_names.py"
# Counted are `__all__`, the field, the parameter and two variables, but not `self`. Two of these are vague.
SOURCE = """
__all__ = ["Text"]
class Text:
    others: int
    def words(self, separator):
        _found = self.others
        count = _found
        return count
"""


@pytest.fixture
def count(monkeypatch):
    def run(limit, folder):
        monkeypatch.setattr(sys, "argv", ["vague_names.py", str(limit), str(folder)])
        runpy.run_path(str(SCRIPT), run_name="__main__")

    return run


def test_a_share_of_vague_names_at_the_limit_passes(count, tmp_path, capsys):
    (tmp_path / "text.py").write_text(SOURCE)
    count(40, tmp_path)
    assert capsys.readouterr().out.startswith("2 of 5 ")


def test_a_share_above_the_limit_fails_and_names_what_to_rename(count, tmp_path, capsys):
    (tmp_path / "text.py").write_text(SOURCE)
    (tmp_path / "clear.py").write_text("size = 1\n")
    with pytest.raises(SystemExit) as raised:
        count(33, tmp_path)
    assert raised.value.code, "the shell sees a failure"
    assert {"others 1", "_found 1", "text.py 2"} <= set(
        capsys.readouterr().out.replace("\n", ", ").split(", ")
    )


def test_a_folder_without_names_passes(count, tmp_path, capsys):
    count(0, tmp_path)
    assert capsys.readouterr().out.startswith("0 of 0 ")
