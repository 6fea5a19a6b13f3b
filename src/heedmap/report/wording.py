"""Wording shared by the card and the page: numbers in words, and the facts of a run."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import tomli_w
from numpy.typing import NDArray

from heedmap.data.catalog import CATALOG
from heedmap.data.corpus import apart
from heedmap.data.embedded import EMBEDDED
from heedmap.data.file_kinds import is_file_name
from heedmap.data.in_memory import PREFIX
from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.findings import AuditResult, Finding
from heedmap.experiments.intervals import FEWEST, of_share
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.results import LEAST_ROOM
from heedmap.experiments.rounding import number, told_apart
from heedmap.experiments.scales import scale_of
from heedmap.experiments.text_tables import outputs_of_texts
from heedmap.nouns import TEXTS, Nouns
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import ArraysSettings, PoolingSettings, TransformerSettings
from heedmap.settings.run import RunSettings

LISTED = 12  # classes that are listed; of more, the first ones
LONG = 40  # characters of a class's name; a longer one is cut
FEW = 30  # texts; of fewer, the card says what so few can show
QUERIES = {"question": "question", "inference": "hypothesis"}


def overview_number(finding: Finding) -> str:
    """Return the number with its interval."""
    return f"{number(finding.value)} {interval_text(finding)}"


def plural(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> plural(1, "epoch"), plural(2000, "epoch")
    ('1 epoch', '2,000 epochs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def interval_text(finding: Finding) -> str:
    """Return `[low, high]`, or `no interval`."""
    if math.isfinite(finding.low) and math.isfinite(finding.high):
        return f"[{number(finding.low)}, {number(finding.high)}]"
    return "no interval"


def count_text(finding: Finding, nouns: Nouns = TEXTS) -> str:
    """Return n, and the number of different texts, which the interval counts, if any text repeats."""
    different = nouns.reword(f" ({plural(finding.distinct, 'different text')})")
    return f"n = {finding.n:,}{different * (finding.distinct < finding.n)}"


def scale_text(finding: Finding, nouns: Nouns = TEXTS) -> str | None:
    """Say what chance and the best order of these weights reach; None if that is not known."""
    if (relative := finding.relative) is None:
        return None
    chance, ceiling = told_apart(relative.chance, relative.ceiling)
    if relative.n == finding.n:
        reached = f"Chance reaches {chance}, these weights at best {ceiling}."
    else:
        # Chance and the best order are computed on a sample of the texts only.
        reached = (
            f"On the {plural(relative.n, 'text')} with all three numbers, this map reaches "
            f"{number(relative.value)}, chance {chance}, and these weights at best {ceiling}."
        )
    if abs(relative.ceiling - relative.chance) < LEAST_ROOM:
        reached += (
            f" These are so close that a difference of {LEAST_ROOM:g} counts as the whole way."
        )
    if finding.of_median:
        reached += " The share is the mean over the texts, not the share of these medians."
    return nouns.reword(reached)


def classes_beside(finding: Finding, nouns: Nouns = TEXTS) -> str | None:
    """List each predicted class's number beside its own chance; None if no class has a chance.

    Of more than LISTED classes, list the first ones and count the rest.
    """
    if not any(class_finding.compared for class_finding in finding.by_class.values()):
        return None
    numbers = [
        f"{shortened(name)} {nouns.reword(class_finding.words)}"
        for name, class_finding in finding.by_class.items()
    ]
    rest = [f"{len(numbers) - LISTED} more"] if len(numbers) > LISTED else []
    return f"by predicted class: {'; '.join([*numbers[:LISTED], *rest])}"


def caveat(finding: Finding, audited: int, nouns: Nouns = TEXTS) -> str | None:
    """Say why there is no interval, or that this number is of few texts though many were `audited`."""
    # If the audit itself has few texts, the head of the card says so once for all numbers.
    caution = few_texts(finding.distinct, nouns) if few_texts(audited) is None else None
    return finding.no_interval or caution


def few_texts(n: int, nouns: Nouns = TEXTS) -> str | None:
    r"""Say what so few different texts can show; None if there are FEW or more.

    >>> few_texts(4)
    'only 4 different texts: with fewer than 5, no mean has an interval, so the map cannot be judged'
    >>> print(few_texts(12).replace("; ", "\n"))
    only 12 different texts: what is true of all of them is certain for only 74% of similar texts
    a share near 50% is known to within ±29 points, so smaller differences do not count
    """
    if n >= FEW:
        return None
    texts = "only " + plural(n, "different text")
    if n < FEWEST["mean"]:
        return nouns.reword(
            f"{texts}: with fewer than {FEWEST['mean']}, no mean has an interval, so the map cannot be "
            "judged"
        )
    low, _ = of_share(np.ones(n))
    bottom, top = of_share((np.arange(n) % 2).astype(np.float64))
    return nouns.reword(
        f"{texts}: what is true of all of them is certain for only {low:.0%} of similar texts; a share near "
        f"50% is known to within ±{50 * (top - bottom):.0f} points, so smaller differences do not count"
    )


def source_text(source: str) -> str:
    """Return where the data come from; texts in memory are named by the hash of their content."""
    if source.startswith(PREFIX):
        return f"texts from memory ({source.removeprefix(PREFIX)})"
    return place_name(source)


def place_name(place: str) -> str:
    """Return the name of a file or a folder without the path to it; a name on the Hub stays whole.

    >>> place_name("/home/ann/films.csv"), place_name("data/films.csv"), place_name("stanfordnlp/imdb")
    ('films.csv', 'films.csv', 'stanfordnlp/imdb')
    """
    *above, name = re.split(r"[/\\]", place.rstrip("/\\"))
    is_on_hub = len(above) == 1 and above[0] not in ("", ".", "..") and not is_file_name(place)
    return place if is_on_hub or not name else name


def settings_text(settings: RunSettings) -> str:
    """Return the text of settings.toml, with the names of files and folders in place of their paths."""
    values = settings.model_dump(exclude_none=True, mode="json")
    for part in (values, values["data"], values["model"], values.get("train", {})):
        part |= {
            key: place_name(part[key])
            for key in ("source", "base", "vectors", "parent")
            if key in part
        }
    return tomli_w.dumps(values)


def columns_text(audit: AuditResult) -> str | None:
    """Name the columns that were read; None if the data have no columns to choose from."""
    data = audit.settings.data
    columns = {"text": data.text, "query": data.query, "label": data.label, "id": data.id}
    pairs = [f"{name} = {column}" for name, column in columns.items() if column is not None]
    return ", ".join(pairs) or None


def distinct_texts(audit: AuditResult) -> int:
    """Count the different texts. `audit`: pooled."""
    return len(np.unique(text_numbers(audit.tables["instances"])))


def repeats_text(audit: AuditResult) -> str | None:
    """Count the texts that occur several times or in other splits; None if there are none. `audit`: pooled."""
    instances = audit.tables["instances"]
    repeats = instances.num_rows - distinct_texts(audit)
    parts = []
    if repeats:
        verb = "repeats" if repeats == 1 else "repeat"
        counted = "text"
        if "target" in instances.column_names:  # several words of a sentence are asked about
            verb = "shares its sentence with" if repeats == 1 else "share their sentence with"
            counted = "sentence"
        parts.append(
            f"{repeats:,} of the {instances.num_rows:,} audited texts {verb} another; "
            f"intervals count each {counted} once"
        )
    also_in = audit.about.get("also_in")
    if isinstance(also_in, Mapping) and any(also_in.values()):
        counts = ", ".join(f"{n:,} in {name}" for name, n in also_in.items() if n)
        total = audit.about.get("test_texts", instances.num_rows)
        parts.append(f"of the {total:,} test texts, some are in other splits too: {counts} (kept)")
    return audit.nouns.reword("; ".join(parts)) or None


def model_text(audit: AuditResult) -> str:
    """Describe the architecture in one line, and what a token is if it is not a word."""
    return f"{architecture_text(audit)}{_of_sentences(audit)}"


def variant_text(settings: RunSettings) -> str:
    """Say in words what a model is that `heedmap retrain` trained, and for which run; empty of others."""
    of_run = "" if settings.parent is None else f" for the run {place_name(settings.parent)}"
    if settings.variant is None:
        return _plain_variant(settings, of_run) if of_run else ""
    if settings.guide is not None or "guided-by" in settings.variant:
        kind = "a guided model, whose weights another model gives it"
    elif settings.variant.startswith("adversary"):
        kind = "a trained adversary, made to attend elsewhere than the run's model and to answer like it"
    else:
        kind = "a model that was penalised for showing some words, and may deceive"
    return f"{settings.variant}, which `heedmap retrain` trained{of_run}: {kind}; not the run's own model"


def _plain_variant(settings: RunSettings, of_run: str) -> str:
    """Say what a model is that `heedmap train` would have made of the same settings."""
    if settings.is_uniform:
        return (
            f"a uniform twin, which `heedmap retrain` trained{of_run}: with the same weight for all words, in "
            "training too; not the run's own model"
        )
    seed = "" if settings.train is None else f" with seed {settings.train.seed}"
    return (
        f"another training, which `heedmap retrain` made{of_run}: an ordinary one{seed}, as `heedmap train` "
        "would have made it; not the run's own model"
    )


def architecture_text(audit: AuditResult) -> str:
    """Describe the architecture in one line."""
    model = audit.settings.model
    if isinstance(model, TransformerSettings):
        heat_map = audit.about.get("on_trial", f"{model.view}, layer {model.layer}")
        name = audit.about.get("architecture", "a transformer")
        source = "a model from memory" if model.in_memory else Path(model.source).name
        return f"{source} ({name}), {heat_map}"
    if isinstance(model, ArraysSettings | PoolingSettings):
        return model.description
    condition = f" given the {query}" if (query := query_name(audit)) else ""
    levels = " of words, then of sentences" if _of_sentences(audit) else ""
    encoder = "no" if model.encoder == "none" else model.encoder
    if audit.settings.guide is not None:
        return f"{encoder} encoder, {audit.settings.guide.description}"
    return (
        f"{encoder} encoder, {model.score} score{condition}, {model.normaliser} attention{levels}"
    )


def _of_sentences(audit: AuditResult) -> str:
    if audit.settings.data.tokenizer != "sentences":
        return ""
    return "; below, “word” means a sentence (calibrated on models that read words)"


def derived(audit: AuditResult) -> bool:
    """Return whether the heat map is derived from the layer's weights, and not equal to them."""
    model = audit.settings.model
    return isinstance(model, TransformerSettings) and model.derived


