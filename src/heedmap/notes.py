"""What a report has to say against its own numbers: on the card, on the page, and as a warning."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from heedmap.pooling import TEXT
from heedmap.settings import ModelSettings, TransformerSettings

MOST_TIED = (
    0.25  # of the texts; in float32 about a seventh of SST's have a tie, in bfloat16 three quarters
)


def noted(about: Mapping[str, object]) -> list[str]:
    """The notes among the facts of a run."""
    found = about.get("notes")
    return [str(note) for note in found] if isinstance(found, list) else []


def tied_texts(importance: pa.ChunkedArray) -> float:
    """Share of the texts of two words or more in which two words have the same importance."""
    lists = [np.array(values) for values in importance.to_pylist() if values and len(values) > 1]
    tied = [len(np.unique(values)) < len(values) for values in lists]
    return float(np.mean(tied)) if tied else 0.0


def ties(tables: Mapping[str, pa.Table], model: ModelSettings | TransformerSettings) -> list[str]:
    """A note where half precision rounds leave-one-out to ties in more than MOST_TIED of the texts."""
    if not isinstance(model, TransformerSettings) or model.dtype == "float32":
        return []
    share = tied_texts(tables["leave_one_out"]["importance"])
    if share <= MOST_TIED:
        return []
    rows = "windows" if TEXT in tables["instances"].column_names else "texts"
    return [
        f"{model.dtype} rounds: in {share:.0%} of the {rows} two words or more have the same leave-one-out, so "
        "what is said of it rests on fewer ranks; audit with dtype float32"
    ]
