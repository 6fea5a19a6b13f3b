"""Folders in ERASER's layout (DeYoung et al. 2020): texts with the evidence that people marked in them.

`train.jsonl`, `val.jsonl` and `test.jsonl` hold one annotation per line:

    {"annotation_id": "pos_1.txt", "classification": "POS", "query": "What is the sentiment?",
     "evidences": [[{"docid": "pos_1.txt", "start_token": 3, "end_token": 7}]]}

`docs/DOCID` is a document, a line per sentence, its words separated by spaces; the spans are of these words,
through all lines. A query is read only if there are different ones. `val` is the dev split.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from heedmap.data.json_rows import read_lines
from heedmap.data.rationale_columns import Tokenize, mark, mask_of
from heedmap.data.rows import Parts, Row
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


def read_eraser(folder: Path, tokenize: Tokenize, left_out: Counter[str], raw: bool) -> Parts:
    """Read the annotations of a folder by split, each with its document; count what is left out.

    Args:
        folder: see the module.
        tokenize: makes a text's tokens.
        left_out: counts by reason.
        raw: the texts are for a transformer, which reads no queries.

    Raises:
        InputError: a file that cannot be read, or a line that is no such annotation: names file, line, field.
    """
    parts: Parts = {}
    documents: dict[Path, list[str]] = {}
    queries: list[str] = []
    for split, name in FILES.items():
        if not (folder / name).is_file():
            continue
        parts[split] = []
        for where, annotation in _annotations(folder / name):
            found = docids_of(annotation, where)
            if len(found) > 1:
                left_out[f"{split}: {SEVERAL}"] += 1
                continue
            words = _words(folder / "docs", found[0], documents, where)
            mask = mask_of(_spans(annotation, where), len(words), f"{where}: evidences")
            text = " ".join(words)
            tokens = tokenize(text)
            if not tokens:
                left_out["empty document"] += 1
                continue
            queries.append(_text(annotation, "query", where, missing=""))
            row = Row(
                _text(annotation, "annotation_id", where),
                tokens,
                _text(annotation, "classification", where),
                query=tokenize(queries[-1]),
                written=None if raw else text,
            )
            mark(row, words, mask, tokenize, split, left_out)
            parts[split].append(row)
    several = len(set(queries)) > 1
    if several and raw:
        raise InputError(
            f"{folder}: texts with different queries; a transformer reads single texts"
        )
    for row in (row for rows in parts.values() for row in rows):
        row.query = row.query if several else None
    return parts


def docids(folder: Path) -> dict[str, str]:
    """Return the document of each annotation of a folder, by `annotation_id`.

    Raises:
        InputError: as `read_eraser`.
    """
    found = {}
    for name in FILES.values():
        if (folder / name).is_file():
            for where, annotation in _annotations(folder / name):
                found[_text(annotation, "annotation_id", where)] = docids_of(annotation, where)[0]
    return found


def _annotations(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path}, line {number}", row) for number, row in read_lines(path)]


def docids_of(annotation: dict[str, Any], where: str) -> list[str]:
    """Return the documents of an annotation: named, or those of its evidence, or that of its own name."""
    named = annotation.get("docids") or []
    if not isinstance(named, list):
        raise InputError(f"{where}: docids: expected a list of names, got {named!r:.60}")
    found = [str(name) for name in named]
    found += [_text(one, "docid", where) for one in _evidence(annotation, where)]
    return list(dict.fromkeys(found)) or [_text(annotation, "annotation_id", where)]


def _evidence(annotation: dict[str, Any], where: str) -> list[dict[str, Any]]:
    groups = annotation.get("evidences")
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and all(isinstance(one, dict) for one in group) for group in groups
    ):
        raise InputError(
            f"{where}: evidences: expected a list of lists of spans, got {groups!r:.60}"
            if "evidences" in annotation
            else f"{where}: evidences: missing; expected a list of lists of spans"
        )
    return [one for group in groups for one in group]


def _spans(annotation: dict[str, Any], where: str) -> list[tuple[int, int]]:
    found = []
    for one in _evidence(annotation, where):
        ends = []
        for name in ("start_token", "end_token"):
            if type(one.get(name)) is not int:
                raise InputError(
                    f"{where}: evidences: {name}: expected a number of a word, got {one.get(name)!r:.60}"
                )
            ends.append(one[name])
        found.append((ends[0], ends[1]))
    return found


def _text(row: dict[str, Any], name: str, where: str, missing: str | None = None) -> str:
    value = row.get(name)
    if value is None and missing is not None:
        return missing
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise InputError(f"{where}: {name}: expected a text, got {value!r:.60}")
    return str(value)


def _words(docs: Path, docid: str, known: dict[Path, list[str]], where: str) -> list[str]:
    path = docs / docid
    if path not in known:
        if not path.resolve().is_relative_to(docs.resolve()) or not path.is_file():
            raise InputError(f"{where}: docid: expected a document in {docs}, got {docid!r:.60}")
        check_utf8(path)
        with reading(path), open_text(path) as file:
            lines = file.read().split("\n")
        known[path] = [word for line in lines for word in line.strip().split(" ") if word]
    return known[path]
