"""`heedmap reproduce PAPER`: run published experiments again and compare the numbers."""

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from heedmap.cli.shards import with_engines
from heedmap.papers.kit.registry import command, names
from heedmap.terminal.commands import add_command


class Papers(TyperGroup):
    """A command per registered paper, looked up on use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the papers' commands, then parse."""
        self.commands = {name: _command(name) for name in names()}
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the paper, or name one of which a part was given."""
        similar = [name for name in self.commands if args[0] and args[0].lower() in name]
        if similar and args[0] not in self.commands:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{similar[0]}'?")
        return super().resolve_command(ctx, args)


def _command(name: str) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    add_command(single, name, with_engines(command(name)))
    return get_command(single)


app = typer.Typer(
    cls=Papers,
    help="Run a paper's experiments again and put its numbers beside ours.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
