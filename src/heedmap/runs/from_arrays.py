"""Make a run of arrays: attention weights of any framework, and what they weigh."""

from collections.abc import Sequence
from itertools import compress
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.array_files import read_arrays
from heedmap.data.corpus import UNKNOWN, Corpus, Split
from heedmap.data.foreign_arrays import as_floats, as_numpy, each
from heedmap.data.padding import Mask, without_padding
from heedmap.errors import InputError, KindError
from heedmap.files.naming import kind_of
from heedmap.models.arrays import ArraysModel, Predict, Reader
from heedmap.nouns import INSTANCES
from heedmap.runs.array_instances import (
    TOLERANCE,
    Instances,
    instances_of,
    largest_difference,
    probabilities_of,
)
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.stored_arrays import arrays_hash, keep_run
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ArraysSettings
from heedmap.settings.run import RunSettings

SOURCE = "arrays in memory"
AT_ONCE = 1024  # instances that the user's function is given at a time


def from_arrays(
    attention: Any,
    *,
    values: Any = None,
    readouts: Any = None,
    weight: Any = None,
    bias: Any = None,
    lengths: Any = None,
    mask: Any = None,
    items: Sequence[Sequence[str]] | None = None,
    labels: Any = None,
    classes: Sequence[str] | None = None,
    unit: str | None = None,
    predictions: Any = None,
    predict: Predict | None = None,
    source: str = SOURCE,
    out: Out | None = None,
    overwrite: bool = False,
) -> Run:
    """Make a run of the attention of any model, from arrays, for `heedmap.audit`.

    The prediction of an instance is softmax(Σ_k Σ_t α[k, t] R[k, t] + b), where R[k, t] is what item t says for
    each class: given as `readouts`, or W h[k, t] of its state h (`values`) and the head (`weight`, `bias`).
    One output per instance is a sigmoid's z, and becomes two classes with the logits (0, z); with a `unit` it
    is a number as it is.

    >>> import numpy as np, heedmap as hm
    >>> states = [np.eye(3), 2 * np.eye(3)[:2]]
    >>> run = hm.from_arrays([[.5, .25, .25], [.9, .1]], values=states, weight=[[2., -1., 0.]])
    >>> hm.audit(run, progress=False)["permutation"].shape[0]
    2

    Arrays are lists, NumPy arrays, or tensors of torch, JAX or TensorFlow: a list with one per instance, or one
    array by its first axis. Weights that do not sum to 1 are scaled to it, and what their items say by their
    sum: every prediction stays as it is, and other weights have the same sum.

    Args:
        attention: weights (T,) of each instance, or rows of them (K, T); none below 0. Instances of no items
            are left out.
        values: states (T, D) of its items, or (K, T, D).
        readouts: instead of values, what its items say per class: (T, C) or (K, T, C).
        weight: the linear head (C, D), or (C, K·D) if each row of weights has its own part of it.
        bias: (C,) [0].
        lengths: how many items each instance has, where padding follows them up to one size (B, T).
        mask: instead, 1 for each item and 0 for padding (B, T); NumPy masked arrays hide it.
        items: the names of its items, such as its words [17:1, 17:2, ... of instance 17]. Where
            instances of other arrays have the same names, their numbers are put before them.
        labels: the right class of each instance, by its name or number, if they are known.
        classes: the names of the classes [0, 1, ...].
        unit: what the one output counts, such as stars: it is a number, and labels, predictions and what
            `predict` returns are numbers, one per instance.
        predictions: the model's own probabilities (B, C), or (B,) of the second of two classes: the arrays are
            checked against them, and the largest difference is reported.
        predict: a function of a list of instances, each a list of items' names, that returns their
            probabilities (B, C) and their weights, as in `attention`. With it, questions are asked that read
            changed input again.
        source: what reports call the data.
        out: a run folder to keep the arrays and the audit in. The function `predict` is not kept: to audit on,
            make the run again.
        overwrite: replace a different run in `out` instead of refusing.

    Raises:
        InputError: what was expected and what came, with the instance; predictions that the arrays do not give.
    """
    if unit is not None and (not isinstance(unit, str) or not unit.strip()):
        raise InputError(
            f"unit: expected what the model's number counts, such as 'mm', got {unit!r:.60}"
        )
    if unit is not None and classes is not None:
        raise InputError(
            "unit: expected what the model's number counts, and no classes, got classes too; leave one out"
        )
    arrays = {"attention": attention, "values": values, "readouts": readouts}
    parts, masks, notes = without_padding(arrays, lengths, mask)
    attention, values, readouts = map(parts.get, arrays)
    instances, numbers = instances_of(
        attention, values, readouts, weight, bias, is_number=unit is not None
    )
    count = len(masks)
    names = _class_names(classes, len(instances.bias)) if unit is None else [unit.strip()]
    tokens = _item_names(items, instances, numbers, masks)
    difference = None
    shares = instances.probabilities()
    if predictions is not None:
        expected = probabilities_of(predictions, "predictions", count, len(names))[numbers]
        difference = largest_difference(shares, expected, numbers.tolist(), "predictions")
        notes.append(
            f"the arrays give the predictions of the model: no {'probability' if unit is None else 'number'} "
            "differs by more than "
            f"{difference:.1g}"
        )
    else:
        logits = np.concatenate([of_items.ravel() for of_items in instances.relevance])
        is_share = (logits >= 0).all() and (logits <= 1).all() and (logits % 1).any()
        if is_share and not instances.bias.any() and unit is None and predict is None:
            raise InputError(
                "readouts: expected logits, which a sigmoid or softmax reads, got numbers that all lie in 0 to "
                "1, as probabilities do; give logits, or predictions too if these are logits"
            )
        notes.append("no predictions of the model were given to check the arrays against")
    if instances.scaled:
        notes.append(
            f"the weights of {instances.scaled} of {len(numbers)} instances do not sum to 1: they were scaled "
            "to it, and what their items say by their sum, so that every prediction is the same"
        )
    if predict is not None and items is None:
        raise InputError("predict: expected items too, the names by which it reads them again")
    reader = None if predict is None else _reader(predict, len(names))
    if predict is not None:
        _check_reader(predict, tokens, shares, instances, numbers)
    else:
        tokens = _name_others(tokens, instances, numbers)
    weights, relevance, (offset,) = (
        [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]
        for arrays in (instances.attention, instances.relevance, [instances.bias])
    )
    settings = ArraysSettings(
        rows=instances.rows,
        reading=predict is not None,
        weights=arrays_hash(offset, weights, relevance),
    )
    model = ArraysModel(settings, names, weights, relevance, offset, reader)
    amounts = None if unit is None or labels is None else _amounts(labels, count)[numbers]
    is_class = _labels(None if unit else labels, names, count, named=classes is not None)[numbers]
    split = Split(
        [f"index {i}" for i in numbers.tolist()],
        tokens,
        is_class,
        numbers=np.arange(len(numbers)),
        amounts=amounts,
    )
    data = DataSettings.of(
        source=source, training=False, nouns=INSTANCES, amounts=amounts is not None
    )
    empty = count - len(numbers)
    left_out = {"no items": empty} if empty else {}
    corpus = Corpus("arrays", names, {"test": split}, data, left_out, notes=notes)
    run_settings = RunSettings(fingerprint=corpus.fingerprint(), data=data, model=settings)
    facts: dict[str, object] = {} if difference is None else {"prediction_difference": difference}
    run = Run(run_settings, corpus, model, facts=facts)
    return run if out is None else keep_run(run, out, overwrite)


