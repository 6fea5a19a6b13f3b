"""Do maps of sub-words link the words that people, or an aligner, linked? AER (Och & Ney 2003)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.parallel import Link, Pairs
from heedmap.importance.output_relevance import linear_relevance, output_relevance
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.snell.translation_task import Encoded, read_sentence
from heedmap.papers.snell.word_proxies import Scores


class Counts(NamedTuple):
    """What a sentence adds to AER = 1 − (Σ |A∩S| + |A∩P|) / Σ (|A| + |S|)."""

    hits: float
    links: float


def counts(predicted: Iterable[Link], sure: set[Link], possible: set[Link]) -> Counts:
    """Count a sentence's predicted links."""
    a = set(predicted)
    return Counts(len(a & sure) + len(a & possible), len(a) + len(sure))


def error_rate(sentences: Sequence[Counts]) -> float:
    """Return the alignment error rate; NaN without links."""
    total = sum(one.links for one in sentences)
    return 1 - sum(one.hits for one in sentences) / total if total else float("nan")


def links(of_words: Float[np.ndarray, "J I"]) -> list[Link]:
    """Return the best source word of each target word, the first of equals, as links (source, target)."""
    return [(int(i), j) for j, i in enumerate(of_words.argmax(1))]


def by_words(
    values: Float[Tensor, "T S"], pairs: Encoded, row: int, *, summed: bool
) -> Float[np.ndarray, "J I"]:
    """Return a map of words from one of sub-words, ends left out.

    A target word's number is the mean of its sub-words'; a source word's is their sum (of weights), or their
    largest (of log-probabilities and logits).
    """
    to = torch.tensor(pairs.target_words[row])
    at = torch.tensor(pairs.source_words[row])
    wide = values.double()
    columns = []
    for word in range(int(at.max()) + 1):
        own = wide[:, at == word]
        columns.append(own.sum(1) if summed else own.amax(1))
    words = torch.stack(columns, 1)
    return torch.stack([words[to == word].mean(0) for word in range(int(to.max()) + 1)]).numpy()


def baselines(source: int, target: int, sure: set[Link], possible: set[Link]) -> dict[str, Counts]:
    """Return what one link per target word gives: on the diagonal, at random (expected), and at best."""
    diagonal = [(min(source - 1, j * source // target), j) for j in range(target)]
    hits = len(sure) + len(possible)
    best: list[Link] = []
    for j in range(target):
        own = [i for i, to in sure if to == j] or [i for i, to in possible if to == j] or [0]
        best.append((own[0], j))
    return {
        "diagonal": counts(diagonal, sure, possible),
        "random": Counts(hits / source, target + len(sure)),
        "best possible": counts(best, sure, possible),
    }


def error_rates(
    models: dict[str, EncoderDecoder], lexicon: Scores, pairs: Pairs, encoded: Encoded
) -> dict[str, float]:
    """Return the alignment error rate of each map and baseline, of sentences with sure links."""
    assert pairs.sure is not None
    assert pairs.possible is not None
    found: dict[str, list[Counts]] = {}
    for row, (sure, possible) in enumerate(zip(pairs.sure, pairs.possible, strict=True)):
        if not sure:
            continue
        maps: dict[str, tuple[Float[Tensor, "T S"], bool]] = {}
        for kind, model in models.items():
            one = read_sentence(model, encoded, row)
            if kind == "learned":
                maps["attention"] = (one.attention, True)
            relevance = output_relevance(model, one.decoded, one.states, one.targets[None])[0]
            linear = linear_relevance(model, one.states, one.targets[None])[0]
            maps[f"relevance {kind}"] = (relevance, False)
            maps[f"linear {kind}"] = (linear, False)
        maps["dictionary"] = (lexicon(encoded.source[row], encoded.target[row]), False)
        for name, (values, summed) in maps.items():
            of_words = by_words(values, encoded, row, summed=summed)
            found.setdefault(name, []).append(counts(links(of_words), sure, possible))
        lengths = len(pairs.source[row]), len(pairs.target[row])
        for name, each in baselines(*lengths, sure, possible).items():
            found.setdefault(name, []).append(each)
    return {name: error_rate(each) for name, each in found.items()}
