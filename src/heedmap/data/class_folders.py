"""Folders of texts: one folder per class, one .txt file per text, as the reviews of IMDB are published.

    reviews/pos/0_9.txt   reviews/neg/1_2.txt                        without splits
    reviews/train/pos/0_9.txt   reviews/test/pos/3_10.txt   ...      with them

Files without an ending are texts too where a class has no others, as in 20 Newsgroups.
A text's class is the name of its folder, its key `CLASS/FILE`. IMDB's `unsup` is no class: its texts have none.
Texts further down, or beside the folders, are of no class that is certain: they are counted.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from heedmap.data.columns import Rows
from heedmap.data.dialect import as_utf8
from heedmap.data.readers import SPLIT_NAMES
from heedmap.errors import InputError

UNLABELLED = "unsup"
_BESIDE = "not in a class's folder"


def read_class_folders(
    folder: Path, encoding: str | None, left_out: Counter[str]
) -> dict[str, Rows]:
    """Read the texts by split (`all` where there are none); nothing where a folder has another layout.

    The encoding of each text is the one that is given, or found as that of a CSV file is.
    Files that are not read are counted in `left_out`.

    Raises:
        InputError: two folders for one split, or a text of another encoding, by its name.
    """
    places = _places(folder)
    classes = {split: _classes(place) for split, place in places.items()}
    if len(classes.get("train", classes.get("all", {}))) < 2:
        return {}
    found, unread = {}, {}
    for split, by_class in classes.items():
        prefix = "" if split == "all" else f"{split}: "
        keys, texts, labels, without = [], [], [], 0
        guessed: dict[str, list[str]] = {}
        for label, files in by_class.items():
            wanted = {*_texts(files)}
            without += sum(not file.suffix for file in wanted)
            for file in files:
                if file not in wanted:
                    left_out[f"{prefix}not a .txt file"] += 1
                elif label == UNLABELLED:
                    left_out[f"{prefix}{UNLABELLED}: texts without a class"] += 1
                else:
                    content, _, guesses = as_utf8(file, encoding)
                    keys.append(_checked_name(file, f"{label}/{file.name}"))
                    for guess in guesses:
                        guessed.setdefault(guess, []).append(keys[-1])
                    texts.append(content.decode())
                    labels.append(label)
        notes = [
            f"{len(found_in)} of {len(keys)} texts (first: {found_in[0]}): {guess}"
            for guess, found_in in guessed.items()
        ]
        notes += [f"files without an ending, read as texts: {without}"] * bool(without)
        found[split] = replace(_rows(places[split], keys, texts, labels), notes=notes)
        within = [path for name in by_class for path in _below(places[split] / name)]
        unread[f"{prefix}in a folder within a class's folder"] = [*filter(Path.is_dir, within)]
        beside = [path for path in _below(places[split]) if path.name not in by_class]
        unread[f"{prefix}{_BESIDE}"] = beside
    if "all" not in places:
        unread[_BESIDE] = [path for path in _below(folder) if path not in places.values()]
    sizes = {reason: sum(map(_texts_in, paths)) for reason, paths in unread.items()}
    left_out.update({reason: size for reason, size in sizes.items() if size})
    return found


def _checked_name(file: Path, key: str) -> str:
    """Refuse the name of a class or a text that is not UTF-8: it stands in every result."""
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(file)!a}: expected names of folders and files in UTF-8, got others; rename them"
        ) from error
    return key


def _places(folder: Path) -> dict[str, Path]:
    """Return the folder of each split, or the folder itself where it has none to train on."""
    found: dict[str, Path] = {}
    for path in _below(folder):
        split = SPLIT_NAMES.get(path.name.lower())
        if split is None or not path.is_dir() or not _classes(path):
            continue
        if split in found:
            raise InputError(
                f"{folder}: both {found[split].name} and {path.name} could be its {split} split; keep one"
            )
        found[split] = path
    return found if "train" in found else {"all": folder}


def _classes(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each folder that has texts."""
    found = {
        path.name: [file for file in _below(path) if file.is_file()]
        for path in _below(folder)
        if path.is_dir()
    }
    return {name: files for name, files in found.items() if _texts(files)}


def _texts(files: Sequence[Path]) -> list[Path]:
    """Return the .txt files; where there are none, all files if they are several and have no ending."""
    if texts := [file for file in files if file.suffix.lower() == ".txt"]:
        return texts
    return [*files] if len(files) > 1 and not any(file.suffix for file in files) else []


def _texts_in(path: Path) -> int:
    """Count the texts in a folder, at any depth; a file is one text, or none."""
    names = [path.name] if path.is_file() else []
    for _, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [name for name in files if not name.startswith(".")]
    return sum(name.lower().endswith(".txt") for name in names)


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _rows(folder: Path, keys: Sequence[str], texts: Sequence[str], labels: Sequence[str]) -> Rows:
    columns: Mapping[str, Sequence[str]] = {"id": keys, "text": texts, "label": labels}
    return Rows(
        list(columns),
        len(keys),
        lambda name: list(columns[name]),
        where=lambda i: str(folder / keys[i]),
    )
