"""Map the attended context to one number per class (Jain & Wallace 2019)."""

from jaxtyping import Float
from torch import Tensor, nn


class PairDecoder(nn.Module):
    """W tanh(W_c c + W_q q + b) + b', W_c and W_q from D to D // 2: the decoder of pairs of texts.

    It is linear in the context up to `inner`: the attention can sum W_c h_t.
    """

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.inner = nn.Linear(size, size // 2)
        self.query = nn.Linear(size, size // 2)
        self.outer = nn.Linear(size // 2, classes)

    def forward(
        self, inner: Float[Tensor, "B S A"], query: Float[Tensor, "B 1 D"]
    ) -> Float[Tensor, "B S C"]:
        """Return logits from W_c c + b and the query's vector."""
        outputs: Tensor = self.outer((inner + self.query(query)).tanh())
        return outputs
