"""What the bottom line costs, as a multiple of one leave-one-out of the same texts.

    heedmap train --data SST --out runs/sst
    python -m benchmarks.bottom_line runs/sst ... [--instances 300]

One thread, seconds of the processor; `peak_mb` is the most memory beyond what stood before a step. There
are two leave-one-outs: that of an audit, which has shortcuts for our own models, and one that reads each text
again without each word, as everything in the bottom line does. A yes takes `highlights`, `permutation` and,
of the texts of which the map takes less than half of the lead, the best order; without a yes the other maps
are asked too.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.battery import timed
from heedmap.experiments.context import AuditContext
from heedmap.experiments.questions.alternatives import alternatives, where_needed
from heedmap.experiments.questions.highlights import highlights, sampled
from heedmap.experiments.questions.importance import leave_one_out
from heedmap.experiments.questions.permutation import permutation
from heedmap.importance.deletions import reread_without_each
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.open import open_run
from heedmap.settings.audit import AuditSettings


def opened(folder: str, instances: int) -> AuditContext:
    """Return the texts that the bottom line asks of a run, and the model."""
    run = open_run(folder)
    settings = AuditSettings.of(
        **{**audit_defaults(run.model, run.settings.data), "instances": instances}
    )
    every = audited_split(run.corpus, settings)
    asked = every.take(sampled(AuditContext(run.model, every, settings, registered())))
    evidence = AuditContext(run.model, asked, settings, registered())
    evidence.table("instances")
    return evidence


def steps(evidence: AuditContext) -> dict[str, tuple[float, float]]:
    """Return seconds and peak of memory by step."""
    measured: dict[str, tuple[float, float]] = {}

    def step(name: str, work: Callable[[], Any]) -> Any:
        result, seconds, peak = timed(work, clock=time.process_time)
        measured[name] = seconds, peak
        return result

    step("leave-one-out", lambda: leave_one_out(evidence))
    step("leave-one-out, read again", lambda: reread_without_each(evidence.model, evidence.texts))
    step("highlights", lambda: highlights(evidence))
    step("permutation", lambda: permutation(evidence))
    for name in ("leave_one_out", "highlights", "permutation"):
        evidence.table(name)
    in_audit = step("alternatives, as an audit asks them", lambda: where_needed(evidence))
    step("alternatives, all", lambda: alternatives(evidence))
    is_asked = in_audit["gone_leave_one_out"].null_count < in_audit.num_rows
    print("the map has", "no yes: other maps are asked" if is_asked else "a yes: none is asked")
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--instances", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for folder in options.runs:
        evidence = opened(folder, options.instances)
        lengths = evidence.lengths
        classes = len(evidence.model.classes)
        print(
            f"\n{folder}: {len(lengths)} texts, mean length {lengths.mean():.0f}, {classes} classes"
        )
        measured = steps(evidence)
        again = measured["leave-one-out, read again"][0]
        own = measured["leave-one-out"][0]
        print(f"{'':36} {'s':>8} {'of one read again':>18} {'of ours':>8} {'peak_mb':>8}")
        for name, (seconds, peak) in measured.items():
            print(
                f"{name:36} {seconds:8.2f} {seconds / again:18.2f} {seconds / own:8.2f} {peak:8.0f}"
            )


if __name__ == "__main__":
    main()
