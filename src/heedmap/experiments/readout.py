"""The linear read-out of a single-row model, which the closed forms work on."""

from jaxtyping import Float
from torch import Tensor

from heedmap.errors import InputError
from heedmap.models.trace import Trace


def linear(
    trace: Trace,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T C"], Float[Tensor, " C"]]:
    """Weights, relevance and bias, in float64; the weights sum to 1 to its precision, not float32's.

    Raises:
        InputError: the model has no linear read-out, or several rows of weights.
    """
    if trace.readout is None or trace.attention.shape[1] != 1:
        raise InputError(
            "this experiment needs one row of attention and a linear read-out; this model has "
            f"{trace.attention.shape[1]} rows"
        )
    weights = trace.attention[:, 0].double()
    return (
        weights / weights.sum(-1, keepdim=True),
        trace.readout.relevance[:, 0].double(),
        trace.readout.bias.double(),
    )
