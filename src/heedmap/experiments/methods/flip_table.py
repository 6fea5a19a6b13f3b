"""Serrano & Smith's decision-flip table: which of two erased words changes more answers, and is that chance?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.results import percent


@dataclass(frozen=True)
class FlipTable:
    """Serrano & Smith's decision-flip table: of how many texts does erasing one word change the answer?

    `both`, `only_first`, `only_other` and `neither` are numbers of texts: the first word by a score, and a
    random other one. `p`: McNemar's exact test of whether either flips more often (two-sided, binomial), in
    which a text that occurs several times counts once; `different`: how many count.
    """

    both: int
    only_first: int
    only_other: int
    neither: int
    p: float
    different: int


def flip_table(
    first: NDArray[np.float64], other: NDArray[np.float64], texts: NDArray[np.int64]
) -> FlipTable:
    """Count the texts by which erasure flips; NaN is left out of both. `texts` numbers the different ones."""
    used = np.isfinite(first) & np.isfinite(other)
    one, two = first[used] > 0, other[used] > 0
    both, first_only, other_only, neither = (
        int(x.sum()) for x in (one & two, one & ~two, two & ~one, ~one & ~two)
    )
    once = np.unique(texts[used], return_index=True)[1]
    ahead, apart = int((one & ~two)[once].sum()), int((one != two)[once].sum())
    p = float(stats.binomtest(ahead, apart).pvalue) if apart else 1.0
    return FlipTable(both, first_only, other_only, neither, p, len(once))


def in_words(found: FlipTable) -> str:
    """Put the decision-flip table and McNemar's test into words."""
    cells = (found.both, found.only_first, found.only_other, found.neither)
    both, top_only, other_only, neither = (percent(x / max(1, sum(cells))) for x in cells)
    once = "" if found.different == sum(cells) else f", of {found.different} different texts"
    return (
        f"of all texts the most attended word and one random other both flip {both}, only the first "
        f"{top_only}, only the other {other_only}, neither {neither} (McNemar p = {found.p:.2g}{once})"
    )
