"""Planted models that are trained: the attention is the plant's, everything else is learned.

The plant's weights are fixed scores of words, or a learned score is taught them. The words that decide do so in
most training texts, so a model that learns rests on them, wherever its attention is. Whether it has learned
this is checked (`construction`).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.calibration.plants import (
    WITHOUT_CONTEXT,
    WITHOUT_CUES,
    Drawing,
    Plant,
)
from heedmap.data.batches import Batch, Encoded
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.measures import total_variation
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.encoders import CNN, GRU, LSTM
from heedmap.models.normalisers import normalise
from heedmap.models.pair_classifier import PairClassifier
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective, batch_loss
from heedmap.training.fit import fit
from heedmap.training.objective import Progress, seeded

TRAIN, DEV = 800, 200  # texts
LEAST = 0.9  # accuracy, both times
NEAR = 0.05  # mean TVD of taught weights from the plant's, to end a training early
UNDECIDED = 0.05  # share of the training texts whose label is drawn
SIZE = 32  # of embeddings and of the encoder
SETTINGS = TrainSettings(epochs=16, learning_rate=0.005, selection="accuracy")

# Scores of the words or sentences of a batch, (B, T).
Teacher = Callable[[Batch], Float[Tensor, "B T"]]
# A further loss, given the model, its states (B, T, D), its weights (B, T) and the batch.
Further = Callable[[TextClassifier, Tensor, Tensor, Batch], Float[Tensor, ""]]


class PlantedTraining(AttentionObjective):
    """Train on the labels; teach the scores the plant's weights if they are learned; add a further loss.

    The teaching loss is Σ_t (α_t − target_t) s_t with α held fixed: its gradient in the scores is α − target,
    as that of the cross entropy for a softmax and of the Fenchel-Young losses for sparsemax and entmax (Blondel
    et al. 2020).
    """

    model: AttentionClassifier

    def __init__(
        self,
        model: AttentionClassifier,
        train: Encoded,
        dev: Encoded,
        settings: TrainSettings,
        teacher: Teacher | None = None,
        further: Further | None = None,
        to_the_end: bool = False,
    ) -> None:
        # Summed over a batch for pairs too, as the loss that teaches the scores.
        super().__init__(
            model, train, dev, settings, summed if isinstance(model, PairClassifier) else None
        )
        self.teacher, self.further = teacher, further
        # Right answers alone do not say that a further loss is learned.
        self.to_the_end = to_the_end or further is not None

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        """Score the dev split; `distance` is that of taught weights from the plant's, a mean TVD."""
        scores = super().scores()
        if self.teacher is not None:
            batch = self.dev.batch(range(len(self.dev))).to(self.model.device)
            states, query = (
                self.model.encode(self.model.embed(batch), batch),
                self.model.encode_query(batch),
            )
            weights = self.model.attend(states, batch, query).squeeze(1)
            target = normalise(self.teacher(batch), batch.mask, self.model.settings.normaliser)
            scores["distance"] = float(total_variation(weights, target).mean())
        return scores

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare epochs; of those that answer alike, that with the nearest weights, else the last."""
        best = progress.best_epoch
        return best is None or self._order(scores) >= self._order(progress.scores[best])

    def is_finished(self, progress: Progress) -> bool:
        """Return whether no later epoch can be much better."""
        best = progress.best_epoch
        if best is None or self.to_the_end or progress.scores[best]["accuracy"] < 1:
            return False
        return progress.scores[best].get("distance", 0.0) <= NEAR

    def _order(self, scores: dict[str, float]) -> tuple[float, float]:
        return scores["accuracy"], -scores.get("distance", 0.0)

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the sum of the losses over a batch."""
        planted = self.model
        states, query = planted.encode(planted.embed(batch), batch), planted.encode_query(batch)
        scores = planted.scores(states, batch, query)
        weights = normalise(scores, batch.mask, planted.settings.normaliser)
        context = planted.projection(torch.matmul(weights.unsqueeze(1), states))
        outputs = planted.decode(context, batch, query).squeeze(1)
        loss = self.batch_loss(outputs, weights.unsqueeze(1), batch)
        if self.teacher is not None:
            target = normalise(self.teacher(batch), batch.mask, planted.settings.normaliser)
            loss = loss + ((weights.detach() - target) * scores.masked_fill(~batch.mask, 0.0)).sum()
        if self.further is not None:
            assert isinstance(planted, TextClassifier)
            loss = loss + self.further(planted, states, weights, batch)
        return loss


def summed(
    outputs: Float[Tensor, "B C"], attention: Float[Tensor, "B K T"], batch: Batch
) -> Float[Tensor, ""]:
    """Return the cross entropy, summed over a batch."""
    return batch_loss(outputs, batch.labels, None)


