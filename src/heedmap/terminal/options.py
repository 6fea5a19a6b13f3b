"""Command options, generated from the fields of the settings classes."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from heedmap.errors import InputError
from heedmap.keywords import Group, choices_of, described, extra_of, options_of
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import OptionSubset
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings, TransformerSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings

# In a command's help, the options of these settings have a section of their own.
SECTIONS = {
    DataSettings: "Data",
    ModelSettings: "Model",
    TrainSettings: "Training",
    TransformerSettings: "Transformer",
    FineTuneSettings: "Transformer",
    AuditSettings: "Audit",
}


class Given:
    """The options that the user gave, by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def of(self, *groups: Group) -> dict[str, Any]:
        """Return the options that are fields of these settings."""
        options = options_of(*groups)
        return {name: value for name, value in self.values.items() if name in options}

    def allow(self, *groups: Group, of: str, or_else: str = "") -> None:
        """Raise InputError, which ends with the other remedy, if one was given of no such settings."""
        allowed = self.of(*groups)
        if wrong := [f"--{name.replace('_', '-')}" for name in self.values if name not in allowed]:
            kind, them = ("not an option", "it") if len(wrong) == 1 else ("not options", "them")
            raise InputError(f"{', '.join(wrong)}: {kind} of {of}; leave {them} out{or_else}")


def with_options(*groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter `given` by one option per field of some settings.

    A field of several settings (`seed`) is one option.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters_of_command = inspect.signature(command).parameters

        def run(**values: Any) -> None:
            rest = {name: values.pop(name) for name in parameters_of_command if name != "given"}
            # An option that may be given several times is an empty list where it is not given.
            options = {name: value for name, value in values.items() if value not in (None, [])}
            command(given=Given(options), **rest)

        parameters: list[inspect.Parameter] = []
        for name, parameter in parameters_of_command.items():
            if name == "given":
                sections = _sections(groups)
                parameters += [
                    _parameter(name, field, sections[name])
                    for name, field in options_of(*groups).items()
                ]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def _sections(groups: tuple[Group, ...]) -> dict[str, str | None]:
    """Return the section of the help that each option belongs to."""
    section_of: dict[str, str | None] = {}
    for group in groups:
        settings = group.settings if isinstance(group, OptionSubset) else group
        for name in group.options():
            section_of.setdefault(name, SECTIONS.get(settings))
    return section_of


def _parameter(name: str, field: FieldInfo, section: str | None) -> inspect.Parameter:
    also = extra_of(field)["also"]
    names = (f"--{name.replace('_', '-')}", *([f"--{also}"] if also else []))
    kind: Any = list[str] if extra_of(field)["several"] else _type(field)
    choices = choices_of(field)
    choice_options = one_of(*choices) if choices else {}
    option = typer.Option(*names, help=described(field), rich_help_panel=section, **choice_options)
    annotation: Any = Annotated[kind | None, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _type(field: FieldInfo) -> type:
    """Return the type that the command line converts to before the settings check the value."""
    kinds = {_bare(kind) for kind in get_args(field.annotation) or (field.annotation,)}
    return next((kind for kind in (bool, int, float) if kinds <= {kind, type(None)}), str)


def _bare(kind: Any) -> Any:
    """Return a type without its annotations."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def one_of(*choices: str) -> dict[str, Any]:
    """Return arguments of `typer.Option` that show, complete and check the choices."""

    def check(value: str | None) -> str | None:
        if value is None or value in choices:
            return value
        close_matches = get_close_matches(value.lower(), choices, 1, 0.5)
        guess = f"; did you mean {close_matches[0]}?" if close_matches else ""
        *names, final = choices
        raise typer.BadParameter(f"expected {', '.join(names)} or {final}, got {value!r}{guess}")

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return {
        "metavar": f"[{'|'.join(choices)}]",
        "callback": check,
        "autocompletion": complete,
    }


def names(text: str) -> list[str]:
    """Split a comma-separated list of names.

    >>> names("softmax, entmax15,")
    ['softmax', 'entmax15']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def folder(path: object) -> Path:
    """Parse and check the name of an output folder, before any work."""
    from heedmap.files.storage import refuse_place

    return _checked_path(str(path), refuse_place)


def file(path: object) -> Path:
    """Parse and check the name of an output file, before any work."""
    from heedmap.files.storage import refuse_special

    return _checked_path(str(path), refuse_special)


def _checked_path(name: str, check: Callable[[Path], None]) -> Path:
    if not name or "\0" in name:
        raise typer.BadParameter(f"expected a name, got {name!r}")
    try:
        check(Path(name))
    except InputError as error:  # typer alone would show only the name
        raise typer.BadParameter(str(error)) from error
    return Path(name)


# Options that are not settings: where texts and models come from, and where the run goes.
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="A CSV, JSONL, Parquet or Excel file (.gz too), a folder with train/dev/test files, a folder of "
        "texts or pictures per class, a folder of bags of vectors, a Hub name, or an embedded corpus: reviews, "
        "reviews-stars, biographies-gender, biographies-occupation, babi_qa1, babi_qa2, babi_qa3, of bags "
        "digit-bags, four_bags, pos_neg, adjacent_pairs, and of pictures digit-pictures.",
    ),
]
Transformer = Annotated[
    str | None,
    typer.Option("--model", help="A Hugging Face classifier: its folder, or its name on the Hub."),
]
RunFolder = Annotated[
    Path | None,
    typer.Option("--run", help="Audit a trained run instead of --data."),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Device that a transformer runs on: cpu, cuda, or cuda:1 for the second GPU. [cpu]",
        show_default=False,
    ),
]
Variant = Annotated[
    str | None,
    typer.Option(
        "--variant",
        help="Open this model instead, which `heedmap retrain` trained for the run; `heedmap list RUN` shows "
        "the names. [the run's own model]",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="The run folder. [runs/DATA-ENCODER-..., or the first free of ...-2, ...-3; with "
        "--variant RUN-NAME]",
        parser=folder,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace results of other settings in --out."),
]
