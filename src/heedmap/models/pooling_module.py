"""A user's own module that pools the items of a bag, read through the layer that scores them."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch, Encoded
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.streams import first_line
from heedmap.data.texts import Text
from heedmap.errors import InputError
from heedmap.models.per_class_classifier import row_of
from heedmap.models.stored_embedding import StoredEmbedding
from heedmap.models.trace import READS, Trace, is_scale_free
from heedmap.settings.models import PoolingSettings

POSITIONS = 16_384  # per batch
LEAST_SHARE = 1e-3  # of the span of the predictions: a difference that is no rounding


class PoolingModule:
    """A module that maps the vectors of a bag to logits. A softmax of what `layer` returns are its weights.

    Other weights w are imposed by replacing the layer's output by log w, whose softmax is w. Items may read
    each other before the layer: nothing is assumed of the rest, and each prediction is one pass of one bag.
    The heat map is the mean of the rows of weights, or with `per_class` the predicted class's row.
    """

    capabilities = READS
    tokens_at_once = POSITIONS

    def __init__(
        self,
        settings: PoolingSettings,
        module: nn.Module,
        vocabulary: ItemVocabulary,
        classes: Sequence[str],
        reader: "Reader",
    ) -> None:
        self.settings, self.module, self.vocabulary = settings, module, vocabulary
        self.classes, self.reader = list(classes), reader
        self.embedding = StoredEmbedding(vocabulary.vectors)
        if reader.is_scale_free:
            self.capabilities = READS - {"gradients"}

    @property
    def precision(self) -> torch.dtype:
        """Return the dtype in which logits are computed."""
        return self.embedding.weight.dtype

    def parameters(self) -> Iterable[Tensor]:
        """Yield everything that was learned."""
        return self.module.parameters()

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the items of each bag."""
        return np.array([len(text) for text in texts], dtype=np.int64)

    def mask_token(self, text: Text, place: int) -> Text:
        """Refuse to mask an item.

        Raises:
            InputError: always, because no mask is known.
        """
        raise InputError(
            "leave_one_out = 'mask': expected a model with a mask, got a module; leave it out, to remove items"
        )

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> Batch:
        """Encode some bags as the numbers of their items, padded."""
        numbers = [self.vocabulary.encode(text) for text in texts]
        batch = Encoded(numbers, np.zeros(len(texts), int)).batch(range(len(texts)))
        return replace(batch, rows=torch.as_tensor(list(rows)))

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Return the vectors of all positions, 0 at marks and padding."""
        vectors: Tensor = self.embedding(batch.ids)
        return vectors

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Select the items' values."""
        return values[:, 1:-1]

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the items' positions."""
        return functional.pad(batch.mask, (1, 1))

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Return differentiable logits, under imposed weights (B, K, T) if `attention` is given."""
        logits = []
        for i, size in enumerate(batch.lengths.tolist()):
            weights = None if attention is None else attention[i, :, :size]
            logits.append(self.reader.read(embedded[i, 1 : 1 + size], weights)[0])
        return torch.stack(logits)

    @torch.no_grad()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Return the predictions alone."""
        return self.logits_from(self.embed(batch), batch)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass."""
        embedded = self.embed(batch)
        attention = embedded.new_zeros(len(batch.rows), self.settings.rows, batch.mask.shape[1])
        logits = []
        for i, size in enumerate(batch.lengths.tolist()):
            outputs, scores = self.reader.read(embedded[i, 1 : 1 + size])
            attention[i, :, :size] = scores.softmax(-1)
            logits.append(outputs)
        support = batch.mask.unsqueeze(1).expand_as(attention)
        predictions = torch.stack(logits)
        heatmap = self._heatmap(attention.unsqueeze(0), predictions).squeeze(0)
        state = (embedded, batch)
        return Trace(batch.rows, batch.mask, attention, support, heatmap, predictions, state=state)

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return differentiable logits under S other weightings each."""
        assert isinstance(trace.state, tuple)
        embedded, batch = trace.state
        return torch.stack([self.logits_from(embedded, batch, weights) for weights in attention])

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Return the mean over the rows of weights, or the predicted class's row."""
        return self._heatmap(attention, trace.logits)

    def _heatmap(
        self, attention: Float[Tensor, "S B K T"], logits: Float[Tensor, "B C"]
    ) -> Float[Tensor, "S B T"]:
        if self.settings.per_class:
            return row_of(attention, logits.argmax(-1))
        return attention.mean(2)