def train_model(
    plant: Plant,
    vocabulary: Vocabulary,
    train: Split,
    dev: Split,
    scores: NDArray[np.float64] | None,
    further: Further | None = None,
    settings: TrainSettings = SETTINGS,
) -> TextClassifier:
    """Train a model whose weights are the plant's.

    Args:
        plant: whose encoder, score and normaliser the model has.
        vocabulary: its words.
        train: the texts to learn from; UNDECIDED of their labels are drawn anew.
        dev: the texts by which the best epoch is chosen.
        scores: as `Drawing` has them; None if the weights are learned freely.
        further: a loss to add.
        settings: of the training, but for its seed.
    """
    fixed = scores is not None and plant.score == "fixed"
    model_settings = settings_of(plant, plant.encoder, "log_odds" if fixed else plant.score)
    with seeded(plant.seed):
        model = TextClassifier(model_settings, vocabulary, [str(c) for c in range(plant.classes)])
    if plant.encoder in WITHOUT_CONTEXT:
        # Words say nothing until they have learned to: a cue of little weight is not drowned by the others.
        with torch.no_grad():
            model.embedding.weight.mul_(0.1)
    if scores is None:
        start_local(model.encoder)
    drawing = None if scores is None else Drawing(scores)
    if fixed and drawing is not None:
        model.score = drawing
    fit_plant(
        model,
        plant,
        train,
        dev,
        None if fixed or drawing is None else drawing.of_batch,
        settings=settings,
        further=further,
        # Weights that are learned freely go on changing after the answers are right.
        to_the_end=scores is None,
    )
    return model


def settings_of(plant: Plant, encoder: str, score: str) -> ModelSettings:
    """Return the settings of a planted model that is trained."""
    return ModelSettings.of(
        encoder=encoder,
        score=score,
        normaliser=plant.normaliser,
        embedding_size=SIZE,
        hidden_size=SIZE,
    )


def fit_plant(
    model: AttentionClassifier,
    plant: Plant,
    train: Split,
    dev: Split,
    teacher: Teacher | None,
    *,
    settings: TrainSettings = SETTINGS,
    further: Further | None = None,
    to_the_end: bool = False,
) -> None:
    """Fit a model on texts of which a few labels are drawn anew, and leave it on the processor, for reading.

    Args:
        model: the model.
        plant: whose seed the training has.
        train: the texts to learn from; UNDECIDED of their labels are drawn anew.
        dev: the texts by which the best epoch is chosen.
        teacher: teaches the scores of the plant; None if they are fixed, or free.
        settings: of the training, but for its seed.
        further: a loss to add.
        to_the_end: whether all epochs are trained, however good an earlier one is.
    """
    undecided = with_undecided(plant, train)
    objective = PlantedTraining(
        model,
        model.encoded(undecided.texts, undecided.labels),
        model.encoded(dev.texts, dev.labels),
        settings.model_copy(update={"seed": plant.seed}),
        teacher,
        further,
        to_the_end,
    )
    fit(objective)
    model.cpu().eval().requires_grad_(False)


def start_local(encoder: nn.Module) -> None:
    """Let each state begin as one of its own word, by far: weights of other words' are a tenth.

    Freely learned weights then come to be on the words that decide, more often than on their neighbours.
    """
    with torch.no_grad():
        if isinstance(encoder, LSTM | GRU):
            for name, parameter in encoder.named_parameters():
                if "weight_hh" in name:
                    parameter.mul_(0.1)
        elif isinstance(encoder, CNN):
            for window in encoder.windows:
                centre = window.kernel_size[0] // 2
                centre_weights = window.weight[:, :, centre].clone()
                window.weight.mul_(0.1)
                window.weight[:, :, centre] = centre_weights


def with_undecided(plant: Plant, split: Split) -> Split:
    """Return training texts of which a few labels are drawn."""
    rng = plant.generator("undecided")
    drawn_labels = rng.integers(plant.classes, size=len(split))
    labels = np.where(rng.random(len(split)) < UNDECIDED, drawn_labels, split.labels)
    return replace(split, labels=labels)


def with_some_lacking(plant: Plant, split: Split) -> Split:
    """Return training texts of which some lack their deciding words: no class becomes the default.

    Other words of the text take their place, and the label stays: it is as if it were drawn.
    """
    rng = plant.generator("lacking")
    lacks = rng.random(len(split)) < WITHOUT_CUES
    tokens = [*split.tokens]
    for row, marks in enumerate(split.rationale or []):
        if lacks[row]:
            silent = [w for w, decides in zip(tokens[row], marks, strict=True) if not decides]
            tokens[row] = [
                silent[int(rng.integers(len(silent)))] if decides else word
                for word, decides in zip(tokens[row], marks, strict=True)
            ]
    return replace(split, tokens=tokens)
