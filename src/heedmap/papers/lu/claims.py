"""The claims of Lu et al.'s abstract, and what they rest on, judged by intervals over seeds.

Each claim is a number per seed and calibrated model; with several models or layers it says all of them. It
survives if the 95 % interval of each part is on its side. It does not if one part's is on the other side, at
95 % for all parts together (Bonferroni).
"""

import math
from collections.abc import Iterator, Sequence

from heedmap.experiments.seed_intervals import LEVEL, mean_interval
from heedmap.experiments.seeds import seed_mean
from heedmap.papers.kit.claims import Check, Side, judged
from heedmap.papers.kit.result import Claim
from heedmap.papers.lu.numbers import Lu
from heedmap.report.wording import plural

PLAIN = "none"


def claims(lu: Lu) -> list[Claim]:
    """Judge the claims; those that compare with the model without calibration need one."""
    fusions = [fusion for fusion in lu.fusions if fusion != PLAIN]
    if not fusions:
        return []
    translation = []
    if PLAIN in lu.fusions:
        translation = [
            _claim(
                lu,
                "A translator with calibrated attention translates better than one without (BLEU).",
                [(fusion, "", _against_plain(lu, fusion)) for fusion in fusions],
                "BLEU gained, of models with the same first weights and batches.",
            )
        ]
    return [
        *translation,
        _claim(
            lu,
            "The masks find what the translation rests on: it is worsened more than by the same masks in "
            "another order over the source.",
            [(f, "", lu.differences_from_chance(f, "cross entropy, perturbed")) for f in fusions],
            "Cross entropy of the next sub-word, nats: perturbed by the masks minus by the shuffled ones.",
        ),
        _claim(
            lu,
            "Calibrated weights are more uniform than the model's own in the lowest layer, and more "
            "concentrated in the highest.",
            [*_entropies(lu, fusions)],
            "Entropy gained by calibration, nats; in the highest layer entropy lost.",
        ),
        _claim(
            lu,
            "Weights of high entropy are calibrated most, more than any masks would.",
            [(f, "", _mean_excess(lu, f)) for f in fusions],
            "Kendall's τ of a row's entropy and the JSD of a and a_c, minus that with shuffled masks; mean of "
            "the layers. Peaked weights cannot be moved much by factors from 1 to e, whatever the masks.",
        ),
        _claim(
            lu,
            "Calibrated weights agree better with leave-one-out than the model's own.",
            [(f, "", _calibrated_gain(lu, f, "leave-one-out, τ")) for f in fusions],
            "Kendall's τ over the source words, of the mean of layers: a_c minus a.",
        ),
        *(
            _claim(
                lu,
                f"Calibrated weights link words better than the model's own (links: {choice}).",
                [(f, "", [-x for x in _calibrated_gain(lu, f, f"AER {choice}")]) for f in fusions],
                "Alignment error rate of the mean of layers: a minus a_c.",
            )
            for choice in lu.choices
        ),
    ]


def _claim(lu: Lu, text: str, parts: Sequence[tuple[str, str, list[float]]], basis: str) -> Claim:
    """Judge by the numbers per seed of every part, which are to be above 0."""
    together = 1 - (1 - LEVEL) / len(parts)
    checks = []
    for fusion, part, values in parts:
        low, _ = mean_interval(values)
        _, high = mean_interval(values, together)
        line = f"{fusion}{part}: {seed_mean(values)}, {plural(len(values), 'seed')}"
        checks.append(Check(line, Side(low > 0, high <= 0), [fusion]))
    return judged(text, checks, lu.learned, basis=basis)


def _against_plain(lu: Lu, fusion: str) -> list[float]:
    """Return BLEU minus that without calibration, by seed, of the seeds that have both."""
    plain, of_fusion = (lu.by_seed("BLEU", name) for name in (PLAIN, fusion))
    return [of_fusion[seed] - plain[seed] for seed in sorted({*plain} & {*of_fusion})]


def _entropies(lu: Lu, fusions: Sequence[str]) -> Iterator[tuple[str, str, list[float]]]:
    for fusion in fusions:
        for layer, sign, name in ((0, 1.0, "lowest"), (lu.settings.layers - 1, -1.0, "highest")):
            gains = lu.by_seed("entropy gained", fusion, "calibrated", layer)
            yield fusion, f", {name} layer", [sign * gain for gain in gains.values()]


def _mean_excess(lu: Lu, fusion: str) -> list[float]:
    """Return the mean over layers of τ minus its chance, by seed."""
    layers = [
        lu.differences_from_chance(fusion, "entropy and JSD, τ", "calibrated", layer)
        for layer in range(lu.settings.layers)
    ]
    return [math.fsum(seed) / len(seed) for seed in zip(*layers, strict=True)]


def _calibrated_gain(lu: Lu, fusion: str, quantity: str) -> list[float]:
    """Return a number of a_c minus that of a, by seed."""
    of_calibrated, of_attention = (
        lu.by_seed(quantity, fusion, name) for name in ("calibrated", "attention")
    )
    return [of_calibrated[seed] - of_attention[seed] for seed in of_attention]
