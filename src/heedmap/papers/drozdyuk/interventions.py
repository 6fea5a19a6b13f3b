"""Every intervention on one classifier, judged on held-out texts: one row of the table each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedmap.data.batches import scatter_rows
from heedmap.huggingface.interventions import (
    ACTIVATIONS,
    Activation,
    Chain,
    Intervention,
    KeyAdversary,
    ShuffledKeys,
    Uniform,
)
from heedmap.huggingface.recording import Recorder, distances
from heedmap.measures import change_in_prediction
from heedmap.papers.drozdyuk.adversaries import (
    ATTACKS,
    key_widths,
    keys_for,
    opposite,
    train_attack,
)
from heedmap.papers.drozdyuk.focus import MEASURES, Focus, measures, read_alone, received
from heedmap.papers.drozdyuk.model import (
    ProbedClassifier,
    Texts,
    all_logits,
    real_positions,
    seed_of,
)
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import doing, track

TEMPERATURES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)

_NUMBERS = pa.list_(pa.float64())
SCHEMA = pa.schema([
    ("data", pa.string()), ("model", pa.string()), ("activation", pa.string()), ("seed", pa.int64()),
    ("intervention", pa.string()), ("layers", pa.string()), ("n", pa.int64()),
    *((name, pa.float64()) for name in (
        "accuracy", "drop", "opposite_accuracy", "kept", "flipped", "prediction_tvd", "weights_tvd",
        "weights_jsd", "key_distance", "temperature", *MEASURES,
    )),
    *((name, _NUMBERS) for name in (
        "layer_tvd", "layer_jsd", "layer_key_distance", "losses", "dev_accuracies",
    )),
    ("drawn", pa.list_(pa.struct([
        ("tokens", pa.list_(pa.string())), ("weights", pa.list_(_NUMBERS)),  # (layers, tokens)
        ("predicted", pa.string()), ("probability", pa.float64()),
    ]))),
])  # fmt: skip


@dataclass
class Pass:
    """One batch after its clean pass: what an intervention may need."""

    mask: Tensor
    clean: Recorder
    generator: torch.Generator


@dataclass(frozen=True)
class Plan:
    """An intervention by name: for each batch, an edit of the scores and an activation (None: its own)."""

    name: str
    layers: frozenset[int] | None
    make: Callable[[Pass], tuple[Intervention | None, Intervention | None]]
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Its layers, as the table names them."""
        return where(self.layers)


def where(layers: frozenset[int] | None) -> str:
    """Return `all`, or the layers' numbers."""
    return "all" if layers is None else ",".join(map(str, sorted(layers)))


def swapped(
    subject: ProbedClassifier, name: str, temperature: float, layers: frozenset[int] | None
) -> Chain:
    """Use another activation in some layers (None: all), the model's own in the others."""
    swap = Activation(name, temperature, layers)
    if layers is None:
        return Chain(swap)
    return Chain(swap, _Outside(subject.activation, layers))


class _Outside(Activation):
    """An activation in all layers but some."""

    def __init__(self, name: str, layers: frozenset[int]) -> None:
        super().__init__(name)
        self.left_out = layers

    def _concerns(self, call: Any) -> bool:
        return call.index not in self.left_out


def cheap_plans(subject: ProbedClassifier, dev: Texts, layers: int) -> list[Plan]:
    """Return the plans that need no training; temperatures and two of the shuffles are of all layers only."""
    everywhere = [None, *(frozenset([n]) for n in range(layers))] if layers > 1 else [None]
    plans = [Plan("original", None, lambda batch: (None, None))]
    plans += [Plan("uniform", touched, _uniform(touched)) for touched in everywhere]
    other_activations = [name for name in ACTIVATIONS if name != subject.activation]
    for name in other_activations:
        plans += [
            Plan(f"activation:{name}", touched, _swap(subject, name, 1.0, touched))
            for touched in everywhere
        ]
    for name in other_activations:
        doing(f"temperature of {name}")
        best = fitted_temperature(subject, name, dev)
        swap = _swap(subject, name, best, None)
        plans.append(Plan(f"matched:{name}", None, swap, {"temperature": best}))
    plans += [
        Plan("shuffle:positions", touched, _shuffle("positions", touched)) for touched in everywhere
    ]
    plans.append(Plan("shuffle:weights", None, _shuffle("weights", None)))
    plans.append(Plan("shuffle:entries", None, _shuffle("entries", None)))
    return plans


