"""`heedmap reproduce PAPER`: published experiments run again, their numbers beside ours."""

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from heedmap.papers.kit.registry import command, names


class Papers(TyperGroup):
    """A command for every paper that is registered, looked up when one is asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Know the papers before the arguments are read."""
        self.commands = {name: _command(name) for name in names()}
        return super().parse_args(ctx, args)


def _command(name: str) -> Any:
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    one.command(name)(command(name))
    return get_command(one)


app = typer.Typer(
    cls=Papers,
    help="Run a paper's experiments again and put its numbers beside ours.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
