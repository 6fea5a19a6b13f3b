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
    total = sum(sentence_counts.links for sentence_counts in sentences)
    return (
        1 - sum(sentence_counts.hits for sentence_counts in sentences) / total
        if total
        else float("nan")
    )


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
    target_words = torch.tensor(pairs.target_words[row])
    source_words = torch.tensor(pairs.source_words[row])
    wide = values.double()
    columns = []
    for word in range(int(source_words.max()) + 1):
        columns_of_word = wide[:, source_words == word]
        columns.append(columns_of_word.sum(1) if summed else columns_of_word.amax(1))
    words = torch.stack(columns, 1)
    return torch.stack(
        [words[target_words == word].mean(0) for word in range(int(target_words.max()) + 1)]
    ).numpy()


def baselines(source: int, target: int, sure: set[Link], possible: set[Link]) -> dict[str, Counts]:
    """Return what one link per target word gives: on the diagonal, at random (expected), and at best."""
    diagonal = [(min(source - 1, j * source // target), j) for j in range(target)]
    hits = len(sure) + len(possible)
    best: list[Link] = []
    for j in range(target):
        linked = [i for i, to in sure if to == j] or [i for i, to in possible if to == j] or [0]
        best.append((linked[0], j))
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
    counts_by_map: dict[str, list[Counts]] = {}
    for row, (sure, possible) in enumerate(zip(pairs.sure, pairs.possible, strict=True)):
        if not sure:
            continue
        maps: dict[str, tuple[Float[Tensor, "T S"], bool]] = {}
        for kind, model in models.items():
            sentence = read_sentence(model, encoded, row)
            if kind == "learned":
                maps["attention"] = (sentence.attention, True)
            relevance = output_relevance(
                model, sentence.decoded, sentence.states, sentence.targets[None]
            )[0]
            linear = linear_relevance(model, sentence.states, sentence.targets[None])[0]
            maps[f"relevance {kind}"] = (relevance, False)
            maps[f"linear {kind}"] = (linear, False)
        maps["dictionary"] = (lexicon(encoded.source[row], encoded.target[row]), False)
        for name, (values, summed) in maps.items():
            of_words = by_words(values, encoded, row, summed=summed)
            counts_by_map.setdefault(name, []).append(counts(links(of_words), sure, possible))
        lengths = len(pairs.source[row]), len(pairs.target[row])
        for name, map_counts in baselines(*lengths, sure, possible).items():
            counts_by_map.setdefault(name, []).append(map_counts)
    return {name: error_rate(map_counts) for name, map_counts in counts_by_map.items()}
