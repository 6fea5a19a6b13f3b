"""The figures of the report, in order."""

from pkgutil import resolve_name

from heedmap.experiments.findings import AuditResult, pooled
from heedmap.experiments.registry import registered
from heedmap.report.charts import Figure


def figures(audit: AuditResult) -> list[Figure]:
    """Every figure that the experiments offer and the tables can fill. Windows of a text are pooled."""
    audit = pooled(audit)
    return [
        figure
        for name, experiment in registered().items()
        if name in audit.tables
        for path in experiment.figures
        for figure in resolve_name(path)(audit)
    ]
