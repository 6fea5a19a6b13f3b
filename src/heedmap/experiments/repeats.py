"""Which texts are the same? A text that occurs twice is no second observation."""

import json
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.texts import text_hashes
from heedmap.experiments.generators import named_generator
from heedmap.files.tables import release_mapped

READ = 10_000  # texts that are read at a time


def text_numbers(instances: pa.Table) -> NDArray[np.int64]:
    """Number the distinct texts, by tokens and query: one number per row, the same for the same text.

    Without tokens every row is a text of its own. Texts are compared by hashes of 128 bits, so that those of a
    large audit are never in memory together.
    """
    names = [name for name in ("tokens", "query", "second") if name in instances.column_names]
    if "tokens" not in names:
        return np.arange(instances.num_rows)
    batches = instances.select(names).to_batches(max_chunksize=READ)
    hashes = text_hashes(chain.from_iterable(map(_written, batches)))
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    in_order = np.empty(len(first), dtype=np.int64)  # of their first occurrences
    in_order[np.argsort(first)] = np.arange(len(first))
    return in_order[number]


def _written(batch: pa.RecordBatch) -> list[str]:
    """Return the texts of a batch, each as one string."""
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    texts = [json.dumps(row) for row in rows]
    release_mapped()
    return texts


def first_half(texts: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Return which rows are in the first of two random halves of the distinct `texts`, one number per row.

    All rows of a text are on one side, so that what the first half chooses can be measured on the other.
    """
    different = np.unique(texts)
    rng = named_generator(seed, "halves")
    half = different[rng.permutation(len(different))[: len(different) // 2]]
    return np.asarray(np.isin(texts, half))
