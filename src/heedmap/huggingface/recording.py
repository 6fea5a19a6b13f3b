"""What attention was and what it became: keys and weights of a pass, and how far two passes are apart."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.huggingface.door import Call
from heedmap.huggingface.interventions import Intervention
from heedmap.measures import jensen_shannon, total_variation


class Recorder(Intervention):
    """Keeps keys (B, H', N, D) and weights (B, H, Q, N) by layer; last in a chain it sees the final ones.

    With `live` they can be differentiated; otherwise they are detached.
    """

    def __init__(self, live: bool = False, weights: bool = True) -> None:
        super().__init__()
        self.live, self.wanted = live, weights
        self.seen_keys: dict[int, Tensor] = {}
        self.seen_weights: dict[int, Tensor] = {}

    def edit_keys(self, call: Call) -> None:
        """Looks on."""
        assert call.key is not None
        self.seen_keys[call.index] = call.key if self.live else call.key.detach()

    def edit_weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        """Looks on."""
        if self.wanted:
            self.seen_weights[call.index] = weights if self.live else weights.detach()


@dataclass(frozen=True)
class Distances:
    """How far two passes over a batch are apart in each layer, a number for each text.

    tvd, jsd: of the weights, mean over heads and real query rows. key: ‖K − K'‖_F / ‖K‖_F over the
    real positions; 0 where the keys stayed, 1 where they vanished, √2 for unrelated keys of equal length.
    """

    tvd: Float[Tensor, "L B"]
    jsd: Float[Tensor, "L B"]
    key: Float[Tensor, "L B"]


def distances(before: Recorder, after: Recorder, mask: Bool[Tensor, "B N"]) -> Distances:
    """Distances of two recorded passes over the same batch; `mask` is true where a token is."""
    tvd: list[Tensor] = []
    jsd: list[Tensor] = []
    key: list[Tensor] = []
    for layer, old in before.seen_weights.items():
        new = after.seen_weights[layer]
        for gathered, measure in ((tvd, total_variation), (jsd, jensen_shannon)):
            gathered.append(mean_over_rows(measure(old.float(), new.float()), mask))
        key.append(key_distance(before.seen_keys[layer], after.seen_keys[layer], mask))
    return Distances(torch.stack(tvd), torch.stack(jsd), torch.stack(key))


def key_distance(
    before: Float[Tensor, "B Hk N D"], after: Float[Tensor, "B Hk N D"], mask: Bool[Tensor, "B N"]
) -> Float[Tensor, " B"]:
    """‖K − K'‖_F / ‖K‖_F over the real positions: a text's length does not rule it."""
    real = mask[:, None, :, None]
    change = (before - after).masked_fill(~real, 0.0).float().flatten(1)
    size: Tensor = before.masked_fill(~real, 0.0).float().flatten(1).norm(dim=1)
    # The root has no slope at 0: equal keys would give a gradient of NaN.
    apart: Tensor = (change.square().sum(1) + 1e-12).sqrt()
    relative: Tensor = apart / size.clamp(min=1e-6)
    return relative


def mean_over_rows(
    values: Float[Tensor, "B H Q"], mask: Bool[Tensor, "B N"]
) -> Float[Tensor, " B"]:
    """A text's mean over heads and those query rows that are tokens.

    All rows count where the queries are not the keys' own positions (cross attention).
    """
    if values.shape[2] != mask.shape[1]:
        return values.mean((1, 2))
    rows = mask.to(values.dtype)
    return (values.mean(1) * rows).sum(1) / rows.sum(1).clamp(min=1)