def fitted_temperature(subject: ProbedClassifier, name: str, dev: Texts) -> float:
    """Return the temperature of `TEMPERATURES` with the smallest cross entropy on the dev split.

    A control for the change of activation: another map of the same scores is also sharper or flatter than
    the one the model learned with, and that alone moves predictions.
    """
    labels = torch.from_numpy(dev.labels)
    losses = [
        float(functional.cross_entropy(all_logits(subject, dev, Activation(name, t)), labels))
        for t in TEMPERATURES
    ]
    return TEMPERATURES[int(np.argmin(losses))]


def attack_plan(attack: str, adversary: KeyAdversary, layers: frozenset[int] | None) -> Plan:
    """Return a trained attack as a plan."""
    return Plan(
        attack,
        layers,
        lambda batch: (keys_for(attack, adversary, batch.clean, batch.generator), None),
    )


def _uniform(layers: frozenset[int] | None) -> Callable[[Pass], Any]:
    return lambda batch: (Uniform(layers), None)


def _swap(
    subject: ProbedClassifier, name: str, temperature: float, layers: frozenset[int] | None
) -> Callable[[Pass], Any]:
    return lambda batch: (None, swapped(subject, name, temperature, layers))


def _shuffle(kind: str, layers: frozenset[int] | None) -> Callable[[Pass], Any]:
    return lambda batch: (ShuffledKeys(batch.mask, batch.generator, kind, layers), None)


@torch.no_grad()
def judge(
    subject: ProbedClassifier,
    plans: Sequence[Plan],
    texts: Texts,
    seed: int,
    focus: Focus | None = None,
) -> list[Row]:
    """Return one row per plan: accuracies and distances over texts that no attack was trained on.

    accuracy is against the gold labels, opposite_accuracy against the flipped ones; kept is the share
    of texts whose prediction is the model's own, flipped the share where it is that prediction's
    opposite. Distances are means over texts; lists have one number per layer. The measures of a focus
    are of the mean over all layers; without one they are empty, and no text is drawn.
    """
    generators = [torch.Generator().manual_seed(seed_of(seed, p.name, p.where)) for p in plans]
    rows: list[Tensor] = []
    clean_logits: list[Tensor] = []
    logits: list[list[Tensor]] = [[] for _ in plans]
    # Sums over texts: weights' TVD and JSD, keys' distance, by plan and layer.
    sums = np.zeros((len(plans), 3, 0))
    focused: list[list[Tensor]] = [[] for _ in plans]
    drawn: list[list[Row]] = [[] for _ in plans]
    for part in texts.batches():
        inputs = texts.inputs(part, subject.device)
        mask, clean = real_positions(inputs), Recorder()
        rows.append(torch.from_numpy(part))
        clean_logits.append(subject.logits(inputs, recorder=clean).cpu())
        if not sums.shape[2]:
            sums = np.zeros((len(plans), 3, len(clean.seen_keys)))
        clean_received = received(clean, mask)
        for n, plan in enumerate(plans):
            edit, activation = plan.make(Pass(mask, clean, generators[n]))
            edited_recorder = Recorder()
            edited_logits = subject.logits(inputs, edit, activation, edited_recorder)
            logits[n].append(edited_logits.cpu())
            moved = distances(clean, edited_recorder, mask)
            for kind, values in enumerate((moved.tvd, moved.jsd, moved.key)):
                sums[n, kind] += values.double().sum(1).cpu().numpy()
            if focus is not None:
                weight = received(edited_recorder, mask)
                predicted = clean_logits[-1].argmax(1).to(mask.device)
                focused[n].append(
                    measures(
                        clean_received.mean(0),
                        weight.mean(0),
                        inputs["input_ids"],
                        predicted,
                        focus.lexicons,
                    )
                )
                drawn[n] += _drawn(focus, part, weight, logits[n][-1])
    clean_outputs = scatter_rows(rows, clean_logits)
    return [
        {
            **_row(
                plan,
                clean_outputs,
                scatter_rows(rows, logits[n]),
                sums[n] / len(texts),
                texts.labels,
            ),
            **_means(focused[n]),
            "drawn": drawn[n] or None,
        }
        for n, plan in enumerate(plans)
    ]


def _means(focused: Sequence[Tensor]) -> Row:
    """Return the mean of each measure over the texts that have it; None where none does."""
    if not focused:
        return dict.fromkeys(MEASURES)
    means = torch.cat(list(focused), dim=1).nanmean(1).tolist()
    return {n: None if np.isnan(v) else v for n, v in zip(MEASURES, means, strict=True)}


