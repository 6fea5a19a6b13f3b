"""Sentences of a small language and their translations, word by word in the opposite order."""

import json

import numpy as np

WORDS = {
    "ein": "a", "hund": "dog", "mann": "man", "frau": "woman", "rennt": "runs", "schläft": "sleeps",
    "heute": "today", "draußen": "outside", "rot": "red", "kleiner": "small", "und": "and", "baum": "tree",
}  # fmt: skip


def sentences(count, seed=0):
    """Return sentences, their translations, and the links of their words, source first."""
    rng = np.random.default_rng(seed)
    found = []
    for length in rng.integers(2, 8, size=count):
        words = [list(WORDS)[i] for i in rng.integers(len(WORDS), size=length)]
        links = [[i, int(length) - 1 - i] for i in range(length)]
        found.append((words, [WORDS[word] for word in reversed(words)], links))
    return found


def write_texts(folder, count=60):
    """Write train, dev and test as a text file per language."""
    for split, (size, seed) in {"train": (count, 0), "dev": (12, 1), "test": (12, 2)}.items():
        found = sentences(size, seed)
        for language, side in (("de", 0), ("en", 1)):
            lines = "".join(" ".join(one[side]) + "\n" for one in found)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


def write_tables(folder, count=60):
    """Write train, dev and test as tables with links, target first as `en-de` says."""
    for split, (size, seed) in {"train": (count, 0), "dev": (12, 1), "test": (12, 2)}.items():
        rows = (
            {
                "de": " ".join(source), "en": " ".join(target),
                "links": " ".join(f"{j}-{i}" for i, j in links), "sure": links,
            }
            for source, target, links in sentences(size, seed)
        )  # fmt: skip
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder
