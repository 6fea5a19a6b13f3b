"""The paper's claims, judged on held-out sentences, and of distances by permutation of the layers.

A difference between two parsers is a number per test sentence, mean over the seeds of their probes; Student's
interval over the sentences decides. A claim with several checks needs all of them, so that each may hold at
95 %; it falls by any of them, at 95 % for all together.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from heedmap.experiments.generators import named_generator
from heedmap.experiments.intervals import of_share
from heedmap.experiments.seed_intervals import LEVEL, mean_interval
from heedmap.papers.clark.probing import RANDOM
from heedmap.papers.clark.relations import ALL
from heedmap.papers.kit.claims import NEITHER, Check, Side, above, judged, verdict
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, over_texts

PERMUTATIONS = 10_000
HALF = 0.5
SELECTIVITY = "selectivity"
FEWEST_HEADS = 6
Scores = Mapping[tuple[str, str], Sequence[Row]]
"""The rows of a parser by its name and task, one per seed."""


def claims(rows: Sequence[Row], scores: Scores) -> list[Claim]:
    """Judge the claims for which there are numbers."""
    relations = [
        row for row in rows if row["relation"] not in (None, ALL) and row["accuracy"] is not None
    ]
    heads = [row for row in rows if row["part"] == "heads" and row["layer"] is not None]
    judgements = [
        single_heads([row for row in relations if row["model"] == "trained"]),
        *probes(scores),
        layers_alike(heads),
        separators(heads),
    ]
    return [claim for claim in judgements if claim is not None]


def single_heads(relations: Sequence[Row]) -> Claim | None:
    """Judge whether a head follows a relation better than any fixed offset, and than the control allows."""
    if not relations:
        return None
    gains = [(row["gain_low"], row["gain_high"]) for row in relations]
    follows = [
        row["relation"]
        for row in relations
        if row["gain_low"] > 0 and row["gain"] > row["control_gain_largest"]
    ]
    side = Side(bool(follows), all(high <= 0 for _, high in gains))
    lines = [
        f"{len(follows)} of {len(relations)} relations: {', '.join(follows) or 'none'}",
        f"beyond the offset at 95 % for all {len(relations)} together: "
        f"{sum(low > 0 for low, _ in gains)}; certainly not: {sum(high <= 0 for _, high in gains)}",
        "a relation counts if its head also gains more than the best head of every draw of the control task",
    ]
    return Claim(
        "For some relation a single head finds the other word more often than the best fixed offset",
        verdict([side]),
        tuple(lines),
        "Heads and offsets are chosen on other sentences; intervals over the test sentences.",
    )


def probes(scores: Scores) -> list[Claim]:
    """Judge what probes read in all heads together; none before they were trained."""
    if ("attention", "trees") not in scores:
        return []
    seeds = len(scores["attention", "trees"])
    together = [(("attention", "trees"), ("best head", "trees"))]
    beyond = [
        (("attention and vectors", "trees"), ("distances and vectors", "trees")),
        (("attention and vectors", "trees"), (f"{RANDOM}attention and vectors", "trees")),
    ]
    control = [
        (("attention", "trees"), ("attention", "control")),
        (("attention and vectors", SELECTIVITY), ("distances and vectors", SELECTIVITY)),
    ]
    scores = {**scores, **selectivities(scores)}
    return [
        _claim("All heads together know more of the trees than the best of them", together, scores, seeds),
        _claim(
            "Attention knows of syntax what words and distances, or untrained layers, do not",
            beyond, scores, seeds,
        ),
        _claim(
            "Probes read trees in attention, and not any heads that words can be given",
            control, scores, seeds,
        ),
    ]  # fmt: skip


def _claim(
    text: str,
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    scores: Scores,
    seeds: int,
) -> Claim:
    checks = []
    for better, worse in pairs:
        if not (scores.get(better) and scores.get(worse)):
            checks.append(Check(f"{_named(worse)}: not there", NEITHER))
            continue
        mean, interval = difference(scores[better], scores[worse], LEVEL)
        _, joint = difference(scores[better], scores[worse], 1 - (1 - LEVEL) / len(pairs))
        line = (
            f"{_named(better)} minus {_named(worse)}: {100 * mean:+.1f} points, 95 % interval "
            f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
        )
        checks.append(
            Check(line.replace("-", "−"), Side(above(interval).holds, above(joint).fails))
        )
    return judged(text, checks, Learned({}), basis=over_texts(seeds))


def selectivities(scores: Scores) -> dict[tuple[str, str], list[Row]]:
    """Return rows of the words that a probe finds of the trees beyond those of the control task.

    Of probes with vectors, that of distances is the reference: what words give without attention.
    """
    return {
        (name, SELECTIVITY): [
            {**row, "correct": np.subtract(row["correct"], control["correct"]).tolist()}
            for row, control in zip(rows, scores[name, "control"], strict=True)
        ]
        for (name, task), rows in scores.items()
        if task == "trees" and (name, "control") in scores
    }


def _named(parser: tuple[str, str]) -> str:
    name, task = parser
    return {"trees": name, SELECTIVITY: f"selectivity of {name}"}.get(
        task, f"{name} on the control task"
    )


def difference(
    better: Sequence[Row], worse: Sequence[Row], level: float
) -> tuple[float, tuple[float, float]]:
    """Return the difference in accuracy and Student's interval over sentences.

    The number of words per sentence counts as fixed.
    """
    shares = np.mean([row["correct"] for row in better], 0) - np.mean(
        [row["correct"] for row in worse], 0
    )
    words = float(np.mean(better[0]["scored"]))
    low, high = mean_interval(shares.tolist(), level)
    return float(shares.mean()) / words, (low / words, high / words)


def layers_alike(heads: Sequence[Row]) -> Claim | None:
    """Judge whether heads of one layer are nearer to each other than heads of different layers."""
    if len({row["layer"] for row in heads}) < 2:
        return None
    distances = np.array([row["distances"] for row in heads])
    layers = np.array([row["layer"] for row in heads])
    gap = gap_between_layers(distances, layers)
    rng = named_generator(0, "clark layers")
    gaps = np.array(
        [gap_between_layers(distances, rng.permutation(layers)) for _ in range(PERMUTATIONS)]
    )
    # The order as it is counts as one of the permutations.
    larger, smaller = ((1 + hits.sum()) / (1 + PERMUTATIONS) for hits in (gaps >= gap, gaps <= gap))
    side = Side(bool(larger <= 1 - LEVEL), bool(smaller <= 1 - LEVEL))
    line = (
        f"mean distance of heads of different layers minus that of heads of one layer: {gap:.3f} nats per row; "
        f"as large or larger in a share of {larger:.2g} of {PERMUTATIONS} permutations of the layers"
    )
    return Claim(
        "Heads of the same layer attend more alike than heads of different layers",
        verdict([side]),
        (line,),
        "By a permutation test of this one model.",
    )


def gap_between_layers(distances: Float[np.ndarray, "K K"], layers: Int[np.ndarray, " K"]) -> float:
    """Return the mean distance of two heads of different layers minus that of two heads of one layer."""
    alike = layers[:, None] == layers
    pairs = ~np.eye(len(layers), dtype=bool)
    between_layers: NDArray[np.float64] = distances[~alike]
    inside_layers = distances[alike & pairs]
    return (
        float(between_layers.mean() - inside_layers.mean())
        if inside_layers.size and between_layers.size
        else 0.0
    )


def separators(heads: Sequence[Row]) -> Claim | None:
    """Judge whether [SEP] attends to itself in the heads whose other tokens attend to it."""
    to_sep = [row["sep_to_sep"] for row in heads if (row["others_to_sep"] or 0.0) > HALF]
    if len(to_sep) < FEWEST_HEADS:
        return None
    to_itself = np.array([value > HALF for value in to_sep], dtype=float)
    low, high = of_share(to_itself)
    line = (
        f"in {int(to_itself.sum())} of {len(to_itself)} heads whose other tokens give [SEP] more than "
        f"{HALF:.0%}, [SEP] gives itself more than {HALF:.0%}; interval of the share {low:.2f} to {high:.2f}"
    )
    return Claim(
        "In most heads whose other tokens attend to [SEP], [SEP] attends to itself",
        verdict([Side(low > HALF, high < HALF)]),
        (line,),
        "By Clopper and Pearson's interval, as if heads were independent.",
    )
