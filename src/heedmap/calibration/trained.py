"""Planted models that are trained: the attention is fixed by the plant's scores, everything else is learned.

The deciding words decide the label of most training texts, so a model that learns rests on them, and the plant
says whether its attention is on them. Whether it has learned this is checked: on held-out planted texts it must
be right, and right again where every deciding word is replaced by one of another class.
"""

import numpy as np

from heedmap.calibration.plants import Drawing, Plant, scores_of, with_other_cues, write_texts
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.settings import ModelSettings, TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.evaluation import evaluate
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
    train, dev = (write_texts(plant, n, part, own) for n, part in ((TRAIN, "train"), (DEV, "dev")))
    rng = plant.generator("undecided")
    drawn = rng.integers(plant.classes, size=TRAIN)
    labels = np.where(rng.random(TRAIN) < UNDECIDED, drawn, train.labels)
    settings = ModelSettings(
        encoder="lstm" if plant.family not in ("cnn", "average") else plant.family,
        score="log_odds",
        embedding_size=32,
        hidden_size=32,
    )
    with seeded(plant.seed):
        model = TextClassifier(settings, vocabulary, [str(c) for c in range(plant.classes)])
    model.score = Drawing(scores_of(plant, vocabulary))
    objective = AttentionObjective(
        model,
        model.encoded(train.texts, labels),
        model.encoded(dev.texts, dev.labels),
        SETTINGS.model_copy(update={"seed": plant.seed}),
    )
    fit(objective)
    other = with_other_cues(plant, dev)
    accuracies = [
        evaluate(model, model.encoded(split.texts, split.labels))["accuracy"]
        for split in (dev, other)
    ]
    return model.cpu().eval().requires_grad_(False), (accuracies[0], accuracies[1])


def is_admitted(accuracies: tuple[float, float]) -> bool:
    """Whether the model rests on the deciding words."""
    return min(accuracies) >= LEAST
