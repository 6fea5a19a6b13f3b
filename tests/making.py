"""Test inputs: random rows of attention, the tables of a few texts, and files of texts."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Bool
from torch import Tensor

from heedmap.data.corpus import Split
from heedmap.experiments.columns import Columns
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.settings.audit import AuditSettings

ROWS = [{"text": f"this is text {i} !", "label": i % 2} for i in range(40)]
SETTINGS = AuditSettings(permutations=20, integrated_gradients_instances=6)


def random_rows(rows, positions, classes=2, seed=0, shortest=1, **shape):
    """Attention, read-out, bias and mask; real positions are anywhere in the row."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest, positions + 1, (rows,), generator=generator)
    rank = torch.rand(rows, positions, generator=generator).argsort(-1).argsort(-1)
    return rows_on(rank < lengths[:, None], classes, generator, **shape)


def padded_rows(lengths, positions=8, classes=2, seed=0, side="left"):
    """The same of given lengths, with padding on one side."""
    places = torch.arange(positions)
    sizes = torch.tensor(lengths).unsqueeze(-1)
    mask = places >= positions - sizes if side == "left" else places < sizes
    return rows_on(mask, classes, torch.Generator().manual_seed(seed))


def rows_on(mask: Bool[Tensor, "B T"], classes, generator, scale=2.0, sparse=False, tied=False):
    """Attention, read-out, bias and the mask; `sparse`: weights of 0; `tied`: positions that read the same."""
    scores = 1.5 * torch.randn(mask.shape, generator=generator, dtype=torch.float64)
    attention = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    if sparse:
        attention = (attention - 0.5 * attention.amax(-1, keepdim=True)).clamp(min=0)
        attention /= attention.sum(-1, keepdim=True)
    readout = scale * torch.randn(*mask.shape, classes, generator=generator, dtype=torch.float64)
    readout = readout.round() if tied else readout
    bias = torch.randn(classes, generator=generator, dtype=torch.float64)
    return attention, readout, bias, mask


def evidence_of(model, texts, settings=SETTINGS, labels=None, **changed):
    """The tables of a few texts, all of the first class where there are no labels."""
    labels = np.zeros(len(texts), dtype=np.int64) if labels is None else labels
    split = Split([f"k{i}" for i in range(len(texts))], list(texts), labels)
    return AuditContext(model, split, settings.model_copy(update=changed), registered())


def left_over(found):
    """Descriptions of columns that none of these tables has; `found` are names of columns by table."""
    return [
        (name, known)
        for name, names in found.items()
        for known, column in registered()[name].columns
        if not any(Columns("", {known: (column.range, column.meaning)}).of(one) for one in names)
    ]


def write_rows(path, rows=ROWS):
    """As the file whose name it is: CSV, JSON lines or Parquet, packed or not."""
    if ".jsonl" in path.name:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    elif ".parquet" in path.name:
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
