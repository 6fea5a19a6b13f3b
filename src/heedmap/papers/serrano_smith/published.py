"""What Serrano & Smith (2019) say of their results: words alone.

Neither their decision-flip table nor the medians of their box plots could be read in the paper or in what they
released, so no number of theirs stands beside ours. Corrected or completed here:

* The released code draws the random item among all positions but the first, the top one included; the paper,
  and this reproduction, draw it among all but the top one.
* For each ranking the paper leaves out the texts that this ranking never flips: its rankings are judged on
  different texts. Here all are judged on the texts that some set of items flips, which is known exactly, and a
  ranking that never flips one counts 0 there; the paper's way is beside it.
* "No set that flips can be found" needs no search: the smallest set is exact (docs/erasure.md).
"""

from heedmap.papers.kit.sources import Source

SOURCES: dict[str, Source] = {
    "HIGHER": Source("paper", "abstract"),
    "RANKED": Source("paper", "abstract"),
}
HIGHER = (
    "Higher weights go with a greater impact on the prediction in some ways; attention predicts the importance "
    "of items noisily (abstract)."
)
RANKED = (
    "Rankings by the gradient often predict the effect of the weights better than their magnitude does "
    "(abstract)."
)
# The order in which they find their rankings to be better.
RANKINGS = ("random", "attention", "gradient", "product")
