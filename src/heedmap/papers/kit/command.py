"""The papers' commands: their options, where a reproduction goes, and the printed result."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heedmap.errors import InputError
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.data.parallel import Parallel
    from heedmap.papers.kit.registry import Paper

Values = dict[str, Any]


class Option(NamedTuple):
    """An option of a paper's command; `flag` is what a user types where that is not the name."""

    help: str
    kind: Any = str
    default: Any = None
    flag: str = ""


SAMPLES = {
    "train_texts": Option("Sample this many training texts. [all]", int),
    "test_texts": Option("Sample this many test texts, and this many dev texts. [all]", int),
}
RUNNING = {
    "overwrite": Option("Replace results of other settings in --out.", bool, False),
    "workers": Option("Number of processes, each of one thread. [one per core]", int),
}


PAIRS = {
    "source": Option("Column or file ending of the source language. [de]", flag="--from"),
    "target": Option("Column or file ending of the target language. [en]", flag="--to"),
    "links": Option("Column of the links between words, such as align_auto:en-de."),
    "gold": Option(
        "Further sentence pairs, whose words people linked: a file, a folder or a Hub name."
    ),
    "gold_links": Option("Column of the links in --gold. [sure:FROM-TO]"),
}


def running(place: str, default: Path | None = None) -> dict[str, Option]:
    """Return the options that end every command: where it all goes, and how it is run."""
    return {"out": Option(place, Path, default), **RUNNING}


def with_options(
    argument: str, argument_help: str, options: Mapping[str, Option], *, several: bool = False
) -> Callable[[Callable[[Any, Values], None]], Callable[..., None]]:
    """Make a command of a function of its argument and the options that were given or have a default."""

    def decorate(function: Callable[[Any, Values], None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            subject = values.pop(argument)
            function(subject, {name: value for name, value in values.items() if value is not None})

        subject_type: Any = list[str] if several else str
        annotations: dict[str, Any] = {
            argument: Annotated[subject_type | None, typer.Argument(help=argument_help)]
        }
        for name, option in options.items():
            flag = option.flag or f"--{name.replace('_', '-')}"
            parser = opt.folder if name == "out" else None
            kind = option.kind if option.default is not None else option.kind | None
            annotations[name] = Annotated[kind, typer.Option(flag, help=option.help, parser=parser)]
        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation,
                default=options[name].default if name in options else None,
            )
            for name, annotation in annotations.items()
        ])  # fmt: skip
        command.__annotations__ = annotations
        return command

    return decorate


def taken(values: Values, *names: str) -> Values:
    """Take some options out of those that were given."""
    return {name: values.pop(name) for name in names if name in values}


def how_to_run(values: Values, default_folder: str) -> Values:
    """Take out where a reproduction goes, by default a folder of runs/, and how it is run."""
    running_options = taken(values, "out", "overwrite", "workers")
    return {"out": DefaultPlace(Path("runs") / default_folder), **running_options}


def read_pairs(data: str, pair_options: Values) -> tuple["Parallel", Values]:
    """Read sentences and their translations by the options `PAIRS`; return them and the paper's arguments."""
    from heedmap.data.parallel import load_links, load_parallel

    languages = pair_options.get("source", "de"), pair_options.get("target", "en")
    arguments: Values = {"source": languages[0], "target": languages[1]}
    if (gold := pair_options.get("gold")) is not None:
        column = pair_options.get("gold_links", f"sure:{languages[0]}-{languages[1]}")
        arguments["gold"] = load_links(gold, *languages, column)
    return load_parallel(data, *languages, align=pair_options.get("links")), arguments


def say_what_is_needed(needs: str, name: str | None) -> None:
    """Print what a paper needs.

    Raises:
        InputError: its data were named, without their place.
    """
    typer.echo(needs)
    if name is not None:
        raise InputError(f"{name}: expected --data, the place where {name} is")


def show(paper: "Paper[Any]", reproduction: Any, folder: Path) -> None:
    """Print the result of a reproduction and where it is."""
    from heedmap.papers.kit.render import FILES, terminal
    from heedmap.terminal.output import show as print_all

    print_all(*terminal(paper.result(reproduction)), width=160)
    main_file, *other_files = FILES
    say(
        f"Result: {folder / main_file} (also {', '.join(Path(name).suffix for name in other_files)})"
    )
