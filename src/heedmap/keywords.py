"""Functions whose keywords are fields of settings, from which their signature and docstring are made."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from heedmap.settings.base import OptionSubset, Settings

F = TypeVar("F", bound=Callable[..., Any])
Group = type[Settings] | OptionSubset


def options_of(*groups: Group) -> dict[str, FieldInfo]:
    """Return the options of some settings by name; of duplicates the first."""
    options: dict[str, FieldInfo] = {}
    for group in groups:
        for name, field in group.options().items():
            options.setdefault(name, field)
    return options


def extra_of(field: FieldInfo) -> dict[str, Any]:
    """Return the `shown` and `also` of a field made by `settings.option`."""
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the only values that a field may have; none where it may have any of a type."""
    literal = get_origin(field.annotation) is Literal
    return tuple(map(str, get_args(field.annotation))) if literal else ()


def described(field: FieldInfo, *, choices: bool = False) -> str:
    """Return an option's help, with its choices if wanted, and its default in brackets."""
    text = str(field.description)
    if choices and choices_of(field):
        text += f" ({', '.join(choices_of(field))})"
    default = extra_of(field)["shown"] or field.default
    return text if default is None or default is False else f"{text} [{default}]"


def takes(*groups: Group) -> Callable[[F], F]:
    """Add the options of some settings to a function's signature and, in place of `{options}`, its docstring.

    The function itself takes them as `**settings`; None counts as not given.
    """

    def decorate(function: F) -> F:
        fields = options_of(*groups)
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if extra_of(field)["shown"] else field.default,
                annotation=field.annotation,
            )
            for name, field in fields.items()
        ]
        lines = "\n        ".join(
            f"{name}: {described(field, choices=True)}" for name, field in fields.items()
        )
        function.__doc__ = (function.__doc__ or "").replace("{options}", lines)
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        index = next((i for i, p in enumerate(named) if p.kind == p.KEYWORD_ONLY), len(named))
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*named[:index], *parameters, *named[index:]]
        )
        return function

    return decorate


def split(name: str, settings: dict[str, Any], *groups: Group) -> list[dict[str, Any]]:
    """Split keywords by the settings that they belong to, without those that are None.

    Raises:
        TypeError: a keyword belongs to none of them.
    """
    options = options_of(*groups)
    if unknown := [option for option in settings if option not in options]:
        raise TypeError(
            f"{name}() got an unexpected keyword {unknown[0]!r}; there are {', '.join(sorted(options))}"
        )
    values = {option: value for option, value in settings.items() if value is not None}
    return [
        {option: values[option] for option in group.options() if option in values}
        for group in groups
    ]
