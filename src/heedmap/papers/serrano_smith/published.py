"""What Serrano & Smith's (2019) decision-flip table has for their hierarchical model with a recurrent encoder.

[M]: from memory of the paper, not checked against it; the order of the columns is that of `FLIPS`. Medians of
the paper's box plots are not recovered. Corrected or completed here:

* The released code draws the random item among all positions but the first, the top one included; the paper,
  and this reproduction, draw it among all but the top one.
* For each ranking the paper leaves out the texts that this ranking never flips: its rankings are judged on
  different texts. Here all are judged on the texts that some set of items flips, which is known exactly, and a
  ranking that never flips one counts 0 there; the paper's way is beside it.
* "No set that flips can be found" needs no search: the smallest set is exact (docs/erasure.md).
"""

SOURCE = "Serrano & Smith 2019, HAN with GRUs [M]"
FLIPS = ("both", "top", "random", "neither")
# Per cent of the test texts: both flip, only the most attended, only the random one, neither. [M]
PUBLISHED: dict[str, tuple[float, float, float, float]] = {
    "yahoo": (0.5, 8.7, 1.3, 89.6),
    "imdb-10": (2.2, 12.2, 1.4, 84.2),
    "amazon": (2.7, 7.6, 2.7, 87.1),
    "yelp": (1.5, 8.9, 1.9, 87.7),
}
MODEL = "han-rnn"
# What the paper's text says of these orders, without numbers.
RANKINGS = ("random", "attention", "gradient", "product")
