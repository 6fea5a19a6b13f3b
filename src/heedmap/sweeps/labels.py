"""Audit every label of a model that gives several labels at once: a run for each, and one page of all.

OUT/settings.toml    the model, the texts and the settings
OUT/sweep.json       that this is a sweep
OUT/LABEL/           the run of a label with its report, if it is predicted for enough texts
OUT/result.*         one page of all labels
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heedmap.data.in_memory import Source, source_of
from heedmap.errors import InputError
from heedmap.experiments.certainty import chance_of_another
from heedmap.experiments.levels import UNJUDGED
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.rule import FEWEST_TEXTS, texts_of
from heedmap.files.locking import whole_command
from heedmap.files.manifest import write as write_listed
from heedmap.files.naming import MODEL, name_of
from heedmap.papers.kit.parts import reserved
from heedmap.papers.kit.render import write
from heedmap.papers.kit.result import Result, Table
from heedmap.report.wording import plural
from heedmap.runs.audit import audit
from heedmap.runs.audited import Audit
from heedmap.runs.folder import SWEEP
from heedmap.runs.open import open_model
from heedmap.runs.run_paths import Out
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import Settings
from heedmap.terminal.progress import portion, working

LEVEL = 0.05  # of all labels together
COLUMNS = {
    "label": "output of the model",
    "texts": "texts for which it is predicted",
    "answer": "that of the bottom line about these texts",
    "certain": "whether the answer is certain of more such texts, with Holm's correction for all labels",
    "key": "short name of a question",
    "question": "what is asked",
    "value": "the mean over these texts",
    "low": "lower end of its 95 % interval, of this label by itself",
    "high": "upper end",
    "level": "whether it speaks for or against showing the map",
}


class LabelSettings(Settings):
    """What the audit of all labels depends on."""

    version: int = 1
    model: str
    data: str
    opened_with: dict[str, Any]


@dataclass(frozen=True)
class LabelAudit:
    """The audit of one label: how many texts it is predicted for, and the audit of these, if enough."""

    label: str
    texts: int
    audit: Audit | None


@dataclass(frozen=True)
class LabelAudits:
    """The audits of all labels of a model, their folder and their page.

    `certain` are the labels whose answers are certain of more such texts (`certain_labels`).
    """

    folder: Path
    labels: list[LabelAudit]
    certain: set[str]
    result: Result

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row per label, as JSON has it: its texts, the answer, and whether that is certain."""
        return [
            {
                "label": label_audit.label,
                "texts": label_audit.texts,
                "answer": None
                if label_audit.audit is None
                else label_audit.audit.bottom_line.answer,
                "certain": label_audit.label in self.certain,
            }
            for label_audit in self.labels
        ]


def audit_labels(
    source: str | Path,
    data: Source,
    *,
    out: Out,
    threshold: float = 0.5,
    overwrite: bool = False,
    progress: bool = True,
    audit_options: dict[str, Any] | None = None,
    **options: Any,
) -> LabelAudits:
    """Audit each label of a model of several labels over the texts for which it is predicted.

    Each label's run asks whether the map says why the model gives this label. A label that is predicted for
    fewer than 15 texts is listed, and not audited.

    Args:
        source: the model's folder, or its name on the Hub.
        data: as for `heedmap.open_model`; labels of the texts are not read.
        out: the folder for everything; what is finished there is kept.
        threshold: the probability from which on a label is predicted.
        overwrite: replace audits with other settings.
        progress: False to show no progress bar.
        audit_options: as for `heedmap.audit`.
        **options: as for `heedmap.open_model`.

    Raises:
        InputError: as `heedmap.open_model`; a model that gives one label; no label that is predicted for
            enough texts.
    """
    from heedmap.huggingface.configurations import find_model

    model = name_of(source, MODEL)
    labels = find_model(model).labels()
    if labels is None:
        raise InputError(
            f"{model}: expected a model that gives several labels at once; audit it as it is"
        )
    name, in_memory = source_of(data, training=False)
    content = name if in_memory is None else in_memory.source()
    option_texts = {key: str(value) for key, value in {**options, "threshold": threshold}.items()}
    settings = LabelSettings(model=model, data=content, opened_with=option_texts)
    folders = folder_names(labels)
    with (
        working("auditing the labels", progress),
        reserved(out, settings, overwrite=overwrite, files=(SWEEP, *folders)) as folder,
    ):
        write_listed(folder / SWEEP, '{"sweep": 1}\n')
        audits = []
        for label, label_folder in zip(labels, folders, strict=True):
            with whole_command(), portion(1 / len(labels)):
                audits.append(
                    _audit_label(
                        model, data, label, folder / label_folder,
                        {**options, "threshold": threshold},
                        {**(audit_options or {}), "overwrite": overwrite},
                    )
                )  # fmt: skip
        if all(label_audit.audit is None for label_audit in audits):
            counts = ", ".join(
                f"{label_audit.label} {label_audit.texts}" for label_audit in audits[:8]
            )
            raise InputError(
                f"{model}: expected a label that is predicted for {FEWEST_TEXTS} texts or more, got none "
                f"({counts}); give more texts, or a lower --threshold"
            )
        certain = certain_labels(audits)
        result = make_result(audits, certain, folders, threshold)
        write(folder, result)
        return LabelAudits(folder, audits, certain, result)


def folder_names(labels: Sequence[str]) -> list[str]:
    """Return a folder's name for each label: its letters, digits and hyphens, after its number.

    >>> folder_names(["toxic", "Severe / obscene"])
    ['0-toxic', '1-severe-obscene']
    """
    letters = ["-".join(re.findall(r"[a-z0-9]+", label.lower()))[:40] for label in labels]
    return [f"{number}-{name}".rstrip("-") for number, name in enumerate(letters)]


