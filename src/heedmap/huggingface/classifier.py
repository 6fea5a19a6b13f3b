"""A Hugging Face sequence classifier on trial: `heedmap.models.trace.Model` for transformers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.errors import InputError
from heedmap.huggingface import inputs
from heedmap.huggingface.blocks import projection_of
from heedmap.huggingface.door import Call, Visitor
from heedmap.huggingface.entrance import Entrance, enter
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.maps import Maps, layer_facts
from heedmap.huggingface.rerun import Imposed, Inputs, Pass, Rerun
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
WAY_TOLERANCE = 1e-3  # of logits, where the same numbers are added up in another order
CROSS = ("cross", "encoder_attn", "encdec")  # how model files call attention over another stack


@dataclass(frozen=True)
class _State:
    batch: SubwordBatch
    kept: Pass


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
        probe = self.batch(PROBE, range(len(PROBE)))
        self.entrance: Entrance = enter(model, self.inputs(probe))
        if self.entrance.kind == "reading":
            raise InputError(
                f"{settings.source}: {type(model).__name__} reports its attention but does not let it be "
                "replaced, so it cannot be put on trial; `heedmap support` lists what can"
            )
        self.calls, self.names, self.heads = self._survey(probe)
        self.reads = _reads(self, probe)
        self.layer = _place(settings.layer, len(self.calls), "layer", settings.source)
        self.head = (
            None
            if settings.head == "mean"
            else _place(int(settings.head), self.heads, "head", settings.source)
        )
        if settings.view in ("rollout", "flow") and self.head is not None:
            raise InputError(
                f"--view {settings.view}: expected --head mean, got {settings.head}: it follows the mean over "
                "heads through the layers"
            )
        self.one_row = self.reads != "all" and settings.view in ROWS
        read = self.read_rows if self.one_row else None
        self.rerun = Rerun(model, self.entrance, self.calls[self.layer], read)
        self.way = self.rerun.choose(self.inputs(probe), WAY_TOLERANCE)
        self.quick = self._quick(probe)
        self._maps = Maps(self, self._projections())
        if self.shown_map() not in self._maps.available():
            raise InputError(
                f"{settings.source}: the view {settings.view!r} needs self-attention through all layers, or "
                "the model's values; this model does not give them; choose row, received or gradient"
            )
        names = dict.fromkeys(str(token) for token in tokenizer.all_special_tokens)
        self.kinds = ["words", "punctuation", *names]

    def lengths(self, texts: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Positions of each text, special ones included."""
        return inputs.lengths(self.tokenizer, texts)

    def hidden(self, text: Sequence[str], place: int) -> Sequence[str]:
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
        trace = Trace(
            batch.rows, batch.mask, attention, support, torch.zeros_like(batch.mask).float(),
            kept.logits.float(), None, _State(batch, kept),
        )  # fmt: skip
        if self.settings.view in ("row", "received"):
            heat = self.shown(trace, attention.unsqueeze(0)).squeeze(0)
        else:
            heat = self.heat_maps(batch, [self.shown_map()]).squeeze(1)
        return replace(trace, heat=heat, of_text=batch.words >= 0)

    @torch.inference_mode()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Predictions alone."""
        given = self.inputs(batch)
        logits = self.quick.glance(given) if self.quick else self.model(**given).logits
        return logits.float()

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Logits under S other weightings each; only what lies above them is computed."""
        state = trace.state
        assert isinstance(state, _State)
        count, size = attention.shape[1], attention.shape[3]
        # One row is cheap but for its weights; all rows cost what a pass costs.
        each = count * (max(1, size // 16) if self.way == "narrow" else size)
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

    def shown(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """Mean of the rows, added up over each word's positions, as shares of what falls on words at all."""
        assert isinstance(trace.state, _State)
        words = trace.state.batch.words.clamp(max=trace.mask.shape[1] - 1)
        return shares(sum_by_word(attention.mean(2), words, trace.mask.shape[1]))

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """What the model looks up for each position, before positions and norms."""
        found: Tensor = _look_ups(self.model)[-1](batch.ids)
        return found

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Values at positions, added up over each word."""
        assert isinstance(batch, SubwordBatch)
        return sum_by_word(values, batch.words, batch.mask.shape[1])

    def of_text(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """The positions of words: no special tokens, no padding."""
        assert isinstance(batch, SubwordBatch)
        return batch.words >= 0

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Differentiable logits from looked-up embeddings; under imposed weights (B, K, P) where given."""
        with _embedding(self.model, batch.ids, embedded):
            if attention is None:
                logits: Tensor = self.model(**self.inputs(batch)).logits
            else:
                kept = self.rerun.base(self.inputs(batch), "full").weights
                size = attention.shape[-1]
                shape = (size,) if self.one_row else (size, size)
                weights = attention.reshape(len(attention), -1, *shape)
                if self.head is not None:
                    weights = _with_head(weights.unsqueeze(0), kept, self.head).squeeze(0)
                rows = self.read_rows(self.inputs(batch)) if self.one_row else None
                visitor = Imposed(self.calls[self.layer], weights.to(self.model.dtype), rows)
                with self.entrance.visiting(visitor):
                    logits = self.model(**self.inputs(batch)).logits
        return logits.float()

    def maps(self) -> list[Map]:
        """Every heat map that the model could show."""
        return self._maps.available()

    def shown_map(self) -> Map:
        """The one on trial."""
        return Map(self.settings.view, self.layer, self.head)

    def heat_maps(self, batch: Batch, wanted: Sequence[Map]) -> Float[Tensor, "B M T"]:
        """Those heat maps, each as shares of its sum."""
        assert isinstance(batch, SubwordBatch)
        return self._maps.read(batch, wanted)

    def layer_facts(self, batch: Batch) -> dict[str, Float[Tensor, "B L H"]]:
        """Numbers about every head (see `heedmap.huggingface.maps.layer_facts`)."""
        assert isinstance(batch, SubwordBatch)
        return layer_facts(self._maps, batch, self.kinds)

    def kinds_of(self, batch: SubwordBatch) -> Int[Tensor, "B L"]:
        """The kind of each position, a number in `kinds`; −1 for padding."""
        known = self.tokenizer
        number = {
            known.convert_tokens_to_ids(name): i for i, name in enumerate(self.kinds) if i > 1
        }
        kinds = torch.full_like(batch.ids, -1)
        for place in batch.real.nonzero().tolist():
            i, j = place
            token = int(batch.ids[i, j])
            if int(batch.words[i, j]) < 0:
                kinds[i, j] = number.get(token, 0)
            else:
                marks = not any(c.isalnum() for c in str(known.decode([token])))
                kinds[i, j] = 1 if marks else 0
        return kinds

    def read_rows(self, given: Inputs) -> Int[Tensor, " B"]:
        """The row that the classifier reads of each text: the first real one, or the last."""
        real = given["attention_mask"]
        if self.reads == "first":
            return real.argmax(1)
        return real.shape[1] - 1 - real.flip(1).argmax(1)

    def _quick(self, probe: SubwordBatch) -> Rerun | None:
        """A way to predictions that leaves out rows that nobody reads, if it gives the same numbers."""
        if self.reads == "all":
            return None
        last, given = (
            Rerun(self.model, self.entrance, self.calls[-1], self.read_rows),
            self.inputs(probe),
        )
        if last.choose(given, WAY_TOLERANCE) != "narrow":
            return None
        with torch.no_grad():
            off = (last.glance(given) - self.model(**given).logits).abs().max()
        return last if off <= WAY_TOLERANCE else None

    def _projections(self) -> dict[str, torch.nn.Module]:
        """Output projections by layer; none where the values are not known, or any is not found."""
        if self.entrance.kind != "interface":
            return {}
        probe = self.inputs(self.batch(PROBE[1:2], [0]))
        found = projection_of(self.model, lambda: self.model(**probe), self.names)
        return found if len(found) == len(set(self.names)) else {}

    def _survey(self, probe: SubwordBatch) -> tuple[list[int], list[str], int]:
        """Which calls are on trial: all of one stack; in an encoder-decoder its cross-attention."""
        watch = _Watch()
        with torch.no_grad(), self.entrance.visiting(watch) as names:
            self.model(**self.inputs(probe))
        calls = list(range(len(names)))
        if self.model.config.is_encoder_decoder:
            crossing = [i for i in calls if any(mark in names[i].lower() for mark in CROSS)]
            calls = crossing or calls
        return calls, [names[i] for i in calls], watch.heads[calls[-1]]


class _Watch(Visitor):
    def __init__(self) -> None:
        self.heads: list[int] = []

    def weights(self, call: Call, weights: Tensor) -> None:
        self.heads.append(weights.shape[1])


class Deltas(Visitor):
    """Adds zeros that know their gradient to the weights of some calls: d logits / d weights."""

    def __init__(self, calls: Sequence[int]) -> None:
        self.calls = set(calls)
        self.deltas: dict[int, Tensor] = {}

    def weights(self, call: Call, weights: Tensor) -> Tensor | None:
        """The same weights, plus zeros."""
        if call.index not in self.calls:
            return None
        delta = torch.zeros_like(weights, requires_grad=True)
        self.deltas[call.index] = delta
        return weights + delta


def shares(values: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch T"]:
    """Values as shares of their sum; zeros where that is 0."""
    total = values.sum(-1, keepdim=True)
    return values / torch.where(total > 0, total, torch.ones_like(total))


def _reads(model: TransformerClassifier, probe: SubwordBatch) -> Literal["first", "last", "all"]:
    """Which rows of the last layer's attention the logits depend on, by their gradient."""
    visitor = Deltas(model.calls[-1:])
    with torch.enable_grad(), model.entrance.visiting(visitor):
        logits = model.model(**model.inputs(probe)).logits
        # Weighted unevenly: a softmax's or a mean's symmetric sums would cancel.
        scale = torch.arange(1, logits.shape[1] + 1, device=logits.device).to(logits.dtype)
        (gradient,) = torch.autograd.grad((logits * scale).sum(), visitor.deltas[model.calls[-1]])
    read = gradient.abs().amax(dim=(1, 3)) > 0
    real = probe.real.long()
    place = torch.arange(real.shape[1], device=real.device)
    first = place == real.argmax(1, keepdim=True)
    last = place == real.shape[1] - 1 - real.flip(1).argmax(1, keepdim=True)
    if bool((read == first).all()):
        return "first"
    return "last" if bool((read == last).all()) else "all"


def _place(wanted: int, count: int, what: str, source: str) -> int:
    if not -count <= wanted < count:
        raise InputError(
            f"{source}: expected a {what} from 0 to {count - 1} (or -1, the last one), got {wanted}"
        )
    return wanted % count


def _with_head(weights: Tensor, whole: Tensor, head: int) -> Tensor:
    """The weights of one head, put among the other heads' own: (S, B, 1, …) → (S, B, H, …)."""
    others = whole.unsqueeze(0).expand(len(weights), *whole.shape).to(weights.dtype)
    parts = [others[:, :, :head], weights, others[:, :, head + 1 :]]
    return torch.cat(parts, dim=2)


@contextmanager
def _embedding(model: PreTrainedModel, ids: Tensor, embedded: Tensor) -> Iterator[None]:
    """While it lasts, looking up `ids` gives `embedded`.

    Not `inputs_embeds`: a decoder then cannot see where its text ends. A decoder that reads the same
    text one place later gets it one place later.
    """

    def look_up(module: Any, args: Any, found: Tensor) -> Tensor:
        asked = args[0]
        if asked.shape != ids.shape:
            return found
        if torch.equal(asked, ids):
            return embedded
        if torch.equal(asked[:, 1:], ids[:, :-1]):
            return torch.cat([found[:, :1], embedded[:, :-1]], dim=1)
        return found

    handles = [module.register_forward_hook(look_up) for module in _look_ups(model)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _look_ups(model: PreTrainedModel) -> list[torch.nn.Module]:
    """All modules that look words up: an encoder and a decoder share one table, not one module."""
    table = model.get_input_embeddings()
    tied = [m for m in model.modules() if getattr(m, "weight", None) is table.weight]
    return [m for m in tied if isinstance(m, torch.nn.Embedding)] or [table]
