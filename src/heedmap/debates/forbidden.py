"""Choose impermissible words where the user names none: those that speak most for each class."""

from dataclasses import replace

import numpy as np

from heedmap.data.corpus import Corpus
from heedmap.data.marks import marked_words, marks_of
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.training.log_odds import LogOdds, fit_log_odds

PER_CLASS = 5
MOST_CLASSES = 10  # more would make too many words impermissible
MIN_DF = 2  # training texts that a word is in


def most_telling(corpus: Corpus) -> list[str]:
    """Return the words with the largest log-odds for each class, of the training texts (`training.log_odds`).

    Of more than two classes each is held against all others. Marks of punctuation are left out: they are no
    words, and a comma could not be listed.

    Raises:
        InputError: pairs or sentences, too many classes, or no word that speaks for a class.
    """
    if len(corpus.classes) > MOST_CLASSES:
        raise InputError(
            f"{corpus.name}: expected at most {MOST_CLASSES} classes to choose impermissible words for, got "
            f"{len(corpus.classes)}; name words with --forbidden"
        )
    vocabulary = Vocabulary.build(corpus.words("train"), MIN_DF)
    if len(corpus.classes) == 2:
        odds = fit_log_odds(corpus, vocabulary)
        sides = [(odds, index) for index in range(2)]
    else:
        sides = [
            (fit_log_odds(_against_others(corpus, index), vocabulary), 1)
            for index in range(len(corpus.classes))
        ]
    words = [_words(odds, index)[:PER_CLASS] for odds, index in sides]
    return sorted({word for class_words in words for word in class_words})


def _words(odds: LogOdds, index: int) -> list[str]:
    """Return the words that speak for a class, strongest first."""
    words = odds.extreme(index, len(odds.vocabulary.words))
    return [
        word.lower()
        for word in words
        if any(letter.isalnum() for letter in word) and "," not in word
    ]


def _against_others(corpus: Corpus, index: int) -> Corpus:
    """Return the corpus with two classes: one of its own, and all others."""
    train = corpus.splits["train"]
    labels = np.asarray(train.labels == index, dtype=np.int64)
    splits = {**corpus.splits, "train": replace(train, labels=labels)}
    return replace(corpus, classes=["others", corpus.classes[index]], splits=splits)


def with_words(corpus: Corpus, forbidden: str) -> tuple[int, int]:
    """Return how many test texts have an impermissible word, and how many there are.

    Raises:
        InputError: see `marked_words`.
    """
    test = corpus.splits["test"]
    marks = marks_of(test, marked_words(forbidden, corpus))
    return sum(bool(np.any(marks[row])) for row in range(len(test))), len(test)
