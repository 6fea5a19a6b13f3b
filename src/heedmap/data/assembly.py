"""Assemble labelled texts into a corpus: splits to train on, or the texts to audit a model with."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.compact import MANY, CompactStrings, CompactTokens
from heedmap.data.corpus import UNKNOWN, Corpus, Split
from heedmap.data.embedded import EMBEDDED
from heedmap.data.item_vectors import ItemVectors
from heedmap.data.labels import amounts_of, ordered
from heedmap.data.matching import match
from heedmap.data.pair_sides import audited_sides
from heedmap.data.quality import notes
from heedmap.data.readers import SPLITS
from heedmap.data.rows import LabelledTexts, Parts, Row, chosen, column, gathered
from heedmap.data.selection import classes_of
from heedmap.data.splits import also_in, fill_splits, parts_within_limits, sampled
from heedmap.data.text_names import text_name
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


def to_train(texts: LabelledTexts, settings: DataSettings) -> Corpus:
    """Make the corpus to train on: train, dev and test, with the classes of the training texts.

    Raises:
        InputError: no text of a split, fewer than two classes, or no class of a split that is one of training.
    """
    parts, counts = parts_within_limits(texts.parts, settings)
    left_out = Counter(texts.left_out)
    left_out.update(counts)
    splits = fill_splits(parts, settings)
    if parts and not {"all", "train"} & parts.keys():
        sizes = ", ".join(f"{len(rows)} of {name}" for name, rows in parts.items())
        raise InputError(
            f"{settings.source}: expected texts of the train split, got {sizes} alone{_counts(left_out)}; give "
            "texts to train on, or take the splits away: they are drawn where there are none"
        )
    classes = ordered(column(splits["train"], "label"))
    splits["train"], rest = sampled(splits["train"], "train", settings)
    left_out.update(rest)
    if not splits["train"]:
        raise _nothing_left(settings, left_out)
    if settings.dataset is not None:
        classes = classes_of(settings, splits["train"]) or classes
    _check_several_classes(splits["train"], settings, left_out)
    number = {name: i for i, name in enumerate(classes)}
    arrays, rows_of = {}, {}
    unseen: list[Row] = []
    for name in SPLITS:
        rows = chosen(splits[name], number.__contains__)
        if strangers := chosen(splits[name], lambda label: label not in number):
            left_out[f"{name}: class never seen in training"] += len(strangers)
            unseen += strangers
        if not rows and splits[name]:
            raise InputError(
                f"{settings.source}: no {name} label occurs in the training split: expected "
                f"{', '.join(classes[:8])}, got {', '.join(sorted({r.label for r in splits[name]})[:8])}"
            )
        if not rows:
            raise InputError(
                f"{settings.source}: no rows for the {name} split; expected enough rows for train, dev and "
                f"test, got {sum(map(len, splits.values()))} in all; give more{_counts(left_out)}"
            )
        if name != "train":
            rows, rest = sampled(rows, name, settings)
            left_out.update(rest)
        arrays[name], unseen_answers, unread_marks = _split_of(
            rows, number, settings, texts.vectors
        )
        left_out.update(unread_marks)
        if unseen_answers:
            left_out[f"{name}: possible answers never seen in training"] += unseen_answers
        rows_of[name] = rows
    return Corpus(
        _name(settings.source),
        classes,
        arrays,
        settings,
        dict(left_out),
        also_in(rows_of["test"], {name: rows_of[name] for name in SPLITS if name != "test"}),
        [*texts.notes, *notes(rows_of, unseen, classes, number, settings)],
    )


def _check_several_classes(
    train: Sequence[Row], settings: DataSettings, left_out: Mapping[str, int]
) -> None:
    present = ordered(column(train, "label"))
    if len(present) < 2:
        is_sample = settings.train_texts is not None
        raise InputError(
            f"{settings.source}: expected at least two classes in"
            f"{f' a sample of {len(train)} texts of' * is_sample} the training split, "
            f"got {len(present)} ({', '.join(present)}); check the label column"
            f"{', or draw more' * is_sample}{_counts(left_out)}"
        )


def to_audit(texts: LabelledTexts, settings: DataSettings, outputs: Sequence[str]) -> Corpus:
    """Make the corpus to audit a model with, whose classes are `outputs`: one split, test.

    It is the source's test split; without one, everything in a file without splits; without that, dev or train.

    Raises:
        InputError: no text is left, or labels that are no classes of the model.
    """
    parts, left_out, read_notes = texts.parts, Counter(texts.left_out), [*texts.notes]
    if settings.source in EMBEDDED:
        parts, counts = parts_within_limits(parts, settings)
        left_out.update(counts)
        rows = fill_splits(parts, settings)["test"] or [
            row for part in parts.values() for row in part
        ]
        further: Parts = {}
    else:
        audited = next((name for name in ("test", "all", "dev", "train") if name in parts), None)
        if audited is None:
            raise _nothing_left(settings, left_out)
        unlabelled = sum(
            n for reason, n in left_out.items() if reason.startswith("test: label missing")
        )
        if audited != "test" and unlabelled:
            read_notes.append(
                f"test: {unlabelled} texts without a label; those of {audited} are audited"
            )
        unread = tuple(f"{name}:" for name in SPLITS if name != audited)
        left_out = Counter(
            {reason: n for reason, n in left_out.items() if not reason.startswith(unread)}
        )
        further = {name: parts[name] for name in SPLITS if name in parts and name != audited}
        fitting, counts = parts_within_limits({audited: parts[audited]}, settings)
        left_out.update(counts)
        rows = fitting[audited]
    if not rows:
        raise _nothing_left(settings, left_out)
    if settings.amounts:
        rows = _with_amounts(rows, settings.source)
    elif not settings.labels_read:
        rows = gathered(replace(row, label="") for row in rows)
    labels = ordered(column(rows, "label"))
    number: Mapping[str, int] = {"": UNKNOWN}
    if labels != [""]:
        further_labels = {label for part in further.values() for label in column(part, "label")}
        matching = match(
            settings.source, labels, outputs, settings.classes, further_labels=further_labels
        )
        number = matching.number
        read_notes += [matching.note] if matching.note else []
    split, unseen_answers, unread_marks = _split_of(rows, number, settings, texts.vectors)
    left_out.update(unread_marks)
    if unseen_answers:
        left_out["test: possible answers never seen in training"] += unseen_answers
    return Corpus(
        _name(settings.source),
        list(outputs),
        {"test": split},
        settings,
        dict(left_out),
        also_in(rows, parts_within_limits(further, settings)[0]),
        [*read_notes, *notes({"test": rows}, (), outputs, number, settings)],
    )


def _with_amounts(rows: Sequence[Row], source: str) -> Sequence[Row]:
    """Return rows whose labels are read as numbers, and are no classes; without labels they stay."""
    if {*column(rows, "label")} == {""}:
        return rows
    names = [text_name(row.key) for row in rows]
    amounts = amounts_of(source, [row.label for row in rows], names)
    return gathered(
        replace(row, label="", amount=amount) for row, amount in zip(rows, amounts, strict=True)
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
    return (
        re.sub(r"\.(csv|tsv|txt|jsonl|ndjson|json|parquet|xlsx|conll|iob|bio)$", "", stem)
        or "corpus"
    )


def _split_of(
    rows: Sequence[Row],
    number: Mapping[str, int],
    settings: DataSettings,
    vectors: ItemVectors | None,
) -> tuple[Split, int, dict[str, int]]:
    """Return rows as a split, how many of their possible answers are none of the classes, and other counts."""
    strings, lists = (CompactStrings, CompactTokens) if len(rows) >= MANY else (list, list)
    masks, queries, targets, choices, amounts = (
        [value for value in column(rows, name) if value is not None]
        for name in ("rationale", "query", "target", "choices", "amount")
    )
    # Not gathered in a list: strings of Python's own take more than all else that is held of many texts.
    is_written = all(written is not None for written in column(rows, "written"))
    allowed, unseen_answers = _allowed(rows, number, settings.source)
    split = Split(
        strings(column(rows, "key")),
        lists(column(rows, "tokens")),
        np.array([number[label] for label in column(rows, "label")], dtype=np.int64),
        masks if len(masks) == len(rows) else None,
        queries if len(queries) == len(rows) else None,
        allowed,
        written=strings(column(rows, "written")) if is_written else None,
        vectors=vectors,
        targets=np.array(targets, dtype=np.int64) if len(targets) == len(rows) else None,
        choices=choices if len(choices) == len(rows) else None,
        amounts=np.array(amounts, dtype=np.float64) if len(amounts) == len(rows) else None,
        pretokenized=settings.asks == "words",
    )
    audited, unread = audited_sides(split, settings)
    return audited, unseen_answers, unread


def _allowed(
    rows: Sequence[Row], number: Mapping[str, int], source: str
) -> tuple[NDArray[np.bool_] | None, int]:
    """Return which classes are possible answers of each row, and count those that are no classes."""
    if all(candidates is None for candidates in column(rows, "candidates")):
        return None, 0
    allowed, unseen_answers = np.ones((len(rows), len(number)), dtype=bool), 0
    for i, row in enumerate(rows):
        if row.candidates is None:
            continue
        if row.label not in row.candidates:
            raise InputError(
                f"{source}, {text_name(row.key)}: expected one of the candidates as the answer "
                f"({', '.join(row.candidates[:8])}), got {row.label}"
            )
        answers = [number[name] for name in row.candidates if name in number]
        unseen_answers += len(row.candidates) - len(answers)
        allowed[i] = False
        allowed[i, answers] = True
    return allowed, unseen_answers
