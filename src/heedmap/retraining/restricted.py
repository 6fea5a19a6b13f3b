"""Fine-tune transformers that may not pass impermissible words on, and are penalised for showing them.

As Pruthi et al. (2020) did with BERT. In every layer a token attends to its own kind alone, permissible or not,
and to the read row ([CLS]) only that row itself does, which attends to everything: so no permissible token can
carry what an impermissible one says. The penalty is on the read row of the last layer; in the layers below it
reads impermissible words freely, a leak that the design leaves open.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Ragged, scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.marks import marks_of
from heedmap.errors import InputError
from heedmap.experiments.variants import Penalty, Variant
from heedmap.huggingface.attention_hook import Call, Output, Visitor, weighted_sum
from heedmap.huggingface.attention_layout import at_rows
from heedmap.huggingface.fitting import fit
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.words import sum_by_word
from heedmap.models.trace import Model
from heedmap.retraining.base import Base, Prepared
from heedmap.retraining.deception import is_better, mean_mass, penalty
from heedmap.settings.models import TransformerSettings
from heedmap.settings.training import FineTuneSettings
from heedmap.training.checkpoint import made_with
from heedmap.training.evaluation import EVALUATION_TOKENS, scores_of
from heedmap.training.fine_tune import limit_of, new_model, optimizer_of, pace
from heedmap.training.objective import Objective, Progress


def check(model: Model, name: str) -> None:
    """Refuse a model that cannot be restricted.

    Raises:
        InputError: it reads more than one row, has two stacks, or hides its attention from the interface.
    """
    assert isinstance(model, TransformerClassifier)
    obstacle = None
    if model.reads == "target":
        obstacle = "one that answers at words"
    elif model.reads == "all":
        obstacle = "one that reads the mean of all rows"
    elif model.model.config.is_encoder_decoder:
        obstacle = "one of two stacks"
    elif model.adapter.kind != "interface":
        obstacle = "one whose attention cannot be entered by transformers' interface"
    if obstacle is not None:
        raise InputError(
            f"{name}: expected a classifier of one stack that reads one row, to restrict its attention; got "
            f"{obstacle}; choose another model, as BERT"
        )


class Restriction(Visitor):
    """Let tokens attend to their own kind, and the read row to all; keep that row's weights in the last layer.

    They are kept as `shown` (B, H, N), before dropout; `blocked` then sets those of marked tokens to 0.
    """

    def __init__(
        self,
        marked: Bool[Tensor, "B N"],
        read_rows: Int[Tensor, " B"],
        last_layer: int,
        blocked: bool = False,
    ) -> None:
        self.read, self.last = read_rows, last_layer
        self.hidden = marked.unsqueeze(1).unsqueeze(1) if blocked else None
        self.shown: Tensor | None = None
        is_read = torch.arange(marked.shape[1], device=marked.device) == read_rows.unsqueeze(1)
        alike = marked.unsqueeze(2) == marked.unsqueeze(1)
        self.allowed = ((alike & ~is_read.unsqueeze(1)) | is_read.unsqueeze(2)).unsqueeze(1)

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """Return the layer's output and weights under the restriction."""
        if call.index != self.last:
            return eager(allowed=self.allowed)
        assert call.value is not None
        _, weights = eager(allowed=self.allowed, dropout=0.0)
        assert weights is not None
        self.shown = at_rows(weights.transpose(1, 2), self.read)
        if self.hidden is not None:
            weights = weights.masked_fill(self.hidden, 0.0)
        dropped = functional.dropout(weights, call.dropout)
        return weighted_sum(dropped, call.value), dropped


class MarkedTexts:
    """A split in sub-words, each text cut to the words that fit in `longest` positions, with its marks."""

    def __init__(
        self, model: TransformerClassifier, split: Split, marks: Ragged, longest: int
    ) -> None:
        masks = [marks[row] > 0 for row in range(len(marks))]
        marked = Split(split.keys, split.tokens, split.labels, masks)
        cut, _ = fit(marked, model.lengths, longest, partial(model.truncated, longest=longest))
        assert cut.rationale is not None
        self.model, self.tokens, self.labels = model, cut.tokens, cut.labels
        self.marks = Ragged(cut.rationale)
        self.lengths = model.lengths(cut.tokens)

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> tuple[SubwordBatch, Tensor]:
        """Return some texts, and which of their positions are marked (B, N)."""
        batch = self.model.batch([self.tokens[row] for row in rows], [int(row) for row in rows])
        marks = self.marks.padded(batch.rows.cpu(), batch.mask.shape[1]).to(batch.ids.device) > 0
        marked = marks.gather(1, batch.words.clamp(min=0)) & (batch.words >= 0)
        labels = torch.from_numpy(self.labels[np.asarray(rows, dtype=np.int64)])
        return replace(batch, labels=labels.to(batch.ids.device)), marked


def restricted_pass(
    model: TransformerClassifier,
    batch: SubwordBatch,
    marked: Bool[Tensor, "B N"],
    blocked: bool = False,
) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B H N"]]:
    """Return the logits of a restricted pass, and the read row of the last layer.

    A model with type embeddings is told by them which positions are marked, as by the released code, whether
    its tokenizer knows of types or not.
    """
    inputs = model.inputs(batch)
    if int(getattr(model.model.config, "type_vocab_size", 0) or 0) > 1:
        inputs["token_type_ids"] = marked.long()
    visitor = Restriction(marked, model.read_rows(inputs), model.calls[-1], blocked)
    with model.adapter.visiting(visitor):
        logits: Tensor = model.model(**inputs).logits
    assert visitor.shown is not None
    return logits.float(), visitor.shown.float()


