"""Time and memory of an audit by the number of its texts: the whole command, training included.

    python -m benchmarks.many_texts --texts 10000,100000,1000000 --json many_texts.json --svg many_texts.svg

Texts are made: 10 to 30 words of a vocabulary as uneven as a language's, some of which tell the label. Each
audit is a process of its own, whose processor seconds and peak memory the system counts; what a mapped table
has in memory counts too. `--svg` draws the numbers of `--json`, with those of earlier calls.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CUES = (("awful", "dull", "poor", "weak"), ("great", "fine", "warm", "sharp"))
WORDS, TRAIN, DEV = 20_000, 4000, 400
AT_ONCE = 10_000  # texts that are made together


def write_texts(path: Path, count: int) -> None:
    """Write labelled texts to a CSV file, the same for the same count."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, WORDS + 1)
    shares /= shares.sum()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for start in range(0, count, AT_ONCE):
            lengths = rng.integers(10, 31, min(AT_ONCE, count - start))
            numbers = iter(rng.choice(WORDS, size=int(lengths.sum()), p=shares).tolist())
            for length in lengths.tolist():
                words = [f"w{next(numbers)}" for _ in range(length)]
                label = int(rng.integers(2))
                for _ in range(int(rng.integers(1, 4))):
                    said = label if rng.random() < 0.85 else 1 - label
                    words[int(rng.integers(length))] = CUES[said][int(rng.integers(4))]
                writer.writerow([" ".join(words), ("negative", "positive")[label]])


def measured(texts: int, folder: Path) -> dict[str, float]:
    """Audit so many texts, and return what it took."""
    for name, count in (("train", TRAIN), ("dev", DEV), ("test", texts)):
        write_texts(folder / f"{name}.csv", count)
    command = [sys.executable, "-m", "heedmap", "audit", "--data", str(folder), "--epochs", "2",
               "--instances", str(texts), "--out", str(folder / "run")]  # fmt: skip
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, f"{' '.join(command)} failed"
    tables = sum(path.stat().st_size for path in (folder / "run/tables").iterdir())
    return {
        "texts": texts,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - began,
        "peak_mb": usage.ru_maxrss / 1000,
        "tables_mb": tables / 1e6,
        "report_mb": (folder / "run/report.html").stat().st_size / 1e6,
    }


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw both curves, on logarithmic scales of texts and time."""
    import altair as alt
    import pandas as pd

    texts = alt.X("texts:Q", scale=alt.Scale(type="log"), title="audited texts")
    base = alt.Chart(pd.DataFrame(rows)).mark_line(point=True).properties(width=300, height=200)
    seconds = alt.Y("processor_seconds:Q", scale=alt.Scale(type="log"), title="processor seconds")
    memory = alt.Y("peak_mb:Q", scale=alt.Scale(domain=[0, 3000]), title="peak memory, MB")
    alt.hconcat(base.encode(texts, seconds), base.encode(texts, memory)).save(path)


def main() -> None:
    """Measure, print a row per number of texts, and draw all that were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", default="10000,100000")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    rows = (
        []
        if options.json is None or not options.json.exists()
        else json.loads(options.json.read_text())
    )
    for texts in filter(None, options.texts.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            row = measured(int(texts), Path(folder))
        print("  ".join(f"{name} {value:,.1f}" for name, value in row.items()), flush=True)
        rows = sorted(
            [*(r for r in rows if r["texts"] != row["texts"]), row], key=lambda r: r["texts"]
        )
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1))
    if options.svg is not None:
        draw(rows, options.svg)


if __name__ == "__main__":
    main()
