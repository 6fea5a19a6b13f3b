"""Record keys and weights of a pass, and measure how far two passes are apart."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.huggingface.attention_hook import Call
from heedmap.huggingface.interventions import Intervention
from heedmap.measures import jensen_shannon, total_variation


class Recorder(Intervention):
    """Record keys (B, H', N, D) and weights (B, H, Q, N) per layer; last in a chain, it sees the final ones.

    With `live` they keep their graph; otherwise they are detached.
    """

    def __init__(self, live: bool = False, weights: bool = True) -> None:
        super().__init__()
        self.live, self.keeps_weights = live, weights
        self.seen_keys: dict[int, Tensor] = {}
        self.seen_weights: dict[int, Tensor] = {}

    def edit_keys(self, call: Call) -> None:
        """Record the keys."""
        assert call.key is not None
        self.seen_keys[call.index] = call.key if self.live else call.key.detach()

    def edit_weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        """Record the weights."""
        if self.keeps_weights:
            self.seen_weights[call.index] = weights if self.live else weights.detach()


@dataclass(frozen=True)
class Distances:
    """How far two passes over a batch are apart, one number per layer and text.

    tvd, jsd: of the weights, mean over heads and real query rows. key: ‖K − K'‖_F / ‖K‖_F over the
    real positions; 0 for unchanged keys, 1 for keys of 0, √2 for unrelated keys of equal length.
    """

    tvd: Float[Tensor, "layers B"]
    jsd: Float[Tensor, "layers B"]
    key: Float[Tensor, "layers B"]


def distances(original: Recorder, changed: Recorder, mask: Bool[Tensor, "B N"]) -> Distances:
    """Measure two recorded passes over the same batch; `mask` is true at tokens."""
    tvd: list[Tensor] = []
    jsd: list[Tensor] = []
    key: list[Tensor] = []
    for layer, old in original.seen_weights.items():
        new = changed.seen_weights[layer]
        for gathered, measure in ((tvd, total_variation), (jsd, jensen_shannon)):
            gathered.append(mean_over_rows(measure(old.float(), new.float()), mask))
        key.append(key_distance(original.seen_keys[layer], changed.seen_keys[layer], mask))
    return Distances(torch.stack(tvd), torch.stack(jsd), torch.stack(key))


def key_distance(
    original: Float[Tensor, "B Hk N D"],
    changed: Float[Tensor, "B Hk N D"],
    mask: Bool[Tensor, "B N"],
) -> Float[Tensor, " B"]:
    """Return ‖K − K'‖_F / ‖K‖_F over the real positions, which does not grow with a text's length."""
    real = mask[:, None, :, None]
    change = (original - changed).masked_fill(~real, 0.0).float().flatten(1)
    size: Tensor = original.masked_fill(~real, 0.0).float().flatten(1).norm(dim=1)
    # The root has no derivative at 0: equal keys would give a gradient of NaN.
    distance: Tensor = (change.square().sum(1) + 1e-12).sqrt()
    relative: Tensor = distance / size.clamp(min=1e-6)
    return relative


def mean_over_rows(
    values: Float[Tensor, "B H Q"], mask: Bool[Tensor, "B N"]
) -> Float[Tensor, " B"]:
    """Return each text's mean over heads and those query rows that are tokens.

    All rows count if the queries are not at the keys' positions (cross-attention).
    """
    if values.shape[2] != mask.shape[1]:
        return values.mean((1, 2))
    rows = mask.to(values.dtype)
    return (values.mean(1) * rows).sum(1) / rows.sum(1).clamp(min=1)
