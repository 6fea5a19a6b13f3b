"""Sentences of a small language whose translations are known word by word: copy, reverse, dictionary."""

from typing import Literal, get_args

import numpy as np

from heedmap.data.parallel import Pairs, Parallel
from heedmap.experiments.generators import named_generator

Task = Literal["copy", "reverse", "dictionary"]
TASKS: tuple[str, ...] = get_args(Task)
CONSONANTS, VOWELS = "bdfgklmn", "aeiou"
SHORTEST, LONGEST = 3, 10  # words
SIZES = {"train": 4000, "dev": 100, "test": 150}


def made_corpus(task: Task) -> Parallel:
    """Draw independent words and translate them; the links of words are the truth.

    copy: the same words; reverse: the same in the opposite order; dictionary: each word's own other word, every
    two neighbours swapped.
    """
    source_words = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    target_words = source_words
    if task == "dictionary":
        target_words = [vowel + consonant for consonant in CONSONANTS for vowel in VOWELS]
    splits = {}
    for split, size in SIZES.items():
        rng = named_generator(0, f"lu {task} {split}")
        source, target, links = [], [], []
        for length in rng.integers(SHORTEST, LONGEST + 1, size=size).tolist():
            numbers = rng.integers(len(source_words), size=length)
            order = positions(task, length)
            source.append([source_words[number] for number in numbers])
            target.append([target_words[number] for number in numbers[order]])
            links.append({(int(i), j) for j, i in enumerate(order)})
        splits[split] = Pairs(source, target, links, links)
    return Parallel(task, splits)


def positions(task: Task, length: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return for each target word the source position that it translates."""
    places = np.arange(length)
    if task == "reverse":
        return places[::-1]
    if task == "dictionary":
        swapped = places ^ 1
        return np.where(swapped < length, swapped, places)  # an odd one out stays at the end
    return places
