"""What a reproduction leaves in its folder, part by part, so that it goes on where it was stopped.

runs/drozdyuk-sst/
  settings.toml  vocabulary.json
  parts/softmax-0.parquet      the rows of one activation and seed; there only when it is finished
  parts/softmax-0.safetensors  its classifier (unless a trained one was given) and its adversaries
  table.parquet  result.csv  result.md
"""

import json
import tomllib
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import tomli_w
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from heedmap.errors import InputError
from heedmap.huggingface.interventions import KeyAdversary
from heedmap.papers.drozdyuk_model import Subject
from heedmap.papers.drozdyuk_rows import Row
from heedmap.papers.drozdyuk_settings import DrozdyukSettings
from heedmap.places import Out, is_free, taken
from heedmap.storage import leftovers, refuse_file, remove, write_atomically
from heedmap.tables import read_table, write_table

# In the order in which they go: whose the folder is, last.
OWN = ("result.md", "result.csv", "table.parquet", "parts", "vocabulary.json", "settings.toml")
_NUMBERS = pa.list_(pa.float64())
SCHEMA = pa.schema(
    [
        ("data", pa.string()),
        ("model", pa.string()),
        ("activation", pa.string()),
        ("seed", pa.int64()),
        ("intervention", pa.string()),
        ("layers", pa.string()),
        ("n", pa.int64()),
        ("accuracy", pa.float64()),
        ("drop", pa.float64()),
        ("opposite_accuracy", pa.float64()),
        ("kept", pa.float64()),
        ("flipped", pa.float64()),
        ("prediction_tvd", pa.float64()),
        ("weights_tvd", pa.float64()),
        ("weights_jsd", pa.float64()),
        ("key_distance", pa.float64()),
        ("temperature", pa.float64()),
        ("layer_tvd", _NUMBERS),
        ("layer_jsd", _NUMBERS),
        ("layer_key_distance", _NUMBERS),
        ("losses", _NUMBERS),
        ("dev_accuracies", _NUMBERS),
    ]
)


def held(out: Out, settings: DrozdyukSettings) -> AbstractContextManager[Path]:
    """The folder for a reproduction, held for writing (see `places.taken`)."""

    def mine(folder: Path) -> bool:
        try:
            return not read_settings(folder).difference(settings)
        except InputError:
            return False

    return taken(out, mine, OWN)


def claim(folder: Path, settings: DrozdyukSettings, overwrite: bool) -> None:
    """Make sure that `folder` is free for this reproduction, or holds this very one.

    Raises:
        InputError: it holds another (the differences are named), or something else.
    """
    refuse_file(folder)
    there = folder / "settings.toml"
    if there.exists():
        try:
            changed = read_settings(folder).difference(settings)
        except InputError:
            if not overwrite:
                raise
            changed = ["unreadable"]
        if changed and overwrite:
            clear(folder)
        elif changed:
            raise InputError(
                f"{folder}: holds a reproduction with other settings ({'; '.join(changed)}); choose another "
                "--out, or insist with --overwrite"
            )
    elif not is_free(folder, OWN):
        raise InputError(
            f"{folder}: holds files that are not a reproduction's; choose another --out"
        )
    for path in (*leftovers(folder, OWN), *leftovers(folder / "parts")):
        remove(path)
    text = tomli_w.dumps(settings.model_dump(exclude_none=True, mode="json"))
    if not there.exists() or there.read_text(encoding="utf-8") != text:
        write_atomically(there, text)


def read_settings(folder: Path) -> DrozdyukSettings:
    """The settings of the reproduction in a folder.

    Raises:
        InputError: none there, or not of this kind.
    """
    path = folder / "settings.toml"
    try:
        return DrozdyukSettings.of(**tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as the settings of a reproduction of Drozdyuk et al. "
            f"({str(error).splitlines()[0]}); choose another --out"
        ) from error


def clear(folder: Path) -> None:
    """Remove what a reproduction wrote, and nothing else; its settings stay until others are written."""
    for name in OWN[:-1]:
        remove(folder / name)


def part_path(folder: Path, activation: str, seed: int) -> Path:
    """The table of one part."""
    return folder / "parts" / f"{activation}-{seed}.parquet"


def save_part(
    path: Path, rows: list[Row], tensors: dict[str, Tensor], vocabulary: list[str] | None
) -> None:
    """Weights first, the table last: it says that the part is done."""
    if vocabulary is not None:
        text = json.dumps(vocabulary, ensure_ascii=False)
        write_atomically(path.parents[1] / "vocabulary.json", text)
    write_atomically(path.with_suffix(".safetensors"), save_tensors(tensors))
    write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA))


def tensors_of(
    subject: Subject, adversaries: dict[str, KeyAdversary], with_model: bool
) -> dict[str, Tensor]:
    """The classifier's and the adversaries' weights under one roof."""
    modules: dict[str, torch.nn.Module] = dict(adversaries)
    if with_model:
        modules["model"] = subject.model
    return {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


def read_tensors(path: Path) -> dict[str, dict[str, Tensor]]:
    """Weights by what they belong to.

    Raises:
        InputError: no such part, or it is damaged.
    """
    try:
        flat = load_tensors(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path}: no finished part there, or damaged ({error}); run `heedmap reproduce drozdyuk` again"
        ) from error
    owners: dict[str, dict[str, Tensor]] = {}
    for name, tensor in flat.items():
        owner, _, key = name.partition(".")
        owners.setdefault(owner, {})[key] = tensor
    return owners


def adversary_from(tensors: dict[str, Tensor]) -> KeyAdversary:
    """An adversary from its weights."""
    first = {n.split(".")[1]: t for n, t in tensors.items() if n.endswith(".0.weight")}
    widths = {int(layer): t.shape[1] for layer, t in first.items()}
    with torch.random.fork_rng(devices=[]):
        adversary = KeyAdversary(widths, next(iter(first.values())).shape[0])
    adversary.load_state_dict(tensors)
    return adversary.eval().requires_grad_(False)


def read_rows(path: Path, activation: str, seed: int) -> list[Row]:
    """The rows of a finished part.

    Raises:
        InputError: it is damaged, or of another activation or seed.
    """
    found = read_table(path)
    rows: list[Row] = found.to_pylist() if found.schema.equals(SCHEMA) else []
    if not rows or {(row["activation"], row["seed"]) for row in rows} != {(activation, seed)}:
        raise InputError(
            f"{path}: not the rows of this part; delete it and run the reproduction again"
        )
    return rows
