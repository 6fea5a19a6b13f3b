"""Models whose attention has layers and heads, and so many heat maps to choose from."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.models.trace import Trace


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

    def map_on_trial(self) -> Map:
        """The one that is on trial."""
        ...

    def heat_maps(
        self, batch: Batch, wanted: Sequence[Map], attention: Tensor | None = None
    ) -> Float[Tensor, "B M T"]:
        """Those heat maps, each as shares of its sum; with weights (B, K, P) imposed where they are given."""
        ...

    def plain(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """The weights of the rows that the map on trial is made of, shown as `Model.to_heatmap` does."""
        ...

    def unpadded(
        self, trace: Trace, attention: Float[Tensor, "B K P"]
    ) -> list[Float[Tensor, "_ _"]]:
        """Each text's weights as the model has them where it reads the text alone: no rows of padding."""
        ...

    def reach(self, trace: Trace) -> Float[Tensor, " B"]:
        """What the JSD of the map on trial cannot exceed, whatever the layer's weights and the prediction."""
        ...

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B L H"]]:
        """Numbers about every head (see `heedmap.huggingface.maps.layer_facts`)."""
        ...
