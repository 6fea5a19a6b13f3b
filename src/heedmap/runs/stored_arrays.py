"""Keep the arrays of a run in its folder, in arrays/, and open it again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from heedmap.data.corpus import Corpus, Split
from heedmap.errors import InputError
from heedmap.files.identity import weights_hash
from heedmap.models.arrays import ArraysModel
from heedmap.runs.folder import RunFolder
from heedmap.runs.model_files import damaged
from heedmap.runs.occupancy import holds_another, relocate
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.settings.models import ArraysSettings
from heedmap.settings.run import RunSettings

TENSORS, INSTANCES = "arrays.safetensors", "instances.json"


def arrays_hash(bias: Tensor, attention: Sequence[Tensor], relevance: Sequence[Tensor]) -> str:
    """Return a hash of all arrays of a model."""
    tensors = [bias, *attention, *relevance]
    return weights_hash({str(i): tensor for i, tensor in enumerate(tensors)})


def keep_run(run: Run, out: Out, overwrite: bool) -> Run:
    """Keep a run of arrays in a folder; the same run there stays, with its audit.

    Raises:
        InputError: another run is there and `overwrite` is False, or the folder cannot be written.
    """
    with RunFolder.locked(out, run.settings) as folder:
        is_other = holds_another(folder, run.settings, overwrite)
        if not is_other and folder.is_begun():
            relocate(folder, run.settings)
        else:
            folder.begin(run.settings, resume=False)
        write_arrays(folder, run)
        folder.tidy()
        return replace(run, folder=folder.path)


def write_arrays(folder: RunFolder, run: Run) -> None:
    """Write the arrays of a run as one tensor each for the items of all instances, and the names of these."""
    model, corpus = run.model, run.corpus
    assert isinstance(model, ArraysModel)
    split = corpus.splits["test"]
    instances = {
        "classes": model.classes,
        "keys": list(split.keys),
        "items": list(split.tokens),
        "labels": split.labels.tolist(),
        **({} if split.amounts is None else {"amounts": split.amounts.tolist()}),
        "left_out": corpus.left_out,
        "notes": corpus.notes,
        "facts": run.facts,
    }
    lengths = [weights.shape[1] for weights in model.attention]
    tensors = {
        "attention": torch.cat([*model.attention], dim=1),
        "relevance": torch.cat([*model.relevance], dim=1),
        "bias": model.bias,
        "lengths": torch.tensor(lengths),
    }
    folder.manifest.write(folder.arrays / INSTANCES, json.dumps(instances, ensure_ascii=False))
    folder.manifest.write(folder.arrays / TENSORS, save(tensors))


def open_arrays(folder: RunFolder, settings: RunSettings) -> Run:
    """Open a run of arrays from its folder.

    Raises:
        InputError: the arrays are missing or damaged, or a function read changed input again, which no folder
            can hold.
    """
    assert isinstance(settings.model, ArraysSettings)
    if settings.model.reading:
        raise InputError(
            f"{folder.path}: its questions are asked with a function that reads again, which no folder can "
            "hold; make it again, heedmap.from_arrays(..., predict=..., out=...), and audit that; "
            "card, report, export and compare need no function"
        )
    try:
        content = json.loads(folder.manifest.read(folder.arrays / INSTANCES))
        tensors = load(folder.manifest.read(folder.arrays / TENSORS))
        return _run_of(folder, settings, content, tensors)
    except InputError:
        raise
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, SafetensorError) as error:
        raise damaged(folder, error) from error


def _run_of(
    folder: RunFolder, settings: RunSettings, content: dict[str, Any], tensors: dict[str, Tensor]
) -> Run:
    """Make the run of what its files hold, and check that it is the one of the settings."""
    assert isinstance(settings.model, ArraysSettings)
    ends = [0, *tensors["lengths"].cumsum(0).tolist()]
    attention, relevance = (
        [tensors[name][:, start:end].clone() for start, end in pairwise(ends)]
        for name in ("attention", "relevance")
    )
    model = ArraysModel(settings.model, content["classes"], attention, relevance, tensors["bias"])
    split = Split(
        content["keys"],
        content["items"],
        np.array(content["labels"], dtype=np.int64),
        numbers=np.arange(len(attention)),
        amounts=np.array(content["amounts"]) if "amounts" in content else None,
    )
    corpus = Corpus(
        "arrays",
        model.classes,
        {"test": split},
        settings.data,
        content["left_out"],
        notes=content["notes"],
    )
    is_same = arrays_hash(model.bias, attention, relevance) == settings.model.weights
    if not is_same or corpus.fingerprint() != settings.fingerprint:
        raise ValueError("not the arrays that the run was made of")
    return Run(settings, corpus, model, None, folder.path, content["facts"])
