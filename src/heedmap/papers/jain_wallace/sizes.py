"""How large a data set is here, and how large the authors' was."""

from dataclasses import dataclass

import numpy as np

from heedmap.data.corpus import Corpus
from heedmap.data.named import NAMED


@dataclass(frozen=True)
class Size:
    """Texts of one split by class, and their mean length; `published` where the authors' files say it."""

    dataset: str
    split: str
    texts: int
    classes: tuple[int, ...]
    tokens: float
    published: tuple[int, ...] | None

    @property
    def told(self) -> str:
        """Whether it is the authors' set."""
        if self.published is None:
            return "not known"
        if self.published == self.classes:
            return "the same"
        return f"{sum(self.classes) - sum(self.published):+d} texts"


def sizes(name: str, corpus: Corpus) -> list[Size]:
    """One a split."""
    known = NAMED[name].published
    return [
        Size(
            name,
            split,
            len(texts),
            tuple(np.bincount(texts.labels, minlength=len(corpus.classes)).tolist()),
            float(np.mean([len(tokens) for tokens in texts.tokens])),
            known.get(split),
        )
        for split, texts in corpus.splits.items()
    ]
