"""List the benchmarks, or run some: each in a process of its own, with its threads, time, memory and the limit.

    python -m benchmarks                                     # a line for each
    python -m benchmarks row_adam sequences                  # one after the other
    python -m benchmarks battery -- --run runs/sst           # what follows -- goes to each of them

The limit is the machine's rate in a large matrix product on as many threads, before each benchmark.
"""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
NO_BENCHMARKS = ("__init__", "__main__", "plain")  # `plain` is what others compare with


def benchmarks() -> dict[str, str]:
    """Return the name of each benchmark, and the first line of its docstring."""
    lines = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem not in NO_BENCHMARKS:
            docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
            lines[path.stem] = docstring.split("\n", maxsplit=1)[0]
    return lines


def run(name: str, options: list[str]) -> int:
    """Run one benchmark, print what it took, and return its exit status."""
    limit = "import torch; from benchmarks.battery import matrix_rate; "
    limit += "print(f'{torch.get_num_threads()} threads, {matrix_rate():.0f} GFLOP/s')"
    print(f"== {name}", flush=True)
    subprocess.run([sys.executable, "-c", limit], check=True)
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", f"benchmarks.{name}", *options])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    wall = time.perf_counter() - start
    print(f"{name}: {wall:.0f} s, {seconds:.0f} s of the processor, peak {memory:.0f} MB")
    return process.returncode


def main() -> int:
    """List, or run what is named; stop at the first that fails."""
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        end = arguments.index("--")
        arguments, options = arguments[:end], arguments[end + 1 :]
    known = benchmarks()
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"expected one of {', '.join(known)}; got {', '.join(unknown)}", file=sys.stderr)
        return 2
    if not arguments:
        for name, line in known.items():
            print(f"{name:14} {line}")
    return next((status for name in arguments if (status := run(name, options))), 0)


if __name__ == "__main__":
    sys.exit(main())
