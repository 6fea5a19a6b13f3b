"""Read changed texts with a causal decoder, whose keys and values before the first change stay as they were.

A position of a causal decoder depends on those up to it alone. So of a text without a word only the tokens from
the deletion on are read again; those before it are kept, for each layer, from one pass over the whole text.
Positions are counted as in the changed text. Texts with a similar number of tokens to read share a batch, in
which each one's mask hides what it has not kept.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from heedmap.data.batches import sorted_batches
from heedmap.huggingface.one_output import gives_number
from heedmap.huggingface.rerun import TOLERANCE, UNSUPPORTED

Tokens = Sequence[int]
SIMILAR = 0.75  # of the longest: texts of a batch have at least so many tokens to read
# Positions: a smaller batch is filled with shorter texts, for a pass has a cost of its own.
FEW = 64


class PrefixReader:
    """Logits of texts that begin as others do; `padding` fills a batch, of `positions` at most."""

    def __init__(self, model: PreTrainedModel, padding: int, positions: int) -> None:
        self.model, self.padding, self.positions = model, padding, positions
        # One output is a number, or read as two classes (`one_output`).
        self.classes = (
            1 if gives_number(model.config) else max(2, int(model.config.num_labels or 0))
        )

    def reads(self, text: Tokens, changed: Sequence[Tokens]) -> bool:
        """Return whether changed texts can be read: a padding token may hide where one ends."""
        return not any(self.padding in tokens or not tokens for tokens in (text, *changed))

    @torch.inference_mode()
    def logits(
        self, texts: Sequence[Tokens], changed: Sequence[Sequence[Tokens]]
    ) -> list[Float[Tensor, "_ C"]]:
        """Return the logits of each text's changed texts."""
        results = [torch.zeros(len(variants), self.classes) for variants in changed]
        for rows in sorted_batches(np.array([*map(len, texts)], dtype=np.int64), self.positions):
            jobs = [
                _Job(i, place, j, _common(texts[i], tokens), tokens)
                for place, i in enumerate(rows.tolist())
                for j, tokens in enumerate(changed[i])
            ]
            if jobs:
                self._read_together([texts[i] for i in rows], jobs, results)
        return results

    def _read_together(
        self, texts: Sequence[Tokens], jobs: Sequence["_Job"], results: list[Tensor]
    ) -> None:
        """Fill in the logits of some texts' changed texts, of which one pass over the texts is kept."""
        ids, mask = self._padded(texts)
        whole = DynamicCache()
        self.model(input_ids=ids, attention_mask=mask, past_key_values=whole)
        for batch in _similar(jobs, self.positions):
            logits = self._read(whole, batch).float().cpu()
            for job, row_logits in zip(batch, logits, strict=True):
                results[job.text][job.number] = row_logits

    def _read(self, whole: DynamicCache, jobs: Sequence["_Job"]) -> Tensor:
        device, prefix = self.model.device, max(job.prefix for job in jobs)
        ids, mask = self._padded([job.rest for job in jobs])
        starts = torch.tensor([[job.prefix] for job in jobs], device=device)
        is_kept = torch.arange(prefix, device=device) < starts
        places = torch.arange(ids.shape[1], device=device).minimum(mask.sum(1, keepdim=True) - 1)
        result: Tensor = self.model(
            input_ids=ids,
            attention_mask=torch.cat([is_kept.long(), mask], dim=1),
            position_ids=starts + places,
            past_key_values=_Prefix(whole, torch.tensor([job.place for job in jobs]), prefix),
        ).logits
        return result

    def _padded(self, texts: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Return ids and attention mask, padded on the right."""
        device = self.model.device
        rows = [torch.tensor(tokens, device=device) for tokens in texts]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.padding)
        lengths = torch.tensor([[len(tokens)] for tokens in texts], device=device)
        return ids, (torch.arange(ids.shape[1], device=device) < lengths).long()


class _Job(NamedTuple):
    """A changed text: its text's number and place in a batch, its own number, its prefix's tokens."""

    text: int
    place: int
    number: int
    prefix: int
    tokens: Tokens

    @property
    def rest(self) -> Tokens:
        """Return the tokens to read."""
        return self.tokens[self.prefix :]


def _similar(jobs: Sequence[_Job], positions: int) -> Iterator[list[_Job]]:
    """Yield changed texts with a similar number of tokens to read, the longest first."""
    ordered = sorted(jobs, key=lambda job: len(job.rest), reverse=True)
    start = 0
    while start < len(ordered):
        longest = len(ordered[start].rest)
        similar = sum(len(job.rest) >= SIMILAR * longest for job in ordered[start:])
        count = min(max(1, positions // longest), max(similar, -(-FEW // longest)))
        yield ordered[start : start + count]
        start += count


class _Prefix(DynamicCache):
    """The first keys and values of the text of each row; what is read with them is not kept."""

    def __init__(self, whole: DynamicCache, rows: Int[Tensor, " B"], prefix: int) -> None:
        super().__init__()
        self.prefixes: list[tuple[Tensor, Tensor]] = []
        for layer, (keys, values) in enumerate(_of_layers(whole)):
            rows = rows.to(keys.device)
            self.prefixes.append(
                super().update(keys[rows, :, :prefix], values[rows, :, :prefix], layer)
            )

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the kept keys and values with the new ones behind them."""
        keys, values = self.prefixes[layer_idx]
        return torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2)


def _of_layers(cache: DynamicCache) -> Iterator[tuple[Tensor, Tensor]]:
    for layer in cache.layers:
        assert isinstance(layer, DynamicLayer)
        assert layer.keys is not None
        assert layer.values is not None
        yield layer.keys, layer.values


def _common(text: Tokens, changed: Tokens) -> int:
    """Count the first tokens that two texts share, without the last one of the second."""
    count = 0
    for token, changed_token in zip(text, changed[:-1], strict=False):
        if token != changed_token:
            break
        count += 1
    return count


def prefix_reader(
    model: PreTrainedModel, padding: int | None, positions: int, texts: Sequence[Tokens]
) -> PrefixReader | None:
    """Return a reader if it gives the model's own logits of these texts without each of their tokens.

    A model that is not causal, or counts positions in its own way, has other logits or no such arguments.
    """
    config = model.config.get_text_config()
    windows = getattr(config, "sliding_window", None), getattr(config, "attention_type", None)
    if padding is None or config.is_encoder_decoder or any(windows):
        return None  # a window counts places in the cache, of which some hold nothing
    reader = PrefixReader(model, padding, positions)
    for text in texts:
        changed = [[*text[:j], *text[j + 1 :]] for j in range(len(text)) if len(text) > 1]
        if not reader.reads(text, changed):
            continue
        try:
            (logits,) = reader.logits([text], [changed])
        except (*UNSUPPORTED, AssertionError):  # the latter of a cache of another kind
            return None
        for row, tokens in zip(logits, changed, strict=True):
            ids = torch.tensor([tokens], device=model.device)
            with torch.inference_mode():
                expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
            if not (row - expected.float().cpu()).abs().max() <= TOLERANCE:
                return None
    return reader
