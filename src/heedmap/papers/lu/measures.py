"""What is measured of a trained translator, by map and layer, each number with its chance level.

A map's layer −1 is the mean of its layers, and a layer's map the mean of its heads. Chance: the same with the
weights of every target position shuffled over the source, or with the masks shuffled, which is said to each.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar
from torch import Tensor

from heedmap.counterfactual.permute import shuffled
from heedmap.data.parallel import Pairs
from heedmap.experiments.generators import named_generator
from heedmap.experiments.methods.kendall import tau_against
from heedmap.measures import entropy, jensen_shannon, levelled
from heedmap.models.transformer_translator import CrossCall, Hook
from heedmap.papers.kit.alignment import Counts, baselines, by_words, counts, error_rate, links
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.lu.calibration import (
    CalibratedTranslator,
    calibrated,
    normalised,
    perturbed,
)
from heedmap.papers.lu.reading import (
    Sentence,
    evened,
    leave_one_out,
    leave_unattended,
    read_sentence,
)
from heedmap.papers.lu.training import next_symbols

SENTENCES = 60  # whose weights are read word by word, evenly over the test split
SHUFFLES = 5  # of each map that is compared with leave-one-out
FIFTHS = 5
MEAN = -1  # the layer that is the mean of all


def measure(
    quantity: str,
    value: float,
    chance: float = math.nan,
    ceiling: float = math.nan,
    *,
    map: str = "",
    layer: int = MEAN,
    n: int = 0,
) -> Row:
    """Return one number as a row."""
    return {
        "quantity": quantity, "map": map, "layer": layer, "value": value, "chance": chance,
        "ceiling": ceiling, "n": n,
    }  # fmt: skip


def torch_generator(seed: int, name: str) -> torch.Generator:
    """Return torch's generator of a name; see `named_generator`."""
    return torch.Generator().manual_seed(int(named_generator(seed, name).integers(2**63)))


def skill(model: CalibratedTranslator, test: Encoded, seed: int) -> list[Row]:
    """Return how well the next sub-word is predicted: as trained, with uniform weights, and perturbed.

    Uniform weights have the sum of the row that they stand for. The chance of a perturbation is that with the
    same masks in another order over the source, its ceiling that with everything masked.
    """
    targets = np.concatenate([np.array(target) for target in test.target])
    commonest = float(np.bincount(targets).max() / len(targets))
    accuracy, cross_entropy = next_symbols(model, test, model.hook)
    without, without_entropy = next_symbols(
        model, test, lambda call: evened(model.hook(call), call.real)
    )
    n = len(test.target)
    rows = [
        measure("accuracy", accuracy, commonest, n=n),
        measure("accuracy, uniform", without, commonest, n=n),
        measure("cross entropy", cross_entropy, without_entropy, n=n),
    ]
    if model.calibration is not None:
        generator = torch_generator(seed, "lu masks")
        _, masked = next_symbols(model, test, perturbation(model))
        _, at_random = next_symbols(model, test, perturbation(model, generator))
        _, whole = next_symbols(model, test, lambda call: evened(call.weights, call.real))
        rows.append(measure("cross entropy, perturbed", masked, at_random, whole, n=n))
    return rows


def perturbation(model: CalibratedTranslator, generator: torch.Generator | None = None) -> Hook:
    """Return the hook of the perturbed pass; with a generator, its masks are shuffled."""
    calibration = model.calibration
    assert calibration is not None

    def hook(call: CrossCall) -> Float[Tensor, "B H T S"]:
        masks = calibration.masks(call)
        if generator is not None:
            masks = shuffled(masks, generator, call.real[:, None, None])
        return perturbed(call.weights, masks, call.real)

    return hook


def with_mean(maps: Float[Tensor, "L H T S"]) -> Float[Tensor, "M T S"]:
    """Return each layer's map, the mean of its heads, and the mean of the layers last."""
    layers = maps.mean(1)
    return torch.cat([layers, layers.mean(0, keepdim=True)])


def layer_of(index: int, count: int) -> int:
    """Return the layer of a map of `with_mean`."""
    return MEAN if index == count - 1 else index


