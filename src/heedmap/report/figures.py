"""The figures of the report, in order."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from heedmap.findings import Conclusions
from heedmap.report import (
    adversary_figures,
    agreement_figures,
    entropy_figures,
    head_figures,
    layer_figures,
    violin_figures,
)
from heedmap.report.charts import PALETTE, Figure


def figures(audit: Conclusions) -> list[Figure]:
    """Every figure that the tables can fill: the papers' own, and ours."""
    audit = _few_classes(audit)
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


def _few_classes(audit: Conclusions) -> Conclusions:
    """The same audit, as of one class where more are predicted than there are colours to tell them apart."""
    instances = audit.tables["instances"]
    if len(np.unique(instances["predicted"])) <= len(PALETTE):
        return audit
    at = instances.column_names.index("predicted")
    one = instances.set_column(at, "predicted", pa.array(np.zeros(len(instances), dtype=np.int64)))
    return replace(
        audit,
        classes=[f"any of {len(audit.classes)} classes"],
        tables={**audit.tables, "instances": one},
    )
