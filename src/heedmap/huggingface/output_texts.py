"""The texts for which a model of several labels predicts the one that is audited."""

import numpy as np

from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.deletions import read


class NotPredicted(InputError):
    """The label is predicted for no text."""


def predicted_texts(
    model: TransformerClassifier, split: Split, source: str
) -> tuple[Split, dict[str, int]]:
    """Return the texts for which the label is predicted, and count the others.

    Of a text that is read in windows the mean of their probabilities decides.

    Raises:
        NotPredicted: it is predicted for none.
    """
    # The model's own probability: the other logit is the threshold's, and no part of it.
    probability = read(model, split.texts)[:, 1].sigmoid().numpy()
    text_of = np.arange(len(split)) if split.text_of is None else split.text_of
    numbers = np.unique(text_of, return_inverse=True)[1]
    means = np.bincount(numbers, probability) / np.bincount(numbers)
    is_predicted = means >= model.settings.threshold
    label = model.classes[1]
    if not is_predicted.any():
        raise NotPredicted(
            f"{source}: expected texts for which {label} is predicted, got none of {len(means)}: the largest "
            f"probability is {means.max():.3g}, and the threshold {model.settings.threshold:g}; give other "
            "texts, or a lower --threshold"
        )
    with_label = split.take(np.flatnonzero(is_predicted[numbers]))
    left_out = int((~is_predicted).sum())
    return with_label, {f"{label} is not predicted": left_out} if left_out else {}
