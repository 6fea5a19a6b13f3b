"""Which settings and which texts an audit uses."""

import numpy as np

from heedmap.data.corpus import Corpus, Split
from heedmap.experiments.drawing import first_texts, in_drawing_order
from heedmap.models.layered import Layered
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.runs.defaults import defaults_for
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings


def audit_defaults(model: Model, data: DataSettings) -> dict[str, object]:
    """Return the settings of an audit of a model on such data where no option is given."""
    layered = isinstance(model, Layered)
    return {
        # Jain & Wallace's ε: one for question answering and inference, one for single texts.
        "epsilon": 0.05 if isinstance(model, PairClassifier) else 0.01,
        # For transformers a gradient with the attention of only one layer held fixed means little.
        "gradient_path": "open" if layered else "closed",
        "descent_steps": 0 if layered else 500,
        **defaults_for(data, AuditSettings),
    }


def audited_split(corpus: Corpus, settings: AuditSettings) -> Split:
    """Return the audited texts: the test split, or a seeded sample of it, or those that were drawn of them."""
    if settings.drawn is not None:
        return first_texts(texts_to_draw(corpus, settings), settings.drawn)
    return _bounded(corpus, settings)


def texts_to_draw(corpus: Corpus, settings: AuditSettings) -> Split:
    """Return the texts of an audit with a budget, in the order in which they are drawn."""
    return in_drawing_order(_bounded(corpus, settings), settings.seed)


def _bounded(corpus: Corpus, settings: AuditSettings) -> Split:
    split = corpus.splits["test"]
    if split.whole_texts <= settings.instances:
        return split
    rng = np.random.default_rng([settings.seed, *b"instances"])
    return split.take(split.drawn(rng, settings.instances))
