"""The parts that every command shares: options in groups, examples, --quiet, --version, -h and --json."""

import inspect
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from heedmap import __version__
from heedmap.errors import InputError
from heedmap.terminal.displays import be_quiet, hide_start
from heedmap.terminal.memory import NEEDED, check_memory

HELP = {"help_option_names": ["-h", "--help"]}
GENERAL = "General"
_OF_FILES = re.compile(
    r"--(?:(?:text|label|query|id)-column|separator|encoding|quotes|header|markup|tokenizer)"
)


class Command(TyperCommand):
    """A command whose help shows its options in groups, and examples."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where an error names options of others, say that this one has them not."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            available = {name for parameter in self.params for name in parameter.opts}
            foreign = sorted({*_OF_FILES.findall(str(error))} - available)
            if not foreign:
                raise
            remedy = f"this command has no {' and no '.join(foreign)}: change the file instead"
            raise InputError(f"{error} ({remedy})") from error

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section per group; the options of all commands come last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                if parameter.param_type_name == "argument":
                    group = "Arguments"
                elif parameter.name == "help":
                    group = GENERAL
                else:
                    group = getattr(parameter, "rich_help_panel", None) or "Options"
                groups.setdefault(group, []).append(record)
        for group in sorted(groups, key=lambda name: name == GENERAL):
            with formatter.section(group):
                formatter.write_dl(groups[group])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are to be typed."""
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def add_command(
    app: typer.Typer,
    name: str,
    function: Callable[..., None],
    examples: Sequence[str] = (),
    cls: type[Command] = Command,
    memory: float = NEEDED,
) -> None:
    """Add a command with the options that all commands share, and examples at the end of its help.

    It refuses to start under a memory limit of less than `memory` GB.
    """
    signature = inspect.signature(function)
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values()]

    def run(**values: Any) -> None:
        check_memory(memory)
        function(**{name: values[name] for name in signature.parameters})

    run.__doc__, run.__name__ = function.__doc__, function.__name__
    run.__signature__ = signature.replace(parameters=[*parameters, *_COMMON])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*parameters, *_COMMON)}
    app.command(name, cls=cls, epilog="\n".join(examples) or None)(run)


def version(is_wanted: bool) -> None:
    """Print the version and stop, if the user asked for it."""
    if is_wanted:
        typer.echo(f"heedmap {__version__}")
        raise typer.Exit


def _quiet(is_wanted: bool) -> None:
    if is_wanted:
        be_quiet()
        warnings.showwarning = lambda *_, **__: None


Version = Annotated[
    bool,
    typer.Option(
        "--version",
        "-V",
        help="Print the version.",
        callback=version,
        is_eager=True,
        rich_help_panel=GENERAL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only the result and errors, without progress and notes.",
        callback=_quiet,
        is_eager=True,
        rich_help_panel=GENERAL,
    ),
]
_COMMON = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    for name, kind in (("quiet", Quiet), ("version", Version))
]


def _machine(is_wanted: bool) -> bool:
    if is_wanted:
        hide_start()
    return is_wanted


Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as JSON, and nothing else on stdout.", callback=_machine
    ),
]


def print_json(value: Any) -> None:
    """Print a value as JSON in ASCII; numbers that are not finite are null."""
    sys.stdout.write(json.dumps(_finite(value), indent=1, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