def _audit_label(
    model: str,
    data: Source,
    label: str,
    out: Path,
    options: dict[str, Any],
    audit_options: dict[str, Any],
) -> LabelAudit:
    from heedmap.huggingface.output_texts import NotPredicted

    try:
        run = open_model(model, data, out=out, output=label, progress=False, **options)
    except NotPredicted:
        return LabelAudit(label, 0, None)
    texts = run.corpus.splits["test"].whole_texts
    if texts < FEWEST_TEXTS:
        return LabelAudit(label, texts, None)
    return LabelAudit(label, texts, audit(run, progress=False, **audit_options))


def holm(chances: dict[str, float], level: float = LEVEL) -> set[str]:
    """Return the names that Holm's step-down procedure rejects at a level, by their p values.

    Of m the smallest must be at most level / m, the next level / (m − 1), and so on up to the first that is
    not. Then the chance that any is rejected wrongly is at most the level. Source: Holm 1979, Scandinavian
    Journal of Statistics 6.

    >>> sorted(holm({"a": 0.01, "b": 0.02, "c": 0.2}))
    ['a', 'b']
    >>> sorted(holm({"a": 0.02, "b": 0.02, "c": 0.2}))
    []
    """
    rejected: set[str] = set()
    for name, chance in sorted(chances.items(), key=lambda item: item[1]):
        if chance > level / (len(chances) - len(rejected)):
            break
        rejected.add(name)
    return rejected


def certain_labels(audits: Sequence[LabelAudit]) -> set[str]:
    """Return the labels whose answers are certain of more such texts, when all labels are tested."""
    chances = {
        label_audit.label: _chance_of_another(label_audit.audit)
        for label_audit in audits
        if label_audit.audit is not None
    }
    return holm({label: chance for label, chance in chances.items() if chance is not None})


def _chance_of_another(label_audit: Audit) -> float | None:
    """Return the chance that of very many such texts the answer is another one; None where it cannot tell."""
    said, tables = label_audit.bottom_line.answer, by_text(label_audit.tables)
    if said == "cannot tell" or "highlights" not in tables:
        return None
    seed = (label_audit.settings.audit or AuditSettings()).seed
    clusters = text_numbers(tables["instances"])
    thresholds = (label_audit.rates or packaged_rates()).thresholds
    return chance_of_another(texts_of(tables), clusters, said, thresholds, seed)


def make_result(
    audits: Sequence[LabelAudit], certain: set[str], folders: Sequence[str], threshold: float
) -> Result:
    """Make the page of all labels, in the order of the model's outputs."""
    rows = [
        {
            "label": label_audit.label,
            "texts": label_audit.texts,
            "answer": label_audit.audit.bottom_line.answer,
            "certain": label_audit.label in certain,
            **{name: getattr(finding, name) for name in ("key", "question", "value", "low", "high", "level")},
        }
        for label_audit in audits
        if label_audit.audit is not None
        for finding in label_audit.audit.findings
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=[*COLUMNS])
    judged = frame[(frame["level"] != UNJUDGED) & frame["value"].notna()]
    keys = list(dict.fromkeys(judged["key"]))
    links = {
        label_audit.label: f"{folder}/report.html"
        for label_audit, folder in zip(audits, folders, strict=True)
        if label_audit.audit is not None
    }
    summary = Table(
        "All labels",
        ["label", "texts", "answer", "certain", *(key.replace("_", " ") for key in keys)],
        [_line(label_audit, certain, frame, keys) for label_audit in audits],
        note=(
            f"Counted are the texts for which the label is predicted, with a probability of {threshold:g} or "
            "more. An answer, “cannot tell” too, is certain if it is the same of very many such texts; the "
            f"chance that any of the certain answers is another one is at most {LEVEL:g}, with Holm's "
            f"correction for {plural(len(links), 'label')}. Each number is a mean over texts; the label's "
            "report says how sure it is."
        ),
        labels=1,
        links=links,
    )
    unaudited = [label_audit for label_audit in audits if label_audit.audit is None]
    counts = ", ".join(f"{label_audit.label} ({label_audit.texts})" for label_audit in unaudited)
    notes = (
        [f"predicted for fewer than {FEWEST_TEXTS} texts, and not audited: {counts}"]
        if unaudited
        else []
    )
    answers = Counter(str(row["answer"]) for _, row in frame.drop_duplicates("label").iterrows())
    counted = ", ".join(
        f"“{answer}” for {plural(n, 'label')}" for answer, n in sorted(answers.items())
    )
    return Result(
        title=f"{plural(len(audits), 'label')} of one model",
        notes=[f"May the map be shown as the reason for a label? The answer is {counted}.", *notes],
        summary=summary,
        sections=[summary],
        figures=[],
        rows=frame,
        latex=summary,
        columns=COLUMNS,
        lead="Label by label: the answer, and the numbers that it rests on.",
        answers_first=True,
    )


def _line(
    label_audit: LabelAudit, certain: set[str], frame: pd.DataFrame, keys: Sequence[str]
) -> list[str]:
    if label_audit.audit is None:
        return [label_audit.label, str(label_audit.texts), "too few texts", *[""] * (len(keys) + 1)]
    values = frame[frame["label"] == label_audit.label].set_index("key")["value"]
    numbers = [values.get(key, math.nan) for key in keys]
    return [
        label_audit.label,
        str(label_audit.texts),
        label_audit.audit.bottom_line.answer,
        "yes" if label_audit.label in certain else "no",
        *("" if math.isnan(number) else f"{number:.3f}" for number in numbers),
    ]
