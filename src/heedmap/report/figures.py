"""The figures of the report, in order."""

from heedmap.findings import Conclusions, pooled
from heedmap.report import (
    adversary_figures,
    agreement_figures,
    entropy_figures,
    head_figures,
    layer_figures,
    violin_figures,
)
from heedmap.report.charts import Figure


def figures(audit: Conclusions) -> list[Figure]:
    """Every figure that the tables can fill: the papers' own, and ours. Windows of a text are pooled."""
    audit = pooled(audit)
    return [
        *agreement_figures.tau_histograms(audit),
        *agreement_figures.tau_densities(audit),
        *agreement_figures.tau_differences(audit),
        *entropy_figures.entropy(audit),
        *violin_figures.permutation(audit),
        *violin_figures.most_different(audit),
        *adversary_figures.jsd_histograms(audit),
        *adversary_figures.exact_and_search(audit),
        *adversary_figures.curve(audit),
        *agreement_figures.rationale(audit),
        *layer_figures.scans(audit),
        *head_figures.heads(audit),
    ]
