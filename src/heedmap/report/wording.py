"""Phrases shared by the card and the page: numbers in words, and the facts of a run."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.catalog import CATALOG
from heedmap.data.corpus import apart
from heedmap.data.in_memory import PREFIX
from heedmap.experiments.findings import AuditResult, Finding
from heedmap.experiments.intervals import FEWEST, of_share
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.results import LEAST_ROOM
from heedmap.experiments.rounding import number, told_apart
from heedmap.settings import AuditSettings, TransformerSettings

LISTED, LONG = 12, 40  # classes that are listed, of more the first ones; characters of a name
FEW = 30  # texts, below which it is said what so few can show
QUERIES = {"question": "question", "inference": "hypothesis"}


def overview_number(finding: Finding) -> str:
    """Return the number with its interval."""
    return f"{number(finding.value)} {interval_text(finding)}"


def plural(count: int, what: str) -> str:
    """Return a number and a noun.

    >>> plural(1, "epoch"), plural(2, "epoch")
    ('1 epoch', '2 epochs')
    """
    return f"{count} {what}" + ("" if count == 1 else "s")


def interval_text(finding: Finding) -> str:
    """Return `[low, high]`, or `no interval`."""
    if math.isfinite(finding.low) and math.isfinite(finding.high):
        return f"[{number(finding.low)}, {number(finding.high)}]"
    return "no interval"


def count_text(finding: Finding) -> str:
    """Return n, and how many different texts the interval counts where some repeat."""
    different = f" ({finding.distinct} different)" if finding.distinct < finding.n else ""
    return f"n = {finding.n}{different}"


def scale_text(finding: Finding) -> str | None:
    """Say what chance and these weights at best reach; None where that is not known."""
    if (relative := finding.relative) is None:
        return None
    same = (
        ""
        if relative.n == finding.n
        else f"On the {relative.n} texts where all three are known: {number(relative.value)}, "
    )
    near = (
        f" They are so near that a difference of {LEAST_ROOM:g} counts as the whole way."
        if abs(relative.ceiling - relative.chance) < LEAST_ROOM
        else ""
    )
    whole = (
        " The share is the mean over the texts, not that of these medians."
        if finding.of_median
        else ""
    )
    chance, ceiling = told_apart(relative.chance, relative.ceiling)
    reached = f"{same}chance {chance}, these weights at best {ceiling}"
    return f"{reached[0].upper()}{reached[1:]}.{near}{whole}"


def classes_beside(finding: Finding) -> str | None:
    """Say the number of each predicted class beside its own chance; None where no class has a chance.

    Of more than LISTED classes the first ones, and how many more.
    """
    if not any(each.compared for each in finding.by_class.values()):
        return None
    named = [f"{shortened(name)} {each.words}" for name, each in finding.by_class.items()]
    more = [f"{len(named) - LISTED} more"] if len(named) > LISTED else []
    return f"by predicted class: {'; '.join([*named[:LISTED], *more])}"


def caveat(finding: Finding, audited: int) -> str | None:
    """Say why there is no interval, or that the texts are few though many were `audited`."""
    few = few_texts(finding.distinct) if few_texts(audited) is None else None
    return finding.no_interval or few


def few_texts(n: int) -> str | None:
    r"""Say what a few different texts can show; None of FEW or more.

    >>> few_texts(4)
    'only 4 different texts: of fewer than 5 no mean has an interval, so the map cannot be judged'
    >>> print(few_texts(12).replace("; ", "\n"))
    only 12 different texts: what holds of all is certain of only 74% of texts like these
    a share near one half is known to ±29 points
    smaller differences cannot be told
    """
    if n >= FEW:
        return None
    texts = "only " + plural(n, "different text")
    if n < FEWEST["mean"]:
        return f"{texts}: of fewer than {FEWEST['mean']} no mean has an interval, so the map cannot be judged"
    low, _ = of_share(np.ones(n))
    bottom, top = of_share((np.arange(n) % 2).astype(np.float64))
    return (
        f"{texts}: what holds of all is certain of only {low:.0%} of texts like these; a share near one half "
        f"is known to ±{50 * (top - bottom):.0f} points; smaller differences cannot be told"
    )


def source_text(source: str) -> str:
    """Return where the data come from; texts from memory have their content's hash for a name."""
    if source.startswith(PREFIX):
        return f"texts from memory ({source.removeprefix(PREFIX)})"
    return source


def columns_text(audit: AuditResult) -> str | None:
    """Name the columns of the data that were read; None where it has no columns to choose from."""
    data = audit.settings.data
    columns = {"text": data.text, "query": data.query, "label": data.label, "id": data.id}
    said = [f"{name} = {column}" for name, column in columns.items() if column is not None]
    return ", ".join(said) or None


def distinct_texts(audit: AuditResult) -> int:
    """Count the different texts. `audit`: pooled."""
    return len(np.unique(text_numbers(audit.tables["instances"])))


def repeats_text(audit: AuditResult) -> str | None:
    """Say how many texts occur several times, and in other splits; None if none does. `audit`: pooled."""
    instances = audit.tables["instances"]
    again = instances.num_rows - distinct_texts(audit)
    parts = []
    if again:
        repeat = (
            f"{again} of the {instances.num_rows} audited texts repeat{'s' * (again == 1)} another"
        )
        parts.append(f"{repeat}: intervals count each once")
    also_in = audit.about.get("also_in")
    if isinstance(also_in, Mapping) and any(also_in.values()):
        counts = ", ".join(f"{n} in {name}" for name, n in also_in.items() if n)
        total = audit.about.get("test_texts", instances.num_rows)
        parts.append(f"of the {total} test texts there are also in other splits: {counts} (kept)")
    return "; ".join(parts) or None