def query_name(audit: AuditResult) -> str | None:
    """Return the name of the text of a pair that no map is of; None for single texts, and maps over both."""
    if "query" not in audit.tables["instances"].column_names:
        return None
    data = audit.settings.data
    if data.side == "query":
        return "text"
    spec = CATALOG.get(data.dataset or (data.source if data.source in EMBEDDED else ""))
    return QUERIES.get(spec.task, "query") if spec else "query"


def pairs_text(audit: AuditResult) -> str | None:
    """Say that the texts are pairs; None for single texts."""
    data, query = audit.settings.data, query_name(audit)
    order = f", the {data.first} read first" if data.first is not None else ""
    if "second" in audit.tables["instances"].column_names:
        return f"pairs{order}: attention over both texts"
    if query is None:
        return None
    side = "query" if data.side == "query" else "text"
    return f"pairs{order}: attention over the {side}, given its {query}"


def shortened(name: str) -> str:
    """Return a class's name, cut if it is long."""
    return name if len(name) <= LONG else f"{name[:LONG]}…"


def outputs_text(audit: AuditResult) -> tuple[str, str]:
    """Return the name and the text of the fact that says what the model's outputs are."""
    if len(audit.classes) > 1:
        return "classes", classes_text(audit)
    outputs = outputs_of_texts(audit.tables["instances"])
    mean, deviation = number(float(outputs.mean())), number(float(outputs.std()))
    return "output", (
        f"a number, in {shortened(audit.classes[0])}: mean {mean}, standard deviation {deviation}, from "
        f"{number(float(outputs.min()))} to {number(float(outputs.max()))} on the audited texts"
    )


