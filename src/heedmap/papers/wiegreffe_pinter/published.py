"""Wiegreffe & Pinter's Table 2, F1 of class 1, as a third party's replication prints it.

The numbers of their Tables 3 and 4 could not be read, and are not shown.
"""

from heedmap.papers.kit.sources import Source

_REPRINT = Source("reprint", "README of a third party's replication, which quotes Table 2")
SOURCES = {
    "FOUND_GUIDE": Source("paper", "abstract"),
    "FOUND_ELSEWHERE": Source("paper", "abstract"),
    "FOUND_ANTI_CORRELATED": Source("slides", "Snell et al.'s slides on the paper"),
    "F1": _REPRINT,
    "REPLICATED": Source("replication", "the same README, one run each"),
    "ADVERSARY_EPOCHS": Source("released code", "sarahwie/attention d867a2b, run_adversarial.sh"),
    "SEEDS": Source("released code", "sarahwie/attention d867a2b"),
}

# data set: (reproduced by the authors, with uniform weights)
F1: dict[str, tuple[float, float]] = {
    "imdb": (0.902, 0.879),
    "sst": (0.831, 0.822),
    "ag_news": (0.964, 0.960),
    "news20_baseball_hockey": (0.942, 0.934),
}
# The same of the replication itself: one run each.
REPLICATED: dict[str, tuple[float, float]] = {
    "imdb": (0.9065, 0.8861),
    "sst": (0.8304, 0.8248),
    "ag_news": (0.9604, 0.9595),
    "news20_baseball_hockey": (0.9394, 0.9449),
}
SOURCE = "Wiegreffe & Pinter, Table 2"
REPLICATION = "third-party replication, one run"
FOUND_GUIDE = "Weights of trained adversaries do badly when they guide another model (abstract)."
FOUND_ELSEWHERE = "Reliable adversarial weights can be found in some cases (abstract)."
FOUND_ANTI_CORRELATED = (
    "“Attention becomes anti-correlated with explanations” (Snell et al.'s slides; no number)."
)
ADVERSARY_EPOCHS = 80
SEEDS = 8
