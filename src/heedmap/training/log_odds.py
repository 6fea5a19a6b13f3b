"""Logistic regression on a bag of words: the baseline without order, and each word's log-odds.

As in the released code ("LR+TFIDF", which has no idf): a text is the set of its words, as a row of norm 1;
English stop words are left out (scikit-learn's list, there NLTK's); L1, classes balanced, C = 1, and
liblinear, which shrinks the intercept too. On rows of norm 1 this L1 is strong: in short texts few words
keep a coefficient, and a plain regression (L2, counts) is better. It is their baseline, not the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.errors import InputError


@dataclass(frozen=True)
class LogOdds:
    """logit(text) = intercept + Σ_w b_w / √n over the n different words of a text that have a coefficient.

    `coefficients` are b by word number: NaN for marks, the unknown word and stop words, which have none; 0
    for a word that L1 dropped, which counts as having one, as there. b > 0 is evidence for class 1.
    """

    vocabulary: Vocabulary
    coefficients: Float[Tensor, " V"]
    pipeline: Any  # of scikit-learn: texts → rows → decision

    def logits(self, texts: Sequence[Sequence[str]]) -> Float[Tensor, "B C"]:
        """Return logits (0, z) of texts."""
        z = torch.from_numpy(self.pipeline.decision_function(texts))
        return torch.stack([torch.zeros_like(z), z], dim=1)

    def extreme(self, class_index: int, count: int = 5) -> list[str]:
        """Return the words with the most evidence for a class, strongest first; fewer if fewer have any.

        Raises:
            InputError: no word has any.
        """
        towards = self.coefficients.nan_to_num(0.0) * (1 if class_index == 1 else -1)
        order = torch.argsort(towards, descending=True, stable=True)[:count].tolist()
        words = [self.vocabulary.words[i - len(SPECIAL)] for i in order if towards[i] > 0]
        if not words:
            raise InputError(
                f"log-odds: no word speaks for class {class_index}: the logistic regression (L1) dropped them "
                "all; expected more training texts, or words that tell the classes apart"
            )
        return words


def fit_log_odds(corpus: Corpus, vocabulary: Vocabulary) -> LogOdds:
    """Fit the regression on the train split, over the words of a vocabulary.

    Raises:
        InputError: pairs of texts, not two classes, a train split of one class or of stop words alone.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    check_suitable(corpus)
    split = corpus.splits["train"]
    words = [word for word in vocabulary.words if word not in ENGLISH_STOP_WORDS]
    if not words:
        raise InputError(f"{corpus.name}: log-odds need words that are not English stop words")
    bag = TfidfVectorizer(analyzer=list, vocabulary=words, binary=True, use_idf=False, norm="l2")
    regression = LogisticRegression(
        l1_ratio=1, solver="liblinear", class_weight="balanced", max_iter=1000, random_state=0
    )
    pipeline = make_pipeline(bag, regression).fit(split.tokens, split.labels)
    weight = dict(zip(words, regression.coef_[0].tolist(), strict=True))
    coefficients = [*[np.nan] * len(SPECIAL), *(weight.get(w, np.nan) for w in vocabulary.words)]
    return LogOdds(vocabulary, torch.tensor(coefficients, dtype=torch.float64), pipeline)


def has_log_odds(corpus: Corpus) -> bool:
    """Return whether a corpus has log-odds: single texts of words and two classes (see `check_suitable`)."""
    return not (corpus.pairs or corpus.sentences) and len(corpus.classes) == 2


def check_suitable(corpus: Corpus) -> None:
    """Check that a corpus has log-odds.

    Raises:
        InputError: pairs of texts, sentences, not two classes, or a train split of one class.
    """
    if corpus.sentences:
        raise InputError(
            f"{corpus.name}: log-odds are of words, got texts of sentences; choose --tokenizer words"
        )
    if corpus.pairs or len(corpus.classes) != 2:
        kind = "pairs of texts" if corpus.pairs else f"{len(corpus.classes)} classes"
        raise InputError(f"{corpus.name}: log-odds need single texts of two classes, got {kind}")
    if len(set(corpus.splits["train"].labels.tolist())) != 2:
        raise InputError(f"{corpus.name}: log-odds need texts of both classes in the train split")
