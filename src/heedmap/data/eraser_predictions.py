"""Predictions with rationales in ERASER's layout (DeYoung et al. 2020), one text per line.

    {"annotation_id": "pos_1.txt", "classification": "POS", "classification_scores": {"POS": 0.9, "NEG": 0.1},
     "rationales": [{"docid": "pos_1.txt", "hard_rationale_predictions": [{"start_token": 3, "end_token": 7}],
                     "soft_rationale_predictions": [0.1, ...]}],
     "comprehensiveness_classification_scores": {...}, "sufficiency_classification_scores": {...},
     "thresholded_scores": [{"threshold": 0.01, "comprehensiveness_classification_scores": {...},
                             "sufficiency_classification_scores": {...}}, ...]}

Spans are of the document's words, with one soft number per word. All but the first field may be absent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.documents import Document
from heedmap.data.json_rows import read_lines
from heedmap.errors import InputError

BINS = (1, 5, 10, 20, 50)
LOSSES = ("comprehensiveness", "sufficiency")
SLACK = 1e-6  # of a rounded probability


@dataclass(frozen=True)
class Prediction:
    """One line; what it does not have is None.

    `losses` are what the predicted class loses: comprehensiveness and sufficiency of the hard rationale, `bins`
    (2, 5) those of the first BINS of the words.
    """

    key: str
    hard: NDArray[np.bool_] | None
    soft: NDArray[np.float64] | None
    losses: tuple[float, float] | None
    bins: NDArray[np.float64] | None


def read_predictions(path: Path, documents: Mapping[str, Document]) -> list[Prediction]:
    """Read and check a file of predictions about these documents.

    Raises:
        InputError: names the file, the line and the field, what was expected and what came.
    """
    by_key: dict[str, Prediction] = {}
    for number, row in read_lines(path):
        place = f"{path}, line {number}"
        key = row.get("annotation_id")
        if not isinstance(key, str) or key not in documents:
            raise InputError(
                f"{place}: annotation_id: expected one of the corpus's {len(documents)} texts, got {key!r:.60}"
            )
        if key in by_key:
            raise InputError(f"{place}: annotation_id: {key!r:.60} is there twice; keep one line")
        by_key[key] = _prediction(row, key, documents[key], place)
    if not by_key:
        raise InputError(f"{path}: expected a line per text, got none")
    return list(by_key.values())


def _prediction(row: dict[str, Any], key: str, document: Document, place: str) -> Prediction:
    hard, soft = _rationale(row.get("rationales"), document, place)
    losses = bins = None
    if row.get("classification") is not None:
        predicted = str(row["classification"])
        probability = _probability(row, "classification_scores", predicted, place)

        def loss(scores: dict[str, Any], name: str, parent: str = "") -> float:
            field = f"{name}_classification_scores"
            return probability - _probability(scores, field, predicted, place, parent)

        if any(row.get(f"{name}_classification_scores") is not None for name in LOSSES):
            losses = (loss(row, LOSSES[0]), loss(row, LOSSES[1]))
        if row.get("thresholded_scores") is not None:
            by_percent = _thresholds(row["thresholded_scores"], place)
            bins = np.array(
                [
                    [loss(by_percent[p], name, "thresholded_scores: ") for p in BINS]
                    for name in LOSSES
                ]
            )
    return Prediction(key, hard, soft, losses, bins)


def _rationale(
    rationales: Any, document: Document, place: str
) -> tuple[NDArray[np.bool_] | None, NDArray[np.float64] | None]:
    if (
        not isinstance(rationales, list)
        or len(rationales) > 1
        or not all(isinstance(x, dict) for x in rationales)
    ):
        raise InputError(
            f"{place}: rationales: expected a list of one rationale, of {document.docid}, got "
            f"{rationales!r:.60}"
        )
    if not rationales:
        return None, None
    (rationale,) = rationales
    if rationale.get("docid") != document.docid:
        raise InputError(
            f"{place}: docid: expected {document.docid}, the text's document, got "
            f"{rationale.get('docid')!r:.60}"
        )
    size = len(document.words)
    hard = soft = None
    if (spans := rationale.get("hard_rationale_predictions")) is not None:
        hard = np.zeros(size, dtype=bool)
        for span in spans if isinstance(spans, list) else [spans]:
            start, end = _ends(span, size, place)
            hard[start:end] = True
    if (numbers := rationale.get("soft_rationale_predictions")) is not None:
        if (
            not isinstance(numbers, list)
            or len(numbers) != size
            or not all(_is_number(number) for number in numbers)
        ):
            got = f"{len(numbers)} values" if isinstance(numbers, list) else f"{numbers!r:.60}"
            raise InputError(
                f"{place}: soft_rationale_predictions: expected a number for each of the document's {size} "
                f"words, got {got}"
            )
        soft = np.array(numbers, dtype=np.float64)
    return hard, soft


def _ends(span: Any, size: int, place: str) -> tuple[int, int]:
    names = ("start_token", "end_token")
    start, end = (span.get(name) if isinstance(span, dict) else None for name in names)
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= size:
        raise InputError(
            f"{place}: hard_rationale_predictions: expected spans with start_token and end_token within the "
            f"document's {size} words, got {span!r:.60}"
        )
    return start, end


def _probability(
    row: dict[str, Any], field: str, predicted: str, place: str, parent: str = ""
) -> float:
    values = row.get(field)
    value = values.get(predicted) if isinstance(values, dict) else None
    numbers = list(values.values()) if isinstance(values, dict) else []
    if value is None or not all(
        _is_number(number) and -SLACK <= number <= 1 + SLACK for number in numbers
    ):
        raise InputError(
            f"{place}: {parent}{field}: expected a probability, 0 to 1, for every class, {predicted!r:.40} "
            f"(the prediction) too, got {values!r:.60}"
        )
    return float(value)


def _thresholds(thresholds: Any, place: str) -> dict[int, dict[str, Any]]:
    by_percent = {
        round(100 * part["threshold"]): part
        for part in (thresholds if isinstance(thresholds, list) else [])
        if isinstance(part, dict)
        and _is_number(part.get("threshold"))
        and math.isclose(100 * part["threshold"], round(100 * part["threshold"]), abs_tol=1e-6)
    }
    if missing := [percent / 100 for percent in BINS if percent not in by_percent]:
        raise InputError(
            f"{place}: thresholded_scores: expected an object for each threshold of 0.01, 0.05, 0.1, 0.2, "
            f"0.5, got none with {', '.join(map(str, missing))}"
        )
    return by_percent


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
