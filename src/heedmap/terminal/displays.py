"""Displays of progress: a bar in a terminal or a notebook, lines in a log, or nothing.

The logger is `heedmap.progress`. If it takes messages of level INFO, there are lines and no bar; if it is
set to a higher level, there is nothing.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from heedmap.terminal.output import cell, printable

LOGGER = logging.getLogger("heedmap.progress")
QUIET_FOR = 10.0  # seconds after which a log gets another line
STARTING = "starting"


def display_for(title: str) -> "Display":
    """Return the display for this process, chosen by its logging, notebook and terminal."""
    if LOGGER.isEnabledFor(logging.INFO):
        return Lines(title)
    if LOGGER.level > logging.INFO:
        return Display()
    if _in_notebook():
        return NotebookBar(title)
    return TerminalBar(title) if is_terminal() else Display()


@contextmanager
def lines_on_stderr() -> Iterator[None]:
    """Within the block, write the lines to stderr, with the time, where there is no terminal for a bar."""
    level, handlers, passed_on = LOGGER.level, LOGGER.handlers[:], LOGGER.propagate
    if not is_terminal():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)
        LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.handlers[:], LOGGER.propagate = handlers, passed_on
        LOGGER.setLevel(level)


def hide_start() -> None:
    """Leave out the line that a command is starting, since its output is for a machine."""
    for handler in LOGGER.handlers:
        handler.addFilter(lambda record: record.getMessage() != STARTING)


def be_quiet() -> None:
    """Turn progress off."""
    LOGGER.setLevel(logging.CRITICAL)


def is_terminal() -> bool:
    """Return whether stderr is a terminal that can show a bar."""
    stream = sys.stderr
    return (
        stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    )


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def span(seconds: float) -> str:
    """Return seconds in words.

    >>> span(75), span(600), span(9000)
    ('75 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Display:
    """The progress of one piece of work on a screen or in a log; this base shows nothing."""

    def move(self, done: float, text: str, remaining: float | None) -> None:
        """Show the share that is done, what is running, and the seconds that remain, if that can be guessed."""

    def line(self, text: str, seconds: float) -> None:
        """Show that a step began or ended, after so many seconds."""

    def note(self, text: str) -> None:
        """Show a remark once."""

    def end(self) -> None:
        """Leave the screen as it was."""


class Lines(Display):
    """A line of the log per step, and every ten seconds of a long step, even if it reports no progress."""

    def __init__(self, title: str) -> None:
        self._title, self._at = title, ""
        self._began = self._spoke = time.monotonic()
        if (
            "torch" not in sys.modules
        ):  # its import takes seconds, before anything can be said of the work
            self._log(STARTING)
        # A thread, because a step that waits in one long call cannot report anything itself.
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def line(self, text: str, seconds: float) -> None:
        """Log the step and the time so far."""
        self._log(f"{text}, {span(seconds)} so far")

    def note(self, text: str) -> None:
        """Log the remark."""
        self._log(text)

    def move(self, done: float, text: str, remaining: float | None) -> None:
        """Log how far a long step is."""
        share = f"{done:.0%}" if done else ""  # some work cannot say how much of it is done
        self._at = "".join(f"{part}, " for part in (text, share) if part)
        self._say_where("" if remaining is None else f", {span(remaining)} left")

    def end(self) -> None:
        """Stop logging."""
        self._ended.set()

    def _beat(self) -> None:
        while not self._ended.wait(QUIET_FOR / 4):
            self._say_where("")

    def _say_where(self, rest: str) -> None:
        seconds = time.monotonic()
        if seconds - self._spoke >= QUIET_FOR and not self._ended.is_set():
            self._log(f"{self._title}: {self._at}{span(seconds - self._began)} so far{rest}")

    def _log(self, text: str) -> None:
        self._spoke = time.monotonic()
        LOGGER.info("%s", printable(text))


class TerminalBar(Display):
    """A bar of rich's on stderr, removed at the end."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn
        from rich.table import Column
        from rich.text import Text

        class Words(TextColumn):  # a cell shows brackets as text, in any encoding
            def render(self, task: Task) -> Text:
                return cell(task.fields[self.text_format])

        self._title = title
        one_line = Column(no_wrap=True, overflow="ellipsis")
        activity = Words("what", table_column=one_line)
        columns = (BarColumn(24), TimeElapsedColumn(), Words("left"), activity)
        # On stderr: what a command prints on stdout may go to a file or a program.
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None, what=f"{title}: {STARTING}", left="")
        self._bar.start()

    def move(self, done: float, text: str, remaining: float | None) -> None:
        """Move the bar; it pulses until anything can be measured."""
        self._bar.update(
            self._task,
            completed=done,
            total=1.0 if done or remaining is not None else None,
            what=f"{self._title}: {text}" if text else self._title,
            left="" if remaining is None else f"{span(remaining)} left",
        )

    def note(self, text: str) -> None:
        """Print the remark above the bar."""
        self._bar.console.print(cell(text))

    def end(self) -> None:
        """Remove the bar."""
        self._bar.stop()


class NotebookBar(Display):
    """A bar below a notebook's cell, removed at the end.

    rich draws nothing in a notebook without ipywidgets, so the bar is an element of HTML.
    """

    EVERY = 0.2  # seconds between messages to the browser

    def __init__(self, title: str) -> None:
        from IPython.display import DisplayHandle

        self._title, self._shown = title, 0.0
        handle: Any = DisplayHandle
        self._handle = handle()
        words = printable(title)
        self._handle.display({"text/plain": words, "text/html": escape(words)}, raw=True)

    def move(self, done: float, text: str, remaining: float | None) -> None:
        """Move the bar."""
        if time.monotonic() - self._shown < self.EVERY:
            return
        self._shown = time.monotonic()
        words = printable(f"{self._title}: {text}" if text else self._title)
        rest = "" if remaining is None else f"{span(remaining)} left"
        bar = f'<progress value="{done:.4f}"></progress>' if done else "<progress></progress>"
        self._show(f"{words} {done:.0%} {rest}", f"{bar} {escape(words)} &nbsp; {rest}")

    def end(self) -> None:
        """Remove the bar."""
        self._show("", "")

    def _show(self, plain: str, html: str) -> None:
        self._handle.update({"text/plain": plain, "text/html": html}, raw=True)
