"""Read a corpus: from files, a data set, or memory, into splits to train on or texts to audit."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import UNKNOWN, Corpus, Split
from heedmap.data.in_memory import InMemory, Source, Values, source_of
from heedmap.data.labels import ordered, unlabelled
from heedmap.data.matching import match
from heedmap.data.quality import notes
from heedmap.data.readers import SPLITS
from heedmap.data.rows import Parts, Row, also_in, complete, sampled, within_limits
from heedmap.data.selection import classes_of, read_dataset
from heedmap.data.sources import EMBEDDED, STORIES, read_parts
from heedmap.data.streams import reading
from heedmap.data.text_names import text_name
from heedmap.data.tokens import pieces, spaced
from heedmap.errors import InputError
from heedmap.keywords import split, takes
from heedmap.settings import TOKENS, DataSettings
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
            (with gendered words), `babi_qa1`, `babi_qa2`, `babi_qa3` (questions about stories); or what is in
            memory: a pandas frame, a `Dataset` or `DatasetDict` of the `datasets` library, records (a list of
            dicts), or a list of texts.
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
    name, given = source_of(source, labels, queries)
    (options,) = split("load", settings, TOKENS)
    papers = "dataset" in options or name in STORIES
    most = {"max_tokens": UNLIMITED} if papers else {}
    asked = {} if queries is None else {"query": "query"}
    wanted = DataSettings.of(source=name, **{**most, **asked, **options})
    with working("reading the texts", progress, share=0.0):
        corpus = load_corpus(wanted, given=given)
    corpus.warn()
    return corpus


def load_corpus(
    settings: DataSettings, outputs: Sequence[str] = (), given: InMemory | None = None
) -> Corpus:
    """Read the corpus that the settings describe (see `load`), from the texts `given` if they are in memory.

    Where it is not for training, `outputs` names the classes of the model that will read it.
    """
    if given is not None:
        settings = settings.model_copy(update={"source": given.name})  # in errors
        corpus = _read_corpus(settings, outputs, given)
        settings = corpus.settings.model_copy(update={"source": given.source()})
        return replace(corpus, settings=settings, given=given)
    return _read_corpus(settings, outputs, None)


def _read_corpus(settings: DataSettings, outputs: Sequence[str], given: InMemory | None) -> Corpus:
    left_out: Counter[str] = Counter()
    read: list[str] = []
    columns: dict[str, str] = {}
    others: Parts = {}
    with reading(settings.source):
        if settings.dataset is not None and settings.source not in EMBEDDED:
            parts = read_dataset(settings, left_out, read, columns, given)
        else:
            parts = read_parts(settings, left_out, read, columns, given=given)
            parts = _labelled(parts, settings.classes or outputs, left_out)
    settings = settings.model_copy(update=columns)
    if settings.training:
        corpus = _to_train(parts, settings, left_out)
        return replace(corpus, notes=[*read, *corpus.notes])
    if settings.source not in EMBEDDED:
        # The test split; without one, everything in a file without splits; without that, dev or train.
        wanted = next((name for name in ("test", "all", "dev", "train") if name in parts), None)
        if wanted is None:
            raise _nothing_left(settings, left_out)
        without = sum(n for why, n in left_out.items() if why.startswith("test: label missing"))
        if wanted != "test" and without:
            read.append(f"test: {without} texts without a label; those of {wanted} are audited")
        unread = tuple(f"{name}:" for name in SPLITS if name != wanted)
        others = {name: parts[name] for name in SPLITS if name in parts and name != wanted}
        parts = {wanted: parts[wanted]}
        left_out = Counter({why: n for why, n in left_out.items() if not why.startswith(unread)})
    corpus = _to_audit(parts, others, settings, left_out, outputs)
    return replace(corpus, notes=[*read, *corpus.notes])


def _labelled(parts: Parts, classes: Sequence[str], left_out: Counter[str]) -> Parts:
    """Leave out and count the rows whose label says that there is none (`unlabelled`)."""
    labels = {name: {row.label for row in rows} for name, rows in parts.items()}
    if set().union(*labels.values()) == {""}:  # the data have no labels at all
        return parts
    none = unlabelled(set().union(*labels.values()), classes)
    # The Hub's test sets without labels: -1 in each row, and in no other split.
    if [name for name in labels if "-1" in labels[name]] == ["test"] and labels["test"] == {"-1"}:
        none.add("-1")
    found = {}
    for name, rows in parts.items():
        said = Counter(row.label for row in rows if row.label in none)
        for label, count in sorted(said.items()):
            reason = f"label missing ({label})"
            left_out[reason if name == "all" else f"{name}: {reason}"] += count
        if kept := [row for row in rows if row.label not in none]:
            found[name] = kept
    return found


def as_written(corpus: Corpus) -> Corpus:
    """Return the same texts with their case and spaces: joined, the tokens are the text.

    So a transformer reads them. A corpus of test texts alone is read from its source, with those to train on.

    Raises:
        InputError: the texts are pairs, read by a data set's own rules, which keep no case and no spaces, or
            known by their tokens alone; or the source cannot be read.
    """
    settings = corpus.settings
    if corpus.pairs or settings.dataset is not None:
        raise InputError(
            f"{settings.source}: expected single texts as they are written, got "
            f"{'pairs of texts' if corpus.pairs else f'the data set {settings.dataset}'}; a transformer "
            "reads its data without query and without dataset"
        )
    if settings.raw and settings.training:
        return corpus
    raw = settings.model_copy(update={"raw": True, "training": True})
    if not settings.training:
        return load_corpus(raw, given=corpus.given)
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
            mask if len(mask) == len(now) else np.zeros(len(now), dtype=bool)
            for mask, now in zip(marks, tokens, strict=True)
        ]
    return replace(part, tokens=tokens, rationale=marks, written=None)


def _to_train(parts: Parts, settings: DataSettings, left_out: Counter[str]) -> Corpus:
    parts = {name: within_limits(rows, settings, left_out) for name, rows in parts.items()}
    splits = complete(parts, settings)
    if parts and not {"all", "train"} & parts.keys():
        there = ", ".join(f"{len(rows)} of {name}" for name, rows in parts.items())
        raise InputError(
            f"{settings.source}: expected texts of the train split, got {there} alone{_counts(left_out)}; give "
            "texts to train on, or take the splits away: they are drawn where there are none"
        )
    classes = ordered(row.label for row in splits["train"])
    splits["train"] = sampled(splits["train"], "train", settings, left_out)
    if not splits["train"]:
        raise _nothing_left(settings, left_out)
    if settings.dataset is not None:
        classes = classes_of(settings, splits["train"]) or classes
    present = ordered(row.label for row in splits["train"])
    if len(present) < 2:
        drawn = (
            "" if settings.train_texts is None else f" a sample of {len(splits['train'])} texts of"
        )
        raise InputError(
            f"{settings.source}: expected at least two classes in{drawn} the training split, "
            f"got {len(present)} ({', '.join(present)}); check the label column"
            f"{', or draw more' * bool(drawn)}{_counts(left_out)}"
        )
    number = {name: i for i, name in enumerate(classes)}
    arrays, kept = {}, {}
    unseen: list[Row] = []
    for name in SPLITS:
        known = [row for row in splits[name] if row.label in number]
        if others := [row for row in splits[name] if row.label not in number]:
            left_out[f"{name}: class never seen in training"] += len(others)
            unseen += others
        if not known and splits[name]:
            raise InputError(
                f"{settings.source}: no {name} label occurs in the training split: expected "
                f"{', '.join(classes[:8])}, got {', '.join(sorted({r.label for r in splits[name]})[:8])}"
            )
        if not known:
            raise InputError(
                f"{settings.source}: no rows for the {name} split; expected enough rows for train, dev and "
                f"test, got {sum(map(len, splits.values()))} in all; give more{_counts(left_out)}"
            )
        if name != "train":
            known = sampled(known, name, settings, left_out)
        arrays[name] = _split_of(known, number, settings.source, left_out, name)
        kept[name] = known
    found = notes(kept, unseen, classes, number, settings)
    shared = also_in(kept.pop("test"), kept)
    name = _name(settings.source)
    return Corpus(name, classes, arrays, settings, dict(left_out), shared, found)


def _to_audit(
    parts: Parts,
    others: Parts,
    settings: DataSettings,
    left_out: Counter[str],
    outputs: Sequence[str],
) -> Corpus:
    parts = {name: within_limits(rows, settings, left_out) for name, rows in parts.items()}
    rows = complete(parts, settings)["test"] if settings.source in EMBEDDED else []
    rows = rows or [row for part in parts.values() for row in part]
    if not rows:
        raise _nothing_left(settings, left_out)
    labels = ordered(row.label for row in rows)
    number: Mapping[str, int] = {"": UNKNOWN}
    inferred = []
    if labels != [""]:
        further = {row.label for part in others.values() for row in part}
        matching = match(settings.source, labels, outputs, settings.classes, others=further)
        number = matching.number
        inferred = [matching.note] if matching.note else []
    return Corpus(
        _name(settings.source),
        list(outputs),
        {"test": _split_of(rows, number, settings.source, left_out, "test")},
        settings,
        dict(left_out),
        also_in(
            rows, {name: within_limits(part, settings, Counter()) for name, part in others.items()}
        ),
        [*inferred, *notes({"test": rows}, (), outputs, number, settings)],
    )


def _counts(left_out: Mapping[str, int]) -> str:
    counts = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
    return f" (left out: {counts})" if counts else ""


def _nothing_left(settings: DataSettings, left_out: Mapping[str, int]) -> InputError:
    return InputError(
        f"{settings.source}: expected rows with a text and a label, none are left{_counts(left_out)}"
    )


def _name(source: str) -> str:
    stem = Path(source).name.removesuffix(".gz")
    return re.sub(r"\.(csv|tsv|txt|jsonl|ndjson|json|parquet|xlsx)$", "", stem) or "corpus"


def _split_of(
    rows: list[Row], number: Mapping[str, int], source: str, left_out: Counter[str], part: str
) -> Split:
    masks = [row.rationale for row in rows if row.rationale is not None]
    queries = [row.query for row in rows if row.query is not None]
    written = [row.written for row in rows if row.written is not None]
    return Split(
        [row.key for row in rows],
        [row.tokens for row in rows],
        np.array([number[row.label] for row in rows], dtype=np.int64),
        masks if len(masks) == len(rows) else None,
        queries if len(queries) == len(rows) else None,
        _allowed(rows, number, source, left_out, part),
        written=None if len(written) < len(rows) else written,
    )


def _allowed(
    rows: list[Row], number: Mapping[str, int], source: str, left_out: Counter[str], part: str
) -> NDArray[np.bool_] | None:
    if all(row.candidates is None for row in rows):
        return None
    allowed = np.ones((len(rows), len(number)), dtype=bool)
    for i, row in enumerate(rows):
        if row.candidates is None:
            continue
        if row.label not in row.candidates:
            raise InputError(
                f"{source}, {text_name(row.key)}: expected one of the candidates as the answer "
                f"({', '.join(row.candidates[:8])}), got {row.label}"
            )
        known = [number[name] for name in row.candidates if name in number]
        if unknown := len(row.candidates) - len(known):
            left_out[f"{part}: possible answers never seen in training"] += unknown
        allowed[i] = False
        allowed[i, known] = True
    return allowed
