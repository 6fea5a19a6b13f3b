"""Where the time of a whole `heedmap audit` goes, imports and training included.

    python -m benchmarks.audit --data SST [--json FILE] [any option of heedmap.train as name=value]

Uses all cores that torch sees; prints seconds a stage, the peak of memory, and the threads.
"""

import argparse
import json
import resource
import time
from pathlib import Path

from heedmap.terminal.displays import Display
from heedmap.terminal.progress import shown_by


class Clock:
    """Seconds since the last stage ended, by stage."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.stages: dict[str, float] = {}
        self.stage = "imports"

    def next(self, stage: str) -> None:
        """End the stage, begin another."""
        now = time.perf_counter()
        self.stages[self.stage] = self.stages.get(self.stage, 0.0) + now - self.last
        self.last, self.stage = now, stage


class Stages(Display):
    """Ends a stage where the next step of the audit begins."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def line(self, text: str, seconds: float) -> None:
        self.clock.next(text.split(" (", maxsplit=1)[0])


def main() -> None:
    clock = Clock()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("settings", nargs="*", help="of training, name=value")
    options = parser.parse_args()
    values = {
        k: json.loads(v) if v[:1].isdigit() else v
        for k, v in (s.split("=") for s in options.settings)
    }

    import torch

    import heedmap as hm

    hm.load, hm.train, hm.audit  # noqa: B018 - their imports belong to the first stage
    clock.next("reading the texts")
    corpus = hm.load(options.data)
    clock.next("training")
    run = hm.train(corpus, **values)
    with shown_by(Stages(clock)):
        result = hm.audit(run)
    clock.next("report page")
    from heedmap.report.page import page

    size = len(page(result))
    clock.next("")
    total = clock.last - clock.start
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    print(f"{options.data}: {sizes}, {torch.get_num_threads()} threads")
    for stage, seconds in clock.stages.items():
        print(f"{stage:24} {seconds:7.1f} s {seconds / total:5.0%}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'all':24} {total:7.1f} s, peak memory {peak:.0f} MB, page {size / 1e6:.1f} MB")
    if options.json:
        options.json.write_text(
            json.dumps({"stages": clock.stages, "s": total, "peak_mb": peak}) + "\n"
        )


if __name__ == "__main__":
    main()
