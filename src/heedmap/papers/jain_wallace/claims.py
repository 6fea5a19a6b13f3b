"""The paper's claims, judged on the grid's models of each data set, by intervals over seeds and texts.

A number of a model is a mean over its texts, then over its seeds. Its variance is that of the seeds' mean and
that of a mean over texts; of one seed, the latter alone, and the basis says so. The interval is Student's, with
Welch and Satterthwaite's degrees of freedom, and is divided among the models that a claim is made of
(Bonferroni). The edges are ours: the paper says "weak", "minimal" and "very different".
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from heedmap.experiments.seed_intervals import LEVEL, level_of
from heedmap.papers.jain_wallace.learned import learned, name_of
from heedmap.papers.jain_wallace.lines import Line
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import COMPARED, SOURCE, published
from heedmap.papers.kit.claims import Check, apart, judged
from heedmap.papers.kit.result import Claim, Estimate

CONTEXT = (
    "lstm",
    "cnn",
)  # encoders that read more than the word itself; of "average" τ is high there, too
WEAK = 0.5  # τ up to which two rankings agree only weakly
SMALL = 0.1  # TVD up to which a prediction counts as hardly moved
FAR = 0.4  # JSD from which weights count as very different; at most .69 is possible
ABSTRACT = "(abstract)"


def claims(datasets: Sequence[DatasetNumbers], lines: Sequence[Line]) -> list[Claim]:
    """Judge the claims on every data set; none of a data set without a finished model."""
    found = []
    for dataset in datasets:
        rows = [
            row
            for row in lines
            if (row.dataset, row.predicted) == (dataset.dataset, "Overall")
            and math.isfinite(row.ours)
        ]
        if rows:
            found += _of_dataset(dataset, rows, several=len(datasets) > 1)
    return found


def _of_dataset(dataset: DatasetNumbers, lines: Sequence[Line], *, several: bool) -> list[Claim]:
    names = {COMPARED[0]: "the gradient", COMPARED[1]: "leave-one-out"}
    where = f" ({dataset.dataset})" if several else ""

    def judge(quantity: str, text: str, edge: float, found: str, *, up: bool = False) -> Claim:
        models = [
            row for row in lines if row.quantity == quantity and (row.encoder in CONTEXT or up)
        ]
        level = level_of(len(models))
        checks = [_check(row, edge, level, up=up) for row in models]
        seeds = max((row.seeds for row in models), default=0)
        basis = f"By intervals over texts and {seeds} seeds, divided among the models."
        if not seeds:
            basis = "No model that this is claimed of is finished."
        elif seeds == 1:
            basis = (
                "By intervals over texts, divided among the models: with one seed the spread over trainings "
                "is not known."
            )
        return judged(text + where, checks, learned([dataset]), basis=basis, found=found)

    return [
        *(
            judge(
                quantity,
                f"Attention agrees only weakly with {words}: mean τ is below {WEAK} where the encoder reads "
                "context.",
                WEAK,
                _reported(quantity),
            )
            for quantity, words in names.items()
        ),
        judge(
            "permutation: median TVD",
            f"Shuffling the weights hardly moves the prediction: its median TVD is below {SMALL} on average.",
            SMALL,
            "Shuffled weights often change the output only minimally (introduction; numbers in figures alone).",
        ),
        judge(
            "adversary: max JSD",
            f"Very different weights give the same prediction: their mean JSD is above {FAR}.",
            FAR,
            f"Very different attention distributions yield equivalent predictions {ABSTRACT}.",
            up=True,
        ),
    ]  # fmt: skip


def _check(line: Line, edge: float, level: float, *, up: bool) -> Check:
    """Check that a number is below the edge, or above it: `up`."""
    name = f"{line.encoder} {line.score}"
    low, high = interval(line, level)
    text = f"{name}: {line.ours:.3f} [{low:.3f}, {high:.3f}]"
    sign = 1 if up else -1
    ends = sorted((sign * low, sign * high))
    # As a distance from the edge on the claim's side, so that every claim says "above 0".
    number = Estimate(
        f"{name}, {line.ours:.3f} {'less' if up else 'below'} {edge:g}",
        sign * (line.ours - edge),
        ends[0] - sign * edge,
        ends[1] - sign * edge,
    )
    side = apart((number.low, number.high))
    return Check(text, side, [name_of(line.model)], number)


def interval(line: Line, level: float) -> tuple[float, float]:
    """Return Student's interval of a model's mean, with the variance over seeds and over texts."""
    texts, seeds = line.n / max(1, line.seeds), line.seeds
    if texts <= 1:
        return math.nan, math.nan
    of_texts, of_seeds, freedom = line.ours_std**2 / (texts - 1), 0.0, texts - 1
    if seeds > 1:  # the line has where another seed would be: x̄ ± t s √(1 + 1/k)
        half = (line.next_high - line.next_low) / 2
        of_seeds = (half / float(stats.t.ppf((1 + LEVEL) / 2, seeds - 1))) ** 2 / (seeds + 1)
        total = of_texts**2 / (texts - 1) + of_seeds**2 / (seeds - 1)
        freedom = (of_texts + of_seeds) ** 2 / total if total else freedom
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(of_texts + of_seeds)
    return line.ours - half, line.ours + half


def _reported(quantity: str) -> str:
    """Say what the published result files have of a correlation: the LSTM with additive scores, by data set."""
    means = [
        number.value
        for (_, encoder, score, name, predicted), number in published().items()
        if (encoder, score, name, predicted) == ("lstm", "additive", quantity, "Overall")
        and math.isfinite(number.value)
    ]
    return (
        f"Learned weights are frequently uncorrelated with such measures {ABSTRACT}; mean τ of the LSTM with "
        f"additive scores {min(means):.2f} to {max(means):.2f}, median {float(np.median(means)):.2f}, on "
        f"{len(means)} data sets ({SOURCE})."
    )