def alignment(
    model: CalibratedTranslator, pairs: Pairs, encoded: Encoded, choice: str, seed: int
) -> list[Row]:
    """Return the alignment error rate of each map, and of baselines, of the sentences with sure links."""
    assert pairs.sure is not None
    assert pairs.possible is not None
    generator = torch_generator(seed, f"lu alignment {choice}")
    by_map: dict[tuple[str, int], list[tuple[Counts, Counts]]] = {}
    by_baseline: dict[str, list[Counts]] = {}
    for row, (sure, possible) in enumerate(zip(pairs.sure, pairs.possible, strict=True)):
        if not sure:
            continue
        for name, maps in read_sentence(model, encoded, row).maps.items():
            layers = with_mean(maps)
            versions = torch.stack([layers, shuffled(layers, generator)])
            of_words = by_words(versions, encoded, row, summed=True)
            for index in range(len(layers)):
                map_counts, chance_counts = (
                    counts(links(version[index]), sure, possible) for version in of_words
                )
                key = (name, layer_of(index, len(layers)))
                by_map.setdefault(key, []).append((map_counts, chance_counts))
        lengths = len(pairs.source[row]), len(pairs.target[row])
        for name, sentence_counts in baselines(*lengths, sure, possible).items():
            by_baseline.setdefault(name, []).append(sentence_counts)
    floor = error_rate(by_baseline.get("best possible", []))
    quantity = f"AER {choice}"
    rows = []
    for (name, layer), sentence_counts_of_map in by_map.items():
        value, chance = (error_rate(side) for side in zip(*sentence_counts_of_map, strict=True))
        n = len(sentence_counts_of_map)
        rows.append(measure(quantity, value, chance, floor, map=name, layer=layer, n=n))
    for name, baseline_counts in by_baseline.items():
        value = error_rate(baseline_counts)
        rows.append(measure(quantity, value, map=name, n=len(baseline_counts)))
    return rows


def evenly(pairs: Encoded) -> list[int]:
    """Return SENTENCES of the pairs, evenly over the split."""
    count = len(pairs.source)
    rows = np.linspace(0, count - 1, min(count, SENTENCES)).round().astype(int)
    return sorted(set(rows.tolist()))


class Collected:
    """Numbers by key, and their means as rows."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str, int], list[tuple[Tensor, Tensor, Tensor]]] = {}

    def add(
        self, quantity: str, map: str, layer: int, value: Tensor, chance: Tensor, ceiling: Tensor
    ) -> None:
        """Add the numbers of one sentence, flattened."""
        parts = (value.flatten(), chance.flatten(), ceiling.flatten())
        self.values.setdefault((quantity, map, layer), []).append(parts)

    def rows(self) -> Iterator[Row]:
        """Yield the mean of each, of the numbers that are defined; `n` counts those."""
        for (quantity, map, layer), parts in self.values.items():
            value, chance, ceiling = (torch.cat(side).double() for side in zip(*parts, strict=True))
            means = (float(side.nanmean()) for side in (value, chance, ceiling))
            n = int((~value.isnan()).sum())
            yield measure(quantity, *means, map=map, layer=layer, n=n)


def weights_read(model: CalibratedTranslator, test: Encoded, seed: int) -> list[Row]:
    """Return entropies, changes by calibration, agreement with leave-one-out and attention to the end.

    All of the target positions of `evenly` spread sentences.
    """
    generator = torch_generator(seed, "lu weights")
    collected = Collected()
    changes: list[dict[str, Float[Tensor, "L N"]]] = []
    for row in evenly(test):
        sentence = read_sentence(model, test, row)
        _add_entropies(collected, sentence)
        _add_leave_one_out(collected, model, test, row, sentence, generator)
        _add_end(collected, sentence)
        _add_sums(collected, sentence)
        if sentence.masks is not None:
            changes.append(_changes(sentence, generator))
    rows = [*collected.rows()]
    if changes:
        rows += _change_rows({
            name: torch.cat([part[name] for part in changes], 1).numpy() for name in changes[0]
        })  # fmt: skip
    return rows


def _add_entropies(collected: Collected, sentence: Sentence) -> None:
    """Add the entropies of each head's rows; uniform weights have ln S."""
    for name, maps in sentence.maps.items():
        for layer, weights in enumerate(maps):
            values = entropy(weights)
            none = torch.full_like(values, torch.nan)
            uniform_entropy = torch.full_like(values, math.log(weights.shape[-1]))
            collected.add("entropy", name, layer, values, none, uniform_entropy)


def _add_sums(collected: Collected, sentence: Sentence) -> None:
    """Add the sums of the rows that the model uses, which are 1 without calibration."""
    sums = sentence.fused.sum(-1)
    none = torch.full_like(sums, torch.nan)
    collected.add("row sum", "", MEAN, sums, torch.ones_like(sums), none)


def _add_end(collected: Collected, sentence: Sentence) -> None:
    """Add the weight on the end of the source; uniform weights, and shuffled ones on average, have 1 / S."""
    for name, maps in sentence.maps.items():
        layers = with_mean(maps)
        for index, weights in enumerate(layers):
            at_end = weights[:, -1]
            share = torch.full_like(at_end, 1 / weights.shape[-1])
            layer = layer_of(index, len(layers))
            collected.add("end", name, layer, at_end, share, torch.ones_like(share))


