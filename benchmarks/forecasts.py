"""How right the forecast of an audit is, question by question.

    heedmap audit --data SST --out runs/sst
    python -m benchmarks.forecasts runs/sst [--texts 2000] [--json FILE]

Forecast and time are both in seconds of the processor, on one thread, so that a busy machine does not count. A
question is timed with the tables of the questions before it at hand, as in an audit.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from heedmap.experiments.registry import estimate
from heedmap.runs.evidence import evidence_for, settings_for
from heedmap.runs.open import open_run


def main() -> None:
    """Print the forecast and the seconds of each question, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    time.perf_counter = time.process_time  # by which forecasts measure
    run = open_run(arguments.run)
    context = evidence_for(run, settings_for(run, {"instances": arguments.texts}), None)
    forecast = estimate(context)
    rows = {}
    for name, expected in forecast.items():
        began = time.process_time()
        context.table(name)
        rows[name] = (expected, time.process_time() - began)
    rows["all"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    print(
        f"{arguments.run}: {len(context.split)} texts, {context.lengths.mean():.0f} positions on average"
    )
    for name, (expected, taken) in sorted(rows.items(), key=lambda row: -row[1][1]):
        ratio = f"{taken / expected:6.2f}" if expected > 0 else ""
        print(f"{name:22} forecast {expected:7.1f} s  taken {taken:7.1f} s  {ratio}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
