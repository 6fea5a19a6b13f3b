"""Folders of texts: one folder per class, one .txt file per text, as the reviews of IMDB are published.

    reviews/pos/0_9.txt   reviews/neg/1_2.txt                        without splits
    reviews/train/pos/0_9.txt   reviews/test/pos/3_10.txt   ...      with them

Files without an ending are texts too where a class has no others, as in 20 Newsgroups.
A text's class is the name of its folder, its key `CLASS/FILE`. IMDB's `unsup` is no class: its texts have none.
Texts further down, or beside the folders, are of no class that is certain: they are counted.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heedmap.data.columns import Rows, Tables
from heedmap.data.dialect import as_utf8
from heedmap.data.readers import SPLIT_NAMES, one_per_split
from heedmap.errors import InputError

UNLABELLED = "unsup"
_BESIDE = "not in a class's folder"
ChosenFiles = Callable[[Sequence[Path]], Sequence[Path]]
"""Returns those of a folder's files that are read: texts, or pictures."""


def read_class_folders(folder: Path, encoding: str | None) -> Tables | None:
    """Read the texts by split (`all` where there are none); None where a folder has another layout.

    The encoding of each text is the one that is given, or found as that of a CSV file is.
    Files that are not read are counted.

    Raises:
        InputError: two folders for one split, or a text of another encoding, by its name.
    """
    homes = split_folders(folder, _texts)
    if "train" not in homes:  # the folder itself, if it has no split to train on
        homes = {"all": folder}
    files_by_class = {split: class_files(home, _texts) for split, home in homes.items()}
    if len(files_by_class.get("train", files_by_class.get("all", {}))) < 2:
        return None
    left_out: Counter[str] = Counter()
    tables: dict[str, Rows] = {}
    unread: dict[str, list[Path]] = {}
    for split, by_class in files_by_class.items():
        prefix, home = "" if split == "all" else f"{split}: ", homes[split]
        tables[split], counts = _read_classes(home, by_class, encoding)
        left_out.update({f"{prefix}{reason}": count for reason, count in counts.items()})
        inner = [path for name in by_class for path in _visible(home / name) if path.is_dir()]
        unread[f"{prefix}in a folder within a class's folder"] = inner
        unread[f"{prefix}{_BESIDE}"] = [p for p in _visible(home) if p.name not in by_class]
    if "all" not in homes:
        unread[_BESIDE] = [p for p in _visible(folder) if p not in homes.values()]
    sizes = {reason: sum(map(_count_texts, paths)) for reason, paths in unread.items()}
    left_out.update({reason: size for reason, size in sizes.items() if size})
    return Tables(tables, left_out)


def _read_classes(
    home: Path, by_class: Mapping[str, Sequence[Path]], encoding: str | None
) -> tuple[Rows, Counter[str]]:
    """Read the texts of one split, and count by reason the files that are none."""
    left_out: Counter[str] = Counter()
    keys, texts, labels, without_ending = [], [], [], 0
    guesses: dict[str, list[str]] = {}
    for label, files in by_class.items():
        text_files = {*_texts(files)}
        without_ending += sum(not file.suffix for file in text_files)
        for file in files:
            if file not in text_files:
                left_out["not a .txt file"] += 1
            elif label == UNLABELLED:
                left_out[f"{UNLABELLED}: texts without a class"] += 1
            else:
                content, _, guess_notes = as_utf8(file, encoding)
                keys.append(checked_name(file, f"{label}/{file.name}"))
                for note in guess_notes:
                    guesses.setdefault(note, []).append(keys[-1])
                texts.append(content.decode())
                labels.append(label)
    columns: Mapping[str, Sequence[str]] = {"id": keys, "text": texts, "label": labels}
    notes = [
        f"{len(guessed)} of {len(keys)} texts (first: {guessed[0]}): {note}"
        for note, guessed in guesses.items()
    ]
    notes += [f"files without an ending, read as texts: {without_ending}"] * bool(without_ending)
    rows = Rows(
        list(columns),
        len(keys),
        lambda name: list(columns[name]),
        place_of=lambda i: str(home / keys[i]),
        notes=notes,
    )
    return rows, left_out


def checked_name(file: Path, key: str) -> str:
    """Refuse the name of a class, a text or a picture that is not UTF-8: it stands in every result."""
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(file)!a}: expected names of folders and files in UTF-8, got others; rename them"
        ) from error
    return key


def split_folders(folder: Path, chosen_files: ChosenFiles) -> dict[str, Path]:
    """Return the folder of each split in which there are folders of classes; empty where there are none."""
    return one_per_split(
        folder,
        (
            (path, path.name)
            for path in _visible(folder)
            if path.is_dir() and class_files(path, chosen_files)
        ),
    )


def class_files(folder: Path, chosen_files: ChosenFiles) -> dict[str, list[Path]]:
    """Return all files of each folder in which some are chosen: texts, or pictures; splits are no classes."""
    by_name = {
        path.name: [file for file in _visible(path) if file.is_file()]
        for path in _visible(folder)
        if path.is_dir()
    }
    classes = {name: files for name, files in by_name.items() if chosen_files(files)}
    return {} if all(name.lower() in SPLIT_NAMES for name in classes) else classes


def _texts(files: Sequence[Path]) -> list[Path]:
    """Return the .txt files; where there are none, all files if they are several and have no ending."""
    if texts := [file for file in files if file.suffix.lower() == ".txt"]:
        return texts
    return [*files] if len(files) > 1 and not any(file.suffix for file in files) else []


def _count_texts(path: Path) -> int:
    """Count the texts in a folder, at any depth; a file is one text, or none."""
    names = [path.name] if path.is_file() else []
    for _, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [name for name in files if not name.startswith(".")]
    return sum(name.lower().endswith(".txt") for name in names)


def _visible(folder: Path) -> list[Path]:
    """Return what a folder holds, without hidden files, which systems leave there (.DS_Store)."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
