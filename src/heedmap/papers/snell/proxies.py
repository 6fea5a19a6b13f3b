"""A word's weight in a logistic regression on a bag of words: what may stand for relevance (β^lr)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from heedmap.data.corpus import Corpus

GRID = np.logspace(-5, 4, 19)


class Logistic:
    """L2, on counts divided by the text's length; C is that of GRID with the best dev accuracy.

    Of equal accuracies, the smallest C.
    """

    def __init__(self, corpus: Corpus) -> None:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        train, dev = corpus.splits["train"], corpus.splits["dev"]
        bag = make_pipeline(CountVectorizer(analyzer=list), Normalizer("l1"))
        counted, held_out = bag.fit_transform(train.tokens), bag.transform(dev.tokens)
        self.c, best = np.nan, -1.0
        for c in GRID:
            model = LogisticRegression(C=c, max_iter=5000).fit(counted, train.labels)
            if (accuracy := model.score(held_out, dev.labels)) > best:
                self.c, best = float(c), float(accuracy)
                weights, present = model.coef_, model.classes_
        # Two classes have the weights of the second one.
        rows = weights if len(present) > 2 else np.concatenate([-weights, weights]) / 2
        class_weights = np.zeros((len(corpus.classes), rows.shape[1]))
        class_weights[present] = rows
        count = len(corpus.classes)
        self._towards = class_weights - (class_weights.sum(0) - class_weights) / (count - 1)
        self._number = bag[0].vocabulary_

    def relevance(self, tokens: Sequence[str], label: int) -> Float[np.ndarray, " T"]:
        """Return each token's weight for a class less its mean for the others; 0 for unknown words."""
        towards, number = self._towards[label], self._number
        return np.array([towards[number[token]] if token in number else 0.0 for token in tokens])
