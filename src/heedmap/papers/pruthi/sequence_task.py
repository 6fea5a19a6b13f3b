"""Sequences whose every target symbol has source positions that tell it, and how to hide that they are used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import sorted_batches
from heedmap.data.parallel import Link, Pairs
from heedmap.models.step_decoder import Decoded, StepDecoder
from heedmap.papers.kit.translators import NO_TARGET, padded
from heedmap.training.objective import Objective, Progress

Made = Literal["copy", "reverse", "bigram-flip"]
START, END, UNKNOWN = 0, 1, 2
SPECIAL = 3
AT_ONCE = 8192  # source positions that are read together
FORCING = 0.5  # how often the next step is given the right symbol
MAX_NORM = 1.0
PATIENCE = 2


class Batch(NamedTuple):
    """Sources with their marks, targets with their end, and for each target the positions that tell it."""

    source: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    targets: Int[Tensor, "B T"]
    telling: Bool[Tensor, "B T S"]


@dataclass(frozen=True)
class Linked:
    """Pairs of symbols, without marks, and links of their positions, source first."""

    source: list[list[int]]
    target: list[list[int]]
    links: list[set[Link]]

    @property
    def lengths(self) -> Int[np.ndarray, " N"]:
        """Source positions of each pair."""
        return np.array([len(sequence) for sequence in self.source], dtype=np.int64)

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Batch:
        """Return some pairs, padded, with a start and an end around each source."""
        sources = [[START, *self.source[i], END] for i in rows]
        source = padded(sources, END)
        targets = padded([[*self.target[i], END] for i in rows], NO_TARGET)
        telling = torch.zeros(*targets.shape, source.shape[1], dtype=torch.bool)
        for n, i in enumerate(rows):
            for s, t in self.links[i]:
                telling[n, t, s + 1] = True
        return Batch(
            source, torch.tensor([len(sequence) for sequence in sources]), targets, telling
        )


def order(task: Made, length: int) -> list[int]:
    """Return for each target position the source position that it repeats."""
    if task == "copy":
        return list(range(length))
    if task == "reverse":
        return list(range(length))[::-1]
    # An odd one out stays at the end.
    return [i + 1 - 2 * (i % 2) if (i ^ 1) < length else i for i in range(length)]


def drawn(task: Made, count: int, symbols: int, longest: int, rng: np.random.Generator) -> Linked:
    """Draw pairs: independent symbols, 1 to `longest` of them, and the same in the task's order."""
    source, target, links = [], [], []
    for length in rng.integers(1, longest + 1, size=count).tolist():
        sequence = (rng.integers(symbols, size=length) + SPECIAL).tolist()
        positions = order(task, length)
        source.append(sequence)
        target.append([sequence[i] for i in positions])
        links.append({(i, j) for j, i in enumerate(positions)})
    return Linked(source, target, links)


def words_of(sentences: Sequence[Sequence[str]], minimum: int) -> dict[str, int]:
    """Return the number of every word that occurs `minimum` times or more, by frequency."""
    counts: dict[str, int] = {}
    for sentence in sentences:
        for word in sentence:
            counts[word] = counts.get(word, 0) + 1
    frequent = [word for word in counts if counts[word] >= minimum]
    frequent.sort(key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(frequent, SPECIAL)}


def numbered(pairs: Pairs, source: Mapping[str, int], target: Mapping[str, int]) -> Linked:
    """Return pairs of sentences as numbers of words; those that are not known are one symbol."""
    sides = [
        [[words.get(word, UNKNOWN) for word in sentence] for sentence in side]
        for side, words in ((pairs.source, source), (pairs.target, target))
    ]
    return Linked(sides[0], sides[1], pairs.sure or [set() for _ in pairs.source])


