"""Where measures of importance disagree widely about one map: by how much, and why that can be."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.methods.importance_measures import COMPLETENESS_TOLERANCE, MEASURE_NAMES
from heedmap.experiments.repeats import READ
from heedmap.experiments.results import Results, does, percent
from heedmap.files.tables import rows_of

FACTOR = 3  # between the largest and the smallest number, from which it is said
FEWEST = 5  # texts that all measures have
SURE = 0.99  # probability of the answer from which a prediction counts as saturated
SMALL = 0.05  # change of the prediction below which no word's absence shows
NOTABLE = 0.25  # share of the texts, or of the importance, from which a reason is named

Used = NDArray[np.bool_]


def disagreement(results: Results) -> str:
    """Say that the importance under the map differs by FACTOR between the measures, and why; else nothing.

    All measures are compared on the texts that every one has. A reason is named where the tables show it and it
    is about the largest or the smallest number; that the measures ask different things is one always.
    """
    columns = {name: results.optional("importance_mass", f"mass_{name}") for name in MEASURE_NAMES}
    masses = {name: values for name, values in columns.items() if values is not None}
    if len(masses) < 2:
        return ""
    is_compared: Used = np.asarray(np.isfinite(np.stack([*masses.values()])).all(0))
    if is_compared.sum() < FEWEST:
        return ""
    means = {name: float(values[is_compared].mean()) for name, values in masses.items()}
    order = sorted(means, key=lambda name: -means[name])
    largest, smallest = order[0], order[-1]
    if means[largest] < FACTOR * means[smallest]:
        return ""
    said = ", ".join(f"{MEASURE_NAMES[name]} {means[name]:.2f}" for name in order)
    reasons = "; ".join(_reasons(results, is_compared, largest, smallest))
    count = is_compared.sum()
    return (
        f"the measures disagree ({said}, on the same {count} texts), which can be because {reasons}"
    )


def _reasons(results: Results, is_compared: Used, largest: str, smallest: str) -> Iterator[str]:
    """Yield what can make two measures differ; `largest` is the one that finds most under the map."""
    yield from _spread(results, is_compared, largest, smallest)
    if "leave_one_out" in (largest, smallest):
        yield from _saturated(results, is_compared)
        yield from _of_either_sign(results, is_compared)
    if "gradient" in (largest, smallest) and results.settings.gradient_path == "closed":
        yield (
            "the gradient holds the attention fixed, so that a word's weight is a factor of its number, while "
            "leave-one-out and integrated gradients let it move"
        )
    if "integrated_gradients" in (largest, smallest):
        yield from _incomplete(results, is_compared)
    yield (
        "leave-one-out takes a word away, the gradient changes it a very little, and integrated gradients add "
        "up gradients on the way from an empty text, so that redundant and interacting words count differently"
    )


def _spread(results: Results, is_compared: Used, largest: str, smallest: str) -> Iterator[str]:
    """Say that one measure spreads its importance, so that no order of the weights finds much of it."""
    high, low = (
        float(np.nanmean(results.column("importance_mass", f"largest_{name}")[is_compared]))
        for name in (largest, smallest)
    )
    if high >= 2 * low:
        name = MEASURE_NAMES[smallest]
        spread = "spread" if does(name) == "do" else "spreads"
        yield (
            f"{name} {spread} the importance over more words (the best order of these weights would find "
            f"{low:.2f} of it, and {high:.2f} by {MEASURE_NAMES[largest]})"
        )


def _saturated(results: Results, is_compared: Used) -> Iterator[str]:
    """Say that predictions are so sure, or their evidence so redundant, that no word's absence shows."""
    rows = np.flatnonzero(is_compared)
    importance, probabilities = (
        _lists(results.tables[table], column, rows)
        for table, column in (("leave_one_out", "importance"), ("instances", "probabilities"))
    )
    # Of a text in windows, one of a single word has no number.
    still = float(
        np.mean([np.fmax.reduce(sizes) < SMALL * results.scale.size for sizes in importance])
    )
    if still < NOTABLE:
        return
    if results.scale.unit is not None:
        yield (
            f"in {percent(still)} of the texts no word's absence changes the output by "
            f"{results.scale.amount(SMALL)}, and leave-one-out rests on small changes"
        )
        return
    sure = float(np.mean([max(shares) >= SURE for shares in probabilities]))
    saturated = f" ({percent(sure)} are saturated, from {SURE:g})" if sure >= NOTABLE else ""
    yield (
        f"in {percent(still)} of the texts no word's absence changes the prediction by {SMALL:g}{saturated}, "
        "and leave-one-out rests on small changes"
    )


def _of_either_sign(results: Results, is_compared: Used) -> Iterator[str]:
    """Say that much of the importance is of words against the answer."""
    table = results.tables["leave_one_out"]
    if "signed" not in table.column_names or results.scale.unit is not None:
        return  # a number has no answer that words are for or against
    rows = np.flatnonzero(is_compared)
    lists = zip(*(_lists(table, name, rows) for name in ("importance", "signed")), strict=True)
    shares = []
    for sizes, changes in ((np.array(x), np.array(y)) for x, y in lists):
        shares.append(float(sizes[changes < 0].sum() / sizes.sum()))
    if np.mean(shares) >= NOTABLE:
        yield (
            f"{percent(float(np.mean(shares)))} of the importance by leave-one-out is of words against the "
            "answer, and sizes without a sign are compared"
        )


def _lists(table: pa.Table, column: str, rows: NDArray[np.int64]) -> Iterator[list[float]]:
    """Yield the lists of some texts, a part of the table in memory at a time."""
    for batch in rows_of(table.select([column]), rows).to_batches(max_chunksize=READ):
        yield from batch[column].to_pylist()


def _incomplete(results: Results, is_compared: Used) -> Iterator[str]:
    """Say that integrated gradients miss a part of what they should add up to."""
    errors = results.changes("integrated_gradients", "completeness_error")[is_compared]
    share = float((errors > COMPLETENESS_TOLERANCE).mean())
    if share >= NOTABLE:
        yield (
            "integrated gradients miss what they should add up to by more than "
            f"{COMPLETENESS_TOLERANCE:g} {results.scale.evidence} in {percent(share)} of the texts"
        )
