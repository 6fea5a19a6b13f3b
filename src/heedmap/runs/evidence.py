"""The settings of a run's audit, and the input of its experiments."""

from collections.abc import Collection, Mapping
from typing import Any

from heedmap.experiments.chunks import ChunkedContext, takes_chunks
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.experiments.variants import Retraining
from heedmap.files.table_folder import TableFolder
from heedmap.models.trace import Model
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.budget import with_budget
from heedmap.runs.run import Run
from heedmap.settings.audit import AuditSettings


def settings_for(run: Run, options: Mapping[str, Any]) -> AuditSettings:
    """Return the settings of a run's audit with these options, its defaults and its budget."""
    defaults = audit_defaults(run.model, run.settings.data)
    return with_budget(run, AuditSettings.of(**{**defaults, **options}))


def evidence_for(
    run: Run,
    audit_settings: AuditSettings,
    tables: TableFolder | None,
    other_seeds: Mapping[str, Model] | None = None,
    retraining: Retraining | None = None,
    questions: Collection[str] = (),
) -> AuditContext:
    """Return the input of the experiments without a budget: all audited texts, in chunks if they are many."""
    texts = audited_split(run.corpus, audit_settings)
    context = ChunkedContext if takes_chunks(run.model, texts) else AuditContext
    return context(
        run.model,
        texts,
        audit_settings,
        registered(),
        tables,
        other_seeds,
        retraining,
        questions,
        run.dynamics,
    )
