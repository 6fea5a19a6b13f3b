"""Drozdyuk et al.'s trained attacks: an MLP, trained on the train split, makes keys for one classifier.

`interventions.py` judges the attacks on other texts.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.files.identity import weights_hash
from heedmap.huggingface.interventions import KeyAdversary, Keys
from heedmap.huggingface.recording import Recorder, key_distance, mean_over_rows
from heedmap.measures import total_variation
from heedmap.papers.drozdyuk.model import (
    ProbedClassifier,
    Texts,
    made_with,
    real_positions,
    seed_of,
)
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.terminal.progress import working
from heedmap.training.fit import fit
from heedmap.training.objective import Objective, Progress, seeded

# The second and the last are ours: one is trained for other weights, where the paper's is for other keys, and
# one is an opposite attack on noise, which cannot read the text.
ATTACKS = ("adversarial", "adversarial_weights", "random_k", "opposite", "opposite_random_k")


def is_random(attack: str) -> bool:
    """Return whether the MLP is fed noise in place of the model's keys."""
    return attack.endswith("random_k")


def is_opposite(attack: str) -> bool:
    """Return whether the MLP is trained towards another class than the gold one."""
    return attack.startswith("opposite")


def opposite(labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the class an opposite attack wants: the next one. With two classes, the other: 1 − y."""
    return (labels + 1) % classes


def key_widths(subject: ProbedClassifier, texts: Texts) -> dict[int, int]:
    """Return the width of each layer's keys, all heads together: {layer: heads · size per head}."""
    recorder = Recorder(weights=False)
    with torch.no_grad():
        subject.logits(texts.inputs([0], subject.device), recorder=recorder)
    return {layer: keys.shape[1] * keys.shape[3] for layer, keys in recorder.seen_keys.items()}


def keys_for(
    attack: str, adversary: KeyAdversary, clean: Recorder, generator: torch.Generator
) -> Keys:
    """Return the attack's keys for a batch whose clean pass was recorded."""
    return adversary.on_noise(generator) if is_random(attack) else adversary.on(clean.seen_keys)


def attack_loss(
    logits: Float[Tensor, "B C"],
    targets: Tensor,
    distance: Float[Tensor, " B"] | None,
    settings: DrozdyukSettings,
) -> Float[Tensor, ""]:
    """Return the loss of an attack; y is the gold label and y' the opposite one.

    * adversarial: α CE(y, ŷ) − (1 − α) min(δ, radius), δ the mean over the attacked layers of
      ‖K − K'‖_F / ‖K‖_F over a text's real positions;
    * adversarial_weights: the same with the total variation of the weights for δ, which is at most 1;
    * random_k: CE(y, ŷ);  opposite, opposite_random_k: CE(y', ŷ).

    CE of two logits is the paper's BCE of their difference. The paper's distance is ‖k − k_adv‖₂ with
    no more detail. It grows with length and width without bound, so that the loss has no minimum; ours is
    relative to the keys' own size and clipped at the radius. Nor is it a distance of attention: one vector
    added to all of a text's keys shifts every score of a row alike, so keys can be arbitrarily far apart
    under the same weights. Hence the second attack.
    """
    task = functional.cross_entropy(logits, targets)
    if distance is None:
        return task
    clipped = distance.clamp(max=settings.radius).mean()
    return settings.alpha * task - (1 - settings.alpha) * clipped


def _distance(
    attack: str, clean: Recorder, live: Recorder, mask: Bool[Tensor, "B N"], layers: list[int]
) -> Float[Tensor, " B"] | None:
    """Return the distance in an attack's loss, a mean over the attacked layers; None without one."""
    if attack == "adversarial":
        keys = [key_distance(clean.seen_keys[n], live.seen_keys[n], mask) for n in layers]
        return torch.stack(keys).mean(0)
    if attack == "adversarial_weights":
        moved = [
            mean_over_rows(total_variation(clean.seen_weights[n], live.seen_weights[n]), mask)
            for n in layers
        ]
        return torch.stack(moved).mean(0)
    return None


class AttackObjective(Objective):
    """Train an attack's MLP by Adam and keep the last epoch; the classifier, in eval mode, is unchanged.

    Keys come from a clean pass; the attacked pass recomputes the queries and values of later layers.
    """

    model: KeyAdversary
    remedy = "try a smaller adversary_learning_rate"

    def __init__(
        self,
        attack: str,
        adversary: KeyAdversary,
        subject: ProbedClassifier,
        train: Texts,
        settings: DrozdyukSettings,
        seed: int,
    ) -> None:
        self.attack, self.subject, self.settings = attack, subject, settings
        self.layers = sorted(adversary.layers)
        self.noise = torch.Generator().manual_seed(seed_of(seed, attack, "noise"))
        self.total, self.count = 0.0, 0  # of the epoch's losses and texts
        labels = opposite(train.labels, subject.classes) if is_opposite(attack) else train.labels
        weights = weights_hash(subject.model.state_dict())
        super().__init__(
            adversary,
            torch.optim.Adam(adversary.parameters(), lr=settings.adversary_learning_rate),
            train.lengths,
            replace(train, labels=labels).batch,
            epochs=settings.adversary_epochs,
            batch_size=settings.batch_size,
            seed=seed_of(seed, attack),
            made_with=made_with(settings, subject, seed, attack, weights, *self.layers),
            generators={"noise": self.noise},
        )

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        """Return the attack's loss (see `attack_loss`)."""
        targets = batch.pop("labels")
        clean = Recorder(weights=self.attack == "adversarial_weights")
        if not is_random(self.attack):
            with torch.no_grad():
                self.subject.logits(batch, recorder=clean)
        live = Recorder(live=True, weights=clean.keeps_weights)
        keys = keys_for(self.attack, self.model, clean, self.noise)
        logits = self.subject.logits(batch, keys, recorder=live)
        distance = _distance(self.attack, clean, live, real_positions(batch), self.layers)
        loss = attack_loss(logits, targets, distance, self.settings)
        self.total += loss.item() * len(targets)
        self.count += len(targets)
        return loss

    def scores(self) -> dict[str, float]:
        """Return the epoch's mean loss."""
        mean, self.total, self.count = self.total / self.count, 0.0, 0
        return {"loss": mean}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Return True: the last epoch's weights are kept."""
        return True


def train_attack(
    attack: str,
    subject: ProbedClassifier,
    train: Texts,
    settings: DrozdyukSettings,
    seed: int,
    layers: frozenset[int] | None = None,
    checkpoint: Path | None = None,
) -> tuple[KeyAdversary, list[float]]:
    """Train an attack on all or some layers of a classifier; return it and its loss per epoch (see `fit`).

    Raises:
        InputError: the training diverged, or a checkpoint that is damaged or of another training.
    """
    widths = key_widths(subject, train)
    attacked_widths = {n: width for n, width in widths.items() if layers is None or n in layers}
    with seeded(seed_of(seed, attack, *sorted(attacked_widths))):
        adversary = KeyAdversary(attacked_widths, settings.adversary_hidden).to(subject.device)
    objective = AttackObjective(attack, adversary, subject, train, settings, seed)
    with working(attack.replace("_", " ")):
        trained = fit(objective, checkpoint)
    return adversary, [scores["loss"] for scores in trained.scores]
