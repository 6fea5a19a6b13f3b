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
    first_flips: NDArray[np.float64], other_flips: NDArray[np.float64], texts: NDArray[np.int64]
) -> FlipTable:
    """Count the texts by which erasure flips; NaN is left out of both. `texts` numbers the different ones."""
    is_compared = np.isfinite(first_flips) & np.isfinite(other_flips)
    does_first, does_other = first_flips[is_compared] > 0, other_flips[is_compared] > 0
    both_flip, first_only, other_only, neither = (
        int(x.sum())
        for x in (
            does_first & does_other,
            does_first & ~does_other,
            does_other & ~does_first,
            ~does_first & ~does_other,
        )
    )
    once = np.unique(texts[is_compared], return_index=True)[1]
    ahead, discordant = (
        int((does_first & ~does_other)[once].sum()),
        int((does_first != does_other)[once].sum()),
    )
    p = float(stats.binomtest(ahead, discordant).pvalue) if discordant else 1.0
    return FlipTable(both_flip, first_only, other_only, neither, p, len(once))


def in_words(counts: FlipTable) -> str:
    """Put the decision-flip table and McNemar's test into words."""
    cells = (counts.both, counts.only_first, counts.only_other, counts.neither)
    both_flip, top_only, other_only, neither = (percent(x / max(1, sum(cells))) for x in cells)
    once = "" if counts.different == sum(cells) else f", of {counts.different} different texts"
    return (
        f"of all texts the most attended word and one random other both flip {both_flip}, only the first "
        f"{top_only}, only the other {other_only}, neither {neither} (McNemar p = {counts.p:.2g}{once})"
    )
