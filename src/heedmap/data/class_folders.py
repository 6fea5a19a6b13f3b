"""Folders of texts: one folder per class, one .txt file per text, as the reviews of IMDB are published.

    reviews/pos/0_9.txt   reviews/neg/1_2.txt                        without splits
    reviews/train/pos/0_9.txt   reviews/test/pos/3_10.txt   ...      with them

A text's class is the name of its folder, its key `CLASS/FILE`. IMDB's `unsup` is no class: its texts have none.
"""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from heedmap.data.columns import Rows
from heedmap.data.dialect import may_be
from heedmap.data.readers import SPLIT_NAMES
from heedmap.data.streams import reading
from heedmap.errors import InputError

UNLABELLED = "unsup"


def read_class_folders(
    folder: Path, encoding: str | None, left_out: Counter[str]
) -> dict[str, Rows]:
    """Read the texts by split (`all` where there are none); nothing where a folder has another layout.

    Texts are UTF-8, or, with a warning, Windows-1252 where they cannot be UTF-8; or of the `encoding` given.
    What lies beside the texts of a class is counted in `left_out`.

    Raises:
        InputError: two folders for one split, or a text of another encoding, by its name.
    """
    places = _places(folder)
    classes = {split: _classes(place) for split, place in places.items()}
    if len(classes.get("train", classes.get("all", {}))) < 2:
        return {}
    found, guessed = {}, []
    for split, by_class in classes.items():
        prefix = "" if split == "all" else f"{split}: "
        keys, texts, labels = [], [], []
        for label, files in by_class.items():
            for file in files:
                if file.suffix.lower() != ".txt":
                    left_out[f"{prefix}not a .txt file"] += 1
                elif label == UNLABELLED:
                    left_out[f"{prefix}{UNLABELLED}: texts without a class"] += 1
                else:
                    text, guess = _read(file, encoding)
                    guessed += [file] * guess
                    keys.append(f"{label}/{file.name}")
                    texts.append(text)
                    labels.append(label)
        found[split] = _rows(places[split], keys, texts, labels)
    if guessed:
        warnings.warn(
            f"{folder}: {len(guessed)} texts are not UTF-8 ({guessed[0]}); read as Windows-1252: look whether "
            "letters with accents are right, or name the encoding with --encoding",
            stacklevel=2,
        )
    return found


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
    found = {path.name: _below(path) for path in _below(folder) if path.is_dir()}
    return {
        name: [file for file in files if file.is_file()]
        for name, files in found.items()
        if any(file.suffix.lower() == ".txt" for file in files)
    }


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _read(file: Path, encoding: str | None) -> tuple[str, bool]:
    """Return a text, and whether its encoding was guessed."""
    with reading(file):
        content = file.read_bytes()
    try:
        return content.decode(encoding or "utf-8-sig"), False
    except UnicodeError as error:
        if encoding is None and may_be(content, "cp1252"):
            return content.decode("cp1252"), True
        raise InputError(
            f"{file}: not {(encoding or 'utf-8').upper()}; name its encoding with --encoding, or save it as "
            "UTF-8"
        ) from error


def _rows(folder: Path, keys: Sequence[str], texts: Sequence[str], labels: Sequence[str]) -> Rows:
    columns: Mapping[str, Sequence[str]] = {"id": keys, "text": texts, "label": labels}
    return Rows(
        list(columns),
        len(keys),
        lambda name: list(columns[name]),
        where=lambda i: str(folder / keys[i]),
    )