@torch.no_grad()
def read(
    model: TransformerClassifier, texts: MarkedTexts, blocked: bool = False
) -> tuple[Float[Tensor, "N C"], Ragged]:
    """Return the logits of all texts, and on their words the weights of one head after the other.

    The logits are `blocked` if the read row of the last layer must do without its attention to marked words.
    """
    nn.Module.eval(model.model)
    logits, rows, weights = [], [], {}
    for batch_rows in sorted_batches(texts.lengths, EVALUATION_TOKENS):
        batch, marked = texts.batch(batch_rows)
        batch_logits, heads = restricted_pass(model, batch, marked, blocked)
        logits.append(batch_logits.cpu())
        rows.append(batch.rows.cpu())
        width = batch.mask.shape[1]
        on_words = torch.stack(
            [sum_by_word(heads[:, head], batch.words, width) for head in range(heads.shape[1])], 1
        )
        for row, mask, text_weights in zip(batch.rows.tolist(), batch.mask, on_words, strict=True):
            weights[row] = text_weights[:, mask].flatten().numpy(force=True)
    if not rows:
        return torch.zeros(0, len(model.classes)), Ragged([])
    return scatter_rows(rows, logits), Ragged([weights[row] for row in range(len(weights))])


class DeceptiveFineTuning(Objective):
    """The run's own fine-tuning, restricted, with a penalty: mean cross entropy + λ mean penalty of a batch.

    The penalty of a text is the mean over the heads of −ln(1 − their mass), or the largest. Epochs are chosen
    as by `DeceptiveObjective`.
    """

    max_norm = 1.0

    def __init__(
        self,
        model: TransformerClassifier,
        train: MarkedTexts,
        dev: MarkedTexts,
        settings: FineTuneSettings,
        penalty_settings: Penalty,
        accuracy: float,
    ) -> None:
        super().__init__(
            model.model,
            optimizer_of(model.model, settings),
            train.lengths,
            train.batch,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=settings.seed,
            made_with=made_with(settings) | {"penalty": [str(penalty_settings)]},
        )
        self.classifier, self.dev, self.penalty, self.accuracy = (
            model,
            dev,
            penalty_settings,
            accuracy,
        )
        self.learning_rate = settings.learning_rate

    def on_step(self, step: int, total: int) -> None:
        """Set the step's learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * pace(step, total)

    def loss(self, model: nn.Module, batch: Sequence[Any]) -> Float[Tensor, ""]:
        """Return the mean of the batch: a SubwordBatch, and the marks of its positions, (B, N)."""
        texts, marked = batch
        logits, weights = restricted_pass(self.classifier, texts, marked)
        loss = functional.cross_entropy(logits, texts.labels)
        if self.penalty.strength == 0:
            return loss
        real = texts.real.sum(1)
        head_penalties = torch.stack([penalty(head, marked, real) for head in weights.unbind(1)], 1)
        of_text = head_penalties.mean(1) if self.penalty.heads == "mean" else head_penalties.amax(1)
        return loss + self.penalty.strength * of_text.mean()

    def scores(self) -> dict[str, float]:
        """Score the dev split; `mass` is the mean attention to marked words, of the texts with any."""
        logits, weights = read(self.classifier, self.dev)
        dev_scores = scores_of(logits, self.dev.labels)
        return dev_scores | {"mass": mean_mass(weights, self.dev.marks, self.penalty.heads)}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare epochs by the rule; without a penalty, as the run's own training does."""
        if self.penalty.strength == 0:
            return super().is_better(scores, progress)
        return is_better(scores, progress, self.penalty, self.accuracy)


def prepare(variant: Variant, base: Base) -> Prepared:
    """Return a variant's fine-tuning, and how the audited texts are read by what it makes."""
    settings, penalty_settings = base.settings, variant.penalty
    assert isinstance(settings.train, FineTuneSettings)
    assert isinstance(settings.model, TransformerSettings)
    assert penalty_settings is not None
    train = settings.train.model_copy(update={"seed": variant.seed})
    module, tokenizer = new_model(train.base, base.corpus.classes, variant.seed)
    module.train(False)  # it is looked at first
    limit = limit_of(train, module, tokenizer)
    model = TransformerClassifier(module, tokenizer, settings.model, base.corpus.classes)
    longest = (limit, limit, int(model.lengths(base.test.tokens).max(initial=limit)))
    learned, dev, test = (
        MarkedTexts(model, split, _marks(split, penalty_settings), length)
        for split, length in zip(base.splits_of(variant), longest, strict=True)
    )
    accuracy = 0.0 if penalty_settings.removed else base.accuracy_without_penalty(variant)
    objective = DeceptiveFineTuning(model, learned, dev, train, penalty_settings, accuracy)
    return Prepared(
        objective,
        lambda: read(model, test),
        None if penalty_settings.removed else lambda: read(model, test, blocked=True)[0],
    )


def _marks(split: Split, penalty_settings: Penalty) -> Ragged:
    if penalty_settings.removed:
        return Ragged([np.zeros(len(text)) for text in split.tokens])
    return marks_of(split, penalty_settings.words)
