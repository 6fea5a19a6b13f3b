"""The type checker behind jaxtyping's import hook in the tests: beartype, once per function.

A nested function is decorated at every call of the outer one, and beartype then compiles its checks again,
which took most of the time of some tests. jaxtyping passes the type checker an empty function of the same
signature, so one function's checks serve all.
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
