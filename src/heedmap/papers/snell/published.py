"""What Snell et al. report: in slides and a blog, which give no counts of copying runs, and in notebooks.

The paper's own table could not be read. In the notebooks SST has another name.
"""

from heedmap.papers.kit.sources import Source

_NOTEBOOK = Source(
    "notebook", "notebooks in the history of Sea-Snell/AttentionDynamics, up to 45774617"
)
SOURCES = {
    "FAILURES": Source("slides", "and the authors' blog, as each line says"),
    "AGREEMENT": _NOTEBOOK,
    "PERFORMANCE": _NOTEBOOK,
    "XI": _NOTEBOOK,
}
# The slides are "Understanding Attention Training via Output Relevance" (2020).
SLIDES, BLOG = "Snell et al.'s slides", "the authors' blog"
# How many trainings fail to copy, by sequences.
FAILURES = {
    "permutations": ("about half", SLIDES),
    "subsets": ("none", BLOG),
    "repeats": ("none", SLIDES),
}

NOTEBOOK = "a notebook of the authors'"
# Agreement and time to learn, by data set: the paper's choice of checkpoints, on the evaluated texts.
AGREEMENT = {
    "imdb": {"uniform": 0.5255, "bag": 0.816, "influence": 0.6155, "chance": 0.056},
    "multi30k": {"uniform": 0.310, "bag": 0.344, "influence": 0.271, "chance": 0.071},
    "sst": {"uniform": 0.198, "bag": 0.336, "influence": 0.224, "chance": 0.083},
}
PERFORMANCE = {"accuracy": 0.663}  # of Multi30k, de to en: target sub-words under teacher forcing
XI = {
    "imdb": {"uniform": 0.868, "bag": 0.889, "best": 0.8955},
    "multi30k": {"uniform": 0.434, "best": 0.663},
    "sst": {"uniform": 0.782, "best": 0.835},
}
