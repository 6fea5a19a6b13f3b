"""The figures of the report, in order."""

from pkgutil import resolve_name

from heedmap.experiments.findings import AuditResult, pooled
from heedmap.experiments.registry import registered
from heedmap.report.charts import Figure


def figures(audit: AuditResult) -> list[Figure]:
    """Return the experiments' figures for an audit's tables, with windows pooled by text."""
    audit = pooled(audit)
    return [
        figure
        for name, experiment in registered().items()
        if name in audit.tables
        for path in experiment.figures
        for figure in resolve_name(path)(audit)
    ]
