"""Levels: whether a number speaks for or against the map, and the bands of facts that have no calibration.

BANDS and docs/verdict.md hold the rules of the readings.
"""

import math
from typing import Literal

Level = Literal["for", "mixed", "against", "cannot tell", "for comparison"]

# Facts that calibration does not judge, per kind: (lower edge, level, words), from the top down. A value falls
# into the first band whose edge it reaches. Only skill has a level: is there anything to explain?
WEAK = "too weak to explain"
BANDS: dict[str, list[tuple[float, Level, str]]] = {
    "skill": [
        (0.5, "for", "good"),
        (0.1, "mixed", "modest"),
        (-math.inf, "against", WEAK),
    ],
    "words": [
        (0.7, "for comparison", "most of the attention falls on the words"),
        (0.3, "for comparison", "a good part falls on special tokens"),
        (-math.inf, "for comparison", "most of the attention falls on special tokens"),
    ],
    "identified": [
        (0.99, "for comparison", "all of it reaches the layer's output"),
        (0.8, "for comparison", "a part of it cancels out"),
        (-math.inf, "for comparison", "much of it cancels out"),
    ],
    "auc": [
        (0.9, "for comparison", "finds these words"),
        (0.7, "for comparison", "often finds these words"),
        (0.55, "for comparison", "seldom finds these words"),
        (-math.inf, "for comparison", "no better than chance"),
    ],
}
LEVEL_WORDS: dict[Level, str] = {
    "for": "speaks for the map",
    "mixed": "leaves it open",
    "against": "speaks against the map",
    "cannot tell": "is too uncertain to tell",
    "for comparison": "is for comparison only",
}
# What shows a level without its colour.
SIGNS: dict[Level, str] = {
    "for": "+",
    "mixed": "~",
    "against": "−",
    "cannot tell": "?",
    "for comparison": "·",
}

COLOURS: dict[Level, str] = {
    "for": "#3f86e0",
    "mixed": "#d9a520",
    "against": "#c2512f",
    "cannot tell": "#8a8f98",
    "for comparison": "#8a8f98",
}
"""Of a line beside a text in a notebook, seen on white and on black."""

UNJUDGED = "for comparison"  # a number without a chance level


def bands_between(edges: tuple[float, float]) -> list[tuple[float, Level, str]]:
    """Return the bands of a scale with two thresholds: against below the first, for from the second on."""
    against, for_ = edges
    mixed: list[tuple[float, Level, str]] = [(against, "mixed", "mixed")] * (against < for_)
    return [(for_, "for", "for"), *mixed, (-math.inf, "against", "against")]


def grade(kind: str, value: float, low: float, high: float) -> tuple[str, Level]:
    """Return reading and level: the value's band, or both ends' bands where the interval crosses an edge."""
    unsure: Level = "cannot tell" if kind == "skill" else "for comparison"
    if not math.isfinite(value):
        return "undefined", unsure
    if kind not in BANDS:
        return UNJUDGED, unsure

    def band(x: float) -> tuple[str, Level]:
        return next((words, level) for edge, level, words in BANDS[kind] if x >= edge)

    if not math.isfinite(low):
        return f"{band(value)[0]} (too few instances for an interval)", unsure
    (lower, lower_level), (upper, upper_level) = band(low), band(high)
    if lower == upper:
        return lower, lower_level
    if lower_level != upper_level:
        lower_level = "mixed" if {lower_level, upper_level} == {"mixed", "for"} else unsure
    return f"between “{lower}” and “{upper}”", lower_level
