"""What a model and a table were made of: one hash of texts, settings and weights."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from heedmap.settings import FREE, RunSettings

# Where things are says nothing of what they are: texts, weights and vectors are known by their hashes.
PLACES = ("data.source", "model.source", "train.base", "train.vectors")


def weights_hash(tensors: Mapping[str, Tensor], words: Sequence[str] = ()) -> str:
    """A hash of a model's parameters, and of the words that its embedding knows: the same give the same."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(
            tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        )
    if words:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()[:16]


def identity(settings: RunSettings, weights: str, classes: Sequence[str]) -> str:
    """A hash of all that a run's numbers depend on, wherever it stands."""
    values = settings.model_dump(mode="json", exclude_defaults=True)
    for place in (*PLACES, *FREE):
        part, name = place.split(".")
        values.get(part, {}).pop(name, None)
    made_of = json.dumps([values, weights, list(classes)], sort_keys=True)
    return hashlib.sha256(made_of.encode()).hexdigest()[:16]
