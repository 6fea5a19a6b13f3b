"""What a page needs to predict under other weights, packed for its own JavaScript; or what the audit tried.

A block holds the read-outs of the texts of one block of maps, compressed (zlib) and in base64: a little-endian
float64, the step; then numbers of four bytes per word, a column after the other, each with the first bytes of
all words first, for these compress best so: the attention (float32), the adversary's weights if the index has
an `adversary` (float32, NaN for texts without), and for each class but the first its relevance less that of
the first (int32, in steps). A softmax does not change if the same is taken from all logits.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.relevance import MOST_CLASSES
from heedmap.experiments.registry import Row, registered
from heedmap.experiments.rounding import significant
from heedmap.report.anonymous import is_anonymous
from heedmap.report.wording import derived, query_name
from heedmap.settings.models import TransformerSettings

STEP = 2.0**-22  # of relevance: finer than float32 from 4 on, and the same for every word
LARGEST = 2**31 - 1


def reason(audit: AuditResult) -> str:
    """Say why a page cannot compute predictions under other weights; empty where it can."""
    query, many = query_name(audit), len(audit.classes) > MOST_CLASSES
    if is_anonymous(audit):
        why = "what each word says for a class could tell the word, and was left out with the texts"
    elif "relevance" in audit.tables:
        return ""
    elif len(audit.classes) == 1:
        why = "it computes probabilities of classes, and the model gives a number"
    elif derived(audit):
        why = "its map is derived from weights inside the model, and further layers follow them"
    elif isinstance(audit.settings.model, TransformerSettings):
        why = "further layers, which are not linear, follow the attention"
    elif query is not None:
        why = f"its answer is a tanh of text and {query}, which is not linear in the weights"
    elif many:
        why = f"it takes a number per word and class, kept for at most {MOST_CLASSES} classes"
    else:
        why = "the audit was made by an older version, and a new audit is needed for it"
    return f"This page cannot compute what the model would predict under other weights: {why}."


def pack_read_outs(tables: Mapping[str, pa.Table], rows: Sequence[int], block: int) -> list[bytes]:
    """Return the blocks of read-outs, not yet compressed; none where the read-out is not linear."""
    if "relevance" not in tables:
        return []
    chosen = pa.array(rows, pa.int64())
    relevance = tables["relevance"]["relevance"].take(chosen)
    attention = tables["instances"]["attention"].take(chosen)
    adversary = tables["adversary"]["attention"].take(chosen) if has_adversary(tables) else None
    blocks = []
    for first in range(0, len(rows), block):
        logits = _flat(relevance.slice(first, block)).reshape(-1, len(_bias(tables)))
        weights = attention.slice(first, block)
        columns = [_flat(weights).astype("<f4")]
        if adversary is not None:
            columns.append(_filled(adversary.slice(first, block), weights).astype("<f4"))
        differences = logits[:, 1:] - logits[:, :1]
        step = _step(differences)
        columns.extend((differences / step).round().astype("<i4").T)
        # Bytes of the same place together: signs and exponents repeat.
        planes = [
            np.ascontiguousarray(c).view(np.uint8).reshape(-1, 4).T.tobytes() for c in columns
        ]
        blocks.append(np.float64(step).astype("<f8").tobytes() + b"".join(planes))
    return blocks


def what_if_index(
    tables: Mapping[str, pa.Table], of_texts: Sequence[Row], rows: Sequence[int], why_not: str
) -> dict[str, Any]:
    """Return what the page's index holds: bias and adversary, or what the audit tried on each text."""
    bias = _bias(tables)
    return {
        "whatIf": {
            "bias": bias.tolist(),
            "adversary": len(bias) > 0 and has_adversary(tables),
            "reason": why_not,
            "tried": [] if len(bias) else _tried(of_texts),
        },
        "smallest": _smallest(tables, rows),
    }


def has_adversary(tables: Mapping[str, pa.Table]) -> bool:
    """Return whether the tables hold the weights of an adversary."""
    return "adversary" in tables and "attention" in tables["adversary"].column_names


def _bias(tables: Mapping[str, pa.Table]) -> NDArray[np.float64]:
    """Return the bias per class; empty where the read-out is not linear or there is no text."""
    if "relevance" not in tables or not tables["relevance"].num_rows:
        return np.zeros(0)
    return np.array(tables["relevance"]["bias"][0].as_py(), dtype=np.float64)


def _flat(lists: pa.ChunkedArray) -> NDArray[np.float64]:
    values = lists.combine_chunks()
    while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        values = values.flatten()
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _filled(lists: pa.ChunkedArray, like: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the numbers of all lists; of a missing list NaN, as many as that of `like` has."""
    parts = [
        np.full(len(weights), math.nan) if values is None else np.array(values, dtype=np.float64)
        for values, weights in zip(lists.to_pylist(), like.to_pylist(), strict=True)
    ]
    return np.concatenate([np.zeros(0), *parts])


def _step(values: NDArray[np.float64]) -> float:
    """Return the step in which all values fit into 31 bits: STEP, or the power of 2 that does."""
    largest = float(np.abs(values).max(initial=0.0))
    return max(STEP, 2.0 ** math.ceil(math.log2(largest / LARGEST))) if largest > 0 else STEP


def _tried(of_texts: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what the audit did to the texts, a column of changes for each."""
    columns: dict[str, dict[str, list[float | None]]] = {}
    for place, row in enumerate(of_texts):
        for name in row:
            for done in registered()[name].interventions(row):
                column = columns.setdefault(
                    done.name, {k: [None] * len(of_texts) for k in ("tvd", "changed")}
                )
                column["tvd"][place] = significant(done.tvd)
                column["changed"][place] = significant(done.changed)
    return [
        {"name": name, **column}
        for name, column in columns.items()
        if any(value is not None for values in column.values() for value in values)
    ]


def _smallest(tables: Mapping[str, pa.Table], rows: Sequence[int]) -> dict[str, Any] | None:
    """Return the places of the words that suffice to change each answer; None of audits without them."""
    table = tables.get("decision_flips")
    if table is None or "smallest_set" not in table.column_names:
        return None
    exact = table["count_exact"].null_count < len(table)  # a 0 is a proof that nothing does
    sets = table["smallest_set"].take(pa.array(rows, pa.int64())).to_pylist()
    return {"exact": exact, "sets": sets}
