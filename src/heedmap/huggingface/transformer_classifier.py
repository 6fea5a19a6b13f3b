"""Put a Hugging Face sequence classifier on trial: `heedmap.models.trace.Model` for transformers."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.data.texts import Asked, Pair, Text, TwoTexts, beginning, joined, reworded, with_tokens
from heedmap.errors import InputError
from heedmap.huggingface import inputs
from heedmap.huggingface.attention_hook import fusing
from heedmap.huggingface.attention_layout import find_layout
from heedmap.huggingface.embedding import embedded_as, look_up
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.interventions import Imposed
from heedmap.huggingface.limits import longest
from heedmap.huggingface.maps import Maps, layer_facts
from heedmap.huggingface.measuring import Drift
from heedmap.huggingface.model_adapter import Inputs, ModelAdapter, attach
from heedmap.huggingface.padding import declare_in_batches, padding_token
from heedmap.huggingface.prefixes import PrefixReader, prefix_reader
from heedmap.huggingface.projections import projections_of
from heedmap.huggingface.rerun import TOLERANCE, Pass, Rerun
from heedmap.huggingface.sample_words import SAMPLE_WORDS, asked_samples
from heedmap.huggingface.targets import mask_of
from heedmap.huggingface.tasks import task_of_model
from heedmap.huggingface.truncation import Truncated, truncated
from heedmap.huggingface.verification import drift
from heedmap.huggingface.views import View, on_words
from heedmap.importance.words import sum_by_word
from heedmap.models.layered import Map
from heedmap.models.trace import READS, Trace, is_scale_free
from heedmap.nouns import Nouns
from heedmap.settings.models import TransformerSettings

ROUNDINGS = 64  # by which sums in another order differ: a 12-layer BERT's by 17
ROWS = ("row", "gradient", "effective")  # views of the read row; the others use all rows


@dataclass
class _State:
    batch: SubwordBatch
    base: Pass
    view: View | None = None  # made on first use


class TransformerClassifier:
    """A classifier of texts, or of words in them, with one layer's weights on trial.

    The weights are those of the row that the classifier reads (the [CLS] row, or a decoder's last token) in
    one layer, of every head or of one: K = heads. Of a model that answers at each position, it is the row of
    the word that is asked about (`heedmap.data.texts.Asked`). If the classifier reads all rows (a mean), or the
    heat map uses all of them, all rows are on trial: K = heads × N. P = N positions, special tokens included.
    The heat map is over words.

    Raises:
        InputError: the model's attention cannot be attached to, or it has no such layer or head.
    """

    capabilities = READS
    nouns: Nouns | None = None  # what it reads, where that is no text of words
    samples: Sequence[Text] = SAMPLE_WORDS  # of several lengths, by which the model is tried

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TransformerSettings,
        classes: Sequence[str],
    ) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.classes = list(classes)
        if len(self.classes) == 1:
            self.capabilities = READS - {"classes"}
        self.tokens_at_once = settings.batch_tokens
        self.limit = longest(model, tokenizer)
        # A cache of keys and values serves generation alone, and would be filled in every pass.
        model.config.get_text_config().use_cache = False
        declare_in_batches(model)
        self.padding = padding_token(model)
        self.task = task_of_model(model)
        if self.task.is_asked_of_words:
            self.samples = asked_samples(tokenizer, self.task)
        sample = self.inputs(self.batch(self.samples, range(len(self.samples))))
        self.adapter: ModelAdapter = attach(model, sample)
        if self.adapter.kind == "reading":
            raise InputError(
                f"{settings.source}: {type(model).__name__} reports its attention but does not let it be "
                "replaced, so it cannot be put on trial; `heedmap support` lists what can"
            )
        self.layout = find_layout(self.adapter, sample)
        self.calls, self.heads, self.reads = self.layout.calls, self.layout.heads, self.layout.reads
        self.read_rows = self.layout.read_rows
        self.layer, self.head = settings.on_trial(len(self.calls), self.heads)
        if settings.view in ("rollout", "flow") and self.head is not None:
            raise InputError(
                f"--view {settings.view}: expected --head mean, got {settings.head}: it follows the mean over "
                "heads through the layers"
            )
        self.one_row = self.reads != "all" and settings.view in ROWS
        reads = self.read_rows if self.one_row else None
        self.rerun = Rerun(self.adapter, self.layout.names, self.calls[self.layer], reads, sample)
        self.quick = self._quick(sample)
        self.fuses = self._fuses(sample)
        batch = self.batch(self.samples[:1], [0])
        if is_scale_free(lambda vectors: self.logits_from(vectors, batch), self.embed(batch)):
            self.capabilities -= {"gradients"}
        self._maps = Maps(self.adapter, tokenizer, self.layout, self._projections())
        self.missing = self._maps.missing()
        if settings.view in self.missing:
            raise InputError(
                f"{settings.source}: expected a view that this model gives, got {settings.view}: "
                f"{self.missing[settings.view][1]}; choose row, received or gradient"
            )
        names = dict.fromkeys(str(token) for token in tokenizer.all_special_tokens)
        self.kinds = ["words", "punctuation", *names]

    @property
    def architecture(self) -> str:
        """Return the name of the model's class in transformers."""
        return type(self.model).__name__

    @property
    def precision(self) -> torch.dtype:
        """Return the weights' dtype; logits are computed in it and returned in float32."""
        return self.model.dtype

    def parameters(self) -> Iterator[Tensor]:
        """Yield everything that was learned."""
        return iter(self.model.parameters())

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the positions of each text, special ones included."""
        return inputs.lengths(self.tokenizer, texts)

    def truncated(self, text: Text, longest: int) -> Truncated | None:
        """Cut a text or pair as the model's tokenizer does (see `heedmap.huggingface.truncation`)."""
        return truncated(self.tokenizer, text, longest)

    def own_words(self, texts: Sequence[Text]) -> Iterator[list[int]]:
        """Yield per text where its words must begin so that no two share a sub-word."""
        return inputs.own_words(self.tokenizer, texts)

    def readable(self, texts: Sequence[Text]) -> NDArray[np.bool_]:
        """Return which texts can be batched: BART and T5 need the same number of end-of-text tokens in each.

        It is one, or in a pair as many as the tokenizer puts there. Padded on the left, a decoder does not find
        the first position of a text of padding tokens alone.
        """
        if self.layout.end is not None:
            of_pairs = bool(texts) and isinstance(texts[0], Pair | TwoTexts)
            sample = joined(["a"], ["a"]) if of_pairs else ["a"]
            count = int(inputs.holding(self.tokenizer, [sample], self.layout.end)[0])
            return np.equal(inputs.holding(self.tokenizer, texts, self.layout.end), count)
        pads_left = self.reads == "last" and self.tokenizer.padding_side == "left"
        if pads_left and self.padding is not None:
            return inputs.holding(self.tokenizer, texts, self.padding) < self.lengths(texts)
        return np.ones(len(texts), dtype=bool)

    def mask_token(self, text: Text, place: int) -> Text:
        """Replace one word by the tokenizer's mask token, or else its unknown or padding token."""
        # White space around the word stays, since a tokenizer may make it part of a sub-word.
        masked = reworded(text, place, mask_of(self.tokenizer))
        return with_tokens(text, [*text[:place], masked, *text[place + 1 :]])

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> SubwordBatch:
        """Tokenise some texts or pairs, padded; those that a change has made too long are cut."""
        batch = inputs.encode(self.tokenizer, texts, rows, self.model.device, self.padding)
        if batch.ids.shape[1] <= self.limit:
            return batch
        return replace(self.batch([*map(self._fitting, texts)], rows), mask=batch.mask)

    def _fitting(self, text: Text) -> Text:
        """Return what the model reads of a text, and of one that asks about a word at least that word."""
        cut = self.truncated(text, self.limit)
        if cut is None:
            return text
        if isinstance(text, Asked) and not cut.start <= text.target < cut.end:
            return self._fitting(beginning(text, len(text) - 1))
        return cut.text

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """Return the model's keyword arguments."""
        assert isinstance(batch, SubwordBatch)
        return batch.inputs(self.tokenizer.model_input_names)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass."""
        assert isinstance(batch, SubwordBatch)
        base = self.rerun.base(self.inputs(batch))
        weights = base.weights.float()
        real = batch.real.unsqueeze(1)
        support = (weights > 0) & (real if self.one_row else real.unsqueeze(1))
        # Rows of padding are computed, but nothing reads them.
        if not self.one_row:
            support = support & batch.real[:, None, :, None]
        if self.head is not None:
            weights, support = weights[:, [self.head]], support[:, [self.head]]
        weights = weights.masked_fill(~support, 0.0)
        attention, support = (t.reshape(len(t), -1, t.shape[-1]) for t in (weights, support))
        if self.settings.view in ("row", "received"):
            heatmap = on_words(attention.mean(1), batch)
        else:
            heatmap = self.heat_maps(batch, [self.map_on_trial()]).squeeze(1)
        return Trace(
            batch.rows, batch.mask, attention, support, heatmap, base.logits.float(),
            state=_State(batch, base), words=batch.words.masked_fill(~batch.real, -2),
            all_rows=not self.one_row,
        )  # fmt: skip

    @torch.inference_mode()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Return the predictions alone."""
        with fusing() if self.fuses else nullcontext():
            return self._own_logits(self.inputs(batch)).float()

    def _own_logits(self, inputs: Inputs) -> Float[Tensor, "B C"]:
        logits: Tensor = (
            self.quick.fast_logits(inputs) if self.quick else self.model(**inputs).logits
        )
        return logits

    def continued(
        self, texts: Sequence[Text], changed: Sequence[Sequence[Text]]
    ) -> list[Tensor | None]:
        """Return the logits (N, C) of each text's changed texts, read from their first change on.

        None for a text that holds padding, and for all if the model is no causal decoder.
        """
        logits: list[Tensor | None] = [None] * len(texts)
        if self._prefixes is None:
            return logits
        ids = inputs.token_ids(self.tokenizer, texts)
        changed_ids = [inputs.token_ids(self.tokenizer, of_text) for of_text in changed]
        readable = [
            i
            for i in range(len(texts))
            if self._prefixes.reads(ids[i], changed_ids[i])
            and max(map(len, [ids[i], *changed_ids[i]])) <= self.limit
        ]
        with fusing() if self.fuses else nullcontext():
            readings = self._prefixes.logits(
                [ids[i] for i in readable], [changed_ids[i] for i in readable]
            )
        for i, reading in zip(readable, readings, strict=True):
            logits[i] = reading
        return logits

    @cached_property
    def _prefixes(self) -> PrefixReader | None:
        if self.reads != "last":
            return None
        sample = inputs.token_ids(self.tokenizer, SAMPLE_WORDS)
        return prefix_reader(self.model, self.padding, self.tokens_at_once, sample)

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return logits under S other weightings each; only the layers above are computed."""
        state = trace.state
        assert isinstance(state, _State)
        count, size = attention.shape[1], attention.shape[3]
        # One row costs little but the memory of its weights; all rows cost a whole pass.
        positions = count * (max(1, size // 16) if self.rerun.way == "narrow" else size)
        at_once = max(1, self.tokens_at_once // positions)
        shape = (self.heads if self.head is None else 1, *(() if self.one_row else (size,)), size)
        graph = nullcontext() if attention.requires_grad else torch.no_grad()
        parts = []
        with graph:
            for start in range(0, len(attention), at_once):
                part = attention[start : start + at_once]
                weights = part.reshape(*part.shape[:2], *shape)
                if self.head is not None:
                    weights = _with_head(weights, state.base.weights, self.head)
                weights = weights.to(self.model.dtype)
                logits = self.rerun.logits(self.inputs(state.batch), state.base, weights)
                parts.append(logits.float())
        return torch.cat(parts)

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Recompute the view on trial (see `heedmap.huggingface.views`), as shares of the mass on words."""
        return self._view(trace)(attention, partial(self.predict, trace))

    def plain(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """Return the rows read (all in `received`), mean over heads, as shares of the mass on words."""
        return self._view(trace).plain(attention)

    def unpadded(
        self, trace: Trace, attention: Float[Tensor, "B K P"]
    ) -> list[Float[Tensor, "_ _"]]:
        """Return each text's weights without padded positions and, if all rows are on trial, their rows."""
        assert isinstance(trace.state, _State)
        size, result = attention.shape[-1], []
        for weights, real in zip(attention, trace.state.batch.real, strict=True):
            columns = weights[:, real]
            if not self.one_row:
                columns = columns.reshape(-1, size, columns.shape[1])[:, real].flatten(0, 1)
            result.append(columns)
        return result

    def reach(self, trace: Trace) -> Float[Tensor, " B"]:
        """Bound how far any weights of the layer can move the view (see `View.reach`)."""
        return self._view(trace).reach(trace.attention, trace.support, trace.heatmap)

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Look up each position's embedding, before position embeddings and norms."""
        return look_up(self.model, batch.ids)

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Sum values at positions over each word."""
        assert isinstance(batch, SubwordBatch)
        return sum_by_word(values, batch.words, batch.mask.shape[1])

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the positions of words: no special tokens, no padding."""
        assert isinstance(batch, SubwordBatch)
        return batch.words >= 0

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Return differentiable logits from embeddings, under imposed weights (B, K, P) if given."""
        inputs = self.inputs(batch)
        with embedded_as(self.model, batch.ids, embedded):
            # Made here: of one head, the others' weights are those that these embeddings give.
            imposing = None if attention is None else self._imposing(batch, attention)
            if self.quick is not None and not self.model.training:
                return self.quick.fast_logits(inputs, imposing).float()
            with nullcontext() if imposing is None else self.adapter.visiting(imposing):
                logits: Tensor = self.model(**inputs).logits
        return logits.float()

    def maps(self) -> list[Map]:
        """List every heat map that the model offers."""
        return self._maps.available()

    def map_on_trial(self) -> Map:
        """Return the heat map on trial."""
        return Map(self.settings.view, self.layer, self.head)

    def heat_maps(
        self, batch: Batch, maps: Sequence[Map], attention: Tensor | None = None
    ) -> Float[Tensor, "B M T"]:
        """Compute the wanted heat maps, each scaled to sum to 1, under imposed weights (B, K, P) if given."""
        assert isinstance(batch, SubwordBatch)
        edit = None if attention is None else self._imposing(batch, attention)
        return self._maps.read(batch, maps, edit)

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B layers H"]]:
        """Measure every head (see `heedmap.huggingface.maps.layer_facts`)."""
        assert isinstance(batch, SubwordBatch)
        return layer_facts(self._maps, batch, self.kinds)

    def drift(self) -> Drift:
        """Compare eager attention with the model's default (see `heedmap.huggingface.verification.drift`)."""
        return drift(self.model, self.tokenizer)

    def _view(self, trace: Trace) -> View:
        state = trace.state
        assert isinstance(state, _State)
        if state.view is None:
            state.view = View(self._maps, state.batch, self.map_on_trial(), self.one_row)
        return state.view

    def _imposing(self, batch: Batch, attention: Float[Tensor, "B K P"]) -> Imposed:
        """Return a visitor of a whole pass that imposes the weights."""
        inputs, size = self.inputs(batch), attention.shape[-1]
        shape = (size,) if self.one_row else (size, size)
        weights = attention.reshape(len(attention), -1, *shape)
        if self.head is not None:
            full = self.rerun.base(inputs, "full").weights
            weights = _with_head(weights.unsqueeze(0), full, self.head).squeeze(0)
        rows = self.read_rows(inputs) if self.one_row else None
        return Imposed(self.calls[self.layer], weights.to(self.model.dtype), rows)

    def _quick(self, sample: Inputs) -> Rerun | None:
        """Return a rerun that leaves out unread rows, if it gives the model's own logits."""
        if self.reads == "all":
            return None
        last_layer_rerun = self.rerun
        if not self.one_row or self.layer != len(self.calls) - 1:
            last_layer_rerun = Rerun(
                self.adapter, self.layout.names, self.calls[-1], self.read_rows, sample
            )
        if last_layer_rerun.way != "narrow":
            return None
        with torch.no_grad():
            off = (last_layer_rerun.fast_logits(sample) - self.model(**sample).logits).abs().max()
        return last_layer_rerun if off <= TOLERANCE else None

    @torch.no_grad()
    def _fuses(self, sample: Inputs) -> bool:
        """Return whether fused attention gives the model's own logits, up to the rounding of their sums."""
        if self.adapter.kind != "interface":
            return False
        expected = self._own_logits(sample)
        with fusing():
            off = (self._own_logits(sample) - expected).abs().max()
        rounding = ROUNDINGS * torch.finfo(self.precision).eps * expected.abs().max().clamp(min=1)
        return bool(off <= rounding)

    def _projections(self) -> dict[str, torch.nn.Module]:
        """Return output projections by layer; empty if the values are unknown or any is not found."""
        if self.adapter.kind != "interface":
            return {}
        sample = self.inputs(self.batch(self.samples[1:2], [0]))
        return projections_of(self.model, self.layout.layers, sample)


def _with_head(weights: Tensor, whole: Tensor, head: int) -> Tensor:
    """Put the weights of one head among the other heads' own: (S, B, 1, …) → (S, B, H, …)."""
    repeated = whole.unsqueeze(0).expand(len(weights), *whole.shape).to(weights.dtype)
    parts = [repeated[:, :, :head], weights, repeated[:, :, head + 1 :]]
    return torch.cat(parts, dim=2)
