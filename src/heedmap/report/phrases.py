"""What the card and the page both say: numbers in words, and the facts of a run."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.catalog import CATALOG
from heedmap.experiments.findings import AuditResult, Finding
from heedmap.settings import AuditSettings, TransformerSettings

LISTED = 12  # classes; of more, the first ones and how many there are
QUERIES = {"question": "question", "inference": "hypothesis"}


def number(x: float) -> str:
    """Two decimals, three for small values.

    >>> number(0.391), number(-0.0123), number(0.00002), number(float("nan"))
    ('0.39', '−0.012', '<0.001', '–')
    """
    if not math.isfinite(x):
        return "–"
    if x == 0 or abs(x) >= 0.0995:
        text = f"{x:.2f}"
    elif abs(x) >= 0.0005:
        text = f"{x:.3f}"
    else:
        return "<0.001" if x > 0 else ">−0.001"
    return text.replace("-", "−")


def plural(count: int, what: str) -> str:
    """A number and a noun.

    >>> plural(1, "epoch"), plural(2, "epoch")
    ('1 epoch', '2 epochs')
    """
    return f"{count} {what}" + ("" if count == 1 else "s")


def interval_text(finding: Finding) -> str:
    """`[low, high]`, or that there is none."""
    if math.isfinite(finding.low) and math.isfinite(finding.high):
        return f"[{number(finding.low)}, {number(finding.high)}]"
    return "no interval"


def model_text(audit: AuditResult) -> str:
    """The architecture in one line."""
    model = audit.settings.model
    if isinstance(model, TransformerSettings):
        shown = audit.about.get("on_trial", f"{model.view}, layer {model.layer}")
        return f"{Path(model.source).name} ({audit.about.get('architecture', 'a transformer')}), {shown}"
    given = f" given the {asked}" if (asked := query_name(audit)) else ""
    return f"{model.encoder} encoder, {model.score} score{given}, {model.normaliser} attention"


def derived(audit: AuditResult) -> bool:
    """Whether the heat map is made of the layer's weights and more, and is not these weights."""
    model = audit.settings.model
    return isinstance(model, TransformerSettings) and model.derived


def query_name(audit: AuditResult) -> str | None:
    """What the second text of a pair is called; None where the texts stand alone."""
    if "query" not in audit.tables["instances"].column_names:
        return None
    data = audit.settings.data
    known = CATALOG.get(data.dataset or data.source)
    return QUERIES.get(known.task, "query") if known else "query"


def pairs_text(audit: AuditResult) -> str | None:
    """What is read given what, of pairs of texts."""
    asked = query_name(audit)
    return None if asked is None else f"pairs: attention over the text, given its {asked}"


def classes_text(classes: Sequence[str]) -> str:
    """The classes' names, or of very many how many they are and the first ones."""
    if len(classes) <= LISTED:
        return ", ".join(classes)
    shown = ", ".join(classes[:LISTED])
    return f"{len(classes)}: {shown} and {len(classes) - LISTED} more"


def audited_text(audit: AuditResult) -> str:
    """How many texts, of how many."""
    audited = audit.tables["instances"].num_rows
    total = audit.about.get("test_texts", audited)
    some = f"all {audited} test texts"
    if audited != total:
        some = f"{audited} of {total} test texts, a seeded sample"
    if windows := audit.about.get("windows"):
        return f"{some}, in {windows} windows: a text's numbers are the means over its windows"
    return some


def vectors_text(audit: AuditResult) -> str | None:
    """How many words began with a pretrained vector; None where none could."""
    known, words = audit.about.get("vectors"), audit.about.get("words")
    return (
        None if known is None else f"pretrained for {known} of {words} words, zero for the others"
    )


def maps_left_out(audit: AuditResult) -> str | None:
    """The views that the model does not give, how many maps, and why; None where it gives all."""
    found = audit.about.get("maps_left_out")
    if not isinstance(found, Mapping) or not found:
        return None
    return "; ".join(f"{view}, {why}" for view, why in found.items())


def weights_kept(audit: AuditResult, short: bool = False) -> str | None:
    """Of how many texts the adversary's weights are kept; `short`: None where it is all of them."""
    found = audit.about.get("adversary_weights")
    if not isinstance(found, Mapping) or (short and found["kept"] == found["searched"]):
        return None
    which = "" if found["kept"] == found["searched"] else ", the shortest"
    return f"kept of {found['kept']} of {found['searched']} searched texts{which}"


def epsilon(audit: AuditResult) -> float:
    """The change within which a prediction counts as the same."""
    return (audit.settings.audit or AuditSettings()).epsilon


def left_out(audit: AuditResult) -> dict[str, int]:
    """Texts of the data set that never came to the audit, by reason."""
    found = audit.about.get("left_out")
    return {str(k): int(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def counts(reasons: Mapping[str, int]) -> str:
    """`reason: count; reason: count`."""
    return "; ".join(f"{reason}: {count}" for reason, count in reasons.items())


def column(tables: Mapping[str, pa.Table], table: str, name: str) -> NDArray[np.float64]:
    """A column of numbers; NaN for every instance where there is no such table or column."""
    if table not in tables or name not in tables[table].column_names:
        return np.full(tables["instances"].num_rows, np.nan)
    values = tables[table][name].to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)
