"""Functions whose keywords are the fields of settings: signature and documentation are made from these."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic.fields import FieldInfo

from heedmap.settings import Part, Settings

F = TypeVar("F", bound=Callable[..., Any])
Group = type[Settings] | Part


def options_of(*groups: Group) -> dict[str, FieldInfo]:
    """The options of some settings by name; one that several have is the first one's."""
    found: dict[str, FieldInfo] = {}
    for group in groups:
        for name, field in group.options().items():
            found.setdefault(name, field)
    return found


def extra_of(field: FieldInfo) -> dict[str, Any]:
    """What `settings.option` says of a field beside its help: `shown` and `also`."""
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


def described(field: FieldInfo) -> str:
    """An option's help, with its default in brackets."""
    default = extra_of(field)["shown"] or field.default
    return f"{field.description}" if default is None else f"{field.description} [{default}]"


def takes(*groups: Group) -> Callable[[F], F]:
    """Show the options of some settings in the function's signature and docstring, where `{options}` stands.

    The function itself takes them as `**settings`; what is None counts as not given.
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
        lines = "\n        ".join(f"{name}: {described(field)}" for name, field in fields.items())
        function.__doc__ = (function.__doc__ or "").replace("{options}", lines)
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind != p.VAR_KEYWORD]
        at = next((i for i, p in enumerate(kept) if p.kind == p.KEYWORD_ONLY), len(kept))
        function.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[*kept[:at], *parameters, *kept[at:]]
        )
        return function

    return decorate


def split(name: str, settings: dict[str, Any], *groups: Group) -> list[dict[str, Any]]:
    """The given keywords of each of some settings, without those that are None.

    Raises:
        TypeError: one that none of them has.
    """
    known = options_of(*groups)
    if foreign := [option for option in settings if option not in known]:
        raise TypeError(
            f"{name}() got an unexpected keyword {foreign[0]!r}; there are {', '.join(sorted(known))}"
        )
    given = {option: value for option, value in settings.items() if value is not None}
    return [
        {option: given[option] for option in group.options() if option in given} for group in groups
    ]
