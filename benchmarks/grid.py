"""A reproduction in one process and in several: the same bytes, and the time.

    python -m benchmarks.grid [--workers 1,2] [--json FILE] -- jain-wallace sst --data SST ...

Each reproduction is the command itself, in a folder of its own; imports and reading are part of its time. Wall
clock says how long one waits and means something on a quiet machine only: the load average beside it, read
before and after, is near the number of workers there. `cpu` is what all processes took of the processor.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

COMMAND = (sys.executable, "-c", "from heedmap.cli import main; main()", "reproduce")


@dataclass
class Row:
    """One reproduction; seconds, and the machine's load average (1 minute) before and after."""

    workers: int
    wall_s: float
    cpu_s: float
    load_before: float
    load_after: float
    result: str  # a hash of all that it wrote


def contents(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def timed(arguments: list[str], workers: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        load, start = os.getloadavg()[0], time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = ("--workers", str(workers), "--out", f"{folder}/out")
        subprocess.run([*COMMAND, *arguments, *out], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = sum(getattr(after, x) - getattr(before, x) for x in ("ru_utime", "ru_stime"))
        # Links between the pages are relative: nothing depends on the folder's name.
        return Row(workers, wall, cpu, load, os.getloadavg()[0], contents(Path(folder) / "out"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", type=Path)
    parser.add_argument("arguments", nargs="+", help="of `heedmap reproduce`")
    options = parser.parse_args()
    rows = [timed(options.arguments, int(count)) for count in options.workers.split(",")]
    print(f"{os.cpu_count()} cores")
    for row in rows:
        print(
            f"{row.workers} workers {row.wall_s:7.1f} s, {rows[0].wall_s / row.wall_s:4.2f} times as fast; "
            f"cpu {row.cpu_s:7.1f} s; load {row.load_before:.1f} to {row.load_after:.1f}"
        )
    print("the same bytes" if len({row.result for row in rows}) == 1 else "OTHER BYTES")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows]) + "\n")


if __name__ == "__main__":
    main()
