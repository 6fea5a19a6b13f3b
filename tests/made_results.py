"""A hand-made result of a paper, with signs that tables must escape."""

import pandas as pd

from heedmap.papers.kit.result import Claim, Result, Table, unlike

TABLE = Table(
    "Numbers",
    ["name", "theirs", "ours"],
    [["a|b", "1", "0.25 [-0.10, 0.60]"], ["[c] †", "−30.5", ""]],
    "How to read.",
    labels=1,
)


def result(**more):
    rows = pd.DataFrame(
        {
            "name": ["a|b", "c\n"],
            "value": [0.1 + 0.2, float("nan")],
            "n": [1, 2],
            "none": [None, None],
        }
    )
    claim = Claim("It holds", "does not", ("1 of 2", "x < y"), "By texts.")
    parts = {
        "notes": ["A note.", unlike(["1 epoch instead of 8"])], "summary": TABLE,
        "sections": [TABLE, claim], "figures": [], "rows": rows, "latex": TABLE, "not_learned": "† Not c.",
        "columns": {name: f"the {name}" for name in rows},
    }  # fmt: skip
    return Result("A & B", **{**parts, **more})
