"""Which texts are the same? A text that occurs twice is no second observation."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.generators import named_generator


def text_numbers(instances: pa.Table) -> NDArray[np.int64]:
    """Number the distinct texts, by tokens and query: one number per row, the same for the same text.

    Without tokens every row is a text of its own.
    """
    names = [name for name in ("tokens", "query") if name in instances.column_names]
    if "tokens" not in names:
        return np.arange(instances.num_rows)
    numbers: dict[object, int] = {}
    rows = zip(*(map(tuple, instances[name].to_pylist()) for name in names), strict=True)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)


def first_half(texts: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Return which rows are in the first of two random halves of the distinct `texts`, one number per row.

    All rows of a text are on one side, so that what the first half chooses can be measured on the other.
    """
    different = np.unique(texts)
    rng = named_generator(seed, "halves")
    half = different[rng.permutation(len(different))[: len(different) // 2]]
    return np.asarray(np.isin(texts, half))