def classes_text(audit: AuditResult) -> str:
    """Return the names of the classes, with the number of texts per split where these were counted.

    Of more than LISTED classes, name the first ones and count the rest. Classes without a text are only
    counted.
    """
    class_counts = audit.about.get("class_counts")
    counts = class_counts if isinstance(class_counts, Mapping) else {}
    sizes = [*zip(*counts.values(), strict=True)] if counts else [(1,)] * len(audit.classes)
    names = []
    for name, size in zip(audit.classes, sizes, strict=True):
        if any(size):
            short = shortened(name)
            names.append(f"{short} {'/'.join(f'{n:,}' for n in size)}" if counts else short)
    splits = f" ({'/'.join(map(str, counts))})" if counts else ""
    unlisted, empty = max(len(names) - LISTED, 0), len(audit.classes) - len(names)
    total = f"{len(audit.classes)}: " if unlisted or empty else ""
    rest = f" and {unlisted} more" if unlisted else ""
    without = f"; {empty} {audit.nouns.reword('without a text')}" if empty else ""
    return f"{total}{', '.join(names[:LISTED])}{rest}{splits}{without}"


def audited_text(audit: AuditResult) -> str:
    """Say how many of the test texts were audited."""
    audited = audit.tables["instances"].num_rows
    total = audit.about.get("test_texts", audited)
    texts = f"all {plural(audited, 'test text')}"
    if audited != total:
        texts = f"{audited:,} of {total:,} test texts, a seeded sample"
    budget = budget_of(audit)
    if budget is not None and (audited != total or budget.minutes is not None):
        texts = f"{audited:,} of {total:,} test texts, {budget.drawn_until}"
    if windows := audit.about.get("windows"):
        texts += f", in {windows:,} windows; the numbers of a text are means over its windows"
    return audit.nouns.reword(texts)


