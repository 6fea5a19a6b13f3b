"""Load weights in the layout of the code that Jain & Wallace (2019) released.

Layout and computation are those of their text classifiers: one LSTM, CNN or average encoder, additive
("tanh") or dot score, one sigmoid output. Names and shapes (V words, E embedding, d hidden, h state size,
which is 2d for the LSTM, else d):

    encoder.embedding.weight                       (V, E), row 0 zero
    encoder.rnn.weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, each also with _reverse
                                                   (4d, E), (4d, d), (4d,), (4d,)
    encoder.convolutions.{0,1,2,3}.weight, .bias   (d / 4, E, k), (d / 4,) for k = 1, 3, 5, 7
    encoder.projection.weight, .bias               (d, E), (d,)
    decoder.attention.attn1.weight, .bias          additive: (h / 2, h), (h / 2,); dot: (1, h), no bias
    decoder.attention.attn2.weight                 additive alone: (1, h / 2)
    decoder.linear_1.weight, .bias                 (1, h), (1,)
"""

import json
import operator
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heedmap.data.streams import check_archive
from heedmap.data.vocabulary import PAD, SPECIAL, Vocabulary
from heedmap.errors import InputError
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import KERNELS
from heedmap.settings.models import ModelSettings
from heedmap.terminal.output import some_of

Arrays = Mapping[str, Tensor | NDArray[Any]]

EMBEDDING, OUTPUT = "encoder.embedding.weight", "decoder.linear_1.weight"
NAMED = 6  # weights or words in an error
FAMILIES = {"rnn": "lstm", "convolutions": "cnn", "projection": "average"}
# The array from which the hidden size is read, and its shape.
SIZE_SOURCES = {
    "lstm": ("encoder.rnn.weight_hh_l0", ("4 hidden", "hidden")),
    "cnn": ("encoder.convolutions.0.weight", ("hidden / 4", "embedding", "1")),
    "average": ("encoder.projection.weight", ("hidden", "embedding")),
}


def from_jain_wallace(
    weights: str | Path | Arrays,
    vocabulary: str | Path | Mapping[str, SupportsIndex],
    classes: Sequence[str] = ("0", "1"),
) -> TextClassifier:
    """Build the model that computes what the original computes with these weights.

    α = softmax(score(h)) over the text's words, logit = w · Σ_t α_t h_t + b (Jain & Wallace 2019, section
    2): attention, predictions, gradients and leave-one-out are the original's to rounding. Encoder, score
    and sizes are read from names and shapes (see the head of `heedmap.models.released`). Texts are
    lists of words; start and end marks are added here, as there.

    The original stores its weights in two pickles, and pickles are never read here. If you trust them,
    convert them once:

        encoder, decoder = (torch.load(name, "cpu", weights_only=True) for name in ("enc.th", "dec.th"))
        both = {f"encoder.{name}": values for name, values in encoder.items()}
        both |= {f"decoder.{name}": values for name, values in decoder.items()}
        safetensors.torch.save_file(both, "sst.safetensors")

    Such a model can be audited on any labelled texts:

        model = from_jain_wallace("sst.safetensors", "words.json")
        data = DataSettings(source="sst-test.csv", tokenizer="spaces", training=False)
        corpus = load_corpus(data, model.classes)
        settings = RunSettings(fingerprint=corpus.fingerprint(), data=data, model=model.settings)
        hm.audit(Run(settings, corpus, model)).save("sst.html")

    Args:
        weights: a .npz or .safetensors file, or arrays or tensors by name; floating-point, read as float32.
        vocabulary: the number of every word, or a JSON file of it. 0 to 3 are padding, the unknown word,
            start and end of a text, whatever their names; words are numbered from 4 up without a gap.
        classes: the classes for outputs below and above ½.

    Raises:
        InputError: a file that cannot be read; a name that is missing or not of the layout; an array of
            another shape or kind, or with numbers that are not finite; more than one output; padding
            that has an embedding; numbers of words that do not fit the embeddings.
    """
    if isinstance(classes, str) or len(classes) != 2 or classes[0] == classes[1]:
        raise InputError(
            f"classes: expected two different names for the one output, got {classes!r}"
        )
    tensors = {name: _tensor(name, values) for name, values in _arrays(weights).items()}
    encoder, score = _kinds(tensors)
    names = _names(encoder, score)
    if missing := names.keys() - tensors.keys():
        raise InputError(
            f"weights: {some_of(sorted(missing), NAMED)} missing; the other names are those of a model with "
            f"{encoder} encoder and {score} score"
        )
    if unexpected := tensors.keys() - names.keys():
        raise InputError(
            f"weights: {some_of(sorted(unexpected), NAMED)} not expected in a model with {encoder} encoder "
            f"and {score} score; leave out what is not of this model"
        )
    settings = _settings(tensors, encoder, score)
    words = _words(vocabulary, len(tensors[EMBEDDING]))
    # Shapes only: no random numbers, and no memory for sizes that are not yet checked.
    with torch.device("meta"):
        model = TextClassifier(settings, Vocabulary(words), classes)
    expected = model.state_dict()
    shapes = {name: expected[ours].shape for name, ours in names.items()}
    _check_shapes(tensors, shapes, SIZE_SOURCES[encoder][0])
    if tensors[EMBEDDING][PAD].any():
        raise InputError(
            f"{EMBEDDING}: expected zeros in row 0, the padding's, got other numbers, with which a text's "
            "prediction would depend on the longest text beside it; set the row to 0"
        )
    model.load_state_dict({ours: tensors[name] for name, ours in names.items()}, assign=True)
    return model.eval().requires_grad_(False)


