"""Record what tiny audits give, or compare two commits on this machine, exactly.

    python scripts/golden_record.py record [NAME ...]
    python scripts/golden_record.py compare BASE

`compare` makes the values of the commit BASE and of this folder, each in its own work tree and by its own
code, those of trainings too, and prints each difference that tests/golden/changes.toml does not list.
The tests compare what was recorded, up to rounding. To record anew is a commit of its own, without code.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
KINDS = ("values", "sentences")
sys.path.insert(0, str(ROOT / "tests"))


def make(out: Path, makers: Mapping[str, Callable[[Path], tuple[Any, Any]]]) -> None:
    """Write the records that these functions make, each in a folder of its own, into the folders of `out`."""
    import torch
    from golden.record import write_record

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name, maker in makers.items():
        with tempfile.TemporaryDirectory() as folder:
            records = maker(Path(folder))
        for kind, record in zip(KINDS, records, strict=True):
            (out / kind).mkdir(parents=True, exist_ok=True)
            write_record(out / kind / f"{name}.json", record, digits=7 if out == GOLDEN else 17)


def quick_and_slow() -> dict[str, Callable[[Path], tuple[Any, Any]]]:
    """Return what makes every record, that of trainings too."""
    from golden.quick import RECORDS
    from golden.slow import SLOW

    return {**RECORDS, **SLOW}


def compare(base: str) -> int:
    """Print the differences of this folder from a commit that are not listed, and return how many there are."""
    from golden.record import Changes, read_record

    changes = Changes.read(GOLDEN / "changes.toml")
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        old, new, tree = (Path(scratch) / name for name in ("old", "new", "tree"))
        git("worktree", "add", "--quiet", "--detach", str(tree), base)
        try:
            for root, out in ((tree, old), (ROOT, new)):
                made_by(root, out)
        finally:
            git("worktree", "remove", "--force", str(tree))
        for kind in KINDS:
            for name in sorted({p.name for one in (old, new) for p in (one / kind).iterdir()}):
                paths = [one / kind / name for one in (old, new)]
                was, is_now = (read_record(path) if path.exists() else {} for path in paths)
                for line in changes.differences(Path(name).stem, was, is_now, close=0.0):
                    print(f"{kind}/{name}: {line}")
                    count += 1
    print(f"{count} differences from {base} that are not listed")
    return count


def made_by(root: Path, out: Path) -> None:
    """Let the code of a work tree make its own records."""
    sources = [path.parent / "src" for path in root.glob("**/pyproject.toml")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    command = [sys.executable, "scripts/golden_record.py", "make", str(out)]
    subprocess.run(command, cwd=root, env=environment, check=True)


def git(*words: str) -> None:
    """Run git in this repository."""
    subprocess.run(["git", *words], cwd=ROOT, check=True)


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(
        description="Record what tiny audits give, or compare commits."
    )
    parser.add_argument("what", choices=("record", "make", "compare"))
    parser.add_argument(
        "names", nargs="*", help="record: which [all]; make: the folder; compare: the commit"
    )
    options = parser.parse_args()
    if options.what == "compare":
        sys.exit(compare(*options.names) > 0)
    if options.what == "make":
        make(Path(*options.names), quick_and_slow())
    else:
        from golden.quick import RECORDS

        make(GOLDEN, {name: RECORDS[name] for name in options.names or RECORDS})


if __name__ == "__main__":
    main()
