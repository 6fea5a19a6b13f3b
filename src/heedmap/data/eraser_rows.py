"""Folders in ERASER's layout (DeYoung et al. 2020): texts with the evidence that people marked in them.

`train.jsonl`, `val.jsonl` and `test.jsonl` hold one annotation per line:

    {"annotation_id": "pos_1.txt", "classification": "POS", "query": "What is the sentiment?",
     "evidences": [[{"docid": "pos_1.txt", "start_token": 3, "end_token": 7}]]}

`docs/DOCID` is a document, a line per sentence, its words separated by spaces; the spans are of these words,
through all lines. A query is read only if there are different ones. `val` is the dev split.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedmap.data.json_rows import read_lines
from heedmap.data.rationale_columns import NOT_FOUND, Tokenize, mask_of, rationale_of
from heedmap.data.rows import LabelledTexts, Row
from heedmap.data.streams import check_utf8, open_text, reading
from heedmap.errors import InputError

FILES = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}
SEVERAL = "evidence in several documents"


def is_eraser(folder: Path) -> bool:
    """Tell whether a folder has ERASER's layout: documents, and training lines with an `annotation_id`."""
    train = folder / FILES["train"]
    if not (folder / "docs").is_dir() or not train.is_file():
        return False
    with reading(train), train.open("rb") as file:
        return b'"annotation_id"' in file.readline(1 << 20)


def read_eraser(folder: Path, tokenize: Tokenize, raw: bool) -> LabelledTexts:
    """Read the annotations of a folder by split, each with its document.

    Args:
        folder: see the module.
        tokenize: makes a text's tokens.
        raw: the texts are for a transformer, which reads no queries.

    Raises:
        InputError: a file that cannot be read, or a line that is no such annotation: names file, line, field.
    """
    parts: dict[str, list[Row]] = {}
    left_out: Counter[str] = Counter()
    words_by_path: dict[Path, list[str]] = {}
    queries: set[str] = set()
    for split, name in FILES.items():
        if not (folder / name).is_file():
            continue
        parts[split] = []
        for place, annotation in _annotations(folder / name):
            documents = docids_of(annotation, place)
            if len(documents) > 1:
                left_out[f"{split}: {SEVERAL}"] += 1
                continue
            words = _words(folder / "docs", documents[0], words_by_path, place)
            mask = mask_of(_spans(annotation, place), len(words), f"{place}: evidences")
            text = " ".join(words)
            tokens = tokenize(text)
            if not tokens:
                left_out["empty document"] += 1
                continue
            rationale, is_known = rationale_of(words, mask, tokens, tokenize)
            if not is_known:
                left_out[f"{split}: {NOT_FOUND}"] += 1
            query = _text(annotation, "query", place, missing="")
            queries.add(query)
            row = Row(
                _text(annotation, "annotation_id", place),
                tokens,
                _text(annotation, "classification", place),
                rationale,
                query=tokenize(query),
                written=None if raw else text,
            )
            parts[split].append(row)
    if len(queries) > 1 and raw:
        raise InputError(
            f"{folder}: texts with different queries; a transformer reads single texts"
        )
    if len(queries) <= 1:  # the same question of every text says nothing of any
        parts = {name: [replace(row, query=None) for row in rows] for name, rows in parts.items()}
    return LabelledTexts(parts, left_out)


def docids(folder: Path) -> dict[str, str]:
    """Return the document of each annotation of a folder, by `annotation_id`.

    Raises:
        InputError: as `read_eraser`.
    """
    return {
        _text(annotation, "annotation_id", place): docids_of(annotation, place)[0]
        for name in FILES.values()
        if (folder / name).is_file()
        for place, annotation in _annotations(folder / name)
    }


def _annotations(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path}, line {number}", row) for number, row in read_lines(path)]


def docids_of(annotation: dict[str, Any], place: str) -> list[str]:
    """Return the documents of an annotation: named, or those of its evidence, or that of its own name."""
    names = annotation.get("docids") or []
    if not isinstance(names, list):
        raise InputError(f"{place}: docids: expected a list of names, got {names!r:.60}")
    documents = [str(name) for name in names]
    documents += [_text(span, "docid", place) for span in _evidence(annotation, place)]
    return list(dict.fromkeys(documents)) or [_text(annotation, "annotation_id", place)]


def _evidence(annotation: dict[str, Any], place: str) -> list[dict[str, Any]]:
    groups = annotation.get("evidences")
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and all(isinstance(span, dict) for span in group)
        for group in groups
    ):
        raise InputError(
            f"{place}: evidences: expected a list of lists of spans, got {groups!r:.60}"
            if "evidences" in annotation
            else f"{place}: evidences: missing; expected a list of lists of spans"
        )
    return [span for group in groups for span in group]


def _spans(annotation: dict[str, Any], place: str) -> list[tuple[int, int]]:
    spans = []
    for span in _evidence(annotation, place):
        for name in ("start_token", "end_token"):
            if type(span.get(name)) is not int:
                raise InputError(
                    f"{place}: evidences: {name}: expected a number of a word, got {span.get(name)!r:.60}"
                )
        spans.append((span["start_token"], span["end_token"]))
    return spans


def _text(row: dict[str, Any], name: str, place: str, missing: str | None = None) -> str:
    value = row.get(name)
    if value is None and missing is not None:
        return missing
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise InputError(f"{place}: {name}: expected a text, got {value!r:.60}")
    return str(value)


def _words(docs: Path, docid: str, words_by_path: dict[Path, list[str]], place: str) -> list[str]:
    path = docs / docid
    if path not in words_by_path:
        if not path.resolve().is_relative_to(docs.resolve()) or not path.is_file():
            raise InputError(f"{place}: docid: expected a document in {docs}, got {docid!r:.60}")
        check_utf8(path)
        with reading(path), open_text(path) as file:
            lines = file.read().split("\n")
        words_by_path[path] = [word for line in lines for word in line.strip().split(" ") if word]
    return words_by_path[path]
