"""Read a corpus: from files, a data set, or memory, into splits to train on or texts to audit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedmap.data.asked_words import for_outputs
from heedmap.data.assembly import to_audit, to_train
from heedmap.data.compact import MANY
from heedmap.data.corpus import Corpus, Split
from heedmap.data.embedded import EMBEDDED, STORIES
from heedmap.data.in_memory import InMemory, Source, Values, source_of
from heedmap.data.labels import MAYBE_NO_VALUE, NO_VALUE, unlabelled
from heedmap.data.rows import LabelledTexts, Row, chosen, column
from heedmap.data.selection import read_labelled
from heedmap.data.sources import is_of_bags
from heedmap.data.streams import reading
from heedmap.data.tokens import pieces, spaced
from heedmap.errors import InputError
from heedmap.files.memory import return_freed_memory
from heedmap.keywords import split, takes
from heedmap.nouns import ASKED_WORDS, PAIRS
from heedmap.settings.data import TOKENS, DataSettings
from heedmap.terminal.progress import working

UNLIMITED = 1 << 30


@takes(TOKENS)
def load(
    source: Source,
    labels: Values | None = None,
    *,
    queries: Values | None = None,
    progress: bool = True,
    **settings: Any,
) -> Corpus:
    """Read a corpus.

    Args:
        source: a CSV, JSONL, Parquet or Excel file (.gz too); a folder with train/dev/test files, or with a
            folder of .txt files per class; the name of a data set on the Hugging Face Hub; an embedded corpus:
            `reviews` (two classes), `reviews-stars` (five), `biographies-gender` and `biographies-occupation`
            (with gendered words), `babi_qa1`, `babi_qa2`, `babi_qa3` (questions about stories), `digit-bags`,
            `four_bags`, `pos_neg` and `adjacent_pairs` (bags of vectors); a folder of bags of vectors with a
            table of their labels; or what is in memory: a pandas frame, a `Dataset` or `DatasetDict` of the
            `datasets` library, records (a list of dicts), or a list of texts. Bags in memory are read by
            `heedmap.load_bags`.
        labels: of a list of texts, one for each.
        queries: of a list of texts, one for each: the question or hypothesis that it is read given.
        {options}
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    >>> corpus = load("reviews")
    >>> corpus.classes, len(corpus.splits["test"])
    (['negative', 'positive'], 800)
    >>> load(["A fine film.", "A dull one."] * 9, ["good", "bad"] * 9).classes
    ['bad', 'good']

    Texts that are left out or cut are counted in the corpus's `left_out`. What is odd about labels and texts is
    in its `notes`, and each of them is a warning.

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: another kind of source, a list of texts without labels, or an option that there is not.
    """
    name, in_memory = source_of(source, labels, queries)
    (options,) = split("load", settings, TOKENS)
    # Texts of papers, stories and bags are never cut unless a user says so.
    is_whole = "dataset" in options or name in STORIES or (in_memory is None and is_of_bags(name))
    uncut = {"max_tokens": UNLIMITED} if is_whole else {}
    query = {} if queries is None else {"query": "query"}
    data_settings = DataSettings.of(source=name, **{**uncut, **query, **options})
    with working("reading the texts", progress, share=0.0):
        corpus = load_corpus(data_settings, in_memory=in_memory)
    corpus.warn()
    return corpus


def load_corpus(
    settings: DataSettings, outputs: Sequence[str] = (), in_memory: InMemory | None = None
) -> Corpus:
    """Read a corpus as its settings say, or the texts that are `in_memory`.

    Where it is not for training, `outputs` names the classes of the model that will read it.
    """
    if in_memory is not None:
        settings = settings.model_copy(update={"source": in_memory.name})  # in errors
        corpus = _read_corpus(settings, outputs, in_memory)
        settings = corpus.settings.model_copy(update={"source": in_memory.source()})
        return replace(corpus, settings=settings, in_memory=in_memory)
    corpus = _read_corpus(settings, outputs, None)
    if any(len(split) >= MANY for split in corpus.splits.values()):
        return_freed_memory()
    return corpus


def _read_corpus(
    settings: DataSettings, outputs: Sequence[str], in_memory: InMemory | None
) -> Corpus:
    with reading(settings.source):
        texts = read_labelled(settings, in_memory)
    return corpus_of(texts, settings, outputs)


def corpus_of(texts: LabelledTexts, settings: DataSettings, outputs: Sequence[str] = ()) -> Corpus:
    """Make the corpus of labelled texts that were read as the settings say (see `load_corpus`)."""
    if texts.vectors is not None and settings.tokenizer != "words":
        raise InputError(
            f"--tokenizer {settings.tokenizer}: an option of texts, got {texts.nouns.instances}, whose "
            f"{texts.nouns.items} are not split; leave it out"
        )
    if settings.asks is not None:
        texts, outputs = for_outputs(texts, settings, outputs)
    elif settings.dataset is None or settings.source in EMBEDDED:
        texts = _without_missing(texts, settings.classes or outputs, settings.amounts)
    both = {"nouns": PAIRS} if settings.side == "both" else {}
    items = {} if texts.vectors is None else {"nouns": texts.nouns}
    asked = {"nouns": ASKED_WORDS} if settings.asks == "words" else {}
    settings = settings.model_copy(update={**texts.columns, **both, **items, **asked})
    if settings.training:
        return to_train(texts, settings)
    return to_audit(texts, settings, outputs)


def _without_missing(texts: LabelledTexts, classes: Sequence[str], amounts: bool) -> LabelledTexts:
    """Leave out and count the rows whose label says that there is none (`unlabelled`)."""
    labels = {name: {*column(rows, "label")} for name, rows in texts.parts.items()}
    if set().union(*labels.values()) == {""}:  # the data have no labels at all
        return texts
    missing = unlabelled(set().union(*labels.values()), classes)
    if amounts:  # −1 is one
        missing = {
            label
            for label in set().union(*labels.values())
            if label.casefold() in NO_VALUE | MAYBE_NO_VALUE
        }
    # The Hub's test sets without labels: -1 in each row, and in no other split.
    if (
        not amounts
        and [name for name in labels if "-1" in labels[name]] == ["test"]
        and labels["test"] == {"-1"}
    ):
        missing.add("-1")
    left_out = Counter(texts.left_out)
    parts: dict[str, Sequence[Row]] = {}
    for name, rows in texts.parts.items():
        counts = Counter(label for label in column(rows, "label") if label in missing)
        for label, count in sorted(counts.items()):
            reason = f"label missing ({label})"
            left_out[reason if name == "all" else f"{name}: {reason}"] += count
        if labelled := chosen(rows, lambda label: label not in missing):
            parts[name] = labelled
    return replace(texts, parts=parts, left_out=left_out)


def in_sentences(corpus: Corpus) -> Corpus:
    """Read the texts of a corpus again from their source, split into sentences.

    Raises:
        InputError: the source cannot be read, or its texts not as sentences.
    """
    settings = corpus.settings.model_copy(update={"tokenizer": "sentences"})
    return load_corpus(settings, in_memory=corpus.in_memory)


def as_written(corpus: Corpus) -> Corpus:
    """Return the same texts with their case and spaces: joined, the tokens are the text.

    So a transformer reads them. A corpus of test texts alone, or of pairs, is read from its source again.

    Raises:
        InputError: the texts are read by a data set's own rules, which keep no case and no spaces, or known by
            their tokens alone; or the source cannot be read.
    """
    settings = corpus.settings
    if settings.dataset is not None or (corpus.pairs and settings.source in EMBEDDED):
        raise InputError(
            f"{settings.source}: expected texts as they are written, got the data set "
            f"{settings.dataset or settings.source}; a transformer reads its data without dataset"
        )
    if settings.raw and settings.training:
        return corpus
    raw = settings.model_copy(update={"raw": True, "training": True})
    if not settings.training or corpus.pairs:
        return load_corpus(raw, in_memory=corpus.in_memory)
    splits = {name: _as_written(part, raw) for name, part in corpus.splits.items()}
    return replace(corpus, splits=splits, settings=raw)


def _as_written(part: Split, settings: DataSettings) -> Split:
    if settings.source in EMBEDDED:
        return replace(part, tokens=[spaced(tokens) for tokens in part.tokens])
    if part.written is None:
        raise InputError(
            f"{settings.source}: expected texts as they are written, got tokens alone; a transformer reads the "
            "texts: give the source"
        )
    tokens = [pieces(text, settings.tokenizer) for text in part.written]
    # A sentence may end elsewhere where tags are not dropped; words and marks are the same ones.
    if any(len(text) < settings.min_tokens for text in tokens):
        raise InputError(
            f"{settings.source}: expected texts of {settings.min_tokens} sentences or more as they are "
            "written, got one that has as many only without its tags; leave it out, or lower --min-tokens"
        )
    marks = part.rationale
    if marks is not None:
        marks = [
            mask if len(mask) == len(pieces_of) else np.zeros(len(pieces_of), dtype=bool)
            for mask, pieces_of in zip(marks, tokens, strict=True)
        ]
    return replace(part, tokens=tokens, rationale=marks, written=None)
