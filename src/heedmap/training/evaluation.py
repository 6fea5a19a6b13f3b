"""Measure how well a model predicts a split."""

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Encoded, scatter_rows, sorted_batches
from heedmap.models.classifier import Classifier
from heedmap.training.objective import Diverged

EVALUATION_TOKENS = 16_384


@torch.no_grad()
def predict_logits(model: Classifier, split: Encoded) -> Float[Tensor, "B C"]:
    """Return the logits of a whole split, in its order."""
    model.eval()
    batches = [split.batch(r) for r in sorted_batches(split.lengths, EVALUATION_TOKENS)]
    logits = [model.as_logits(model(batch.to(model.device))[0]).cpu() for batch in batches]
    return scatter_rows([batch.rows for batch in batches], logits)


def evaluate(model: Classifier, split: Encoded) -> dict[str, float]:
    """Score a model on a split (see `scores_of`)."""
    return scores_of(predict_logits(model, split), split.labels)


def scores_of(logits: Float[Tensor, "B C"], labels: NDArray[np.int64]) -> dict[str, float]:
    """Return accuracy, F1 (of class 1; macro for more than two) and, for two occurring classes, ROC AUC.

    Raises:
        Diverged: the logits are not finite.
    """
    from sklearn import metrics

    if not torch.isfinite(logits).all():
        raise Diverged
    predicted = logits.argmax(1).numpy()
    two = logits.shape[1] == 2
    average = "binary" if two else "macro"
    scores = {
        "accuracy": float(metrics.accuracy_score(labels, predicted)),
        "f1": float(metrics.f1_score(labels, predicted, average=average, zero_division=0.0)),
    }
    if two and len(np.unique(labels)) == 2:
        scores["roc_auc"] = float(metrics.roc_auc_score(labels, logits[:, 1].numpy()))
    return scores
