"""What each head attends to, how broadly, and which heads are alike."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.word_attention import TextAttention, read_attention
from heedmap.importance.head_profile import Marks, head_distances, masses, row_entropies
from heedmap.papers.clark.texts import SEGMENT
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import at

MARKS = (".", ",")  # the paper's punctuation
# The paper's labels: an entropy of 3.8 nats is so much of ln 128.
BROAD = 3.8 / float(np.log(SEGMENT))
NEXT, SPECIAL = 0.5, 0.6
LABELS = {"next": NEXT, "previous": NEXT, "cls": SPECIAL, "sep": SPECIAL, "punctuation": SPECIAL}
MOST_CLUSTERS = 8


def profile_rows(model: TransformerClassifier, texts: Sequence[Sequence[str]]) -> list[Row]:
    """Describe every head by means over texts, and uniform attention on the same texts."""
    of_heads: dict[str, list[NDArray[np.float64]]] = {}
    of_uniform: dict[str, list[NDArray[np.float64]]] = {}
    rows_read, count = 0, model.heads * len(model.calls)
    distances = np.zeros((count, count))
    for number, pieces in enumerate(texts):
        at(number, len(texts), "texts")
        text = read_attention(model, pieces)
        weights = text.weights.flatten(0, 1)
        marks = marks_of(model, text)
        uniform = torch.full_like(weights[:1], 1 / weights.shape[-1])
        for totals, attention in ((of_heads, weights), (of_uniform, uniform)):
            for name, values in _measures(attention, marks).items():
                totals.setdefault(name, []).append(values.numpy(force=True))
        distances = distances + head_distances(weights).numpy(force=True)
        rows_read += weights.shape[-1]
    means = {name: _mean(np.stack(values)) for name, values in of_heads.items()}
    reference = {name: float(_mean(np.stack(values))[0]) for name, values in of_uniform.items()}
    distances = distances / rows_read
    places, clusters = places_of(distances), clusters_of(distances)
    heads = [
        {
            "layer": number // model.heads,
            "head": number % model.heads,
            **(profile := {name: float(values[number]) for name, values in means.items()}),
            "label": label_of(profile, reference["entropy"]),
            "cluster": int(clusters[number]),
            "x": float(places[number, 0]),
            "y": float(places[number, 1]),
            "distances": distances[number].tolist(),
        }
        for number in range(len(distances))
    ]
    return [*heads, {**reference, "label": "uniform attention", "n": len(texts)}]


def marks_of(model: TransformerClassifier, text: TextAttention) -> Marks:
    """Return which positions are [CLS], [SEP], and a full stop or comma of the text."""
    tokenizer, ids = model.tokenizer, text.ids

    def special(token: int | None) -> Tensor:
        return torch.zeros_like(ids, dtype=torch.bool) if token is None else ids == token

    pieces = [str(tokenizer.decode([token])).strip() in MARKS for token in ids.tolist()]
    punctuation = torch.tensor(pieces, device=ids.device) & (text.words >= 0)
    return Marks(special(tokenizer.cls_token_id), special(tokenizer.sep_token_id), punctuation)


def _measures(weights: Float[Tensor, "K N N"], marks: Marks) -> dict[str, Float[Tensor, " K"]]:
    entropies = row_entropies(weights)
    of_cls = entropies[:, marks.cls].mean(-1)  # NaN without [CLS]
    return {**masses(weights, marks), "entropy": entropies.mean(-1), "entropy_cls": of_cls}


def _mean(values: Float[np.ndarray, "texts K"]) -> Float[np.ndarray, " K"]:
    """Return the mean over the texts that have a value; NaN if none has."""
    defined = np.isfinite(values)
    sums = np.where(defined, values, 0.0).sum(0)
    return np.where(defined.any(0), sums / np.maximum(defined.sum(0), 1), np.nan)


def label_of(profile: Mapping[str, float], uniform_entropy: float) -> str:
    """Return the paper's labels of a head, or none.

    >>> label_of({"entropy": 1.0, "next": 0.7, "previous": 0.0, "cls": 0, "sep": 0, "punctuation": 0}, 4.0)
    'next'
    """
    labels = ["broad"] if profile["entropy"] > BROAD * uniform_entropy else []
    labels += [name for name, limit in LABELS.items() if profile[name] > limit]
    return ", ".join(labels) or "none"


def places_of(distances: Float[np.ndarray, "K K"]) -> Float[np.ndarray, "K 2"]:
    """Return places of the heads in the plane: metric multidimensional scaling, from the classical solution."""
    from sklearn.manifold import MDS

    if len(distances) < 3 or not distances.any():
        return np.zeros((len(distances), 2))
    scaling = MDS(2, metric="precomputed", init="classical_mds", n_init=1, random_state=0)
    # In units of the mean distance: the stopping rule of the iteration is absolute.
    unit = float(distances.mean())
    places: NDArray[np.float64] = unit * scaling.fit_transform(distances / unit)
    return places


def clusters_of(distances: Float[np.ndarray, "K K"]) -> Int[np.ndarray, " K"]:
    """Return the cluster of each head, by average linkage; as many as have the largest silhouette, 2 to 8."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    if len(distances) < 3 or not distances.any():
        return np.zeros(len(distances), dtype=np.int64)

    def cut(count: int) -> NDArray[np.int64]:
        clustering = AgglomerativeClustering(count, metric="precomputed", linkage="average")
        clusters: NDArray[np.int64] = clustering.fit_predict(distances)
        return clusters

    cuts = [cut(count) for count in range(2, min(MOST_CLUSTERS, len(distances) - 1) + 1)]
    scores = [silhouette_score(distances, clusters, metric="precomputed") for clusters in cuts]
    best: NDArray[np.int64] = cuts[int(np.argmax(scores))]
    return best
