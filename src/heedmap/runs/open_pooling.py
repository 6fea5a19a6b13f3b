"""Open people's own models of bags: published layouts of weights, or a module with a pooling layer."""

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heedmap.data.bags_in_memory import IN_MEMORY, labelled_bags
from heedmap.data.in_memory import source_of
from heedmap.data.item_vectors import ItemVectors
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.load import UNLIMITED, corpus_of
from heedmap.data.selection import read_labelled
from heedmap.errors import InputError, KindError, running_model
from heedmap.files.identity import weights_hash
from heedmap.files.naming import kind_of
from heedmap.models.pooling_module import PoolingModule, Reader
from heedmap.models.pooling_states import from_state, read_state
from heedmap.models.trace import Model
from heedmap.runs.run import Run
from heedmap.settings.data import DataSettings
from heedmap.settings.models import AnyModelSettings, PoolingSettings
from heedmap.settings.run import RunSettings

PROBED = 7  # items by which a module is tried


def open_pooling(
    model: str | Path | Mapping[str, Any] | nn.Module,
    data: Any,
    *,
    labels: Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    layer: str | None = None,
    per_class: bool = False,
) -> Run:
    """Open a model of bags that was trained elsewhere, and the bags to put it on trial with.

    >>> import numpy as np, torch, heedmap as hm
    >>> class Pool(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.score, self.head = torch.nn.Linear(4, 1), torch.nn.Linear(4, 2)
    ...     def forward(self, bag):
    ...         return self.head(self.score(bag).softmax(0).T @ bag)
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(5, 4)) for _ in range(20)]
    >>> run = hm.open_pooling(Pool(), bags, layer="score")
    >>> hm.audit(run, permutations=10, progress=False)["permutation"].shape[0]
    20

    Args:
        model: a .safetensors file or a state dict in the layout of CLAM or of torchmil's ABMIL; or a module
            that maps the vectors of a bag, (T, D) or (1, T, D), to logits, alone or first of what it returns.
            One logit is a sigmoid's. A module is copied.
        data: a folder of bags or a Parquet file, as for `heedmap.load`, of which the test split is used, or all
            bags if there are no splits; or a list of arrays.
        labels: of a list of arrays, one for each, if they are known.
        classes: the names of the classes in the order of the outputs [0, 1, ...].
        layer: of a module: the name of the part that returns the scores of which a softmax makes the weights,
            such as `attention_net.3`.
        per_class: of a module: whether the rows of weights are those of the classes; the heat map is then the
            row of the predicted class, and else the mean of the rows.

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model of another kind.
    """
    if isinstance(model, nn.Module):
        if layer is None:
            raise InputError(
                "layer: expected the name of the module's part that returns the score of each item"
            )
        source: nn.Module | dict[str, torch.Tensor] = copy.deepcopy(model).eval().cpu().float()
    elif isinstance(model, str | os.PathLike | Mapping):
        if layer is not None or per_class:
            raise InputError("layer, per_class: expected for a module alone; leave them out")
        source = read_state(model)
    else:
        raise KindError(
            f"expected a module, a state dict or a .safetensors file, got {kind_of(model)}"
        )
    in_files = isinstance(data, str | os.PathLike)
    if in_files and labels is not None:
        raise InputError("labels: expected for a list of arrays alone; leave it out")
    if in_files:
        settings = DataSettings.of(source=source_of(data)[0], training=False, max_tokens=UNLIMITED)
        texts = read_labelled(settings)
    else:
        settings = DataSettings.of(**IN_MEMORY, training=False)
        texts = labelled_bags(data, labels)

    # The classes of the outputs are known when the model has read a bag, and labels are matched with them.
    vectors = texts.vectors
    if vectors is None:
        raise InputError(f"{settings.source}: expected bags of vectors, got texts")
    opened: tuple[Model, AnyModelSettings]
    if isinstance(source, nn.Module):
        assert layer is not None
        opened = _of_module(source, layer, per_class, vectors, classes)
    else:
        own = from_state(source, ItemVocabulary(vectors), classes)
        opened = own, own.settings
    corpus = corpus_of(texts, settings, opened[0].classes)
    corpus.warn()
    return Run(
        RunSettings(fingerprint=corpus.fingerprint(), data=corpus.settings, model=opened[1]),
        corpus,
        opened[0],
    )


def _of_module(
    module: nn.Module,
    layer: str,
    per_class: bool,
    vectors: ItemVectors,
    classes: Sequence[str] | None,
) -> tuple[PoolingModule, PoolingSettings]:
    module.requires_grad_(False)
    probe = vectors.vectors(np.arange(min(PROBED, int(vectors.starts[-1]))))
    with running_model(type(module).__name__, "opening the model"):
        reader = Reader(module, layer, torch.from_numpy(probe))
    names = [str(i) for i in range(reader.outputs)] if classes is None else list(classes)
    if len(names) != reader.outputs or len(set(names)) != len(names):
        raise InputError(
            f"classes: expected {reader.outputs} different names, as many as the outputs tell apart, got "
            f"{len(names)}"
        )
    if per_class and reader.rows != len(names):
        raise InputError(
            f"per_class: expected {len(names)} rows of weights, one for each class, got {reader.rows}"
        )
    settings = PoolingSettings(
        module=type(module).__name__,
        layer=layer,
        rows=reader.rows,
        per_class=per_class,
        weights=weights_hash(module.state_dict()),
    )
    return PoolingModule(settings, module, ItemVocabulary(vectors), names, reader), settings
