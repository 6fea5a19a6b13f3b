"""Figures of the model's own heat map beside the same weights shuffled within the text."""

import numpy as np

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.smallest_change import is_searched
from heedmap.report.charts import Figure
from heedmap.report.grouping import Division, of_words
from heedmap.report.histograms import Axis, by_class
from heedmap.report.wording import column, epsilon

QUARTERS = (0, 0.25, 0.5, 0.75, 1)
MASS = Axis("least mass to move", 0, 1, 40, QUARTERS, (0, "the least change suffices"), "mass")
SHARE = Axis("share of the text's maximum", 0, 1, 40, QUARTERS, (1, "as if free"), "share")
AGAINST = Axis("mass on words against the answer", 0, 1, 40, QUARTERS, (0, "none"), "mass")


def bent(audit: AuditResult) -> list[Figure]:
    """Draw how much mass must be moved before the answer changes."""
    if "smallest_change" not in audit.tables:
        return []
    searched = is_searched(audit.tables["smallest_change"].column_names)
    method_text = "at most: by line searches" if searched else "exactly"
    return _own_and_shuffled(
        audit, (("smallest_change", "least_tvd"), ("smallest_change", "shuffled_least_tvd")), MASS,
        "smallest-change",
        f"How far must the map be bent? ({method_text})",
        "The least share of the map's mass that must be moved before the model gives another answer. Texts "
        "whose answer no weights change, as far as was found, are left out.",
        "without a change, or not sampled" if searched else "that no weights change",
    )  # fmt: skip


def relative_freedom(audit: AuditResult) -> list[Figure]:
    """Draw the freedom at the same prediction as a share of each text's own maximum."""
    if "smallest_change" not in audit.tables:
        return []
    exact = len(audit.classes) == 2
    return _own_and_shuffled(
        audit, (("smallest_change", "jsd_share_pairs"), ("smallest_change", "shuffled_jsd_share_pairs")), SHARE,
        "relative-freedom",
        "How free is the map while the answer stays?",
        f"The largest JSD from the map within {epsilon(audit):g} of the prediction"
        f"{'' if exact else ', with one or two words (at least)'}, as a share of the largest with any weights.",
    )  # fmt: skip


def against(audit: AuditResult) -> list[Figure]:
    """Draw the share of the map's mass on words that speak against the prediction."""
    return _own_and_shuffled(
        audit, (("opposing_mass", "against"), ("baselines", "against_shuffled")), AGAINST, "against",
        "How much of the map is on words against the answer?",
        "The share of the map's mass on words whose removal makes the answer likelier. Shuffled: the same "
        "asked of shuffled weights, and of what the words say under them, on a sample of the texts.",
    )  # fmt: skip


def _own_and_shuffled(
    audit: AuditResult,
    source: tuple[tuple[str, str], tuple[str, str]],
    axis: Axis,
    key: str,
    title: str,
    caption: str,
    missing: str = "not sampled",
) -> list[Figure]:
    (model_values, n), (shuffled, _) = (
        of_words(audit, column(audit.tables, *place), missing) for place in source
    )
    if not np.isfinite(model_values).any() or not np.isfinite(shuffled).any():
        return []
    divided = Division(
        ["the model's own", "shuffled"], np.repeat([0, 1], len(model_values)), by_class=False
    )
    text_rows = np.tile(np.arange(len(model_values)), 2)
    spec, keys, reading = by_class(
        np.concatenate([model_values, shuffled]), divided, axis, text_rows
    )
    return [
        Figure(
            key=key,
            title=title,
            n=n,
            caption=f"{caption} {reading}.",
            spec=spec,
            keys=keys,
        )
    ]
