import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def called(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_list_has_a_line_for_every_benchmark():
    lines = called().stdout.splitlines()
    names = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")} - {"plain"}
    assert {line.split()[0] for line in lines} == names
    assert all(len(line.split()) > 3 for line in lines)


def test_an_unknown_benchmark_is_one_line_before_anything_runs():
    refused = called("row_adam", "speed")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "speed" in refused.stderr
    assert not refused.stdout
