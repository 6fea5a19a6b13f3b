"""Tables of a scan and of heads with planted answers."""

import numpy as np
import pyarrow as pa

from heedmap.experiments.results import Results
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import TransformerSettings

MAPS = [("row", layer, head) for layer in range(2) for head in (None, 0, 1)] + [
    ("rollout", 1, None)
]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def results(taus, maps=MAPS, total=None, tokens=9, heads=None, computed=None, **shown):
    """From tau of each sampled text (the first ones of `total`) and map, and a table of heads.

    `computed`: which maps were, of each text; all by default.
    """
    count, total = len(taus), total or len(taus)
    tables = {
        "instances": pa.table({"predicted": [0] * total, "n_tokens": [tokens] * total}),
        "scan": pa.table(
            {
                "row": np.repeat(np.arange(count), len(maps)),
                "view": [view for view, _, _ in maps] * count,
                "layer": [layer for _, layer, _ in maps] * count,
                "head": pa.array([head for _, _, head in maps] * count, pa.int64()),
                "computed": np.ravel(np.ones(np.shape(taus)) if computed is None else computed) > 0,
                "tau_leave_one_out": np.asarray(taus, dtype=float).ravel(),
            }
        ),
    }
    if heads is not None:
        tables["heads"] = heads
    model = TransformerSettings(source="a/model", **shown)
    return Results(tables, AuditSettings(), ["a"], model)