def model_text(audit: AuditResult) -> str:
    """Describe the architecture in one line, and what a token is where it is no word."""
    return f"{architecture_text(audit)}{_of_sentences(audit)}"


def architecture_text(audit: AuditResult) -> str:
    """Describe the architecture in one line."""
    model = audit.settings.model
    if isinstance(model, TransformerSettings):
        shown = audit.about.get("on_trial", f"{model.view}, layer {model.layer}")
        name = audit.about.get("architecture", "a transformer")
        source = "a model from memory" if model.in_memory else Path(model.source).name
        return f"{source} ({name}), {shown}"
    condition = f" given the {query}" if (query := query_name(audit)) else ""
    levels = " of words, then of sentences" if _of_sentences(audit) else ""
    encoder = "no" if model.encoder == "none" else model.encoder
    return (
        f"{encoder} encoder, {model.score} score{condition}, {model.normaliser} attention{levels}"
    )


def _of_sentences(audit: AuditResult) -> str:
    if audit.settings.data.tokenizer != "sentences":
        return ""
    return "; below, a word is a sentence (calibrated on models that read words)"


def derived(audit: AuditResult) -> bool:
    """Whether the heat map is derived from the layer's weights instead of equal to them."""
    model = audit.settings.model
    return isinstance(model, TransformerSettings) and model.derived


def query_name(audit: AuditResult) -> str | None:
    """Return the name of a pair's second text; None for single texts."""
    if "query" not in audit.tables["instances"].column_names:
        return None
    data = audit.settings.data
    spec = CATALOG.get(data.dataset or data.source)
    return QUERIES.get(spec.task, "query") if spec else "query"


def pairs_text(audit: AuditResult) -> str | None:
    """Say that the texts are pairs; None for single texts."""
    query = query_name(audit)
    return None if query is None else f"pairs: attention over the text, given its {query}"


def shortened(name: str) -> str:
    """Return the beginning of a class's long name."""
    return name if len(name) <= LONG else f"{name[:LONG]}…"


def classes_text(audit: AuditResult) -> str:
    """Return the classes' names, with the texts of each by split where they were counted.

    Of more than LISTED their number and the first ones; those without a text are counted alone.
    """
    found = audit.about.get("class_counts")
    counts = found if isinstance(found, Mapping) else {}
    sizes = [*zip(*counts.values(), strict=True)] if counts else [(1,)] * len(audit.classes)
    shown = []
    for name, size in zip(audit.classes, sizes, strict=True):
        if any(size):
            short = shortened(name)
            shown.append(f"{short} {'/'.join(map(str, size))}" if counts else short)
    of = f" ({'/'.join(map(str, counts))})" if counts else ""
    more, empty = max(len(shown) - LISTED, 0), len(audit.classes) - len(shown)
    first = f"{len(audit.classes)}: " if more or empty else ""
    others = f" and {more} more" if more else ""
    without = f"; {empty} without a text" if empty else ""
    return f"{first}{', '.join(shown[:LISTED])}{others}{of}{without}"


def audited_text(audit: AuditResult) -> str:
    """Say how many of the test texts were audited."""
    audited = audit.tables["instances"].num_rows
    total = audit.about.get("test_texts", audited)
    texts = f"all {audited} test texts"
    if audited != total:
        texts = f"{audited} of {total} test texts, a seeded sample"
    if windows := audit.about.get("windows"):
        return f"{texts}, in {windows} windows: a text's numbers are the means over its windows"
    return texts


def vectors_text(audit: AuditResult) -> str | None:
    """Say how many words have a pretrained vector; None without a vectors file."""
    count, words = audit.about.get("vectors"), audit.about.get("words")
    return (
        None if count is None else f"pretrained for {count} of {words} words, zero for the others"
    )


def maps_left_out(audit: AuditResult) -> str | None:
    """List the views that the model cannot give, with the reasons; None if it gives all."""
    reasons = audit.about.get("maps_left_out")
    if not isinstance(reasons, Mapping) or not reasons:
        return None
    return "; ".join(f"{view}, {why}" for view, why in reasons.items())


def weights_kept(audit: AuditResult, short: bool = False) -> str | None:
    """Say for how many texts the adversary's weights are kept; `short`: None if for all."""
    counts = audit.about.get("adversary_weights")
    if not isinstance(counts, Mapping) or (short and counts["kept"] == counts["searched"]):
        return None
    which = "" if counts["kept"] == counts["searched"] else ", the shortest"
    return f"kept of {counts['kept']} of {counts['searched']} searched texts{which}"


def epsilon(audit: AuditResult) -> float:
    """Return the change within which a prediction counts as the same."""
    return (audit.settings.audit or AuditSettings()).epsilon


def left_out(audit: AuditResult) -> dict[str, str]:
    """Return what of the data was `left out` before the audit and what was changed but `kept`, with counts."""
    reasons = audit.about.get("left_out")
    found = {str(k): int(v) for k, v in reasons.items()} if isinstance(reasons, Mapping) else {}
    return {heading: counts(each) for heading, each in apart(found).items()}


def counts(reasons: Mapping[str, int]) -> str:
    """Return `reason: count; reason: count`."""
    return "; ".join(f"{reason}: {count}" for reason, count in reasons.items())


def column(tables: Mapping[str, pa.Table], table: str, name: str) -> NDArray[np.float64]:
    """Return a column of numbers; NaN for every instance if there is no such table or column."""
    if table not in tables or name not in tables[table].column_names:
        return np.full(tables["instances"].num_rows, np.nan)
    values = tables[table][name].to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)
