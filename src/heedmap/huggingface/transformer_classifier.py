"""A Hugging Face sequence classifier on trial: `heedmap.models.trace.Model` for transformers."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.errors import InputError
from heedmap.huggingface import inputs
from heedmap.huggingface.embedding import embedded_as, look_up
from heedmap.huggingface.entrance import Entrance, Inputs, enter
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.interventions import Imposed
from heedmap.huggingface.maps import Maps, layer_facts
from heedmap.huggingface.projections import projections_of
from heedmap.huggingface.rerun import TOLERANCE, Pass, Rerun
from heedmap.huggingface.survey import survey
from heedmap.huggingface.views import View, on_words
from heedmap.importance.words import sum_by_word
from heedmap.models.layered import Map
from heedmap.models.trace import Trace
from heedmap.settings import TransformerSettings

ROWS = ("row", "gradient", "effective")  # views of the read row; the others are of all rows
PROBE = (
    ["The", " acting", " is", " wonderful", ",", " but", " the", " unbelievable", " plot", " is", " not."],
    ["It", " bored", " me", "."],
    ["A", " film"],
)  # fmt: skip


@dataclass
class _State:
    batch: SubwordBatch
    kept: Pass
    view: View | None = None  # made when it is first asked for


class TransformerClassifier:
    """A sequence classifier, entered by its door, with one layer's weights on trial.

    The weights are those of the row that the classifier reads (the [CLS] row, or a decoder's last token) in
    one layer, of every head or of one: K = heads. Where the classifier reads all rows (a mean), or the heat
    map is made of all of them, all rows are on trial: K = heads × N. P = N positions, special tokens
    included. The heat map is over words.

    Raises:
        InputError: the model cannot be entered, or has no such layer or head.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        settings: TransformerSettings,
        classes: Sequence[str],
    ) -> None:
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.classes = list(classes)
        self.tokens_at_once = settings.batch_tokens
        model.config.use_cache = False
        probe = self.inputs(self.batch(PROBE, range(len(PROBE))))
        self.entrance: Entrance = enter(model, probe)
        if self.entrance.kind == "reading":
            raise InputError(
                f"{settings.source}: {type(model).__name__} reports its attention but does not let it be "
                "replaced, so it cannot be put on trial; `heedmap support` lists what can"
            )
        self.survey = survey(self.entrance, probe)
        self.calls, self.heads, self.reads = self.survey.calls, self.survey.heads, self.survey.reads
        self.read_rows = self.survey.read_rows
        self.layer, self.head = settings.on_trial(len(self.calls), self.heads)
        if settings.view in ("rollout", "flow") and self.head is not None:
            raise InputError(
                f"--view {settings.view}: expected --head mean, got {settings.head}: it follows the mean over "
                "heads through the layers"
            )
        self.one_row = self.reads != "all" and settings.view in ROWS
        read = self.read_rows if self.one_row else None
        self.rerun = Rerun(self.entrance, self.survey.names, self.calls[self.layer], read, probe)
        self.quick = self._quick(probe)
        self._maps = Maps(self.entrance, tokenizer, self.survey, self._projections())
        self.missing = self._maps.missing()
        if settings.view in self.missing:
            raise InputError(
                f"{settings.source}: expected a view that this model gives, got {settings.view}: "
                f"{self.missing[settings.view][1]}; choose row, received or gradient"
            )
        names = dict.fromkeys(str(token) for token in tokenizer.all_special_tokens)
        self.kinds = ["words", "punctuation", *names]

    @property
    def precision(self) -> torch.dtype:
        """The weights' own: the logits are float32 only once they are here."""
        return self.model.dtype

    def lengths(self, texts: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Positions of each text, special ones included."""
        return inputs.lengths(self.tokenizer, texts)

    def own_words(self, texts: Sequence[Sequence[str]]) -> Iterator[list[int]]:
        """For each text the numbers of the words to begin with, so that no two share a sub-word."""
        return inputs.own_words_of(self.tokenizer, texts)

    def readable(self, texts: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Which texts can be read beside others: BART and T5 classify at the one end of text in each."""
        if self.survey.end is None:
            return np.ones(len(texts), dtype=bool)
        return np.equal(inputs.holding(self.tokenizer, texts, self.survey.end), 1)

    def mask_token(self, text: Sequence[str], place: int) -> Sequence[str]:
        """The text with the tokenizer's mask token (else its unknown or padding token) for one word."""
        word = text[place]
        space = word[: len(word) - len(word.lstrip())]
        known = self.tokenizer
        mark = known.mask_token or known.unk_token or known.pad_token or ""
        return [*text[:place], space + str(mark), *text[place + 1 :]]

    def batch(self, texts: Sequence[Sequence[str]], rows: Sequence[int]) -> SubwordBatch:
        """Sub-words of some texts, padded."""
        return inputs.encode(self.tokenizer, texts, rows, self.model.device)

    def inputs(self, batch: Batch) -> dict[str, Tensor]:
        """What the model is called with."""
        assert isinstance(batch, SubwordBatch)
        return batch.inputs(self.tokenizer.model_input_names)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """One forward pass."""
        assert isinstance(batch, SubwordBatch)
        kept = self.rerun.base(self.inputs(batch))
        weights = kept.weights.float()
        real = batch.real.unsqueeze(1)
        support = (weights > 0) & (real if self.one_row else real.unsqueeze(1))
        if not self.one_row:
            support = support & batch.real[:, None, :, None]
        if self.head is not None:
            weights, support = weights[:, [self.head]], support[:, [self.head]]
        weights = weights.masked_fill(~support, 0.0)
        attention, support = (t.reshape(len(t), -1, t.shape[-1]) for t in (weights, support))
        if self.settings.view in ("row", "received"):
            heat = on_words(attention.mean(1), batch)
        else:
            heat = self.heat_maps(batch, [self.map_on_trial()]).squeeze(1)
        return Trace(
            batch.rows, batch.mask, attention, support, heat, kept.logits.float(),
            state=_State(batch, kept), token_positions=batch.words >= 0,
        )  # fmt: skip

    @torch.inference_mode()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Predictions alone."""
        given = self.inputs(batch)
        logits = self.quick.fast_logits(given) if self.quick else self.model(**given).logits
        return logits.float()

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Logits under S other weightings each; only what lies above them is computed."""
        state = trace.state
        assert isinstance(state, _State)
        count, size = attention.shape[1], attention.shape[3]
        # One row is cheap but for its weights; all rows cost what a pass costs.
        each = count * (max(1, size // 16) if self.rerun.way == "narrow" else size)
        some = max(1, self.tokens_at_once // each)
        shape = (self.heads if self.head is None else 1, *(() if self.one_row else (size,)), size)
        graph = nullcontext() if attention.requires_grad else torch.no_grad()
        parts = []
        with graph:
            for start in range(0, len(attention), some):
                part = attention[start : start + some]
                weights = part.reshape(*part.shape[:2], *shape)
                if self.head is not None:
                    weights = _with_head(weights, state.kept.weights, self.head)
                weights = weights.to(self.model.dtype)
                found = self.rerun.logits(self.inputs(state.batch), state.kept, weights)
                parts.append(found.float())
        return torch.cat(parts)

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """The view on trial made anew (see `heedmap.huggingface.views`), as shares of what falls on words."""
        return self._view(trace)(attention, partial(self.predict, trace))

    def plain(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """The rows read (all of them in `received`), mean over heads, as shares of what falls on words."""
        return self._view(trace).plain(attention)

    def unpadded(
        self, trace: Trace, attention: Float[Tensor, "B K P"]
    ) -> list[Float[Tensor, "_ _"]]:
        """Each text's weights without padded positions, and where all rows are on trial without their rows."""
        assert isinstance(trace.state, _State)
        size, found = attention.shape[-1], []
        for weights, real in zip(attention, trace.state.batch.real, strict=True):
            columns = weights[:, real]
            if not self.one_row:
                columns = columns.reshape(-1, size, columns.shape[1])[:, real].flatten(0, 1)
            found.append(columns)
        return found

    def reach(self, trace: Trace) -> Float[Tensor, " B"]:
        """What no weights of the layer can move the view by (see `View.reach`)."""
        return self._view(trace).reach(trace.attention, trace.support, trace.heat)

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """What the model looks up for each position, before positions and norms."""
        return look_up(self.model, batch.ids)

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Values at positions, added up over each word."""
        assert isinstance(batch, SubwordBatch)
        return sum_by_word(values, batch.words, batch.mask.shape[1])

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """The positions of words: no special tokens, no padding."""
        assert isinstance(batch, SubwordBatch)
        return batch.words >= 0

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Differentiable logits from looked-up embeddings; under imposed weights (B, K, P) where given."""
        with embedded_as(self.model, batch.ids, embedded):
            if attention is None:
                logits: Tensor = self.model(**self.inputs(batch)).logits
            else:
                with self.entrance.visiting(self._imposing(batch, attention)):
                    logits = self.model(**self.inputs(batch)).logits
        return logits.float()

    def maps(self) -> list[Map]:
        """Every heat map that the model could show."""
        return self._maps.available()

    def map_on_trial(self) -> Map:
        """The one on trial."""
        return Map(self.settings.view, self.layer, self.head)

    def heat_maps(
        self, batch: Batch, wanted: Sequence[Map], attention: Tensor | None = None
    ) -> Float[Tensor, "B M T"]:
        """Those heat maps, each as shares of its sum; with weights (B, K, P) imposed where they are given."""
        assert isinstance(batch, SubwordBatch)
        edit = None if attention is None else self._imposing(batch, attention)
        return self._maps.read(batch, wanted, edit)

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B L H"]]:
        """Numbers about every head (see `heedmap.huggingface.maps.layer_facts`)."""
        assert isinstance(batch, SubwordBatch)
        return layer_facts(self._maps, batch, self.kinds)

    def _view(self, trace: Trace) -> View:
        state = trace.state
        assert isinstance(state, _State)
        if state.view is None:
            state.view = View(self._maps, state.batch, self.map_on_trial(), self.one_row)
        return state.view

    def _imposing(self, batch: Batch, attention: Float[Tensor, "B K P"]) -> Imposed:
        """A visitor of a whole pass that puts the weights in their place."""
        inputs, size = self.inputs(batch), attention.shape[-1]
        shape = (size,) if self.one_row else (size, size)
        weights = attention.reshape(len(attention), -1, *shape)
        if self.head is not None:
            kept = self.rerun.base(inputs, "full").weights
            weights = _with_head(weights.unsqueeze(0), kept, self.head).squeeze(0)
        rows = self.read_rows(inputs) if self.one_row else None
        return Imposed(self.calls[self.layer], weights.to(self.model.dtype), rows)

    def _quick(self, probe: Inputs) -> Rerun | None:
        """A way to predictions that leaves out rows that nobody reads, if it gives the same numbers."""
        if self.reads == "all":
            return None
        last = self.rerun
        if not self.one_row or self.layer != len(self.calls) - 1:
            last = Rerun(self.entrance, self.survey.names, self.calls[-1], self.read_rows, probe)
        if last.way != "narrow":
            return None
        with torch.no_grad():
            off = (last.fast_logits(probe) - self.model(**probe).logits).abs().max()
        return last if off <= TOLERANCE else None

    def _projections(self) -> dict[str, torch.nn.Module]:
        """Output projections by layer; none where the values are not known, or any is not found."""
        if self.entrance.kind != "interface":
            return {}
        probe = self.inputs(self.batch(PROBE[1:2], [0]))
        return projections_of(self.model, self.survey.layers, probe)


def _with_head(weights: Tensor, whole: Tensor, head: int) -> Tensor:
    """The weights of one head, put among the other heads' own: (S, B, 1, …) → (S, B, H, …)."""
    others = whole.unsqueeze(0).expand(len(weights), *whole.shape).to(weights.dtype)
    parts = [others[:, :, :head], weights, others[:, :, head + 1 :]]
    return torch.cat(parts, dim=2)
