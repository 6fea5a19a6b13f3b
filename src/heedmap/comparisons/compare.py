"""Compare audited runs: open them, group the seeds, match their texts, and ask what is certainly different."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from heedmap.comparisons.compared import Comparison
from heedmap.comparisons.differences import LEAST_COMMON, compared_pairs
from heedmap.comparisons.differing_settings import DifferingSetting, differing_settings
from heedmap.comparisons.map_differences import map_differences, map_pairs, maps_of
from heedmap.comparisons.questions import compared_questions
from heedmap.comparisons.same_texts import TextIds, text_ids
from heedmap.comparisons.seed_rows import Row, seed_rows
from heedmap.comparisons.shown_texts import shown_texts
from heedmap.comparisons.sources import NamedAudit, named_audits
from heedmap.comparisons.verdicts import row_verdicts
from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.pooling import by_text
from heedmap.nouns import shared_nouns
from heedmap.report.wording import plural
from heedmap.runs.audited import Audit
from heedmap.settings.audit import BUDGET

# Differ among seeds and data; a budget has a note of its own.
EXPECTED = (
    "audit seed",
    "audit other seed",
    "audit texts",
    *(f"audit {name}" for name in BUDGET),
)


def compare(runs: Sequence[str | Path | Audit]) -> Comparison:
    """Put audited runs side by side: settings, answers, numbers and maps of the same texts.

    >>> import heedmap as hm
    >>> corpus = hm.load("reviews")
    >>> audits = [
    ...     hm.audit(hm.train(corpus, encoder=encoder, epochs=1, progress=False), instances=12, progress=False)
    ...     for encoder in ("average", "none")
    ... ]
    >>> comparison = hm.compare(audits)
    >>> [row.letter for row in comparison.rows], comparison.settings[0].name, comparison.settings[0].values
    (['A', 'B'], 'model encoder', ('average', 'none'))

    Args:
        runs: folders of audited runs, or audits; a folder of `heedmap reproduce` or `heedmap debate` stands
            for all audited runs in it. Runs that differ in the seed alone become one row.

    Raises:
        InputError: fewer than two runs, one of them twice, a folder that is no run, or a run without a
            finished audit.
    """
    rows = seed_rows(named_audits(runs))
    ordered = [run for row in rows for run in row.runs]
    pooled = [by_text({"instances": run.audit.tables["instances"]})["instances"] for run in ordered]
    ids = text_ids(pooled)
    maps = [
        maps_of(run.audit.tables["instances"], run_ids)
        for run, run_ids in zip(ordered, ids, strict=True)
    ]
    maps_compared = map_differences(maps, map_pairs(len(ordered)))
    grouped = _by_row(rows, ids)
    settings = differing_settings(rows)
    known = [{int(text) for run in row for text in run.ids} for row in grouped]
    common = {(i, j): len(known[i] & known[j]) for i, j in compared_pairs(len(rows))}
    nouns = shared_nouns([run.audit.nouns for run in ordered])
    notes = [
        *_notes_on_settings(rows, settings),
        *_notes_on_budgets(rows),
        *_notes_on_texts(rows, [len(texts) for texts in known], common),
        *_notes_on_labels(ordered, pooled, ids),
    ]
    return Comparison(
        rows=rows,
        settings=settings,
        questions=compared_questions(rows, grouped),
        verdicts=row_verdicts(rows),
        maps=maps_compared,
        texts=shown_texts(ordered, pooled, ids, maps, maps_compared),
        notes=[*_notes_on_copies(ordered), *(nouns.reword(note) for note in notes)],
        common=common,
    )


def _by_row(rows: Sequence[Row], ids: Sequence[TextIds]) -> list[list[TextIds]]:
    """Return the text ids of each row's runs."""
    left = iter(ids)
    return [[next(left) for _ in row.runs] for row in rows]


def _notes_on_copies(runs: Sequence[NamedAudit]) -> list[str]:
    """Say which runs are the same one: they have equal settings and equal findings."""
    # Undefined numbers of both are equal as they are written.
    alike = [(run.audit.settings, repr(run.audit.findings)) for run in runs]
    return [
        f"{runs[i].name} and {runs[j].name} have the same settings and the same numbers: one is a copy of the "
        "other, or the same command made both."
        for j in range(len(runs))
        for i in range(j)
        if alike[i] == alike[j]
    ]


def _notes_on_settings(rows: Sequence[Row], settings: Sequence[DifferingSetting]) -> list[str]:
    """Say where the audits themselves differ, which makes their numbers less comparable."""
    notes = []
    audits = [s for s in settings if s.name.startswith("audit ") and s.name not in EXPECTED]
    if audits:
        listed = "; ".join(
            f"{setting.name.removeprefix('audit ')} "
            f"{', '.join(f'{row.letter} {value}' for row, value in zip(rows, setting.values, strict=True))}"
            for setting in audits
        )
        notes.append(
            f"The audits were made with different settings ({listed}): what depends on these is not measured "
            "alike."
        )
    if any(setting.name == "data classes" for setting in settings):
        notes.append(
            "The classes differ: accuracy, and what is said of a class, is of another task."
        )
    return notes


def _notes_on_budgets(rows: Sequence[Row]) -> list[str]:
    """Say of which texts runs are that drew them one after another, and why they stopped."""
    notes = []
    for row in rows:
        budgets = [budget for run in row.runs if (budget := budget_of(run.audit)) is not None]
        said = dict.fromkeys((b.texts, b.drawn_until, len(b.unasked)) for b in budgets)
        for texts, until, unasked in said:
            left_out = (
                f", and {plural(unasked, 'question')} not asked for want of time" if unasked else ""
            )
            notes.append(
                f"{row.letter} is of {plural(texts, 'text')}, {until}{left_out}; its intervals are wider, for "
                "they hold at every look."
            )
    return notes


def _notes_on_texts(
    rows: Sequence[Row], sizes: Sequence[int], common: Mapping[tuple[int, int], int]
) -> list[str]:
    """Say which rows have the same texts, so that their differences are computed text by text."""
    notes = []
    if all(count == sizes[i] == sizes[j] for (i, j), count in common.items()):
        return [f"All rows have the same {plural(sizes[0], 'text')}: paired intervals."]
    for (i, j), count in common.items():
        pair = f"{rows[i].letter} and {rows[j].letter}"
        if count == sizes[i] == sizes[j]:
            notes.append(f"{pair} have the same {plural(count, 'text')}: paired intervals.")
            continue
        share = f"{pair} have {plural(count, 'text')} in common, of {sizes[i]} and {sizes[j]}"
        if count and count >= LEAST_COMMON * min(sizes[i], sizes[j]):
            notes.append(f"{share}: paired intervals, over these texts only.")
        else:
            notes.append(f"{share}: too few to pair, intervals as of independent samples.")
    return notes


def _notes_on_labels(
    runs: Sequence[NamedAudit], pooled: Sequence[pa.Table], ids: Sequence[TextIds]
) -> list[str]:
    """Count the texts whose label is another one in another run."""
    labels: dict[int, set[str]] = {}
    for run, table, run_ids in zip(runs, pooled, ids, strict=True):
        for text, label in zip(run_ids.ids.tolist(), table["label"].to_pylist(), strict=True):
            if label is not None and np.isfinite(label):
                labels.setdefault(text, set()).add(run.classes[int(label)])
    count = sum(len(names) > 1 for names in labels.values())
    return [f"{plural(count, 'text')} with another label in another run."] if count else []
