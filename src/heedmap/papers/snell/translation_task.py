"""What is recorded of a translator that is being trained, for every target position."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedmap.data.pieces import Pieces
from heedmap.importance.output_relevance import output_relevance
from heedmap.measures import levelled, rounding_of
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.kit.translators import Encoded
from heedmap.training.dynamics import SCHEMA, Recorder

RECORDED = 60  # sentences of the test split; each target position is an instance


class Sentence(NamedTuple):
    """A sentence read with its translation; every target position is an instance."""

    states: Float[Tensor, "1 S D"]
    decoded: Float[Tensor, "1 T H"]
    logits: Float[Tensor, "T V"]
    attention: Float[Tensor, "T S"]
    targets: Int[Tensor, " T"]


@torch.no_grad()
def read_sentence(model: EncoderDecoder, pairs: Encoded, row: int) -> Sentence:
    """Read one pair; with several heads the attention is their mean."""
    source, _, inputs, targets = pairs.batch([row])
    states, final_state = model.encode(model.source(source))
    decoded, _ = model.decode(inputs, final_state)
    weights = model.attend(decoded, states)
    logits = model.emit(decoded, weights @ states.unsqueeze(1))
    return Sentence(states, decoded, logits[0], weights[0].mean(0), targets[0])


def influence(model: EncoderDecoder, pairs: Encoded, row: int) -> Float[Tensor, "T S"]:
    """Return −∂NLL_t/∂g_s of a gate g_s = 1 on each source embedding, for every target position.

    What differs by rounding alone is equal. The sentence is read once per position, side by side, so that one
    backward pass gives all.
    """
    source, _, inputs, targets = pairs.batch([row])
    steps = targets.shape[1]
    embedded = model.source(source).detach().repeat(steps, 1, 1).requires_grad_()
    states, final_state = model.encode(embedded)
    decoded, _ = model.decode(inputs.expand(steps, -1), final_state)
    decoder_states = decoded[torch.arange(steps), torch.arange(steps)].unsqueeze(1)
    weights = model.attend(decoder_states, states)
    logits = model.emit(decoder_states, weights @ states.unsqueeze(1))[:, 0]
    loss = functional.cross_entropy(logits, targets[0], reduction="sum")
    (gradient,) = torch.autograd.grad(loss, embedded)
    parts = gradient * embedded.detach()
    sizes = rounding_of(parts.abs().sum(-1))
    return levelled(-parts.sum(-1), torch.ones_like(sizes, dtype=torch.bool), sizes)


class TranslationRecorder(Recorder):
    """Records a translator: every target position of a sample of test sentences is an instance.

    The columns are a classifier's (`training.dynamics`): the label is the right sub-word, the tokens are the
    source's, and numbers of a position that differ by rounding alone are equal. Of the dev split there
    is only whether a sample of positions is predicted.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        test: Encoded,
        dev: Encoded,
        pieces: Pieces,
        folder: Path | None,
    ) -> None:
        super().__init__(model, folder)
        self.model, self.pieces = model, pieces
        self.splits = {"test": test, "dev": dev}
        self.rows = {name: sample(split) for name, split in self.splits.items()}

    def read(self, step: int) -> list[pa.Table]:
        """Read both samples."""
        return [self._read(step, name) for name in self.splits]

    def _read(self, step: int, name: str) -> pa.Table:
        pairs = self.splits[name]
        records: list[dict[str, Any]] = []
        for row in self.rows[name]:
            sentence = read_sentence(self.model, pairs, row)
            losses = functional.cross_entropy(sentence.logits, sentence.targets, reduction="none")
            rows: list[dict[str, Any]] = [
                {
                    "step": step, "split": name, "label": int(label), "predicted": int(best),
                    "loss": float(loss),
                }
                for label, best, loss in zip(
                    sentence.targets, sentence.logits.argmax(-1), losses, strict=True
                )
            ]  # fmt: skip
            if name == "test":
                everything = torch.ones_like(sentence.attention, dtype=torch.bool)
                relevance = output_relevance(
                    self.model, sentence.decoded, sentence.states, sentence.targets[None]
                )[0]
                largest = relevance.abs().amax(-1, keepdim=True)
                maps = {
                    "attention": levelled(sentence.attention, everything),
                    "relevance": levelled(relevance, everything, rounding_of(largest)),
                    "influence": influence(self.model, pairs, row),
                }
                for column, values in maps.items():
                    for target, position_values in zip(
                        rows, values.detach().half().numpy(), strict=True
                    ):
                        target[column] = position_values
                if step == 0:
                    tokens = [self.pieces.token(number) for number in pairs.source[row]]
                    for target in rows:
                        target["tokens"] = tokens
            records += rows
        for index, target in enumerate(records):
            target["row"] = index
        return pa.Table.from_pylist(records, schema=SCHEMA)


def sample(pairs: Encoded) -> list[int]:
    """Return the sentences that are recorded: RECORDED of them, evenly over the split."""
    count = len(pairs.source)
    return sorted(set(np.linspace(0, count - 1, min(count, RECORDED)).round().astype(int).tolist()))