def _add_leave_one_out(
    collected: Collected,
    model: CalibratedTranslator,
    test: Encoded,
    row: int,
    sentence: Sentence,
    generator: torch.Generator,
) -> None:
    """Add Kendall's τ of each map and leave-one-out over the source words, and the change without the end.

    Beside τ: the maps shuffled, and leave-one-out by another way, in the cross-attention alone.
    """
    removed, without_end = leave_one_out(model, test, row, sentence)
    everything = torch.ones_like(removed, dtype=torch.bool)
    unattended = leave_unattended(model, test, row, sentence)
    ceiling = tau_against(unattended.unsqueeze(1), removed.unsqueeze(1), everything)[:, 0, 0]
    none = torch.full_like(without_end, torch.nan)
    collected.add("change without the end", "", MEAN, without_end, removed.mean(1), none)
    for name, maps in sentence.maps.items():
        layers = with_mean(maps)
        versions = torch.stack([layers, *(shuffled(layers, generator) for _ in range(SHUFFLES))])
        of_words = _source_words(versions, test, row)
        order = levelled(of_words, torch.ones_like(of_words, dtype=torch.bool))
        for index in range(len(layers)):
            taus = tau_against(order[:, index].transpose(0, 1), removed.unsqueeze(1), everything)[
                ..., 0
            ]
            layer = layer_of(index, len(layers))
            chance = taus[:, 1:].nanmean(1)
            collected.add("leave-one-out, τ", name, layer, taus[:, 0], chance, ceiling)


def _source_words(
    values: Float[Tensor, "*maps T S"], pairs: Encoded, row: int
) -> Float[Tensor, "*maps T W"]:
    """Return the sum of the weights on each source word, for every target sub-word; the end is left out."""
    index = torch.tensor(pairs.source_words[row])
    member = index[:, None] == torch.arange(int(index.max()) + 1)
    return values.double() @ member.double()


def _changes(sentence: Sentence, generator: torch.Generator) -> dict[str, Float[Tensor, "L N"]]:
    """Return each row's entropy, and what calibration and calibration by shuffled masks do to it."""
    assert sentence.masks is not None
    attention = sentence.attention
    rows = {"entropy": entropy(attention)}
    for name, masks in (("", sentence.masks), (" shuffled", shuffled(sentence.masks, generator))):
        weights = normalised(calibrated(attention, masks))
        rows[f"JSD{name}"] = jensen_shannon(attention, weights)
        rows[f"gain{name}"] = entropy(weights) - rows["entropy"]
    return {name: values.flatten(1).double() for name, values in rows.items()}


def _change_rows(values: dict[str, NDArray[np.float64]]) -> list[Row]:
    """Return by layer what calibration changes, and whether most where the entropy is high; by fifths too."""
    rows = []
    ceiling_jsd, (layers, n) = largest_change(), values["entropy"].shape
    for layer in range(layers):
        of_layer = {name: array[layer] for name, array in values.items()}
        changes = [of_layer["JSD"], of_layer["JSD shuffled"]]
        numbers = {
            "JSD": (*(float(array.mean()) for array in changes), ceiling_jsd),
            "entropy gained": (
                *(float(of_layer[name].mean()) for name in ("gain", "gain shuffled")), math.nan,
            ),
            "entropy and JSD, τ": (
                *(float(stats.kendalltau(of_layer["entropy"], array).statistic) for array in changes),
                1.0,
            ),
        }  # fmt: skip
        for name, (value, chance, ceiling) in numbers.items():
            rows.append(measure(name, value, chance, ceiling, map="calibrated", layer=layer, n=n))
        order = of_layer["entropy"].argsort(kind="stable")
        for fifth, part in enumerate(np.array_split(order, FIFTHS), 1):
            if len(part):
                value, chance = (float(array[part].mean()) for array in changes)
                mean, size = float(of_layer["entropy"][part].mean()), len(part)
                rows += [
                    measure(
                        f"JSD, fifth {fifth}", value, chance, map="calibrated", layer=layer, n=size
                    ),
                    measure(f"entropy, fifth {fifth}", mean, map="attention", layer=layer, n=size),
                ]
    return rows


def largest_change() -> float:
    """Return the largest JSD (nats) of weights a and a · exp(1 − m), 0 ≤ m ≤ 1, however they are.

    The factors are from 1 to e. The divergence is largest with factors at these ends, so that it depends on the
    mass p that gets e alone, which becomes e p / (1 + (e − 1) p).
    """

    def negative(mass: float) -> float:
        raised = math.e * mass / (1 + (math.e - 1) * mass)
        original, changed = (torch.tensor([p, 1 - p], dtype=torch.float64) for p in (mass, raised))
        return -float(jensen_shannon(original, changed))

    return -float(minimize_scalar(negative, bounds=(0.0, 1.0), method="bounded").fun)
