"""The adversary's weights beside its table, so that anyone can impose them again.

adversary.safetensors
  row     (n)       rows of the table whose weights are kept, ascending
  shape   (n, 2)    K rows of weights over P positions, of the text read alone
  offset  (n + 1)   where each text's K × P numbers begin and end
  weights (total)   float32, one text after another
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from heedmap.errors import InputError
from heedmap.files import manifest

FILE = "adversary.safetensors"
# Bytes. A text takes 4 · heads · positions where one row is on trial, times positions where all are.
MOST = 1 << 28


def pack(weights: Mapping[int, Float[Tensor, "_ _"]]) -> bytes:
    """Return the file's bytes for the weights (K, P) of some rows; the same weights give the same bytes."""
    rows = sorted(weights)
    sizes = torch.tensor([0, *(weights[row].numel() for row in rows)])
    flat = [weights[row].detach().to("cpu", torch.float32).flatten() for row in rows]
    return save(
        {
            "row": torch.tensor(rows, dtype=torch.int64),
            "shape": torch.tensor([tuple(weights[r].shape) for r in rows]).reshape(-1, 2).long(),
            "offset": sizes.cumsum(0),
            "weights": torch.cat([torch.empty(0), *flat]),
        }
    )


def rows_kept(content: bytes | Path) -> list[int]:
    """Return the rows whose weights the file holds.

    Raises:
        InputError: it is damaged.
    """
    try:
        if isinstance(content, bytes):
            return [int(row) for row in load(content)["row"]]
        with safe_open(content, "pt") as file:
            return [int(row) for row in file.get_tensor("row")]
    except (SafetensorError, OSError, RuntimeError) as error:
        raise InputError(f"{content!r}: damaged; delete it and run the audit again") from error


def weights_of(path: Path, row: int) -> Float[Tensor, "K P"] | None:
    """Read one row's weights only; None where they were not kept.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        manifest.check(path)
        with safe_open(path, "pt") as file:
            rows: list[int] = file.get_tensor("row").tolist()
            if row not in rows:
                return None
            index = rows.index(row)
            start, end = file.get_tensor("offset")[index : index + 2].tolist()
            shape = file.get_tensor("shape")[index].tolist()
            weights: Tensor = file.get_slice("weights")[start:end].reshape(shape)
    except manifest.ChangedError:
        raise
    except (SafetensorError, OSError, RuntimeError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: missing or damaged; delete it if it is there, and run the audit again"
        ) from error
    return weights