class Reader:
    """Run a module on single bags, and see or replace what one of its layers returns.

    How the module takes a bag, (T, D) or (1, T, D), and which axis of the layer's output counts items is found
    by bags of 5 and of 7 items.

    Raises:
        InputError: the module or the layer does not do what is needed, in a line.
    """

    def __init__(self, module: nn.Module, layer: str, vectors: Float[Tensor, "T E"]) -> None:
        modules = dict(module.named_modules())
        if layer not in modules or not layer:
            raise InputError(
                f"layer: expected the name of a part of {type(module).__name__} that returns a score for each "
                f"item, such as {', '.join([name for name in modules if name][:8])}; got {layer!r}"
            )
        self.module, self.name, self.layer = module, layer, modules[layer]
        self.is_batched, self.axis = False, 0
        probes = [vectors[torch.arange(size) % len(vectors)] for size in (5, 7, 1)]
        self.is_batched = self._is_batched(probes)
        shapes = [self._pass(probe)[1].shape for probe in probes[:2]]
        varying = [i for i, sizes in enumerate(zip(*shapes, strict=False)) if sizes == (5, 7)]
        if len(shapes[0]) != len(shapes[1]) or len(varying) != 1:
            raise InputError(
                f"layer {layer}: expected scores with one axis that counts the items, got the shapes "
                f"{tuple(shapes[0])} of 5 items and {tuple(shapes[1])} of 7"
            )
        self.axis = varying[0]
        with torch.no_grad():
            outputs, scores = self.read(probes[1])
            again = self.read(probes[1], scores.softmax(-1))[0]
            reverse = self.read(probes[1], scores.softmax(-1).flip(-1).roll(1, -1))[0]
            # Probabilities stay within 0 and 1 however large the items are.
            bags = [item[None] * scale for item in vectors for scale in (1, -1, 1000, -1000)]
            tried = torch.stack([self._pass(bag)[0] for bag in bags])
        if len(tried := tried[~tried.isnan()]) and ((tried >= 0) & (tried <= 1)).all():
            raise InputError(
                f"{type(module).__name__}: expected logits, got outputs that all lie in 0 to 1, as "
                "probabilities do; return first what the sigmoid or softmax reads, or torch.logit(p) of one, "
                "p.log() of several"
            )
        self.rows, self.outputs = len(scores), len(outputs)
        if not torch.allclose(outputs, again, rtol=1e-3, atol=1e-4):
            raise InputError(
                f"layer {layer}: expected scores of which a softmax makes the weights of the items, but with "
                "these weights the module predicts otherwise; name the last layer before the softmax"
            )
        if len(vectors) > 1 and torch.allclose(outputs, reverse, rtol=1e-6, atol=1e-7):
            raise InputError(
                f"layer {layer}: expected scores that the prediction depends on, but other weights change "
                "nothing"
            )
        self._check_normaliser(vectors)
        self.is_scale_free = is_scale_free(lambda bag: self.read(bag)[0], probes[1])

    @torch.no_grad()
    def _check_normaliser(self, vectors: Float[Tensor, "T E"]) -> None:
        """Check that the module weighs with the softmax itself, and not with that of scaled scores, say.

        Of two equal items only the sum of the weights can matter. Scores that are scaled after the layer, or
        normalised by anything else, give the items other weights than the imposed ones, and another sum.

        Raises:
            InputError: the prediction depends on how two equal items share their weight.
        """
        different = int((vectors - vectors[0]).norm(dim=-1).argmax())
        bag = vectors[[0, 0, different]]

        def imposed(*weights: float) -> Tensor:
            row = torch.tensor(weights, dtype=bag.dtype)
            return self.read(bag, row.expand(self.rows, -1))[0]

        outputs = imposed(0.1, 0.4, 0.5)
        span = float((imposed(0.05, 0.05, 0.9) - imposed(0.45, 0.45, 0.1)).abs().max())
        limit = max(LEAST_SHARE * span, 1e-5 * (1 + float(outputs.abs().max())))
        if (outputs - imposed(0.4, 0.1, 0.5)).abs().max() > limit:
            warnings.warn(
                f"layer {self.name}: that a softmax of its scores makes the weights could not be checked, for "
                "the module reads two equal items differently, by their places; check that nothing scales the "
                "scores",
                stacklevel=2,
            )
        elif (outputs - imposed(0.25, 0.25, 0.5)).abs().max() > limit:
            raise InputError(
                f"layer {self.name}: expected scores of which a softmax makes the weights of the items, but "
                "the module weighs with something else, such as a softmax of scaled scores; name the last "
                "layer before the softmax, or let a layer of the module return the scaled scores"
            )

    def read(
        self, bag: Float[Tensor, "T E"], weights: Float[Tensor, "K T"] | None = None
    ) -> tuple[Float[Tensor, " C"], Float[Tensor, "K T"]]:
        """Return logits, (0, z) for one output, and the scores, or under imposed weights their logarithms."""
        outputs, scores = self._pass(bag, weights)
        logits = outputs.reshape(-1)
        if len(logits) == 1:
            logits = torch.cat([torch.zeros_like(logits), logits])
        return logits, scores.movedim(self.axis, -1).reshape(-1, len(bag))

    def _pass(
        self, bag: Float[Tensor, "T E"], weights: Float[Tensor, "K T"] | None = None
    ) -> tuple[Tensor, Tensor]:
        seen: list[Tensor] = []

        def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
            scores = _tensor_in(output)
            if scores is None:
                raise InputError(f"layer {self.name}: expected a layer that returns a tensor")
            if weights is not None:
                shape = scores.movedim(self.axis, -1).shape
                logs = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
                scores = logs.reshape(shape).movedim(-1, self.axis)
            seen.append(scores)
            return (scores, *output[1:]) if isinstance(output, tuple) else scores

        handle = self.layer.register_forward_hook(hook)
        try:
            output = self.module(bag.unsqueeze(0) if self.is_batched else bag)
        finally:
            handle.remove()
        tensor = _tensor_in(output)
        if tensor is None or len(seen) != 1:
            raise InputError(
                f"{type(self.module).__name__}: expected logits, alone or first, and one call of {self.name}, "
                f"got {type(output).__name__} and {len(seen)}"
            )
        return tensor, seen[0]

    @torch.no_grad()
    def _is_batched(self, probes: Sequence[Float[Tensor, "_ E"]]) -> bool:
        """Return whether the module takes a batch of one bag, and not one alone that it reads otherwise."""
        problems, outputs = [], {}
        for self.is_batched in (False, True):
            try:
                with warnings.catch_warnings(action="ignore"):
                    logits = [self._pass(probe)[0].flatten() for probe in probes]
                outputs[self.is_batched] = torch.stack(logits)  # not if items are taken for bags
            except InputError:
                raise
            except Exception as error:  # of any kind: this way may be the wrong one
                problems.append(first_line(error))
        if not outputs:
            raise InputError(
                f"{type(self.module).__name__}: expected a module that reads bags of 5, 7 and 1 items, "
                f"{tuple(probes[0].shape)} or in a batch of one, got {problems[0]}, and {problems[1]}"
            )
        if len(outputs) == 1:
            return True in outputs
        alone, batched = outputs.values()
        return alone.shape == batched.shape and torch.allclose(alone, batched, 1e-4, 1e-5)


def _tensor_in(output: Any) -> Tensor | None:
    """Return a tensor, or the first one of several."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = [output["logits"]] if "logits" in output else list(output.values())
    if isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
        return output[0]
    return None
