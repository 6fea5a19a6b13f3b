"""Shared by the papers' commands: options, the progress bar, the printed result."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal.output import say
from heedmap.terminal.progress import progress

if TYPE_CHECKING:
    from heedmap.papers.kit.result import Result
    from heedmap.training.fit import Report

Workers = Annotated[
    int | None, typer.Option(help="How many processes, each of one thread. [one per core]")
]
TrainTexts = Annotated[int | None, typer.Option(help="A sample of the train split.")]
TestTexts = Annotated[int | None, typer.Option(help="A sample of the test split, and of dev.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what other settings made.")]


@contextmanager
def reporting() -> "Iterator[Report]":
    """Show a progress bar while a reproduction runs; yield the function that moves it."""
    with progress() as bar:
        task = bar.add_task("reading the texts", total=None)
        yield lambda step, total, text: bar.update(
            task, completed=step, total=total, description=text
        )


def show(result: "Result", out: Path) -> None:
    """Print a result and where it is."""
    from heedmap.papers.kit.render import FILES, terminal
    from heedmap.terminal.output import show as print_all

    print_all(*terminal(result), width=160)
    first, *others = FILES
    say(f"Result: {out / first} (also {', '.join(Path(name).suffix for name in others)})")
