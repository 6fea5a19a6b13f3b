"""A model trained not to attend to impermissible tokens, and to use them all the same (Pruthi et al. 2020)."""

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from heedmap.data.batches import Batch, Encoded, Ragged, scatter_rows, sorted_batches
from heedmap.experiments.questions.deception import TOLERANCE, masses
from heedmap.experiments.variants import Heads, Penalty
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.classifier import Classifier
from heedmap.retraining.reading import read
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective, Loss, cross_entropy
from heedmap.training.evaluation import EVALUATION_TOKENS, scores_of
from heedmap.training.objective import Progress, rank

LEAST = 1e-12  # permissible mass inside the logarithm: the penalty of a text is at most 28 λ


def penalty(
    attention: Float[Tensor, "B T"], marked: Shaped[Tensor, "B T"], lengths: Tensor
) -> Float[Tensor, " B"]:
    """Return −ln(1 − Σ_t α_t m_t) per text, m the marks of impermissible tokens.

    0 for texts without any, as in the released code, and for texts of nothing else, where it could not be made
    less.
    """
    mass = (attention * marked).sum(-1)
    count = marked.sum(-1)
    reducible = (count > 0) & (count < lengths)
    value = -(1 - mass).clamp(min=LEAST).log()
    return torch.where(reducible, value, torch.zeros_like(value))


def with_penalty(base: Loss, marks: Ragged, strength: float) -> Loss:
    """Return the loss base + λ Σ_texts penalty: per text, and summed over the batch as the cross entropy is."""

    def loss(outputs: Tensor, attention: Tensor, batch: Batch) -> Tensor:
        marked = marks.padded(batch.rows.cpu(), batch.mask.shape[1]).to(attention)
        return (
            base(outputs, attention, batch)
            + strength * penalty(attention[:, 0], marked, batch.lengths).sum()
        )

    return loss


def mean_mass(weights: Ragged, marks: Ragged, heads: Heads = "mean") -> float:
    """Return the mean attention to marked tokens, of the texts with any; 0 if there are none."""
    mass = masses(weights, marks, heads)
    defined = mass[np.isfinite(mass)]
    return float(defined.mean()) if len(defined) else 0.0


def is_better(
    scores: dict[str, float], progress: Progress, penalty_settings: Penalty, accuracy: float
) -> bool:
    """Return whether an epoch is better than the best so far (see `DeceptiveObjective`)."""
    best = progress.best_epoch
    return best is None or _order(scores, penalty_settings, accuracy) > _order(
        progress.scores[best], penalty_settings, accuracy
    )


def _order(
    scores: dict[str, float], penalty_settings: Penalty, accuracy: float
) -> tuple[float, ...]:
    if penalty_settings.rule == "code":
        return (scores["accuracy"],)
    if scores["accuracy"] >= accuracy - TOLERANCE:
        return (1.0, -scores["mass"], rank(scores))
    return (0.0, scores["accuracy"], -scores["mass"])


@torch.no_grad()
def read_blocked(model: AttentionClassifier, split: Encoded, marks: Ragged) -> Float[Tensor, "N C"]:
    """Return the logits of all texts with the attention to marked tokens set to 0, and nothing in its place."""
    model.eval()
    logits, rows = [], []
    for batch_rows in sorted_batches(split.lengths, EVALUATION_TOKENS):
        batch = split.batch(batch_rows).to(model.device)
        _, attention = model(batch)
        marked = marks.padded(batch.rows.cpu(), batch.mask.shape[1]).to(model.device) > 0
        permissible = attention.masked_fill(marked.unsqueeze(1), 0.0)
        outputs, _ = model.outputs(model.embed(batch), batch, permissible)
        logits.append(model.as_logits(outputs).cpu())
        rows.append(batch.rows.cpu())
    return scatter_rows(rows, logits) if rows else torch.zeros(0, len(model.classes))


class DeceptiveObjective(AttentionObjective):
    """The run's own training with a penalty on the attention to marked tokens.

    Which epoch is kept: by the paper's rule, the one with the least marked attention on dev of those within
    2 % of `accuracy`, what the training without penalty reaches there (if none is, the most accurate); by the
    released code's, the most accurate one. Without penalty both are the run's own rule.
    """

    def __init__(
        self,
        model: Classifier,
        train: Encoded,
        dev: Encoded,
        settings: TrainSettings,
        penalty_settings: Penalty,
        marks: tuple[Ragged, Ragged],
        accuracy: float,
    ) -> None:
        loss = with_penalty(cross_entropy(model, train), marks[0], penalty_settings.strength)
        super().__init__(model, train, dev, settings, loss)
        self.penalty, self.accuracy, self.dev_marks = penalty_settings, accuracy, marks[1]
        self.made_with |= {"penalty": [str(penalty_settings)]}

    def scores(self) -> dict[str, float]:
        """Score the dev split; `mass` is the mean attention to marked tokens, of the texts with any."""
        logits, weights = read(self.model, self.dev)
        dev_scores = scores_of(logits, self.dev.labels)
        return dev_scores | {"mass": mean_mass(weights, self.dev_marks)}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare epochs by the rule; without a penalty, as the run's own training does."""
        if self.penalty.strength == 0:
            return super().is_better(scores, progress)
        return is_better(scores, progress, self.penalty, self.accuracy)

    def is_finished(self, progress: Progress) -> bool:
        """Return whether no later epoch can be better: with a penalty one with less attention may."""
        return self.penalty.strength == 0 and super().is_finished(progress)
