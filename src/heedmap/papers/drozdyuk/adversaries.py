"""Drozdyuk et al.'s trained attacks: keys that an MLP makes, for one classifier and a train split.

Whether they work is asked on texts they were not trained on (`interventions.py`).
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedmap.data.batches import bucketed_batches
from heedmap.huggingface.interventions import KeyAdversary, Keys
from heedmap.huggingface.recording import Recorder, key_distance, mean_over_rows
from heedmap.measures import total_variation
from heedmap.papers.drozdyuk.model import Report, Subject, Texts, real_positions, seed_of, seeded
from heedmap.papers.drozdyuk.settings import DrozdyukSettings

# The second and the last are ours: one asked for other weights, where the paper asks for other keys, and an
# opposite attack that cannot read the text through its keys.
ATTACKS = ("adversarial", "adversarial_weights", "random_k", "opposite", "opposite_random_k")


def is_random(attack: str) -> bool:
    """Whether the MLP is fed noise in place of the model's keys."""
    return attack.endswith("random_k")


def is_opposite(attack: str) -> bool:
    """Whether the MLP is trained towards another class than the gold one."""
    return attack.startswith("opposite")


def opposite(labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """The class an opposite attack wants: the next one. With two classes, the other: 1 − y."""
    return (labels + 1) % classes


def key_widths(subject: Subject, texts: Texts) -> dict[int, int]:
    """The width of the keys of every layer, its heads together: {layer: H'·D}."""
    recorder = Recorder(weights=False)
    with torch.no_grad():
        subject.logits(texts.inputs([0], subject.device), recorder=recorder)
    return {layer: keys.shape[1] * keys.shape[3] for layer, keys in recorder.seen_keys.items()}


def keys_for(
    attack: str, adversary: KeyAdversary, clean: Recorder, generator: torch.Generator
) -> Keys:
    """The attack's keys for a batch whose clean pass was recorded."""
    return adversary.on_noise(generator) if is_random(attack) else adversary.on(clean.seen_keys)


def attack_loss(
    logits: Float[Tensor, "B C"],
    targets: Tensor,
    distance: Float[Tensor, " B"] | None,
    settings: DrozdyukSettings,
) -> Float[Tensor, ""]:
    """What an attack makes small, with y the gold label and y' the opposite one.

    * adversarial: α CE(y, ŷ) − (1 − α) min(δ, radius), δ the mean over the attacked layers of
      ‖K − K'‖_F / ‖K‖_F over a text's real positions;
    * adversarial_weights: the same with the total variation of the weights for δ, which is at most 1;
    * random_k: CE(y, ŷ);  opposite, opposite_random_k: CE(y', ŷ).

    CE of two logits is the paper's BCE of their difference. The paper's distance is ‖k − k_adv‖₂ without
    more said: it grows with length and width and has no upper bound, so that the loss has no minimum;
    here it is a share of the keys' own size, and what goes beyond the radius earns nothing. It is also no
    distance of attention: one vector added to all of a text's keys moves every score of a row alike, so
    keys can be as far away as one likes under the very same weights. Hence the second attack.
    """
    task = functional.cross_entropy(logits, targets)
    if distance is None:
        return task
    far = distance.clamp(max=settings.radius).mean()
    return settings.alpha * task - (1 - settings.alpha) * far


def _apart(
    attack: str, clean: Recorder, live: Recorder, mask: Bool[Tensor, "B N"], layers: list[int]
) -> Float[Tensor, " B"] | None:
    """The distance in an attack's loss, mean over the layers it attacks."""
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


def train_attack(
    attack: str,
    subject: Subject,
    train: Texts,
    settings: DrozdyukSettings,
    seed: int,
    layers: frozenset[int] | None = None,
    report: Report = lambda done, total, text: None,
) -> tuple[KeyAdversary, list[float]]:
    """Train an attack on all layers, or some, of a classifier that stays as it is; its loss by epoch.

    Adam; the classifier in eval mode. Keys come from a clean pass; the pass with other keys makes the
    queries and values of later layers anew.
    """
    from accelerate import Accelerator

    accelerator = Accelerator()
    widths = key_widths(subject, train)
    chosen = {n: width for n, width in widths.items() if layers is None or n in layers}
    with seeded(seed, attack, *sorted(chosen)):
        adversary = KeyAdversary(chosen, settings.adversary_hidden).to(subject.device)
    noise = torch.Generator().manual_seed(seed_of(seed, attack, "noise"))
    optimizer = torch.optim.Adam(adversary.parameters(), lr=settings.adversary_learning_rate)
    wanted = opposite(train.labels, subject.classes) if is_opposite(attack) else train.labels
    losses = []
    for epoch in range(settings.adversary_epochs):
        rng = np.random.default_rng([seed_of(seed, attack), epoch])
        order = bucketed_batches(train.lengths, settings.batch_size, rng)
        total = 0.0
        for step, rows in enumerate(order):
            inputs = train.inputs(rows, subject.device)
            clean = Recorder(weights=attack == "adversarial_weights")
            if not is_random(attack):
                with torch.no_grad():
                    subject.logits(inputs, recorder=clean)
            live = Recorder(live=True, weights=clean.wanted)
            optimizer.zero_grad()
            logits = subject.logits(
                inputs, keys_for(attack, adversary, clean, noise), recorder=live
            )
            apart = _apart(attack, clean, live, real_positions(inputs), sorted(chosen))
            targets = torch.from_numpy(wanted[rows]).to(logits.device)
            loss = attack_loss(logits, targets, apart, settings)
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item() * len(rows)
            report(
                epoch * len(order) + step + 1,
                len(order) * settings.adversary_epochs,
                f"{subject.activation} {seed}: {attack.replace('_', ' ')}",
            )
        losses.append(total / len(train))
    return adversary.eval().requires_grad_(False), losses
