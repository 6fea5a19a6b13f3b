"""From tables to findings: which questions the tables can answer."""

from collections.abc import Mapping

import pyarrow as pa

from heedmap.findings import Finding
from heedmap.layer_questions import layer_findings
from heedmap.makers import Makers
from heedmap.pooling import by_text
from heedmap.settings import AuditSettings, ModelSettings, TransformerSettings


def make_findings(
    tables: Mapping[str, pa.Table],
    settings: AuditSettings,
    classes: list[str],
    model: ModelSettings | TransformerSettings | None = None,
) -> list[Finding]:
    """Every question that the tables can answer, in the order of the card.

    Windows of a long text are pooled: every n counts texts. `model`: the run's model settings, which say
    what layer is on trial where there are several.
    """
    tables = by_text(tables)
    makers = Makers(tables, settings, classes, model)
    findings = [makers.skill()]
    if "agreement" in tables:
        findings += [
            makers.agreement("gradient", "the gradient"),
            makers.agreement("leave_one_out", "leave-one-out"),
            makers.agreement("integrated_gradients", "integrated gradients"),
            makers.yardstick(),
        ]
    if "permutation" in tables:
        findings.append(makers.permutation())
        if "uniform_tvd" in tables["permutation"].column_names:  # tables of 0.1 have none
            findings.append(makers.uniform())
    if "adversary" in tables:
        findings.append(makers.adversary())
    if "rationale" in tables:
        findings += [
            makers.rationale(m, name)
            for m, name in (
                ("attention", "attention"),
                ("gradient", "the gradient"),
                ("leave_one_out", "leave-one-out"),
                ("integrated_gradients", "integrated gradients"),
            )
        ]
    if "scan" in tables:
        findings += layer_findings(makers)
    return findings
