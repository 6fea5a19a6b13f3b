"""The one error a user is meant to see, and checks that raise it: of values, names and optional packages."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from traceback import walk_tb
from typing import TypeVar

from pydantic import ValidationError

T = TypeVar("T")
# What ends a line or moves the cursor: paths, columns and labels may hold it.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

# A model's error has passed through one of these modules.
_RUNS_MODELS = re.compile(r"torch\.nn\.modules\.module$|torch\.autograd\b|transformers\b")
_NO_MEMORY = re.compile("out of memory|allocate memory|not enough memory")

_EXPECTED_OF = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    # A path's bytes, which Python keeps as surrogates.
    "string_unicode": "letters in UTF-8; give the file or the folder another name",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
}


class InputError(ValueError):
    """Bad input: one line that says what was expected, what came and what to do.

    The command line prints it without a traceback and exits with code 2. Line breaks and other control
    characters in it are written as escapes.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_CONTROL.sub(lambda match: repr(match[0])[1:-1], message))


class MissingError(InputError, KeyError):
    """A name that there is not, of a table or a figure: the line lists those there are."""

    __str__ = Exception.__str__  # a KeyError's would put quotes around it


class KindError(InputError, TypeError):
    """An argument of another kind than the function takes."""


class ModelError(InputError):
    """What a user's model has raised, its `__cause__`, in one line."""


@contextmanager
def running_model(model: object, step: str) -> Iterator[None]:
    """Turn what a user's model raises in the block into a `ModelError` with its name, the step and the cause.

    `model` is the name, or has settings with one; models of heedmap's own have none. Their errors pass, as do
    those of code that runs no model, and with HEEDMAP_TRACEBACK all. Without memory it is an `InputError`.
    """
    try:
        yield
    except (InputError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in a tokenizer is no Exception
        settings = getattr(model, "settings", model)
        named = getattr(settings, "source", getattr(settings, "module", None))
        name = settings if isinstance(settings, str) else named
        modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
        is_of_model = any(map(_RUNS_MODELS.match, modules)) or isinstance(error, FloatingPointError)
        if name is None or not is_of_model or os.environ.get("HEEDMAP_TRACEBACK"):
            raise
        line = (str(error).strip().splitlines() or [""])[0][:200].rstrip(".: ")
        said = f"{name}: {step.replace('_', ' ')}: {type(error).__name__}: {line}"
        if _NO_MEMORY.search(line):
            raise InputError(f"{said}; choose a smaller model or fewer --batch-tokens") from error
        raise ModelError(f"{said}; choose another model") from error


class NamedOnce(dict[str, T]):
    """Values by name, of which none replaces another: a second one of a name is an `InputError`.

    `noun` says in the error what the names are of.
    """

    def __init__(self, noun: str, pairs: Iterable[tuple[str, T]] = ()) -> None:
        super().__init__()
        self.noun = noun
        for name, value in pairs:
            self[name] = value

    def __setitem__(self, name: str, value: T) -> None:
        if name in self:
            raise InputError(f"{self.noun}: expected each once, got {name!r} twice; rename one")
        super().__setitem__(name, value)


def check_installed(package: str, extra: str, purpose: str) -> None:
    """Check that an optional package is there, before anything is written.

    Args:
        package: the name that is imported.
        extra: the extra of heedmap that brings it.
        purpose: what needs it, as the message begins.

    Raises:
        InputError: it is not installed.
    """
    if find_spec(package) is None:
        raise InputError(
            f"{purpose} needs the package {package}, which is not installed; "
            f'pip install "heedmap[{extra}]"'
        )


def expected(error: ValidationError) -> tuple[str, object]:
    """Return what the first invalid value should have been, as a clause, and the value that came."""
    problem = error.errors(include_url=False)[0]
    message: str = problem["msg"]
    kind = _EXPECTED_OF.get(problem["type"])
    if kind is not None:
        limits = problem.get("ctx", {})
        said = "expected " + kind.format(**{k: f"{limit:.17g}" for k, limit in limits.items()})
    elif message.startswith("Input should be "):
        said = "expected " + message.removeprefix("Input should be ")
    else:
        said = f"{message[:1].lower()}{message[1:]}"
    return said, problem["input"]