def from_array_files(folder: str | Path, out: Out | None = None, overwrite: bool = False) -> Run:
    """Make a run of the arrays in a folder's files (`heedmap audit --arrays`); see `data/array_files`.

    Raises:
        InputError: as `read_arrays` and `from_arrays`; the line names the folder.
    """
    arrays = read_arrays(Path(folder))
    try:
        run = from_arrays(**arrays, source=str(folder))
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    return run if out is None else keep_run(run, out, overwrite)


def _class_names(classes: Sequence[str] | None, count: int) -> list[str]:
    if classes is None:
        return [str(number) for number in range(count)]
    if isinstance(classes, str | dict) or not hasattr(classes, "__iter__"):
        raise KindError(f"classes: expected a list of names, got {kind_of(classes)}")
    names = [str(name) for name in classes]
    if len(names) != count or len(set(names)) != count:
        raise InputError(
            f"classes: expected {count} different names, as many as the outputs tell apart, got {len(names)}"
            f"{'' if len(names) != count else ', some of them twice'}"
        )
    return names


def _item_names(
    items: Any, instances: Instances, numbers: NDArray[np.int64], masks: list[Mask]
) -> list[list[str]]:
    """Return the names of each instance's items. Instances with the same names count as one observation."""
    sizes = [weights.shape[-1] for weights in instances.attention]
    if items is None:
        each_size = zip(numbers.tolist(), sizes, strict=True)
        return [[f"{i}:{t + 1}" for t in range(size)] for i, size in each_size]
    if isinstance(items, str) or len(items) != len(masks):
        raise InputError(f"items: expected a list of names for each of {len(masks)} instances")
    tokens = []
    for i, size in zip(numbers.tolist(), sizes, strict=True):
        names = items[i]
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise KindError(f"items[{i}]: expected a list of names, got {kind_of(names)}")
        if len(names) == len(masks[i]):
            names = list(compress(names, masks[i]))
        if len(names) != size:
            raise InputError(
                f"items[{i}]: expected {size} names, as many as there are weights, got {len(names)}"
            )
        tokens.append([name.strip() for name in names])
    return tokens