def _kinds(names: Collection[str]) -> tuple[str, str]:
    """Find encoder and score from the names alone."""
    encoders = [
        kind
        for family, kind in FAMILIES.items()
        if any(name.startswith(f"encoder.{family}.") for name in names)
    ]
    if len(encoders) != 1:
        raise InputError(
            "weights: expected the names of one encoder (encoder.rnn…, encoder.convolutions… or "
            f"encoder.projection…), got {some_of(sorted(names), NAMED) or 'none'}"
        )
    additive = {"decoder.attention.attn1.bias", "decoder.attention.attn2.weight"}
    return encoders[0], "additive" if additive & set(names) else "dot"


def _names(encoder: str, score: str) -> dict[str, str]:
    """Map their names to ours."""
    names = {EMBEDDING: "embedding.weight"}
    if encoder == "lstm":
        for part in ("weight_hh_l0", "weight_ih_l0", "bias_ih_l0", "bias_hh_l0"):
            names[f"encoder.rnn.{part}"] = f"encoder.forward_lstm.{part}"
            names[f"encoder.rnn.{part}_reverse"] = f"encoder.backward_lstm.{part}"
    elif encoder == "cnn":
        convolutions = [f"encoder.convolutions.{i}" for i in range(len(KERNELS))]
        names |= {
            f"{name}.{part}": f"{name}.{part}"
            for name in convolutions
            for part in ("weight", "bias")
        }
    else:
        names |= {
            f"encoder.projection.{part}": f"encoder.projection.{part}"
            for part in ("weight", "bias")
        }
    inner, outer = "decoder.attention.attn1", "decoder.attention.attn2"
    if score == "additive":
        names |= {f"{inner}.{part}": f"score.hidden.{part}" for part in ("weight", "bias")}
        names[f"{outer}.weight"] = "score.vector.weight"
    else:
        names[f"{inner}.weight"] = "score.vector.weight"
    return names | {OUTPUT: "decoder.weight", "decoder.linear_1.bias": "decoder.bias"}


def _settings(tensors: Mapping[str, Tensor], encoder: str, score: str) -> ModelSettings:
    source, shape = SIZE_SOURCES[encoder]
    ranks = {EMBEDDING: ("words", "embedding"), source: shape, OUTPUT: ("1", "state")}
    for name, rank in ranks.items():
        if tensors[name].dim() != len(rank):
            raise InputError(
                f"{name}: expected shape ({', '.join(rank)}), got {tuple(tensors[name].shape)}"
            )
    if (outputs := len(tensors[OUTPUT])) != 1:
        raise InputError(
            f"{OUTPUT}: expected one output, a sigmoid for two classes, got {outputs}: a model of several "
            "labels a text cannot be read; give one label's row of it and of decoder.linear_1.bias"
        )
    hidden = {
        "lstm": tensors[source].shape[-1],
        "cnn": len(KERNELS) * len(tensors[source]),
        "average": len(tensors[source]),
    }[encoder]
    return ModelSettings.of(
        encoder=encoder,
        score=score,
        normaliser="softmax",
        embedding_size=tensors[EMBEDDING].shape[1],
        hidden_size=hidden,
    )


