"""A model with layers and heads: which of its heat maps agrees with the other measures, and what heads do."""

import numpy as np
import pyarrow as pa
import torch

from heedmap.experiments.evidence import Evidence
from heedmap.kendall import tau_against
from heedmap.models.layered import Layered
from heedmap.tables import table

REFERENCES = ("leave_one_out", "gradient")
SCAN_SHARE = 8  # all layers' weights with their graph
ELEMENTS = 1 << 24  # pairwise comparisons at a time: 128 MB


def scan(evidence: Evidence) -> pa.Table:
    """Kendall's tau-b of every heat map the model could show with leave-one-out and the gradient.

    One row a text and map: `view`, `layer`, `head` (null for the mean over heads). A seeded sample of the
    texts. NaN where tau is undefined (one word, a constant map), and where the map was not `computed`: a
    flow that would take too long.
    """
    model = evidence.model
    assert isinstance(model, Layered)
    wanted = model.maps()
    lists = {name: evidence.table(name)["importance"] for name in REFERENCES}
    rows, taus, computed = [], [], []
    chosen = evidence.sample("scan", evidence.settings.scan_instances)
    for batch in evidence.batches_of(chosen, shares=SCAN_SHARE):
        maps = model.heat_maps(batch, wanted).double()
        others = torch.zeros(len(maps), len(REFERENCES), maps.shape[2], dtype=torch.float64)
        for i, row in enumerate(batch.rows.tolist()):
            for r, name in enumerate(REFERENCES):
                values = lists[name][row].as_py()
                others[i, r, : len(values)] = torch.tensor(values, dtype=torch.float64)
        some = max(1, ELEMENTS // (maps.shape[1] * maps.shape[2] ** 2))
        for start in range(0, len(maps), some):
            part = slice(start, start + some)
            mask = batch.mask[part].cpu()
            taus.append(tau_against(maps[part].cpu(), others[part], mask))
        rows.append(batch.rows)
        computed.append(~maps.isnan().any(-1).cpu())
    found = torch.cat(taus).numpy()
    count = len(found)
    return table(
        {
            "row": np.repeat(torch.cat(rows).cpu().numpy(), len(wanted)),
            "view": [m.view for m in wanted] * count,
            "layer": [m.layer for m in wanted] * count,
            "head": pa.array([m.head for m in wanted] * count, pa.int64()),
            "computed": torch.cat(computed).flatten(),
            **{f"tau_{name}": found[:, :, r].ravel() for r, name in enumerate(REFERENCES)},
        }
    )


def heads(evidence: Evidence) -> pa.Table:
    """What every head does, text by text: where its mass goes, how sharp it is, how free its weights are.

    One row a text, layer and head; the columns are those of `Layered.layer_facts`. A seeded sample.
    """
    model = evidence.model
    assert isinstance(model, Layered)
    chosen = evidence.sample("heads", evidence.settings.scan_instances)
    rows: list[int] = []
    lengths: list[int] = []
    parts: list[dict[str, torch.Tensor]] = []
    for batch in evidence.batches_of(chosen, shares=SCAN_SHARE):
        parts.append(model.layer_facts(batch))
        rows += batch.rows.tolist()
        lengths += evidence.lengths[batch.rows.cpu().numpy()].tolist()
    whole = {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}
    shape = next(iter(whole.values())).shape
    index = np.indices(shape)
    return table(
        {
            "row": np.array(rows)[index[0]].ravel(),
            "positions": np.array(lengths)[index[0]].ravel(),
            "layer": index[1].ravel(),
            "head": index[2].ravel(),
            **{name: values.ravel() for name, values in whole.items()},
        }
    )
