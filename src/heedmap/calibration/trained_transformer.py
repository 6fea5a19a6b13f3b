"""Planted transformers that are trained: a BERT of two layers, whose last one learns to attend as planted.

Beside the label, every head's [CLS] row of the last layer is taught the plant's weights (cross entropy). The
first layer is free, or it is taught or kept from passing words on, so that it is known by which way the words
reach the answer. Whether the model rests on them is checked as of our own models (`construction`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.bert_by_hand import MARKS
from heedmap.calibration.plants import Plant
from heedmap.calibration.trained import with_undecided
from heedmap.calibration.transformer import POSITIONS, tokenizer_of
from heedmap.data.corpus import Split
from heedmap.data.texts import Text
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.measures import total_variation
from heedmap.settings.models import TransformerSettings
from heedmap.training.fit import fit
from heedmap.training.objective import Objective, Progress, seeded

SIZE, HEADS, LAYERS = 32, 2, 2
EPOCHS, BATCH_SIZE, LEARNING_RATE = 30, 32, 0.002
INITIAL = (
    0.1  # standard deviation of the first weights: from BERT's 0.02 so small a model does not learn
)
ON_MARK = 0.5  # weight of a mark that is attended to
# Training ends at this accuracy on dev texts, if the weights are as close, or no epoch was better for so long.
LEARNED, CLOSE, PATIENCE = 0.99, 0.05, 3
NOTHING = 1e-8  # as a factor; not 0, so that a gradient still tells which row the classifier reads

# What the first layer's attention does: what it learns; nothing, because its output is fixed at nothing; every
# position is taught to attend to itself; only words that the last layer may attend to are; all are, but a mark
# is taught to attend to the cues; all are taught that.
Lower = Literal["free", "off", "itself", "words apart", "gathers", "spreads"]


# The numbers of a text's positions: its marks, and its words.
Encode = Callable[[Text], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a transformer is taught beside the labels.

    Attributes:
        weights: scores (B, T) of words in the last layer, by their numbers, of which the [CLS] row's weights
            are the softmax.
        lower: what the first layer's attention does.
        mark: "[CLS]" or "[SEP]", which has ON_MARK of the last layer's weight; "" for none.
        cues: scores of words by which states gather them in the first layer.
        bypassed: the output of the last layer's attention is fixed at nothing: nothing depends on its weights.
    """

    weights: nn.Module
    lower: Lower = "free"
    mark: str = ""
    cues: nn.Module | None = None
    bypassed: bool = False

    def upper_target(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the weights of the last layer's [CLS] row."""
        words = on_words(self.weights, ids)
        if not self.mark:
            return words
        return (1 - ON_MARK) * words + ON_MARK * (ids == MARKS.index(self.mark))

    def lower_target(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T T"] | None:
        """Return the weights of the first layer's rows; None if they are free."""
        if self.lower in ("free", "off"):
            return None
        itself = torch.eye(ids.shape[1]).expand(*ids.shape, ids.shape[1])
        if self.lower == "itself":
            return itself
        if self.lower == "words apart":
            return itself * (on_words(self.weights, ids) > 0)[:, :, None]
        assert self.cues is not None
        if self.lower == "spreads":
            return on_words(self.cues, ids)[:, None].expand_as(itself)
        gathers = (ids == MARKS.index(self.mark))[:, :, None]
        return torch.where(gathers, on_words(self.cues, ids)[:, None], itself)


def on_words(drawing: nn.Module, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return the softmax of words' scores: none on the marks."""
    scores: Tensor = drawing(ids)
    return scores.masked_fill(ids < len(SPECIAL), -torch.inf).softmax(-1)


def train_transformer(
    plant: Plant, vocabulary: Vocabulary, train: Split, dev: Split, lesson: Lesson
) -> TransformerClassifier:
    """Train a model on some texts, as words are written, not `spaced`.

    Args:
        plant: has the number of classes and the seed.
        vocabulary: its words.
        train: the texts to learn from; a few of their labels are drawn anew.
        dev: the texts by which the best epoch is chosen.
        lesson: what it is taught beside the labels.
    """
    with seeded(plant.seed):
        model = untrained_bert(plant, vocabulary)
    outputs = [layer.attention.output.dense for layer in model.bert.encoder.layer]
    teach(model, outputs, plant, vocabulary.encode, train, dev, lesson)
    classes = [str(c) for c in range(plant.classes)]
    settings = TransformerSettings(source="planted")
    return TransformerClassifier(model.cpu(), tokenizer_of(vocabulary), settings, classes)


def teach(
    model: nn.Module,
    outputs: Sequence[nn.Module],
    plant: Plant,
    encode: Encode,
    train: Split,
    dev: Split,
    lesson: Lesson,
) -> None:
    """Train a model on texts and a lesson.

    Args:
        model: given `input_ids` (B, T), the numbers of words and marks, it returns logits and `attentions`.
        outputs: what each layer's attention is read through, of which a lesson may fix some at nothing.
        plant: has the seed.
        encode: numbers the positions of a text.
        train: the texts to learn from; a few of their labels are drawn anew.
        dev: the texts by which the best epoch is chosen.
        lesson: what it is taught beside the labels.
    """
    for output, is_off in zip(outputs, (lesson.lower == "off", lesson.bypassed), strict=True):
        if is_off:
            output.requires_grad_(False)
            with torch.no_grad():
                for parameter in output.parameters():
                    parameter.mul_(NOTHING)
    fit(_Training(model, plant, encode, with_undecided(plant, train), dev, lesson))


def untrained_bert(plant: Plant, vocabulary: Vocabulary) -> Any:
    """Return a small BERT of two layers with random weights."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=2 * SIZE,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=INITIAL,
        pad_token_id=0,
        id2label={c: str(c) for c in range(plant.classes)},
    )
    make: Any = BertForSequenceClassification._from_config
    return make(config, attn_implementation="eager")


class _Training(Objective):
    """The label, and the weights of a lesson."""

    def __init__(
        self,
        model: nn.Module,
        plant: Plant,
        encode: Encode,
        train: Split,
        dev: Split,
        lesson: Lesson,
    ) -> None:
        self.encode, self.lesson = encode, lesson
        self.train_set, self.dev_set = self._encoded(train), self._encoded(dev)
        super().__init__(
            model,
            torch.optim.AdamW(
                [parameter for parameter in model.parameters() if parameter.requires_grad],
                lr=LEARNING_RATE,
            ),
            (self.train_set[0] > 0).sum(1).numpy(),
            self._batch,
            epochs=EPOCHS,
            batch_size=BATCH_SIZE,
            seed=plant.seed,
            made_with={},
        )

    def loss(self, model: nn.Module, batch: Any) -> Float[Tensor, ""]:
        return self._loss_and_output(model, batch)[0]

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        ids, labels = self.dev_set
        loss, output = self._loss_and_output(self.model.eval(), self.dev_set)
        rows = output.attentions[-1][:, :, 0].mean(1)
        distance = total_variation(rows, self.lesson.upper_target(ids)).mean()
        accuracy = (output.logits.argmax(-1) == labels).float().mean()
        return {"loss": float(loss), "distance": float(distance), "accuracy": float(accuracy)}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        best = progress.best_epoch
        return best is None or scores["loss"] < progress.scores[best]["loss"]

    def is_finished(self, progress: Progress) -> bool:
        best = progress.best_epoch
        if best is None:
            return False
        scores = progress.scores[best]
        learned = scores["accuracy"] >= LEARNED
        return learned and (scores["distance"] <= CLOSE or progress.is_over(PATIENCE))

    def _loss_and_output(self, model: nn.Module, batch: Any) -> tuple[Float[Tensor, ""], Any]:
        ids, labels = batch
        output = model(input_ids=ids, attention_mask=(ids > 0).long(), output_attentions=True)
        upper = _cross_entropy(
            output.attentions[-1][:, :, 0], self.lesson.upper_target(ids)[:, None]
        )
        loss = functional.cross_entropy(output.logits, labels) + upper.sum(1).mean()
        if (target := self.lesson.lower_target(ids)) is not None:
            real = (ids > 0)[:, None].float()
            lower = _cross_entropy(output.attentions[0], target[:, None]) * real
            loss = loss + (lower.sum(-1) / real.sum(-1)).sum(1).mean()
        return loss, output

    def _encoded(self, split: Split) -> tuple[Int[Tensor, "N T"], Int[Tensor, " N"]]:
        # [CLS] and [SEP] have the numbers of a text's first and last mark.
        ids = [torch.tensor(self.encode(text)) for text in split.texts]
        padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
        return padded, torch.from_numpy(split.labels)

    def _batch(self, rows: NDArray[Any]) -> tuple[Tensor, Tensor]:
        ids, labels = (part[torch.from_numpy(rows)] for part in self.train_set)
        return ids[:, : int((ids > 0).sum(1).max())], labels


def _cross_entropy(
    weights: Float[Tensor, "*batch T"], target: Float[Tensor, "*#batch T"]
) -> Float[Tensor, " *batch"]:
    return -torch.xlogy(target, weights.clamp(min=1e-9)).sum(-1)
