"""How the outputs of a model that gives a number are spread.

Their mean is what a guess would say, and changes are measured in their standard deviation.
"""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MEAN, DEVIATION, TEXTS = "outputs_mean", "outputs_deviation", "outputs_texts"


@dataclass(frozen=True)
class OutputSpread:
    """The spread of some texts' outputs.

    Attributes:
        mean: of the outputs; 0 without texts.
        deviation: their standard deviation; NaN without texts, or if all outputs are equal.
        texts: how many texts have them.
    """

    mean: float
    deviation: float
    texts: int

    def columns(self) -> dict[str, float | int]:
        """Return it as columns of the table `instances`, each of a single number."""
        return {MEAN: self.mean, DEVIATION: self.deviation, TEXTS: self.texts}


def spread_of(
    outputs: NDArray[np.float64], text_of: NDArray[np.integer] | None = None
) -> OutputSpread:
    """Return the spread of outputs; a text that is read in windows has their mean.

    >>> spread_of(np.array([1.0, 3.0, 5.0, 7.0]), np.array([0, 1, 1, 2]))
    OutputSpread(mean=4.0, deviation=2.449489742783178, texts=3)

    Args:
        outputs: of the rows.
        text_of: the text of each row; None where every row is a whole text.
    """
    if text_of is not None:
        _, places, sizes = np.unique(text_of, return_inverse=True, return_counts=True)
        outputs = np.bincount(places, outputs) / sizes
    if not len(outputs):
        return OutputSpread(0.0, math.nan, 0)
    deviation = float(np.std(outputs))
    return OutputSpread(
        float(outputs.mean()), deviation if deviation > 0 else math.nan, len(outputs)
    )


def stored_spread(instances: pa.Table, outputs: NDArray[np.float64]) -> OutputSpread:
    """Return the spread that the table `instances` names; of its own `outputs` if it is of an older version."""
    if MEAN not in instances.column_names or not len(outputs):
        return spread_of(outputs)
    mean, deviation, texts = (instances[name][0].as_py() for name in (MEAN, DEVIATION, TEXTS))
    return OutputSpread(mean, math.nan if deviation is None else deviation, int(texts))
