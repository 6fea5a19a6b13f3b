"""Functions whose keywords are the fields of settings: signature and documentation are made from these."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from heedmap.settings import Part, Settings

F = TypeVar("F", bound=Callable[..., Any])
Group = type[Settings] | Part


def takes(*groups: Group) -> Callable[[F], F]:
    """Show the options of some settings in the function's signature and docstring, where `{options}` stands.

    The function itself takes them as `**settings`; what is None counts as not given.
    """

    def decorate(function: F) -> F:
        fields = {
            name: field for group in reversed(groups) for name, field in group.options().items()
        }
        names = dict.fromkeys(name for group in groups for name in group.options())
        lines, parameters = [], []
        for name in names:
            extra, default = fields[name].json_schema_extra, fields[name].default
            assert isinstance(extra, dict)
            shown = extra["shown"] or default
            lines.append(
                f"{name}: {fields[name].description}" + ("" if shown is None else f" [{shown}]")
            )
            parameters.append(
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=None if extra["shown"] else default,
                    annotation=fields[name].annotation,
                )
            )
        function.__doc__ = (function.__doc__ or "").replace("{options}", "\n        ".join(lines))
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
    known = {option for group in groups for option in group.options()}
    if foreign := [option for option in settings if option not in known]:
        raise TypeError(
            f"{name}() got an unexpected keyword {foreign[0]!r}; there are {', '.join(sorted(known))}"
        )
    given = {option: value for option, value in settings.items() if value is not None}
    return [
        {option: given[option] for option in group.options() if option in given} for group in groups
    ]
