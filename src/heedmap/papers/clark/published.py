"""What Clark et al. report of single heads of BERT-base on the Penn Treebank, with Stanford's dependencies.

Of the probes the notebook prints one number: 78.0 % of the words, roots included, by attention with vectors.
Ours leave the roots out, so that it stands on no line. The paper's other scores could not be read.
"""

from heedmap.papers.kit.sources import Source

_NOTEBOOK = Source("notebook", "the syntax notebook of clarkkev/attention-analysis, as printed")
SOURCES = {"RELATIONS": _NOTEBOOK}
# The best head, and the best fixed offset, in per cent.
RELATIONS = {
    "all": (34.7, 26.7),
    "prep": (66.7, 61.8),
    "pobj": (76.3, 34.6),
    "det": (94.3, 51.7),
    "nn": (70.4, 70.2),
    "nsubj": (58.5, 45.5),
    "amod": (75.6, 68.3),
    "dobj": (86.8, 40.0),
    "advmod": (48.8, 40.2),
    "aux": (81.1, 71.5),
    "poss": (80.5, 47.7),
    "auxpass": (94.1, 82.5),
    "ccomp": (48.8, 12.4),
    "mark": (50.7, 14.5),
    "prt": (99.1, 91.4),
}
