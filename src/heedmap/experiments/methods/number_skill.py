"""Does a model that gives a number predict well? Its squared error against that of the mean label."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from heedmap.experiments import intervals
from heedmap.experiments.findings import Finding
from heedmap.experiments.levels import grade
from heedmap.experiments.results import Results, TextNumbers
from heedmap.experiments.rounding import number
from heedmap.experiments.text_tables import outputs_of_texts

MEASURE = "share of the labels' variance explained (R²), audited test texts"
ONE_LABEL = "one label only among the audited texts: nothing to compare with"


def number_skill(
    results: Results, words: dict[str, Any], untold: Callable[[int], Finding]
) -> Finding:
    """Return the share of the labels' variance that the outputs explain: R² = 1 − Σ (y − z)² / Σ (y − ȳ)².

    1 is no error, 0 that of always answering the mean label ȳ, below 0 is worse. The interval takes ȳ as given.
    `words` are those of the finding of classes, and `untold` makes it where the texts have no labels.
    """
    labels = results.optional("instances", "amount")
    if labels is None:
        return replace(untold(len(results.predicted)), measure=MEASURE)
    outputs = outputs_of_texts(results.tables["instances"])
    errors, spread = (labels - outputs) ** 2, (labels - labels.mean()) ** 2
    results.numbers["skill"] = TextNumbers(spread - errors, "ratio", intervals.UNBOUNDED, spread)
    value, low, high, correlation = math.nan, math.nan, math.nan, math.nan
    if spread.sum() > 0:
        value = float(1 - errors.sum() / spread.sum())
        low, high = intervals.of_ratio(
            spread - errors, spread, results.clusters, results.settings.seed, tail=results.tail
        )
        if np.ptp(outputs) > 0:
            correlation = float(np.corrcoef(labels, outputs)[0, 1])
    reading, level = grade("skill", value, low, high)
    unit, error = results.scale.unit, math.sqrt(float(errors.mean()))
    return Finding(
        **{**words, "measure": MEASURE},
        value=value,
        low=low,
        high=high,
        n=len(labels),
        distinct=len(np.unique(results.clusters)),
        left_out={},
        reading=reading if spread.sum() > 0 else ONE_LABEL,
        level=level,
        meaning=f"always answering the mean label ({number(float(labels.mean()))}) would score 0; the root "
        f"mean square error is {number(error)} {unit}, that of the mean "
        f"{number(math.sqrt(float(spread.mean())))}; correlation with the labels {number(correlation)}",
        no_interval="" if math.isfinite(low) else intervals.why_none(len(labels), "ratio"),
    )
