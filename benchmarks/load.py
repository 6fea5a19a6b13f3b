"""A training on a quiet machine and beside one that keeps all cores busy: what it gets of its fair share.

    python -m benchmarks.load --data SST

Each training is a process of its own, with PyTorch's default threads. `spinning`: heedmap's bound of the
spinning (`training/spinning.py`) is switched off. Beside as many busy threads as there are cores a fair share
is half of the machine, so that a training that takes twice as long has all of it. Nothing else may run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

TRAIN = """
import sys, time, torch, heedmap as hm
from heedmap.training import spinning
if sys.argv[2] == "spinning":
    spinning._gnu_openmp = lambda: None
corpus = hm.load(sys.argv[1])
start = time.monotonic()
hm.train(corpus, encoder="lstm", score="additive", seed=0, epochs=1, progress=False)
print(time.monotonic() - start)
"""
HOG = "while True: pass"


def seconds(data: str, kind: str) -> float:
    """Return the seconds of one training; `kind` is bounded or spinning."""
    command = [sys.executable, "-W", "ignore", "-c", TRAIN, data, kind]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    times: dict[str, list[float]] = {}
    for hogs in (0, cores):
        others = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(hogs)]
        time.sleep(1)
        try:
            for _ in range(options.repeat):
                for kind in ("bounded", "spinning"):
                    name = f"{kind}, {'busy' if hogs else 'quiet'}"
                    times.setdefault(name, []).append(seconds(options.data, kind))
                    print(f"{name} {times[name][-1]:.1f} s", flush=True)
        finally:
            for other in others:
                other.kill()
    least = {name: min(values) for name, values in times.items()}
    quiet = least["spinning, quiet"]
    row = {"cores": cores, **least, "loss when quiet": least["bounded, quiet"] / quiet - 1}
    for kind in ("bounded", "spinning"):
        row[f"of the fair share, {kind}"] = 2 * quiet / least[f"{kind}, busy"]
    print(json.dumps(row, indent=1))
    if options.json:
        options.json.write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
