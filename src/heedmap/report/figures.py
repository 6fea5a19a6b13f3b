"""The figures of the report, in order."""

from pkgutil import resolve_name

from altair.utils.schemapi import debug_mode

from heedmap.experiments.findings import AuditResult, pooled
from heedmap.experiments.registry import registered
from heedmap.report.charts import Figure, reworded
from heedmap.report.drawn_texts import with_drawn_texts


def figures(audit: AuditResult) -> list[Figure]:
    """Return the experiments' figures for an audit's tables, with windows pooled by text.

    Of very many texts some are drawn (`with_drawn_texts`).
    """
    audit = pooled(with_drawn_texts(audit))
    # Altair would check every object as it is made, which takes most of the page's time. The tests check
    # the whole specification of every figure.
    with debug_mode(False):
        return [
            reworded(figure, audit.nouns, audit.classes)
            for name, experiment in registered().items()
            if name in audit.tables
            for path in experiment.figures
            for figure in resolve_name(path)(audit)
        ]
