"""Models whose attention has layers and heads, and so many heat maps to choose from."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Batch


class Map(NamedTuple):
    """One heat map: a view of a layer's weights, of one head or the mean over heads (None)."""

    view: str
    layer: int
    head: int | None


@runtime_checkable
class Layered(Protocol):
    """What a model with layers and heads can do beside `heedmap.models.trace.Model`."""

    kinds: list[str]
    """Kinds of positions: words, punctuation, then the special tokens by name."""

    def maps(self) -> list[Map]:
        """Every heat map that it could show."""
        ...

    def shown_map(self) -> Map:
        """The one that is on trial."""
        ...

    def heat_maps(self, batch: Batch, wanted: Sequence[Map]) -> Float[Tensor, "B M T"]:
        """Those heat maps, each as shares of its sum."""
        ...

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B L H"]]:
        """Numbers about every head (see `heedmap.huggingface.maps.layer_facts`)."""
        ...
