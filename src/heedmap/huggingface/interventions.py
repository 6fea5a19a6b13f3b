"""Change a text's attention: visitors that edit the keys or the weights of chosen layers.

Every intervention edits either the keys, before the weights are computed, or the weights. Later layers
compute their queries and values from the changed states. `Chain` combines several: all edits of keys, then
the model's own attention, then all edits of weights, in order. If a model rotates its keys (RoPE), the
edit comes after the rotation.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from heedmap.errors import InputError
from heedmap.huggingface.attention_hook import Call, Output, Visitor, weighted_sum
from heedmap.models.normalisers import normalise

ACTIVATIONS = ("softmax", "entmax15", "sparsemax")
SHUFFLES = ("positions", "weights", "entries")


class Intervention(Visitor):
    """An edit of keys or weights. Subclasses override `edit_keys` or `edit_weights`.

    `layers` holds the indices of the calls to change (`Call.index`); None means all.
    """

    def __init__(self, layers: Collection[int] | None = None) -> None:
        self.layers = None if layers is None else frozenset(layers)

    def edit_keys(self, call: Call) -> Float[Tensor, "B Hk N D"] | None:
        """Return the keys to use instead of call.key; None keeps them."""
        return None

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return the weights to use instead; None keeps them."""
        return None

    def keys(self, call: Call) -> Float[Tensor, "B Hk N D"] | None:
        """Apply `edit_keys` in the layers of this intervention."""
        return self.edit_keys(call) if self._concerns(call) else None

    def weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Apply `edit_weights` in the layers of this intervention."""
        return self.edit_weights(call, weights) if self._concerns(call) else None

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """Return the layer's output and weights; in training, the weights before dropout."""
        if call.key is None or call.value is None:
            raise InputError(
                f"{call.name}: expected a model on the attention interface of transformers (its keys and "
                "values are needed), got one that is read through its softmax; choose another model"
            )
        edited_key = self.keys(call)
        key = call.key if edited_key is None else edited_key
        call = replace(call, key=key)
        # Eager applies dropout before it returns the weights; an edit must come first, and dropout after it.
        output, weights = eager(key=key, dropout=0.0) if call.dropout else eager(key=key)
        assert weights is not None
        edited = self.weights(call, weights)
        if edited is None and not call.dropout:
            return output, weights
        whole = weights if edited is None else edited
        applied = functional.dropout(whole, call.dropout) if call.dropout else whole
        assert call.value is not None
        return weighted_sum(applied, call.value), whole

    def _concerns(self, call: Call) -> bool:
        return self.layers is None or call.index in self.layers


