"""The progress bar of commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from heedmap.terminal.output import cell


@contextmanager
def progress() -> Iterator[Any]:
    """Show a rich progress bar on stderr, removed at the end of the block."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Description(TextColumn):
        def render(self, task: Task) -> Text:
            return cell(task.description)

    columns = (Description(""), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # A log file gets no bar.
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield bar
