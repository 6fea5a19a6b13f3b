"""How did the map come about? What was recorded while the model was trained (Snell et al. 2021).

Their account: under nearly uniform attention the output relevance of telling words grows first, and then the
attention is drawn to it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedmap.experiments.evidence import Evidence
from heedmap.experiments.registry import Experiment
from heedmap.files.tables import padded
from heedmap.measures import top_match

ELEMENTS = 1 << 22
QUANTITIES = ("attention", "relevance", "influence")


def dynamics(evidence: Evidence) -> pa.Table:
    """Return what was recorded of the test texts, and how well each quantity foretells the final attention.

    `match_X` is whether the token that the last record attends to most is among the top 5 % by quantity X at
    this step (`measures.top_match`), `chance_X` that of a random order; NaN where X was not recorded. Only
    this: no text is read again.
    """
    assert evidence.recorded is not None
    found = evidence.recorded.filter(pc.equal(evidence.recorded["split"], "test"))
    found = found.drop_columns(["split"])
    steps, texts = found["step"].to_numpy(), found["row"].to_numpy()
    last = {row: i for i, row in enumerate(texts) if steps[i] == steps.max()}
    final = found["attention"].take(pa.array([last[row] for row in texts]))
    for name in QUANTITIES:
        match, chance = np.full((2, len(found)), np.nan)
        if found[name].null_count < len(found):
            wide = [column.cast(pa.list_(pa.float32())) for column in (final, found[name])]
            for rows, values, mask in padded(wide, ELEMENTS):
                each = top_match(values[:, 0], values[:, 1], mask)
                match[rows], chance[rows] = (one.numpy() for one in each)
        found = found.append_column(f"match_{name}", pa.array(match))
        found = found.append_column(f"chance_{name}", pa.array(chance))
    return found


EXPERIMENTS = (
    Experiment(
        "dynamics",
        dynamics,
        place=120,
        recorded=True,
        figures=(
            "heedmap.report.dynamics_figures:agreement",
            "heedmap.report.dynamics_figures:texts",
        ),
    ),
)