class DeceptionObjective(Objective):
    """Translate, and keep the attention off what tells the target: the loss L − λ log(1 − m).

    L is the mean cross entropy of a batch's target symbols, m the mean over them of the weight on the positions
    that tell them: over the whole batch, before the logarithm. The epoch with the least L on dev is kept, as in
    the released code, where λ's part plays no part in it; PATIENCE epochs after it the training ends.
    """

    model: StepDecoder
    max_norm = MAX_NORM

    def __init__(
        self,
        model: StepDecoder,
        train: Linked,
        dev: Linked,
        *,
        penalty: float,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
        made_with: dict[str, Any],
    ) -> None:
        super().__init__(
            model,
            torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True),
            train.lengths,
            train.batch,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            made_with=made_with,
        )
        self.dev, self.penalty = dev, penalty

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss; after each step a coin says whether the next is given the right symbol."""
        device = self.model.output.weight.device
        source, lengths, targets, telling = (part.to(device) for part in batch)
        forced = torch.rand(targets.shape[1]) < FORCING
        right_symbols = targets.clamp(min=END)
        decoded = model(source, lengths, START, targets.shape[1], right_symbols, forced)
        return penalised(decoded, targets, telling, self.penalty)

    def scores(self) -> dict[str, float]:
        """Score the dev split, without the right symbols given."""
        was_training = self.model.training
        total, count = 0.0, 0
        with torch.no_grad():
            for rows in sorted_batches(self.dev.lengths, AT_ONCE):
                batch = self.dev.batch(rows)
                decoded = predicted(self.model.eval(), batch)
                loss = penalised(decoded, batch.targets, batch.telling, penalty=0.0)
                total += float(loss) * len(rows)
                count += len(rows)
        measures = evaluate(self.model, self.dev)
        self.model.train(was_training)
        return {"loss": total / count, "accuracy": float(np.mean(measures["accuracy"]))}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Return whether the loss is less than ever."""
        best = progress.best_epoch
        return best is None or scores["loss"] < progress.scores[best]["loss"]

    def is_finished(self, progress: Progress) -> bool:
        """Return whether the loss has not become less for PATIENCE epochs."""
        return progress.is_over(PATIENCE)


def penalised(
    decoded: Decoded, targets: Int[Tensor, "B T"], telling: Bool[Tensor, "B T S"], penalty: float
) -> Float[Tensor, ""]:
    """Return L − λ log(1 − m), the logarithm's argument at least 1e-6."""
    loss = functional.cross_entropy(
        decoded.logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET
    )
    if penalty == 0:
        return loss
    mass = (decoded.weights * telling).sum() / (targets != NO_TARGET).sum()
    return loss - penalty * (1 - mass).clamp(min=1e-6).log()


def predicted(
    model: StepDecoder, batch: Batch, allowed: Bool[Tensor, "B T S"] | None = None
) -> Decoded:
    """Read a batch with the model's own symbols before each step."""
    device = model.output.weight.device
    source, lengths = batch.source.to(device), batch.lengths.to(device)
    decoded = model(source, lengths, START, batch.targets.shape[1], allowed=allowed)
    return Decoded(decoded.logits.cpu(), decoded.weights.cpu())


@torch.no_grad()
def evaluate(model: StepDecoder, pairs: Linked) -> dict[str, list[float]]:
    """Return numbers of all target positions, ends included, with the model's own symbols before each.

    `accuracy`: the right symbol. `mass`: the weight on the positions that tell it; `possible`: 1 where there
    are any; `uniform`: their share of the source. `on`: the largest weight is on one of them; `beside`: on a
    neighbour of one. `blocked`: the right symbol, these weights set to 0.
    """
    measures: dict[str, list[float]] = {}
    for rows in sorted_batches(pairs.lengths, AT_ONCE):
        batch = pairs.batch(rows)
        decoded, blocked = predicted(model, batch), predicted(model, batch, ~batch.telling)
        real = batch.targets != NO_TARGET
        telling = batch.telling
        neighbours = torch.zeros_like(telling)
        neighbours[..., 1:] |= telling[..., :-1]
        neighbours[..., :-1] |= telling[..., 1:]
        largest = decoded.weights.argmax(-1, keepdim=True)
        values_of = {
            "accuracy": decoded.logits.argmax(-1) == batch.targets,
            "mass": (decoded.weights * telling).sum(-1),
            "possible": telling.any(-1),
            "uniform": telling.sum(-1) / batch.lengths[:, None],
            "on": telling.gather(-1, largest)[..., 0],
            "beside": (neighbours & ~telling).gather(-1, largest)[..., 0],
            "blocked": blocked.logits.argmax(-1) == batch.targets,
        }
        for name, values in values_of.items():
            measures.setdefault(name, []).extend(values[real].double().tolist())
    return measures
