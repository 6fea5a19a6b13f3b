"""Count the rooms that a run passed to `audit()`, and a source passed to `load()`, goes through.

    python scripts/rooms.py

A room is a source file of heedmap, or a function in one (a method or a property too; comprehensions, lambdas
and the bodies of modules and classes are none). The object visits a function if the object itself is among the
function's arguments when it is called, whatever they are named. A copy or a part of it, such as the run's
model or the source made a path, is another object and is not followed. Counting ends when the first experiment
begins to compute its table, and with `load()`, when that returns. Beside this the script prints all files and
functions that are entered meanwhile, with any arguments: how much runs, not how far the object is carried.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import heedmap as hm
from heedmap.experiments.registry import registered
from heedmap.runs.audit import audit
from heedmap.runs.train import train

ROOT = str(Path(hm.__file__).parent) + os.sep
ROWS = [f"{'good' if i % 2 else 'bad'} film number {i},{i % 2}" for i in range(60)]


class Visits:
    """The functions that are entered during a call, and those that an object is passed to."""

    def __init__(self, passed: object, is_end: Callable[[FrameType], bool]) -> None:
        self.passed, self.is_end = passed, is_end
        self.entered: dict[tuple[str, str], None] = {}
        self.visited: dict[tuple[str, str], None] = {}

    def during(self, call: Callable[[], object]) -> "Visits":
        """Watch a call."""
        sys.setprofile(self._watch)
        try:
            call()
        finally:
            sys.setprofile(None)
        return self

    def _watch(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or "<" in code.co_name:
            return
        if not code.co_flags & 0x1:  # CO_OPTIMIZED: the body of a class has none of its own locals
            return
        if self.is_end(frame):
            sys.setprofile(None)
            return
        room = code.co_filename.removeprefix(ROOT), code.co_qualname
        self.entered[room] = None
        count = code.co_argcount + code.co_kwonlyargcount
        if any(frame.f_locals.get(name) is self.passed for name in code.co_varnames[:count]):
            self.visited[room] = None

    def say(self, title: str) -> None:
        """Print the counts, and the rooms that the object visits."""
        files, all_files = ({file for file, _ in rooms} for rooms in (self.visited, self.entered))
        print(
            f"{title}: {len(files) + len(self.visited)} rooms "
            f"({len(files)} files, {len(self.visited)} functions); "
            f"entered in all: {len(all_files)} files, {len(self.entered)} functions"
        )
        for file, function in self.visited:
            print(f"  {file}: {function}")


def main() -> None:
    """Count for a small run with a folder, and for a small CSV file."""
    experiment = next(iter(registered().values())).run.__code__
    with tempfile.TemporaryDirectory() as place:
        corpus = hm.load("reviews")
        run = train(corpus, encoder="average", epochs=1, progress=False, out=Path(place) / "run")
        visits = Visits(run, lambda frame: frame.f_code is experiment)
        visits.during(lambda: audit(run, instances=12, progress=False)).say("audit(run)")
        source = str(Path(place) / "texts.csv")
        Path(source).write_text("\n".join(["text,label", *ROWS]) + "\n")
        Visits(source, lambda frame: False).during(lambda: hm.load(source)).say("load(source)")


main()
