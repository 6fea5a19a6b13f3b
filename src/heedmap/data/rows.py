"""One row of a data set on its way into a corpus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass
class Row:
    """A labelled text, or a pair of texts: attention is paid to `tokens`, given `query`.

    `rationale` says which tokens are known to decide the label; `candidates` are the labels that are
    possible answers for this row, None where all are.
    """

    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None
    query: list[str] | None = None
    candidates: tuple[str, ...] | None = None
