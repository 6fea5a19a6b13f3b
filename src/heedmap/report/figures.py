"""The figures of the report, in order."""

from heedmap.auditing import Audit
from heedmap.report import agreement_figures, weight_figures
from heedmap.report.charts import Figure


def figures(audit: Audit) -> list[Figure]:
    """Every figure that the tables can fill: the papers' own, and ours."""
    return [
        *agreement_figures.tau_histograms(audit),
        *agreement_figures.tau_densities(audit),
        *weight_figures.permutation(audit),
        *weight_figures.most_different(audit),
        *weight_figures.exact_and_search(audit),
        *weight_figures.curve(audit),
        *agreement_figures.rationale(audit),
    ]
