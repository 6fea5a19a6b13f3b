"""The type checker behind jaxtyping's import hook in the tests: beartype, once per function.

A function that is defined inside another is decorated anew at every call of that one, and beartype then
writes and compiles its checks again, which took most of the time of some tests. What jaxtyping hands to the
type checker is an empty function of the same signature, so the checks of one are the checks of all.
"""

from collections.abc import Callable
from typing import Any

from beartype import beartype

_CHECKED: dict[tuple[Any, ...], Callable[..., Any]] = {}


def typechecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype's checks of an empty function, the same for the same name and annotations."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    key = (
        function.__module__,
        function.__qualname__,
        (code.co_flags, code.co_posonlyargcount, names, code.co_code),
        (len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ())),
        tuple(function.__annotations__.items()),
    )
    try:
        if key not in _CHECKED:
            _CHECKED[key] = beartype(function)
    except TypeError:  # an annotation that cannot be a key
        return beartype(function)
    return _CHECKED[key]
