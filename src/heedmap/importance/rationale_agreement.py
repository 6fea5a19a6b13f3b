"""Measure how well a ranking of tokens agrees with the tokens that people marked (DeYoung et al. 2020).

ERASER's measures of agreement with human rationales, each with what a random ranking reaches and what the best
one would. A text has n tokens, m of them marked; of a hard rationale, k are chosen. Where the released scorer
differs from the paper, docs/eraser.md says how.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Marks = NDArray[np.bool_]
Scores = NDArray[np.float64]


def number_of(share: Fraction, total: int) -> int:
    """Return how many tokens a share of `total` is: rounded up, at least one, at most all.

    >>> number_of(Fraction(1, 100), 30), number_of(Fraction(10, 100), 30), number_of(Fraction(1, 2), 3)
    (1, 3, 2)
    """
    return min(max(1, math.ceil(share * total)), total)


def order_of(scores: Scores) -> NDArray[np.int64]:
    """Return the tokens, the largest score first; ties in the order of the text."""
    return np.argsort(-scores, kind="stable")


def chosen(scores: Scores, count: int) -> Marks:
    """Return the hard rationale of the `count` tokens with the largest scores."""
    mask = np.zeros(len(scores), dtype=bool)
    mask[order_of(scores)[:count]] = True
    return mask


def average_precision(marked: Marks, scores: Scores) -> float:
    """Return the area under the precision-recall curve, Σ_i (R_i − R_{i−1}) P_i over the distinct scores.

    As `sklearn.metrics.average_precision_score`: tokens of one score enter together. NaN where all tokens are
    marked or none.
    """
    if not marked.any() or marked.all():
        return math.nan
    order = order_of(scores)
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = np.cumsum(marked[order])[ends]
    gained = np.diff(hits, prepend=0)
    return float((gained * hits / (ends + 1)).sum() / marked.sum())


def average_precision_by_chance(marked: Marks) -> float:
    """Return the expected average precision of a random order of the tokens.

    A marked token at place j has, of the j − 1 before it, (j − 1)(m − 1) / (n − 1) marked ones on average, and
    is at each place equally often: (1/n) Σ_j [1 + (j − 1)(m − 1)/(n − 1)] / j.
    """
    total, marked_count = len(marked), int(marked.sum())
    if not 0 < marked_count < total:
        return math.nan
    places = np.arange(1, total + 1)
    return float(((1 + (places - 1) * (marked_count - 1) / (total - 1)) / places).mean())


def token_f1(marked: Marks, predicted: Marks) -> float:
    """Return 2 |P ∩ G| / (|P| + |G|) over tokens: the F1 of precision and recall."""
    return 2 * int((marked & predicted).sum()) / int(marked.sum() + predicted.sum())


def token_f1_by_chance(marked: Marks, count: int) -> float:
    """Return the expected F1 of `count` random tokens, of which count · m / n are marked: 2km / (n (k + m))."""
    marked_count = int(marked.sum())
    return 2 * count * marked_count / (len(marked) * (count + marked_count))


def token_f1_at_best(marked: Marks, count: int) -> float:
    """Return the largest F1 of any `count` tokens: 2 min(k, m) / (k + m)."""
    marked_count = int(marked.sum())
    return 2 * min(count, marked_count) / (count + marked_count)


def spans(mask: Sequence[bool] | Marks) -> list[tuple[int, int]]:
    """Return the maximal runs of marked tokens as [start, end).

    >>> spans([True, True, False, True])
    [(0, 2), (3, 4)]
    """
    runs, start = [], None
    for place, is_marked in enumerate([*np.asarray(mask, dtype=bool).tolist(), False]):
        if is_marked and start is None:
            start = place
        elif not is_marked and start is not None:
            runs.append((start, place))
            start = None
    return runs


def matches(predicted: tuple[int, int], reference: tuple[int, int]) -> bool:
    """Return whether the IOU of two spans, the tokens in both by the tokens in either, is larger than ½."""
    # |A ∩ B| / |A ∪ B| > ½, with |A ∪ B| = |A| + |B| − |A ∩ B|, in whole numbers.
    shared = min(predicted[1], reference[1]) - max(predicted[0], reference[0])
    return 3 * shared > predicted[1] - predicted[0] + reference[1] - reference[0]


def iou_f1(marked: Marks, predicted: Marks) -> float:
    """Return the F1 of spans: a predicted one is right if its IOU with a marked one is larger than ½.

    Spans are maximal. As the IOU has to be larger, no two predicted spans match one marked span, nor one two.
    """
    predicted_spans, marked_spans = spans(predicted), spans(marked)
    right = index = 0
    for span in predicted_spans:  # both in the order of the text
        while index < len(marked_spans) and marked_spans[index][1] <= span[0]:
            index += 1
        candidate = index
        while candidate < len(marked_spans) and marked_spans[candidate][0] < span[1]:
            if matches(span, marked_spans[candidate]):
                right += 1
                break
            candidate += 1
    return 2 * right / (len(predicted_spans) + len(marked_spans))


def iou_f1_at_most(marked: Marks, count: int) -> float:
    """Return a bound on the F1 of spans of any `count` tokens, attained where k = m.

    A span of g marked tokens is matched by ⌊g/2⌋ + 1 of its own at the least. The spans that need the fewest
    are matched first, M of them; with no predicted span wrong the F1 is 2M / (M + marked spans).
    """
    needed = np.sort([(end - start) // 2 + 1 for start, end in spans(marked)])
    right = int((np.cumsum(needed) <= count).sum())
    return 2 * right / (right + len(needed))
