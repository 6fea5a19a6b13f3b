"""Planted models that are trained: the attention is fixed by the plant's scores, everything else is learned.

The deciding words decide the label of most training texts, so a model that learns rests on them, and the plant
says whether its attention is on them. Whether it has learned this is checked: on held-out planted texts it must
be right, and right again where every deciding word is replaced by one of another class.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Int
from torch import Tensor

from heedmap.calibration.plants import Drawing, Plant, scores_of, with_other_cues, write_texts
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.settings import ModelSettings, TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.fit import fit
from heedmap.training.objective import seeded

TRAIN, DEV = 800, 200  # texts
LEAST = 0.9  # accuracy, both times
UNDECIDED = 0.05  # share of the training texts whose label is drawn
SETTINGS = TrainSettings(epochs=8, learning_rate=0.005)


def trained_plant(
    plant: Plant, vocabulary: Vocabulary, own: Split | None = None
) -> tuple[TextClassifier, tuple[float, float]]:
    """Train the model; return it with its two accuracies, on planted texts and on those with other words."""
    train, dev = training_texts(plant, own)
    settings = ModelSettings.of(
        encoder=plant.family, score="log_odds", embedding_size=32, hidden_size=32
    )
    with seeded(plant.seed):
        model = TextClassifier(settings, vocabulary, [str(c) for c in range(plant.classes)])
    model.score = Drawing(scores_of(plant, vocabulary))
    objective = AttentionObjective(
        model,
        model.encoded(train.texts, train.labels),
        model.encoded(dev.texts, dev.labels),
        SETTINGS.model_copy(update={"seed": plant.seed}),
    )
    fit(objective)
    model.cpu().eval().requires_grad_(False)

    def answers(split: Split) -> Int[Tensor, " N"]:
        return model.trace(model.batch(split.texts, range(len(split)))).predicted

    return model, accuracies_of(plant, dev, answers)


def training_texts(plant: Plant, own: Split | None) -> tuple[Split, Split]:
    """Return the texts to train on, where a few labels are drawn, and those to check the model on."""
    train, dev = (write_texts(plant, n, part, own) for n, part in ((TRAIN, "train"), (DEV, "dev")))
    rng = plant.generator("undecided")
    drawn = rng.integers(plant.classes, size=TRAIN)
    labels = np.where(rng.random(TRAIN) < UNDECIDED, drawn, train.labels)
    return replace(train, labels=labels), dev


def accuracies_of(
    plant: Plant, dev: Split, answers: Callable[[Split], Int[Tensor, " N"]]
) -> tuple[float, float]:
    """Return the accuracy on planted texts, and on the same with deciding words of another class."""
    one, other = (
        float((answers(split).numpy(force=True) == split.labels).mean())
        for split in (dev, with_other_cues(plant, dev))
    )
    return one, other


def is_admitted(accuracies: tuple[float, float]) -> bool:
    """Whether the model rests on the deciding words."""
    return min(accuracies) >= LEAST
