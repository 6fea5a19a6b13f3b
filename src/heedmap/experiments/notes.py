"""Caveats about a report's numbers, shown on the card, on the page, and as warnings."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from heedmap.experiments.pooling import TEXT
from heedmap.settings.models import AnyModelSettings, TransformerSettings

MOST_TIED = (
    0.25  # share of the texts; of SST's a seventh have ties in float32, three quarters in bfloat16
)
# On a few sentences. TVD: a tenth of the ε within which a prediction counts as the same. Logits: gradients
# show differences that a saturated prediction hides. Rounding in float32 stays far below both.
DRIFT_TVD, DRIFT_LOGITS = 1e-3, 1e-2


def note_texts(facts: Mapping[str, object]) -> list[str]:
    """Return the notes among the facts of a run."""
    notes = facts.get("notes")
    return [str(note) for note in notes] if isinstance(notes, list) else []


def tied_texts(importance: pa.ChunkedArray) -> float:
    """Return the share of the texts of two or more words in which two words have the same importance."""
    lists = [np.array(values) for values in importance.to_pylist() if values and len(values) > 1]
    tied = [len(np.unique(values)) < len(values) for values in lists]
    return float(np.mean(tied)) if tied else 0.0


def ties(tables: Mapping[str, pa.Table], model: AnyModelSettings) -> list[str]:
    """Return a note if half precision rounds leave-one-out to ties in more than MOST_TIED of the texts."""
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


def drift_text(facts: Mapping[str, object]) -> str | None:
    """Say how far the audited eager attention is from the model's default."""
    drift = facts.get("drift")
    if not isinstance(drift, Mapping):
        return None
    numbers = drift["logits"], drift["tvd"]
    measurable = all(x is not None for x in numbers)
    difference = "more than can be measured: only one of them gives numbers"
    if measurable and (unit := drift.get("unit")) is not None:
        difference = f"{numbers[1]:.2g} {unit}"
    elif measurable:
        difference = f"{numbers[0]:.2g} in logits and {numbers[1]:.2g} in probabilities (TVD)"
    return f"eager attention, which is audited, differs from the default ({drift['default']}) by {difference}"


def far_from_default(facts: Mapping[str, object]) -> list[str]:
    """Return a note if eager attention gives other answers than the model's default.

    Not an error: the numbers are true of the model with eager attention, and half precision alone can cause
    the difference. But the deployed model may use the default.
    """
    drift, text = facts.get("drift"), drift_text(facts)
    if not isinstance(drift, Mapping) or text is None:
        return []
    logits, tvd = drift["logits"], drift["tvd"]
    if None not in (logits, tvd) and logits <= DRIFT_LOGITS and tvd <= DRIFT_TVD:
        return []
    return [f"{text}; deploy it with attn_implementation='eager', or expect other numbers"]