def vectors_text(audit: AuditResult) -> str | None:
    """Count the words that have a pretrained vector; None without a file of vectors."""
    count, words = audit.about.get("vectors"), audit.about.get("words")
    return (
        None
        if count is None
        else f"pretrained for {count:,} of {words:,} words, zero for the others"
    )


def maps_left_out(audit: AuditResult) -> str | None:
    """List the views that the model does not have, with the reasons; None if it has all."""
    reasons = audit.about.get("maps_left_out")
    if not isinstance(reasons, Mapping) or not reasons:
        return None
    return "; ".join(f"{view}, {reason}" for view, reason in reasons.items())


def weights_kept(audit: AuditResult, short: bool = False) -> str | None:
    """Count the texts whose adversarial weights are kept; None if `short` and all are."""
    counts = audit.about.get("adversary_weights")
    if not isinstance(counts, Mapping) or (short and counts["kept"] == counts["searched"]):
        return None
    choice = "" if counts["kept"] == counts["searched"] else ", the shortest"
    said = f"kept for {counts['kept']:,} of {counts['searched']:,} searched texts{choice}"
    return audit.nouns.reword(said)


def epsilon(audit: AuditResult) -> float:
    """Return the change within which a prediction counts as the same."""
    return (audit.settings.audit or AuditSettings()).epsilon


def tolerance(audit: AuditResult) -> str:
    """Return the same in words, of a model that gives a number in standard deviations of the outputs."""
    scale = scale_of(audit.tables["instances"], audit.classes)
    unit = "(TVD)" if scale.unit is None else scale.short
    return f"{epsilon(audit):g} {unit}"


def left_out(audit: AuditResult) -> dict[str, str]:
    """Count the data that were left out before the audit, and those that were changed but kept."""
    reasons = audit.about.get("left_out")
    by_reason = {str(k): int(v) for k, v in reasons.items()} if isinstance(reasons, Mapping) else {}
    return {heading: counts(part) for heading, part in apart(by_reason).items()}


def counts(reasons: Mapping[str, int]) -> str:
    """Return `reason: count; reason: count`."""
    return "; ".join(f"{reason}: {count:,}" for reason, count in reasons.items())


def column(tables: Mapping[str, pa.Table], table: str, name: str) -> NDArray[np.float64]:
    """Return a column of numbers; NaN for every instance if the table or the column does not exist."""
    if table not in tables or name not in tables[table].column_names:
        return np.full(tables["instances"].num_rows, np.nan)
    values = tables[table][name].to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)
