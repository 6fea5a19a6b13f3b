"""The linear read-out of a single-row model, which the closed forms work on."""

from jaxtyping import Float
from torch import Tensor

from heedmap.models.trace import Trace


def is_linear(trace: Trace) -> bool:
    """Return whether the closed forms apply: one row of weights, and logits linear in it."""
    return trace.readout is not None and trace.attention.shape[1] == 1


def linear(
    trace: Trace,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T C"], Float[Tensor, " C"]]:
    """Return weights, relevance and bias in float64. The weights sum to 1 in float64, not only in float32.

    Requires `is_linear`.
    """
    assert trace.readout is not None
    weights = trace.attention[:, 0].double()
    return (
        weights / weights.sum(-1, keepdim=True),
        trace.readout.relevance[:, 0].double(),
        trace.readout.bias.double(),
    )
