"""Identify a model and its tables by one hash of texts, settings and weights."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedmap.settings.audit import BUDGET
from heedmap.settings.base import FREE
from heedmap.settings.run import RunSettings

# Paths and how the files there are written are not part of the identity: texts, weights and vectors are
# identified by their hashes.
PLACES = (
    "data.source",
    "data.encoding",
    "data.separator",
    "data.quotes",
    "data.header",
    "model.source",
    "train.base",
    "train.vectors",
    "parent",
)


def weights_hash(tensors: Mapping[str, Tensor], words: Sequence[str] = ()) -> str:
    """Return a deterministic hash of a model's parameters and its vocabulary."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(
            tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    if words:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()[:16]


def source_identity(source: str) -> str:
    """Return a hash of a source of texts: of a file's bytes, of a folder's files, else of its name."""
    path, digest = Path(source), hashlib.sha256()
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if not path.exists():
        digest.update(source.encode())
        files = []
    for file in files:
        digest.update(file.name.encode() if path.is_dir() else b"")
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


def settings_hash(settings: RunSettings) -> str:
    """Return a hash of all settings but the places of data and model, which may move."""
    values = settings.model_dump(mode="json")
    for name in ("variant", "guide"):  # as before there were any
        if values[name] is None:
            del values[name]
    audit = values["audit"] or {}
    for name in BUDGET:
        if audit.get(name, 0) is None:
            del audit[name]
    _drop(values, PLACES)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def identity(settings: RunSettings, weights: str, classes: Sequence[str]) -> str:
    """Return a hash of everything that a run's numbers depend on, whatever its folder."""
    values = settings.model_dump(mode="json", exclude_defaults=True)
    _drop(values, (*PLACES, *FREE, *(f"audit.{name}" for name in BUDGET)))
    if settings.audit is not None and settings.audit.is_drawn:  # however many are drawn
        values["audit"]["drawn"] = True
    content = json.dumps([values, weights, list(classes)], sort_keys=True)
    # 64 bits tell runs apart; nobody gains by forging one, so the whole hash is not needed.
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _drop(values: dict[str, Any], names: Sequence[str]) -> None:
    """Remove settings by name from nested values, those of a part as `part.name`."""
    for place in names:
        part, _, name = place.rpartition(".")
        ((values.get(part) or {}) if part else values).pop(name, None)
