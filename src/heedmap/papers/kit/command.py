"""Shared by the papers' commands: options, and the printed result."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.papers.kit.result import Result

Workers = Annotated[
    int | None, typer.Option(help="How many processes, each of one thread. [one per core]")
]
TrainTexts = Annotated[int | None, typer.Option(help="A sample of the train split.")]
TestTexts = Annotated[int | None, typer.Option(help="A sample of the test split, and of dev.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what other settings made.")]


def show(result: "Result", out: Path) -> None:
    """Print a result and where it is."""
    from heedmap.papers.kit.render import FILES, terminal
    from heedmap.terminal.output import show as print_all

    print_all(*terminal(result), width=160)
    first, *others = FILES
    say(f"Result: {out / first} (also {', '.join(Path(name).suffix for name in others)})")
