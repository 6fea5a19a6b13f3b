"""A model trained to predict as another one and to attend elsewhere (Wiegreffe & Pinter 2019, section 4)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch, Encoded, Ragged
from heedmap.experiments.variants import Adversary, Direction
from heedmap.measures import jensen_shannon, kullback_leibler, total_variation
from heedmap.models.classifier import Classifier
from heedmap.retraining.reading import read
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective, outputs_of
from heedmap.training.evaluation import scores_of
from heedmap.training.objective import Progress


class Target(NamedTuple):
    """The base model's logits of a split, and its weights."""

    logits: Float[Tensor, "N C"]
    weights: Ragged


class AdversaryObjective(AttentionObjective):
    """Minimise Σ_texts TVD(p, p_base) − λ KL(α ‖ α_base), or KL(α_base ‖ α): see `Adversary`.

    TVD is ½ Σ_c |p_c − p_base,c|. Of two classes the released code sums one of the two differences and has half
    of it, so that its λ corresponds to 2λ here. Labels are not used. The kept epoch has the lowest loss on the
    dev split (there: on the training texts, and reported on the test texts).
    """

    def __init__(
        self,
        model: Classifier,
        train: Encoded,
        dev: Encoded,
        settings: TrainSettings,
        adversary: Adversary,
        targets: tuple[Target, Target],
    ) -> None:
        super().__init__(model, train, dev, settings)
        self.epochs, self.patience = adversary.epochs, adversary.patience
        self.strength, self.direction = adversary.strength, adversary.direction
        self.target, self.dev_target = targets
        self.made_with |= {"adversary": [str(adversary)]}

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the sum over the batch."""
        batch = batch.to(self.model.device)
        outputs, attention = outputs_of(model, batch)
        base = self.target.weights.padded(batch.rows.cpu(), batch.mask.shape[1]).to(outputs)
        logits = self.target.logits[batch.rows.cpu()].to(outputs)
        return self._losses(self.model.as_logits(outputs), attention[:, 0], logits, base).sum()

    def _losses(
        self, logits: Tensor, weights: Tensor, base_logits: Tensor, base: Tensor
    ) -> Float[Tensor, " B"]:
        change = total_variation(logits.softmax(-1), base_logits.softmax(-1))
        return change - self.strength * directed(self.direction, weights, base)

    def scores(self) -> dict[str, float]:
        """Score the dev split: accuracy, and the means of TVD, KL, JSD (nats) and the loss."""
        logits, weights = read(self.model, self.dev)
        dev_scores = scores_of(logits, self.dev.labels)
        width = int(self.dev.lengths.max(initial=0))
        rows = torch.arange(len(self.dev))
        attention, base_attention = (
            w.padded(rows, width) for w in (weights, self.dev_target.weights)
        )
        means = {
            "tvd": total_variation(logits.softmax(-1), self.dev_target.logits.softmax(-1)),
            "kl": directed(self.direction, attention, base_attention),
            "jsd": jensen_shannon(attention, base_attention),
            "loss": self._losses(logits, attention, self.dev_target.logits, base_attention),
        }
        return dev_scores | {name: float(values.mean()) for name, values in means.items()}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare the losses on dev."""
        best = progress.best_epoch
        return best is None or scores["loss"] < progress.scores[best]["loss"]

    def is_finished(self, progress: Progress) -> bool:
        """Return whether the patience is over."""
        return progress.is_over(self.patience)


def directed(
    direction: Direction, attention: Float[Tensor, "B T"], base_attention: Float[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Return KL in nats with the adversary's weights first, or the base model's.

    Padding adds 0: it has no weight in either. In the released code 0 · ln 0 is NaN there.
    """
    if direction == "adversary":
        return kullback_leibler(attention, base_attention)
    return kullback_leibler(base_attention, attention)
