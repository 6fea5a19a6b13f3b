"""Impose a text's adversarial weights again, to check that the prediction stays."""

from pathlib import Path
from typing import NamedTuple, SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.errors import InputError
from heedmap.experiments.methods.adversary_weights import FILE, MOST, weights_of
from heedmap.files.naming import kind_of
from heedmap.files.tables import read_table
from heedmap.measures import change_in_prediction, jensen_shannon
from heedmap.models.layered import Layered
from heedmap.runs.audit_defaults import audited_split
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run


class Imposed(NamedTuple):
    """How far the adversary's weights move the prediction (TVD) and the heat map on trial (JSD)."""

    tvd: float
    jsd: float


@torch.no_grad()
def check_adversary(run: Run, row: int) -> Imposed:
    """Impose the weights of one row of a run's adversary table in a whole pass of the model.

    The audit's shortcuts are not used: the text is read alone in a full pass, and its heat map as in the
    scan. Both numbers equal those of the table (`tvd`, `jsd`) up to rounding: 1e-5 in float32.

    Args:
        run: from `heedmap.open_run`, or any audited run with a folder.
        row: of the table; the index of the text among the audited ones.

    Raises:
        InputError: no folder, no audit in it, no such row, no adversary for it, or a damaged file.
        TypeError: the row is not an integer.
    """
    if isinstance(row, bool) or not isinstance(row, SupportsIndex):
        raise TypeError(f"expected a row's number, got {kind_of(row)}; the table's rows begin at 0")
    attention = _weights(run, row)
    assert run.folder is not None
    settings = RunFolder(run.folder).settings().audit
    assert settings is not None
    text = audited_split(run.corpus, settings).texts[row]
    model, batch = run.model, run.model.batch([text], [row])
    trace = model.trace(batch)
    if attention.shape != trace.attention.shape:
        raise InputError(
            f"{RunFolder(run.folder).tables}: expected weights of shape {tuple(trace.attention.shape[1:])} for "
            f"row {row}, got {tuple(attention.shape[1:])}: the tables are of another audit; run it again"
        )
    attention = attention.to(trace.attention)
    logits = model.logits_from(model.embed(batch), batch, attention)
    if isinstance(model, Layered):
        imposed = model.heat_maps(batch, [model.map_on_trial()], attention)[:, 0]
    else:
        imposed = model.to_heatmap(trace, attention.unsqueeze(0))[0]
    heat, model_heat = imposed.double(), trace.heatmap.double()
    visible = bool((heat > 0).any() and (model_heat > 0).any())  # a map of zeros shows nothing
    return Imposed(
        tvd=float(change_in_prediction(trace.logits, logits)[0]),
        jsd=float(jensen_shannon(heat, model_heat)[0]) if visible else 0.0,
    )


def _weights(run: Run, row: int) -> Float[Tensor, "1 K P"]:
    """Read the weights: from the table where they are the heat map, else from the file beside it."""
    if run.folder is None:
        raise InputError(
            "expected a run that is kept in a folder, got one in memory; give it an `out`"
        )
    tables = RunFolder(run.folder).tables
    if not (path := tables / "adversary.parquet").exists():
        raise InputError(
            f"{run.folder}: the adversary was not computed; run `heedmap audit --run {run.folder}`"
        )
    table = read_table(path)
    if not 0 <= row < table.num_rows:
        raise InputError(f"{path}: expected a row from 0 to {table.num_rows - 1}, got {row}")
    heat = table["attention"][row].as_py()
    if heat is None:
        raise InputError(f"{path}: no adversary was searched for row {row}; choose one with a jsd")
    if not isinstance(run.model, Layered):
        return torch.tensor(heat, dtype=torch.float64).reshape(1, 1, -1)
    return _stored_weights(tables / FILE, row)


def _stored_weights(path: Path, row: int) -> Float[Tensor, "1 K P"]:
    weights = weights_of(path, row)
    if weights is None:
        raise InputError(
            f"{path}: holds no weights of row {row}: of the searched texts the shortest are kept, up to "
            f"{MOST >> 20} MiB; choose a shorter text"
        )
    return weights.unsqueeze(0)
