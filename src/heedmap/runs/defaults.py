"""What data sets are trained and audited with where nothing is given; `heedmap` registers the papers' own."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedmap.settings import DataSettings, Settings

Defaults = Callable[["DataSettings"], Mapping[str, Any]]
_registered: list[Defaults] = []


def register(defaults: Defaults) -> None:
    """Ask `defaults` too, whose answer is empty for data that it does not know."""
    _registered.append(defaults)


def defaults_for(data: "DataSettings", group: "type[Settings]") -> dict[str, Any]:
    """Return the registered defaults for a data set, of the fields of one settings class."""
    found = {name: value for of in _registered for name, value in of(data).items()}
    return {name: value for name, value in found.items() if name in group.model_fields}