def _name_others(
    tokens: list[list[str]], instances: Instances, numbers: NDArray[np.int64]
) -> list[list[str]]:
    """Put the number of each instance before its items' names, if some of other arrays have the same names."""
    contents: dict[tuple[str, ...], bytes] = {}
    for names, *arrays in zip(tokens, instances.attention, instances.relevance, strict=True):
        content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
        if contents.setdefault(tuple(names), content) != content:
            numbered = zip(numbers.tolist(), tokens, strict=True)
            return [[f"{i}:{name}" for name in names] for i, names in numbered]
    return tokens


def _labels(labels: Any, classes: list[str], count: int, *, named: bool) -> NDArray[np.int64]:
    """Return the class of each instance; UNKNOWN where there are no labels. `named`: classes were given."""
    if labels is None:
        return np.full(count, UNKNOWN)
    parts = list(labels) if isinstance(labels, list | tuple) else np.ma.asarray(labels).tolist()
    if len(parts) != count:
        raise InputError(f"labels: expected {count}, one per instance, got {len(parts)}")
    result = np.empty(count, dtype=np.int64)
    for i, label in enumerate(parts):
        if str(label) in classes:
            result[i] = classes.index(str(label))
        elif isinstance(label, Integral) and 0 <= int(label) < len(classes):
            result[i] = int(label)
        else:
            is_name = isinstance(label, str) and not named
            raise InputError(
                f"labels[{i}]: expected one of {', '.join(classes)}, or its number, got {label!r}"
                + ("; give classes, the names of the outputs in their order" if is_name else "")
            )
    return result


def _amounts(labels: Any, count: int) -> NDArray[np.float64]:
    """Return the right number of each instance."""
    amounts = as_floats(labels, "labels").astype(np.float64)
    if amounts.shape != (count,):
        raise InputError(f"labels: expected {count} numbers, one per instance, got {amounts.shape}")
    return amounts


def _reader(predict: Predict, classes: int) -> Reader:
    """Return a function from instances to logits, the logarithms of their probabilities."""

    def read(texts: list[list[str]]) -> Float[Tensor, "B C"]:
        shares, _ = _predicted(predict, texts, classes)
        if classes == 1:
            return torch.from_numpy(shares)
        # A probability of 0 counts as the least above 0 that float32 has.
        return torch.from_numpy(np.log(np.maximum(shares, np.finfo(np.float32).tiny)))

    return read


def _predicted(
    predict: Predict, texts: list[list[str]], classes: int
) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the probabilities (B, C) and the weights that the user's function gives."""
    answer = predict(texts)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise KindError(
            f"predict: expected a pair (probabilities, attention), got {kind_of(answer)}"
        )
    shares = probabilities_of(answer[0], "predict's probabilities", len(texts), classes)
    return shares, each(answer[1], "predict's attention", len(texts))


def _check_reader(
    predict: Predict,
    tokens: list[list[str]],
    shares: NDArray[np.float64],
    instances: Instances,
    numbers: NDArray[np.int64],
) -> None:
    """Raise InputError if the user's function does not give the arrays of the instances as they are."""
    for start in range(0, len(tokens), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        read, attention = _predicted(predict, tokens[part], len(instances.bias))
        largest_difference(shares[part], read, numbers[part].tolist(), "predict")
        for i, weights, again in zip(
            numbers[part].tolist(), instances.attention[part], attention, strict=True
        ):
            rows = np.atleast_2d(as_numpy(again, f"predict's attention[{i}]")).astype(np.float64)
            if rows.shape != weights.shape:
                raise InputError(
                    f"predict's attention[{i}]: expected the shape {weights.shape}, got {rows.shape}"
                )
            rows /= np.maximum(rows.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
            if abs(rows - weights).max() > TOLERANCE:
                raise InputError(
                    f"predict's attention[{i}]: expected the given weights within {TOLERANCE:g}, got others "
                    f"(by {abs(rows - weights).max():.3g})"
                )
