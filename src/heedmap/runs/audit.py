"""The audit: every question asked of a run's attention, in tables, findings and a report."""

import math
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.errors import InputError, KindError, ModelError, running_model
from heedmap.experiments import cost
from heedmap.experiments.budget import BudgetContext, Clock, asked_tables
from heedmap.experiments.context import AuditContext
from heedmap.experiments.notes import far_from_default, note_texts
from heedmap.experiments.rates import FILE as RATES
from heedmap.experiments.rates import Rates, packaged_rates, rates_beside, read_rates
from heedmap.experiments.registry import (
    applicable,
    estimate,
    make_findings,
    not_asked,
    registered,
    retrainable,
)
from heedmap.experiments.variants import Retraining
from heedmap.files.locking import writing
from heedmap.files.naming import kind_of
from heedmap.files.table_folder import TableFolder, clear
from heedmap.keywords import split, takes
from heedmap.models.layered import Layered
from heedmap.runs.audit_folder import (
    claim_audit,
    conclude,
    put_about,
    read_audit,
    write_without_texts,
)
from heedmap.runs.audited import Audit
from heedmap.runs.budget import OF_READING, budget_facts, drawn_evidence
from heedmap.runs.evidence import evidence_for, settings_for
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import open_run
from heedmap.runs.other_seed import other_seeds
from heedmap.runs.run import Run
from heedmap.runs.stored_models import weights_of
from heedmap.settings.audit import AuditSettings
from heedmap.settings.run import RunSettings
from heedmap.terminal.output import remark
from heedmap.terminal.progress import note, plan, portion, step, worded, working

MAKE_A_RUN = "load, then train, then audit: heedmap.audit(heedmap.train(heedmap.load(data)))"
LONG = 60  # seconds from which a forecast is shown for our own models
MOMENT = 0.2  # seconds of an experiment whose cost is not estimated


