"""How the survey's tables write a number with its interval."""

import math

from heedmap.papers.survey.numbers import TextModel


def with_interval(
    value: float, low: float = math.nan, high: float = math.nan, digits: int = 2
) -> str:
    """Return a number, with its interval where it has one; a dash where it is none itself."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:z.{digits}f}"
    if math.isfinite(low):
        text += f" [{low:z.{digits}f}, {high:z.{digits}f}]"
    return text.replace("-", "−")


def points(value: float, low: float, high: float) -> str:
    """Return a share and its interval in percentage points."""
    return with_interval(100 * value, 100 * low, 100 * high, 1)


def mean_over_texts(
    model: TextModel, name: str, bounds: tuple[float, float], factor: float = 1.0, digits: int = 2
) -> str:
    """Return the mean of a column with its interval over texts, times a factor."""
    values = model.column(name)
    ends = model.interval(values, bounds)
    return with_interval(factor * model.mean(name), factor * ends[0], factor * ends[1], digits)
