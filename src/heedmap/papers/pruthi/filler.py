"""Texts followed by an unrelated sentence, in which only the first part is impermissible (their SST + Wiki)."""

from dataclasses import replace

import numpy as np

from heedmap.data.biographies import biographies
from heedmap.data.corpus import Corpus, Split

SEED = 20  # so that these biographies are none of the embedded corpus's first ones


def with_filler(corpus: Corpus) -> Corpus:
    """Return the corpus with a generated sentence after each text; the texts' own tokens are marked.

    The same sentences follow the same texts, as words or as they are written (`as_written`).
    """
    sentences = [
        [*" ".join(text.tokens).split(" . ")[0].split(), "."] for text in biographies(seed=SEED)
    ]
    rng = np.random.default_rng(SEED)
    splits = {}
    for name in sorted(corpus.splits):
        splits[name] = _filled(corpus.splits[name], sentences, rng, written=corpus.settings.raw)
    return replace(corpus, splits=splits)


def _filled(
    split: Split, sentences: list[list[str]], rng: np.random.Generator, *, written: bool
) -> Split:
    fillers = [sentences[i] for i in rng.integers(0, len(sentences), len(split))]
    if written:
        fillers = [[f" {word}" for word in sentence] for sentence in fillers]
    return replace(
        split,
        tokens=[[*text, *filler] for text, filler in zip(split.tokens, fillers, strict=True)],
        rationale=[
            np.arange(len(text) + len(filler)) < len(text)
            for text, filler in zip(split.tokens, fillers, strict=True)
        ],
        written=None,
    )