@takes(AuditSettings)
def audit(
    run: Run | str | Path,
    *,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Audit:
    """Put a run's attention on trial, on its test split.

    >>> import heedmap as hm
    >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    >>> audit = hm.audit(run, instances=12, progress=False)
    >>> audit.findings[1].question, audit.findings[1].n
    ('Does the answer need the words that the map highlights?', 12)
    >>> list(audit["opposing_mass"].columns)
    ['row', 'predicted', 'against', 'against_chance']

    Args:
        run: from `heedmap.train`, `heedmap.open_model` or `heedmap.open_run`, or a run's folder. Where it has a
            folder, tables are kept there as they are made, and a later call goes on where this one stopped.
        {options}
        overwrite: throw away an audit with other settings instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    What is not given is as a paper has it that audits this data set (`heedmap.runs.defaults`), if there is one.

    Raises:
        InputError: a setting that does not fit, or an audit with other settings or another model in the
            run's folder, or another process that writes there.
        TypeError: no run, or an option that there is not.
    """
    (options,) = split("audit", settings, AuditSettings)
    if isinstance(run, str | Path):
        with working("opening the run", progress):
            run = _run_in(Path(run))
    if not isinstance(run, Run):
        raise KindError(
            f"expected a run or its folder, got {kind_of(run)}; {MAKE_A_RUN}; or make it with "
            "`heedmap.open_model`"
        )
    with working("audit", progress):
        return audit_as(run, settings_for(run, options), overwrite=overwrite)


def _run_in(path: Path) -> Run:
    if not RunFolder(path).is_begun():
        raise InputError(
            f"{path}: expected a run or its folder, which holds a settings.toml; `heedmap list` shows the "
            f"runs. Of texts, {MAKE_A_RUN}"
        )
    return open_run(path)


def audit_as(
    run: Run,
    audit_settings: AuditSettings,
    *,
    overwrite: bool = False,
    retraining: Retraining | None = None,
    questions: Collection[str] = (),
    training_seconds: float = 0.0,
) -> Audit:
    """Audit a run with these settings; see `audit`.

    `questions` are experiments that compare further models, which `retraining` trains, in about
    `training_seconds`. Those that an earlier call asked stay.
    """
    worded(run.settings.nouns.reword)
    clock = Clock(audit_settings.minutes if isinstance(audit_settings.minutes, float) else math.inf)
    settings = run.settings.model_copy(update={"audit": audit_settings})
    seed_folders = audit_settings.other_seed or ()
    seed_models = other_seeds(run, seed_folders) if seed_folders else {}
    folder = None if run.folder is None else RunFolder(run.folder)
    with nullcontext() if folder is None else writing(folder.path), _asking(run, folder):
        tables = None
        if folder is not None:
            weights = weights_of(run.model, run.settings)
            tables = claim_audit(folder, settings, weights, run.model.classes, overwrite)
        # A damaged calibration is refused before anything is computed.
        source = run.settings.data.source
        rates = packaged_rates() if tables is None else _rates_for(source, tables)
        evidence: AuditContext
        if audit_settings.is_drawn:
            evidence = drawn_evidence(
                run, audit_settings, clock, rates, tables, seed_models, retraining, questions
            )
            settings = settings.model_copy(update={"audit": evidence.settings})
            if folder is not None:
                folder.write_settings(settings)
        else:
            evidence = evidence_for(run, audit_settings, tables, seed_models, retraining, questions)
        trainings = dict.fromkeys([*questions][:1], training_seconds)
        with portion(1 - OF_READING) if audit_settings.is_drawn else nullcontext():
            result = _answer(run, settings, evidence, trainings, rates)
            if folder is not None and tables is not None:
                if result.settings != settings:
                    folder.write_settings(result.settings)
                with step("report"):
                    put_about(result, tables, weights)
                    conclude(result, folder)
                    folder.tidy()
        return result


@contextmanager
def _asking(run: Run, folder: RunFolder | None) -> Iterator[None]:
    """Remove a first audit if the model stops in it: the whole run, if it was only opened."""
    settings = None if folder is None else folder.settings(moved=True)
    try:
        with running_model(run.model, "audit"):
            yield
    except ModelError:
        if folder is not None and settings is not None and settings.audit is None:
            if run.training is None:
                folder.clear()
            else:
                clear(folder.tables)
                folder.write_settings(settings)
        raise


def _answer(
    run: Run,
    settings: RunSettings,
    evidence: AuditContext,
    trainings: dict[str, float],
    rates: Rates,
) -> Audit:
    """Run the experiments that apply and draw the findings; `trainings` are seconds of further trainings."""
    split = evidence.split
    drift_notes = far_from_default(run.facts)
    for caveat in drift_notes:
        remark(f"{run.name}: {caveat}")
    whole = run.corpus.splits["test"]
    is_recorded, is_compared = evidence.recorded is not None, bool(evidence.other_seeds)
    names = applicable(run.model, split, is_recorded, is_compared)
    left_out_questions = not_asked(run.model, split, is_recorded, is_compared)
    names += [name for name in retrainable(run.model, split) if evidence.has(name)]
    budget = evidence if isinstance(evidence, BudgetContext) else None
    costs = estimate(evidence) if budget is None else budget.costs
    is_long = isinstance(run.model, Layered) or sum(costs.values()) >= LONG
    if is_long and budget is None and (text := cost.forecast(costs)) is not None:
        note(f"The experiments will take {text}.")
    missing = [name for name in names if not evidence.is_kept(name)]
    _plan(evidence, {name: max(MOMENT, (costs | trainings).get(name, 0.0)) for name in missing})
    tables = asked_tables(evidence, names)
    if budget is not None:
        names = [*tables]
        left_out = budget.settings.model_copy(update={"unasked": tuple(budget.unasked)})
        settings = settings.model_copy(update={"audit": left_out})
    facts: dict[str, object] = {
        "test_texts": whole.whole_texts,
        "audited": split.whole_texts,
        **({} if split.text_of is None else {"windows": len(split)}),
        **({"class_counts": counts} if (counts := run.corpus.class_counts()) else {}),
        "left_out": run.corpus.left_out,
        **({"also_in": run.corpus.also_in} if run.corpus.also_in else {}),
        **run.facts,
        **_rounding_factors(tables),
        **({} if budget is None else {"budget": budget_facts(budget)}),
        **({"not_asked": left_out_questions} if left_out_questions else {}),
    }
    caveats: list[str] = []
    for name in names:
        facts |= registered()[name].about(evidence)
        caveats += registered()[name].notes(tables, settings.model)
    for caveat in caveats:
        remark(caveat)
    if notes := [*run.corpus.notes, *note_texts(facts), *drift_notes, *caveats]:
        facts["notes"] = notes
    findings = make_findings(
        tables, evidence.settings, run.model.classes, settings.model, rates, settings.nouns
    )
    facts = {"name": run.name, **facts}
    audited = replace(run, settings=settings)  # what it explains, it explains as it was audited
    return Audit(
        settings, run.model.classes, tables, findings, facts, rates, run=audited, kept=evidence.kept
    )


def _plan(evidence: AuditContext, costs: dict[str, float]) -> None:
    """Plan the bar: every step takes its forecast, or a moment."""
    weights = {**evidence.planned(costs), "report": MOMENT}
    plan(weights, sum(weights.values()))


def _rates_for(source: str, tables: TableFolder) -> Rates:
    """Return the rates of a calibration of the run's texts, kept with its tables, or else the packaged ones."""
    rates = rates_beside(tables.folder.parent, source)
    if rates is not None:
        tables.put(RATES, rates.to_json().encode())
    elif tables.get(RATES) is not None:
        rates = read_rates(tables.folder / RATES)
    return rates or packaged_rates()


def open_audit(folder: str | Path) -> Audit:
    """Read an audit from the tables in a run folder, without model and corpus.

    >>> import heedmap as hm
    >>> from tempfile import TemporaryDirectory
    >>> corpus = hm.load("reviews")
    >>> with TemporaryDirectory() as out:
    ...     run = hm.train(corpus, encoder="average", epochs=1, out=out, progress=False)
    ...     made = hm.audit(run, instances=6, progress=False)
    ...     read, again = hm.open_audit(out), hm.open_run(out)
    >>> read.findings[0].value == made.findings[0].value, again.training == run.training
    (True, True)

    Raises:
        InputError: no run or no finished audit there, a damaged file, or tables of another model or of
            other settings than the folder holds now.
    """
    stored = read_audit(RunFolder(folder))
    settings, description = stored.settings, stored.about
    assert settings.audit is not None
    rates = stored.rates or packaged_rates()
    findings = make_findings(
        stored.tables, settings.audit, description.classes, settings.model, rates, settings.nouns
    )
    facts = {"name": Path(folder).name, **description.about}
    return Audit(settings, description.classes, stored.tables, findings, facts, rates)


def rewrite(folder: Path, texts: bool = True) -> Audit:
    """Write findings and report again from a run folder's tables; without `texts`, a second report has none.

    A folder that is read-only stays as it is, with a note.
    """
    run_folder = RunFolder(folder)
    run_folder.settings()
    if texts and not os.access(folder, os.W_OK):
        remark(f"{folder}: read-only, so that its findings and its report stay as they are")
        return open_audit(folder)
    with writing(folder):
        result = open_audit(folder)
        conclude(result, run_folder)
        if not texts:
            write_without_texts(result, run_folder)
        run_folder.tidy()
        return result


def _rounding_factors(tables: dict[str, pa.Table]) -> dict[str, list[int]]:
    """Return the thread counts and batch sizes that the tables were made with: they affect rounding."""
    factors = {}
    for name in ("threads", "batch_tokens"):
        values = {(table.schema.metadata or {}).get(name.encode()) for table in tables.values()}
        factors[name] = sorted(int(value) for value in values if value is not None)
    return factors
