"""Findings as tables: a row per finding, and a row per finding and predicted class."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedmap.experiments.columns import Columns
from heedmap.experiments.findings import Finding, Relative, answer_text

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = Columns(
    "One row per finding, in the order of the card; null where a number is undefined.",
    {
        "key": ("text", "its short name, the same in every audit"),
        "question": ("text", "what is asked"),
        "kind": ("text", "what is measured"),
        "level": (
            "for, mixed, against, cannot tell, for comparison",
            "whether it speaks for showing the map",
        ),
        "answer": (
            "text",
            "the reading in words, as on the card; empty where there is only a number",
        ),
        "value": ("as `measure` says", "the number: a mean or median over texts"),
        "low": ("as `value`", "lower end of its 95 % interval over texts"),
        "high": ("as `value`", "upper end"),
        "n": ("count", "texts"),
        "distinct": ("count", "different texts among them"),
        "left_out": (
            "count",
            "texts left out, for all reasons together (`Finding.left_out` has each)",
        ),
        "chance": ("as `value`", "what chance reaches, on the texts where both ends are known"),
        "ceiling": ("as `value`", "what these weights reach at best, on the same texts"),
        "share": (
            "−1 to 1",
            "where the value stands between chance (0) and the ceiling (1): mean over these texts",
        ),
        "share_low": (
            "−1 to 1",
            "lower end of the 95 % interval of the share; the level follows from it",
        ),
        "share_high": ("−1 to 1", "upper end"),
        "measure": ("text", "what the value is"),
        "meaning": ("text", "how to read it"),
    },
)


def to_frame(findings: Sequence[Finding]) -> "pd.DataFrame":
    """Return a frame with a row per finding, and the columns of COLUMNS."""
    import pandas as pd

    names = [column.name for column in COLUMNS.described]
    nothing = Relative(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    rows = []
    for finding in findings:
        relative = finding.relative or nothing
        rows.append(
            {
                **vars(finding),
                "answer": answer_text(finding),
                "left_out": sum(finding.left_out.values()),
                "chance": relative.chance,
                "ceiling": relative.ceiling,
                "share": relative.share,
                "share_low": relative.low,
                "share_high": relative.high,
            }
        )
    return pd.DataFrame(rows, columns=names)


CLASS_COLUMNS = Columns(
    "One row per finding and predicted class; null where a number is undefined.",
    {
        "key": ("text", "the finding's"),
        "class": ("text", "the predicted class's name"),
        "value": (
            "as the finding's",
            "the number over the texts that are predicted to be of this class",
        ),
        "n": ("count", "texts of the class"),
        "chance": (
            "as `value`",
            "what chance reaches on the class's texts where both ends are known",
        ),
        "ceiling": ("as `value`", "what these weights reach at best, on the same texts"),
        "compared": ("count", "texts where both are known"),
    },
)


def to_class_frame(findings: Sequence[Finding]) -> "pd.DataFrame":
    """Return a frame with a row per finding and predicted class, and the columns of CLASS_COLUMNS."""
    import pandas as pd

    rows = [
        {"key": finding.key, "class": name, **vars(class_number)}
        for finding in findings
        for name, class_number in finding.by_class.items()
    ]
    return pd.DataFrame(rows, columns=[column.name for column in CLASS_COLUMNS.described])