def _drawn(
    focus: Focus, part: NDArray[np.int64], weight: Float[Tensor, "layers B N"], logits: Tensor
) -> list[Row]:
    """Return the weights of those texts of a batch that are drawn, and what is predicted of each."""
    drawn = []
    for place, row in enumerate(part.tolist()):
        if row in focus.drawn:
            tokens = focus.drawn[row]
            chances = logits[place].double().softmax(0)
            predicted = int(chances.argmax())
            drawn.append(
                {
                    "tokens": tokens,
                    "weights": weight[:, place, : len(tokens)].tolist(),
                    "predicted": focus.classes[predicted],
                    "probability": float(chances[predicted]),
                }
            )
    return drawn


def _row(
    plan: Plan,
    clean_logits: Tensor,
    logits: Tensor,
    moved: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Row:
    classes = clean_logits.shape[1]
    clean_classes, predicted = clean_logits.argmax(1).numpy(), logits.argmax(1).numpy()
    edited = sorted(plan.layers) if plan.layers is not None else list(range(moved.shape[1]))
    return {
        "intervention": plan.name,
        "layers": plan.where,
        "n": len(labels),
        "accuracy": float((predicted == labels).mean()),
        "drop": float((clean_classes == labels).mean() - (predicted == labels).mean()),
        "opposite_accuracy": float((predicted == opposite(labels, classes)).mean()),
        "kept": float((predicted == clean_classes).mean()),
        "flipped": float((predicted == opposite(clean_classes, classes)).mean()),
        "prediction_tvd": float(change_in_prediction(clean_logits, logits).mean()),
        # Of the layers the intervention touches: those below cannot change, those above only follow.
        "weights_tvd": float(moved[0, edited].mean()),
        "weights_jsd": float(moved[1, edited].mean()),
        "key_distance": float(moved[2, edited].mean()),
        "layer_tvd": moved[0].tolist(),
        "layer_jsd": moved[1].tolist(),
        "layer_key_distance": moved[2].tolist(),
        "temperature": plan.extra.get("temperature"),
        "losses": None,
    }


def majority_row(train: Texts, test: Texts, original: Row, classes: int) -> Row:
    """Return the row of a control that reads nothing: the most frequent class of the training texts."""
    guess = int(np.bincount(train.labels, minlength=classes).argmax())
    accuracy = float((test.labels == guess).mean())
    flipped = opposite(test.labels, classes)
    empty = dict.fromkeys(original, None)
    return empty | {
        "intervention": "majority",
        "layers": "all",
        "n": len(test),
        "accuracy": accuracy,
        "drop": original["accuracy"] - accuracy,
        "opposite_accuracy": float((flipped == guess).mean()),
    }


def every_row(
    subject: ProbedClassifier,
    train: Texts,
    dev: Texts,
    test: Texts,
    settings: DrozdyukSettings,
    seed: int,
    checkpoints: Path | None = None,
    focus: Focus | None = None,
) -> tuple[list[Row], dict[str, KeyAdversary]]:
    """Return all rows of one classifier and seed, and the adversaries of all layers by name.

    Stopped attacks resume from their checkpoints, where there is a folder for these.
    """
    depth = len(key_widths(subject, test))
    plans = cheap_plans(subject, dev, depth)
    targets: list[frozenset[int] | None] = [None]
    if settings.per_layer and depth > 1:
        targets += [frozenset([n]) for n in range(depth)]
    adversaries: dict[str, KeyAdversary] = {}
    losses: dict[tuple[str, str], list[float]] = {}
    for attack in track(ATTACKS):
        for layers in track(targets):
            checkpoint = checkpoints and checkpoints / f"{attack}-{where(layers)}.safetensors"
            adversary, history = train_attack(
                attack, subject, train, settings, seed, layers, checkpoint
            )
            plan = attack_plan(attack, adversary, layers)
            plans.append(plan)
            losses[attack, plan.where] = history
            if layers is None:
                adversaries[attack] = adversary
    if focus is not None and "log_odds" in focus.lexicons:
        words = len(focus.lexicons["log_odds"])
        alone = read_alone(subject, words)
        focus = replace(focus, lexicons={**focus.lexicons, "read_alone": alone})
    rows = judge(subject, plans, test, seed, focus)
    for row in rows:
        row["losses"] = losses.get((row["intervention"], row["layers"]))
    return [*rows, majority_row(train, test, rows[0], subject.classes)], adversaries