class Chain(Intervention):
    """Several interventions, each applied to the result of the one before."""

    def __init__(self, *links: Intervention) -> None:
        super().__init__()
        self.links = links

    def edit_keys(self, call: Call) -> Float[Tensor, "B Hk N D"] | None:
        """Return the keys after every link; None if no link changed them."""
        changed = None
        for link in self.links:
            edited = link.keys(call)
            if edited is not None:
                changed, call = edited, replace(call, key=edited)
        return changed

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return the weights after every link; None if no link changed them."""
        changed = None
        for link in self.links:
            edited = link.weights(call, weights if changed is None else changed)
            changed = changed if edited is None else edited
        return changed


class Activation(Intervention):
    """Another map from the same scores to weights: softmax, entmax15 or sparsemax of z / temperature.

    The scores are the logarithms of the model's own weights: log softmax(z)_j = z_j − c with c the same for
    all j, and the three maps do not change when a constant is added to all scores. So position biases, soft
    caps, masks and whatever else the model adds are included. Keys of weight 0 (masked, or 103 nats below the
    row's best in float32) keep it. Exact only if the layer's own map is a softmax without a sink.

    Source: sparsemax(z) = argmin_{p∈Δ} ‖p − z‖² (Martins & Astudillo 2016; Drozdyuk et al. print argmax),
    1.5-entmax (Peters et al. 2019).

    Raises:
        InputError: an unknown name, a temperature that is not positive.
    """

    def __init__(
        self, name: str, temperature: float = 1.0, layers: Collection[int] | None = None
    ) -> None:
        super().__init__(layers)
        if name not in ACTIVATIONS:
            raise InputError(f"expected an activation of {', '.join(ACTIVATIONS)}; got {name!r}")
        if not temperature > 0:
            raise InputError(f"expected a temperature above 0; got {temperature}")
        self.name, self.temperature = name, temperature

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return normalise(log w / temperature)."""
        if self.name == "softmax" and self.temperature == 1.0:
            return None  # unchanged, to the last bit
        wide = weights if weights.dtype == torch.float64 else weights.float()
        # The clamp keeps the gradient of the logarithm finite where a weight is nearly 0.
        scores = wide.clamp(min=torch.finfo(torch.float32).tiny).log()
        return normalise(scores / self.temperature, wide > 0, self.name).to(weights.dtype)


class Uniform(Intervention):
    """1/n on each of the n keys with a positive weight in the row."""

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"]:
        """Return uniform rows. Put this before an `Activation` in a chain: a sparse one shrinks the support."""
        support = (weights > 0).to(weights.dtype)
        return support / support.sum(-1, keepdim=True).clamp(min=1)


class Imposed(Intervention):
    """Imposed weights in one layer: all rows (B, H, Q, N), or one row per text (B, H, N), at `rows`."""

    def __init__(self, layer: int, imposed: Tensor, rows: Int[Tensor, " B"] | None) -> None:
        super().__init__([layer])
        self.imposed, self.rows = imposed, rows

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"]:
        """Return the weights with the imposed ones in place."""
        if self.rows is None:
            return self.imposed
        is_row = torch.arange(weights.shape[2], device=weights.device) == self.rows[:, None]
        return torch.where(is_row[:, None, :, None], self.imposed.unsqueeze(2), weights)


class Keys(Intervention):
    """Keys (B, H', N, D) from a function of the call."""

    def __init__(
        self, replacement: Callable[[Call], Tensor], layers: Collection[int] | None = None
    ) -> None:
        super().__init__(layers)
        self.replacement = replacement

    def edit_keys(self, call: Call) -> Float[Tensor, "B Hk N D"]:
        """Return the function's keys."""
        assert call.key is not None
        keys = self.replacement(call)
        if keys.shape != call.key.shape:
            raise InputError(
                f"{call.name}: expected keys of shape {tuple(call.key.shape)}; got {tuple(keys.shape)}"
            )
        return keys.to(call.key.dtype)


class ShuffledKeys(Intervention):
    """Drozdyuk et al.'s shuffling, in three readings of "randomly rearrange the entries of K".

    * positions: shuffle key vectors along the sequence (all heads together), values stay;
    * weights: shuffle each row's weights ("rearrange the weights in each layer", their section 1);
    * entries: shuffle all the numbers in a text's keys.

    Only real positions are shuffled, and each layer and text draws its own order. `mask` (B, N) is the
    batch's attention mask, true or 1 at tokens; `generator` is on the CPU, so every device draws the same.
    """

    def __init__(
        self,
        mask: Shaped[Tensor, "B N"],
        generator: torch.Generator,
        reading: str = "positions",
        layers: Collection[int] | None = None,
    ) -> None:
        super().__init__(layers)
        if reading not in SHUFFLES:
            raise InputError(f"expected reading = positions, weights or entries; got {reading!r}")
        self.mask, self.generator, self.reading = mask.bool(), generator, reading

    def edit_keys(self, call: Call) -> Float[Tensor, "B Hk N D"] | None:
        """Return shuffled keys; None if `reading` is "weights"."""
        if self.reading == "weights":
            return None
        assert call.key is not None
        mask = self.mask
        if self.reading == "positions":
            order = rearrangement(mask, self.generator)[:, None, :, None]
            return call.key.gather(2, order.expand_as(call.key))
        entry_mask = mask[:, None, :, None].expand_as(call.key).flatten(1)
        order = rearrangement(entry_mask, self.generator)
        return call.key.flatten(1).gather(1, order).view_as(call.key)

    def edit_weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return weights shuffled within each row's support; None unless `reading` is "weights"."""
        if self.reading != "weights":
            return None
        return weights.gather(-1, rearrangement(weights > 0, self.generator))


def rearrangement(
    mask: Bool[Tensor, "*batch N"], generator: torch.Generator
) -> Int[Tensor, "*batch N"]:
    """Draw an index for `gather` that shuffles the unmasked positions of every row and keeps the others."""
    draw = torch.rand(mask.shape, generator=generator).to(mask.device)
    source = draw.masked_fill(~mask, 2.0).argsort(dim=-1, stable=True)
    # Both list the unmasked positions first, then the others in order.
    places = (~mask).to(torch.uint8).argsort(dim=-1, stable=True)
    return torch.empty_like(places).scatter_(-1, places, source)


class KeyAdversary(nn.Module):
    """One MLP per layer that replaces its keys: k' = W₂ relu(W₁ k + b₁) + b₂ for each token.

    A token's heads are one input (of size H'·D); positions share the weights, layers do not. The paper
    gives "one hidden layer of 256" and K's shape, but not what one input is. The initial weights come
    from torch's global random state: build it inside `torch.random.fork_rng`.
    """

    def __init__(self, widths: dict[int, int], hidden: int = 256) -> None:
        super().__init__()
        self.layers = frozenset(widths)
        self.maps = nn.ModuleDict(
            {
                str(layer): nn.Sequential(
                    nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)
                )
                for layer, width in widths.items()
            }
        )

    def forward(self, layer: int, keys: Float[Tensor, "B Hk N D"]) -> Float[Tensor, "B Hk N D"]:
        """Return other keys for one layer."""
        together = keys.transpose(1, 2)
        changed: Tensor = self.maps[str(layer)](together.flatten(2).float())
        return changed.view(together.shape).transpose(1, 2).to(keys.dtype)

    def on(self, clean: dict[int, Float[Tensor, "B Hk N D"]]) -> Keys:
        """Return an intervention with the adversary's keys, computed from those of a clean pass."""
        return Keys(lambda call: self(call.index, clean[call.index]), self.layers)

    def on_noise(self, generator: torch.Generator) -> Keys:
        """Return Random-K: the adversary's keys for uniform noise from [0, 1), of K's shape."""

        def keys(call: Call) -> Shaped[Tensor, "B Hk N D"]:
            assert call.key is not None
            noise = torch.rand(call.key.shape, generator=generator).to(call.key)
            noise_keys: Tensor = self(call.index, noise)
            return noise_keys

        return Keys(keys, self.layers)
