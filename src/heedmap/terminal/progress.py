"""Progress of long work: reported where the work is done, and shown by the display that the caller has.

    with working("audit"):  # a bar, lines of a log, or nothing; within other work a part of it
        with step("adversary"):
            for batch in track(batches):
                ...

The work under way is a context variable: no function passes it on, and no result depends on it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from heedmap.terminal.displays import Display, display_for

T = TypeVar("T")
SOON, LITTLE = 2.0, 0.03  # seconds and share of the work; a guess of the rest before means nothing
# A forecast weighs as much as a tenth of the work: the first batches, which may be slow or fast, do not swing
# the time that remains, and the measured pace takes over soon.
PRIOR = 0.1


@dataclass
class _Part:
    """A part of the work, and of the bar.

    `size` is its share of the whole, `done` the share of the part that is done. In a loop, `item` is the share
    of the running item and `until` its end. `claimed`: the parts within it state their shares, and others take
    none. `plan` has the weights of its steps, of which `begun` have begun. `speaks`: its steps write lines.
    `is_step`: it is one itself.
    """

    size: float
    title: str = ""
    text: str = ""
    done: float = 0.0
    item: float = 1.0
    until: float = 1.0
    claimed: bool = False
    plan: Mapping[str, float] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    speaks: bool = True
    is_step: bool = False


class Work:
    """A piece of long work: its parts that are open, the innermost last, and its display."""

    def __init__(self, title: str, display: Display) -> None:
        self.title, self.display = title, display
        self.expected: float | None = None
        self.reword: Callable[[str], str] = str
        self._parts = [_Part(1.0)]
        self._most = 0.0
        self._began = self._planned = time.monotonic()

    @property
    def innermost(self) -> _Part:
        """The part that is running."""
        return self._parts[-1]

    def plan(self, weights: Mapping[str, float], expected: float | None) -> None:
        """Set what the innermost part will do, and how long the whole work will take."""
        self.innermost.plan, self.innermost.begun = dict(weights), set()
        if len(self._parts) == 1:
            self.expected, self._planned = expected, time.monotonic()

    @contextmanager
    def part(
        self,
        title: str = "",
        share: float | None = None,
        *,
        is_step: bool = False,
        speaks: bool = True,
    ) -> Iterator[None]:
        """Open a part of the innermost one: of its planned size, of `share`, or of what is left of it."""
        parent, number = self.innermost, ""
        if is_step:
            # A step of this name that has begun already is another's: the same question of another model.
            planned = next(
                (p for p in self._parts[::-1] if title in p.plan and title not in p.begun), None
            )
            if planned is not None:
                parent, share = planned, planned.plan[title] / sum(planned.plan.values())
                parent.begun.add(title)
                number = f" ({len(parent.begun)} of {len(parent.plan)})"
            title = title.replace("_", " ")
            # Steps that are not planned may alternate every second within another; a log says every ten
            # seconds which one runs.
            if self.speaks and (planned or not any(part.is_step for part in self._parts)):
                self.line(f"{title}{number}")
        elif share is not None:
            parent.claimed |= share > 0
            share *= parent.item
        if share is None:
            share = 0.0 if parent.claimed else max(0.0, parent.until - parent.done)
        if title:
            for outer in self._parts:
                outer.text = ""  # what was running there is over
        part = _Part(parent.size * share, title, speaks=speaks, is_step=is_step)
        self._parts.append(part)
        self.moved()
        try:
            yield
        except BaseException:
            self._close(part)
            raise
        self._close(part)
        parent.done += share
        self.moved()

    def _close(self, part: _Part) -> None:
        if part in self._parts:  # a loop that was left early may be collected late
            del self._parts[self._parts.index(part) :]

    @property
    def speaks(self) -> bool:
        """Return whether lines are written here, which they are not within the cells of a grid."""
        return all(part.speaks for part in self._parts)

    def line(self, text: str) -> None:
        """Write a line of the log."""
        text = self.reword(text)
        self.display.line(
            f"{self.title}: {text}" if self.title else text, time.monotonic() - self._began
        )

    def moved(self) -> None:
        """Show how far the work is; a bar never goes back."""
        self._most = max(self._most, min(1.0, sum(part.size * part.done for part in self._parts)))
        # The display names the work already: a part of the same name adds what runs in it alone.
        named = [
            ("" if part.title == self.title else part.title, part.text) for part in self._parts
        ]
        text = ": ".join(", ".join(filter(None, words)) for words in named if any(words))
        self.display.move(self._most, self.reword(text), self._left())

    def _left(self) -> float | None:
        elapsed, done = time.monotonic() - self._planned, self._most
        if self.expected is None:
            return elapsed * (1 - done) / done if done > LITTLE and elapsed > SOON else None
        return (1 - done) * (PRIOR * self.expected + elapsed) / (PRIOR + done)


_current: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def working(title: str, visible: bool = True, share: float | None = None) -> Iterator[None]:
    """Show the block as a piece of work; within other work it is a part of that.

    Args:
        title: the name of the work, in a word or two.
        visible: False to show nothing.
        share: its share of the other work; by default, all that is left of it.
    """
    outer = _current.get()
    if outer is not None:
        with outer.part(title, share):
            yield
        return
    with shown_by(display_for(title) if visible else Display(), title):
        yield


@contextmanager
def shown_by(display: Display, title: str = "") -> Iterator[None]:
    """Show the work in the block on a display."""
    token = _current.set(Work(title, display))
    try:
        yield
    finally:
        _current.reset(token)
        display.end()


def track(items: Iterable[T], weights: Sequence[float] | None = None) -> Iterator[T]:
    """Yield the items; each moves the bar by its share of what is left of the innermost part.

    `weights` are the durations of the items relative to each other; without them all are equal.
    """
    work = _current.get()
    if work is None:
        yield from items
        return
    items = items if isinstance(items, Sequence) else list(items)
    sizes = [1.0] * len(items) if weights is None else list(weights)
    whole, done = sum(sizes) or 1.0, 0.0
    with work.part():
        part = work.innermost
        for item, size in zip(items, sizes, strict=True):
            part.item, part.until, part.claimed = size / whole, (done + size) / whole, False
            yield item
            done += size
            part.done = done / whole
            work.moved()


@contextmanager
def _part(title: str, share: float | None = None, **options: bool) -> Iterator[None]:
    work = _current.get()
    if work is None:
        yield
        return
    with work.part(title, share, **options):
        yield


def step(name: str) -> AbstractContextManager[None]:
    """Show the block as a step, of its planned size if there is a plan."""
    return _part(name, is_step=True)


def portion(share: float, title: str = "") -> AbstractContextManager[None]:
    """Let the block take this share of the innermost part."""
    return _part(title, share)


def in_job(name: str) -> AbstractContextManager[None]:
    """Show the block as one cell of many, whose own steps write no lines."""
    return _part(name, speaks=False)


def plan(weights: Mapping[str, float], expected: float | None = None) -> None:
    """Announce the steps with their durations relative to each other, and the total in seconds."""
    if (work := _current.get()) is not None:
        work.plan(weights, expected)


def at(done: float, total: float, text: str = "") -> None:
    """Report how much of the innermost part is done, and what is running."""
    if (work := _current.get()) is not None:
        part = work.innermost
        part.done, part.claimed = done / total if total else 0.0, True
        part.text = text or part.text
        work.moved()


def doing(text: str) -> None:
    """Report what is running."""
    if (work := _current.get()) is not None:
        work.innermost.text = text
        work.moved()


def worded(reword: Callable[[str], str]) -> None:
    """Say all that follows of this work in other words, such as of pictures in place of texts."""
    if (work := _current.get()) is not None:
        work.reword = reword


def log_line(text: str) -> None:
    """Write a line of the log."""
    if (work := _current.get()) is not None and work.speaks:
        work.line(text)


def note(text: str) -> None:
    """Show a remark once, such as how long the work will take."""
    if (work := _current.get()) is not None and work.speaks:
        work.display.note(work.reword(text))