def _check_shapes(
    tensors: Mapping[str, Tensor], expected: Mapping[str, torch.Size], source: str
) -> None:
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise InputError(
                f"{name}: expected shape {tuple(shape)}, got {tuple(tensors[name].shape)} (sizes are read from "
                f"{EMBEDDING} and {source})"
            )


def _words(vocabulary: str | Path | Mapping[str, SupportsIndex], rows: int) -> list[str]:
    """Return the words from 4 up, in the order of their numbers."""
    word_at: dict[int, str] = {}
    for word, value in _numbers(vocabulary).items():
        try:
            number = operator.index(value)
        except TypeError:
            raise InputError(
                f"vocabulary: expected a whole number for {word!r}, got {value!r}"
            ) from None
        if not 0 <= number < rows:
            raise InputError(
                f"vocabulary: expected numbers from 0 to {rows - 1}, as many as there are embeddings, "
                f"got {number} for {word!r}"
            )
        if (earlier_word := word_at.setdefault(number, word)) != word:
            raise InputError(
                f"vocabulary: {earlier_word!r} and {word!r} both have the number {number}"
            )
    if gaps := [number for number in range(rows) if number not in word_at]:
        raise InputError(
            f"vocabulary: expected a word for every embedding, 0 to {rows - 1} (0 to 3 are padding, unknown "
            f"word, start and end), got none for {some_of(gaps, NAMED)}"
        )
    return [word_at[number] for number in range(len(SPECIAL), rows)]


def _numbers(vocabulary: str | Path | Mapping[str, SupportsIndex]) -> Mapping[str, Any]:
    if isinstance(vocabulary, Mapping):
        return vocabulary
    if not isinstance(vocabulary, str | Path):
        raise InputError(
            f"vocabulary: expected a JSON file, or a number for every word, got {type(vocabulary).__name__}"
        )
    path = Path(vocabulary)
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read as a JSON file of words and their numbers ({error})"
        ) from error
    if not isinstance(numbers, dict):
        raise InputError(
            f'{path}: expected a JSON object, {{"word": number, …}}, got {type(numbers).__name__}'
        )
    return numbers


def _arrays(weights: str | Path | Arrays) -> Mapping[str, object]:
    if isinstance(weights, Mapping):
        return weights
    if not isinstance(weights, str | Path):
        raise InputError(
            f"weights: expected a file, or arrays by name, got {type(weights).__name__}"
        )
    path = Path(weights)
    if path.suffix not in (".npz", ".safetensors"):
        raise InputError(
            f"{path}: expected a .npz or .safetensors file; a pickle (.th, .pt, .pkl) is never read: write "
            "its arrays anew with safetensors.torch.save_file"
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a .npz or .safetensors file of weights")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            check_archive(path, arrays.zip)
            return dict(arrays)
    except InputError:
        raise
    except (OSError, SafetensorError, zipfile.BadZipFile, zlib.error, *_NOT_NPZ) as error:
        raise InputError(
            f"{path}: expected arrays as {path.suffix} keeps them, got a file that is damaged or of another "
            "kind (a pickle is never opened); write it again with numpy.savez or safetensors.torch.save_file"
        ) from error


# What `np.load` raises on a file of pickled objects, a single array, or half an archive.
_NOT_NPZ = (ValueError, TypeError, AttributeError, EOFError, KeyError)


def _tensor(name: str, values: object) -> Tensor:
    """Copy an array to a float32 tensor."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        tensor = torch.from_numpy(np.array(values, dtype=np.float64))
    elif isinstance(values, Tensor) and values.is_floating_point():
        tensor = values.detach().cpu()
    else:
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{name}: expected an array of floating-point numbers, got {kind}")
    tensor = tensor.to(torch.float32).clone(memory_format=torch.contiguous_format)
    if not tensor.isfinite().all():
        raise InputError(
            f"{name}: expected finite numbers, got some that are infinite or not a number"
        )
    return tensor
