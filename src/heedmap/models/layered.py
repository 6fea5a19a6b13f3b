"""Define models whose attention has layers and heads, and so several heat maps."""

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
class Continuing(Protocol):
    """What a model offers that may read a changed text from its first change on."""

    def continued(
        self, texts: Sequence[Sequence[str]], changed: Sequence[Sequence[Sequence[str]]]
    ) -> list[Tensor | None]:
        """Return the logits (N, C) of each text's changed texts, read from their first change on.

        None for a text that must be read whole.
        """
        ...


@runtime_checkable
class Layered(Protocol):
    """What a model with layers and heads offers beside `heedmap.models.trace.Model`."""

    kinds: list[str]
    """Kinds of positions: words, punctuation, then the special tokens by name."""

    def maps(self) -> list[Map]:
        """List every heat map that the model offers."""
        ...

    def map_on_trial(self) -> Map:
        """Return the heat map on trial."""
        ...

    def heat_maps(
        self, batch: Batch, maps: Sequence[Map], attention: Tensor | None = None
    ) -> Float[Tensor, "B M T"]:
        """Compute the wanted heat maps, each scaled to sum to 1, under imposed weights (B, K, P) if given."""
        ...

    def plain(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """Return the weights of the rows that the map on trial uses, laid out as by `Model.to_heatmap`."""
        ...

    def unpadded(
        self, trace: Trace, attention: Float[Tensor, "B K P"]
    ) -> list[Float[Tensor, "_ _"]]:
        """Return each text's weights without padding, as if the model had read the text alone."""
        ...

    def reach(self, trace: Trace) -> Float[Tensor, " B"]:
        """Bound the JSD of the map on trial over all weights of its layer, whatever is predicted."""
        ...

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B layers H"]]:
        """Measure every head (see `heedmap.huggingface.maps.layer_facts`)."""
        ...
