"""Open weights of published models of bags as models of our own: CLAM (Lu et al. 2021) and torchmil's ABMIL.

CLAM_SB and CLAM_MB:

    attention_net.0                                          W, b of the items' encoder, ReLU
    attention_net.N.attention_a.0, attention_b.0, attention_c    V, U and w of the gated score
    attention_net.N.module.0, module.M                       V and w of the additive score
    classifiers  or  classifiers.0, classifiers.1, ...       one read-out of one map, or one for each map
    instance_classifiers...                                  of the training alone: not read

ABMIL of torchmil without a feature extractor:

    pool.fc1, pool.fc_gated, pool.fc2, classifier            V, U, w and the read-out

A bias of w adds the same to all scores, which no softmax shows: it is left out. Dropout is none when a model
predicts. Names may begin with `module.` or `model.`, as wrappers of training write them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.streams import first_line
from heedmap.errors import InputError
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import MLP
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.models.scores import Additive, Gated
from heedmap.settings.models import ModelSettings
from heedmap.terminal.output import some_of

EXPECTED = "the names of CLAM (attention_net..., classifiers...) or of ABMIL (pool.fc1, pool.fc2, classifier)"
OURS = {
    r"attention_net\.0": "encoder",
    r"attention_net\.\d+\.attention_a\.0": "hidden",
    r"attention_net\.\d+\.attention_b\.0": "gate",
    r"attention_net\.\d+\.attention_c": "vector",
    r"attention_net\.\d+\.module\.0": "hidden",
    r"attention_net\.\d+\.module\.[1-9]": "vector",
    r"classifiers": "decoder",
    r"classifiers\.\d+": "decoder",
    r"pool\.fc1(\.module)?": "hidden",
    r"pool\.fc_gated(\.module)?": "gate",
    r"pool\.fc2": "vector",
    r"classifier(\.module)?": "decoder",
}
NOT_READ = r"instance_classifiers\."


def read_state(source: str | Path | Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file, or of a mapping, in float32.

    Raises:
        InputError: another kind of file, one that cannot be read, or what is no tensor of finite numbers.
    """
    if isinstance(source, Mapping):
        tensors = dict(source)
    else:
        path = Path(source)
        if path.suffix != ".safetensors":
            raise InputError(
                f"{path}: expected weights in a .safetensors file; a pickled file could run any code, and is "
                "not opened: convert it, if you trust it, with safetensors.torch.save_file(torch.load(path, "
                "weights_only=True), name)"
            )
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path}: cannot be read ({first_line(error)})") from error
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or not tensor.isfinite().all():
            raise InputError(f"{name}: expected a tensor of finite numbers")
    return {
        re.sub(r"^(module\.|model\.)", "", n): t.detach().cpu().float() for n, t in tensors.items()
    }


def from_state(
    state: Mapping[str, Tensor], vocabulary: ItemVocabulary, classes: Sequence[str] | None
) -> TextClassifier | PerClassClassifier:
    """Return our model with the weights of CLAM or torchmil's ABMIL, for bags of a vocabulary.

    Raises:
        InputError: other names, shapes that do not fit each other or the bags, or another number of classes.
    """
    parts, of_classes = _parts(state)
    for part, needed in {"hidden": "V", "vector": "w", "decoder": "the read-out"}.items():
        if f"{part}.weight" not in parts:
            raise InputError(
                f"weights: expected {EXPECTED}, got no {needed} among {some_of(sorted(state))}"
            )
    hidden, vector, decoder = (parts[f"{n}.weight"] for n in ("hidden", "vector", "decoder"))
    encoder = parts.get("encoder.weight")
    width = (hidden if encoder is None else encoder).shape[-1]
    stored = vocabulary.vectors.width
    if width != stored:
        raise InputError(
            f"weights: expected a model of vectors of {stored} numbers, as the bags have, got one of {width}"
        )
    outputs = len(decoder)
    names = [str(i) for i in range(max(outputs, 2))] if classes is None else list(classes)
    if len(names) != max(outputs, 2) or len(set(names)) != len(names):
        raise InputError(
            f"classes: expected {max(outputs, 2)} different names, as many as the model tells apart, got "
            f"{len(names)}"
        )
    settings = ModelSettings(
        encoder="none" if encoder is None else "mlp",
        score="gated" if "gate.weight" in parts else "additive",
        maps="per-class" if of_classes else "shared",
        embedding_size=width,
        hidden_size=max(4, width if encoder is None else len(encoder)),
        sigmoid=outputs == 1,
    )
    kind = PerClassClassifier if of_classes else TextClassifier
    model = kind(settings, vocabulary, names)
    size = width if encoder is None else len(encoder)
    score = _score(settings.score, size, len(hidden), len(vector))
    model.score, model.decoder = score, nn.Linear(size, outputs)
    targets = {"hidden": score.hidden, "vector": score.vector, "decoder": model.decoder}
    if isinstance(score, Gated):
        targets["gate"] = score.gate
    if isinstance(model.encoder, MLP):
        model.encoder.projection, model.encoder.size = nn.Linear(width, size), size
        targets["encoder"] = model.encoder.projection
    for part, module in targets.items():
        _fill(part, module, parts)
    return model.eval().requires_grad_(False)


def _score(name: str, size: int, hidden: int, rows: int) -> Additive:
    """Return a score whose hidden layer has any size."""
    score = Gated(size, rows) if name == "gated" else Additive(size, rows)
    score.hidden, score.vector = nn.Linear(size, hidden), nn.Linear(hidden, rows, bias=False)
    if isinstance(score, Gated):
        score.gate = nn.Linear(size, hidden)
    return score


def _fill(part: str, module: nn.Module, parts: Mapping[str, Tensor]) -> None:
    for name, parameter in module.named_parameters():
        tensor = parts.get(f"{part}.{name}")
        if tensor is None and name == "bias":
            tensor = torch.zeros_like(parameter)
        if tensor is None or tensor.shape != parameter.shape:
            shape = "none" if tensor is None else tuple(tensor.shape)
            raise InputError(
                f"weights: expected a {name} of the {part} of the shape {tuple(parameter.shape)}, as the other "
                f"weights have it, got {shape}"
            )
        with torch.no_grad():
            parameter.copy_(tensor)


def _parts(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], bool]:
    """Return the tensors by our names, and whether each class has a map of its own."""
    parts: dict[str, Tensor] = {}
    of_classes: dict[str, dict[int, Tensor]] = {"weight": {}, "bias": {}}
    for name, tensor in state.items():
        if re.match(NOT_READ, name):
            continue
        module, _, kind = name.rpartition(".")
        part = next((ours for theirs, ours in OURS.items() if re.fullmatch(theirs, module)), None)
        if part is None or kind not in ("weight", "bias"):
            raise InputError(f"weights: expected {EXPECTED}, got {name}")
        if re.fullmatch(r"classifiers\.\d+", module):
            of_classes[kind][int(module.rpartition(".")[2])] = tensor
        else:
            parts[f"{part}.{kind}"] = tensor
    if of_classes["weight"]:
        for kind, tensors in of_classes.items():
            parts[f"decoder.{kind}"] = torch.cat([tensors[i] for i in sorted(tensors)])
    return parts, bool(of_classes["weight"])
