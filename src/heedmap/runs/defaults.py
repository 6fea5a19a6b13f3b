"""Default settings by data set; `heedmap` registers those of the papers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedmap.settings.base import Settings
    from heedmap.settings.data import DataSettings

Defaults = Callable[["DataSettings"], Mapping[str, Any]]
_registered: list[Defaults] = []


def register(defaults: Defaults) -> None:
    """Register a source of defaults, which returns nothing for data that it does not know."""
    _registered.append(defaults)


def defaults_for(data: "DataSettings", group: "type[Settings]") -> dict[str, Any]:
    """Return the registered defaults for a data set, of the fields of one settings class."""
    values = {name: value for source in _registered for name, value in source(data).items()}
    return {name: value for name, value in values.items() if name in group.model_fields}
