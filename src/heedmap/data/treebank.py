"""Stanford Sentiment Treebank as it is published: one bracketed tree per line, a label 0-4 at every node.

    (3 (2 It) (4 (4 (2 's) (4 good)) (2 .)))

The label of a text is its root's: 0 and 1 are negative, 3 and 4 positive, 2 is neither and left out. Words
whose own label is on the text's side are its rationale.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from heedmap.data.rationale_columns import on_side, on_tokens
from heedmap.data.rows import Parts, Row
from heedmap.errors import InputError

FILES = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
_TREE = re.compile(r"\(([0-4]) .*\)")
_LEAF = re.compile(r"\(([0-4]) ([^() ]+)\)")  # a leaf may hold a non-breaking space
NEUTRAL = "2"


def is_treebank(folder: Path) -> bool:
    """Tell whether a folder holds `train.txt`, as the treebank's does."""
    return (folder / FILES["train"]).is_file()


def read(folder: Path, tokenize: Callable[[str], list[str]]) -> tuple[Parts, dict[str, int]]:
    """Read the splits that are there, labelled "0" or "1", and count what is left out and why.

    Raises:
        InputError: a file that cannot be read, or a line that is no tree, with its number.
    """
    parts: dict[str, list[Row]] = {}
    left_out: dict[str, int] = {}
    for split, name in FILES.items():
        if not (folder / name).is_file():
            continue
        rows, neutral = _rows(folder / name, split, tokenize)
        parts[split] = rows
        if neutral:
            left_out[f"{split}: neither negative nor positive"] = neutral
    return parts, left_out


def _rows(path: Path, split: str, tokenize: Callable[[str], list[str]]) -> tuple[list[Row], int]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not at the separators inside
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8; download the treebank again") from error
    rows, neutral = [], 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        root, leaves = _TREE.fullmatch(line.strip()), _LEAF.findall(line)
        if root is None or not leaves or line.count("(") != line.count(")"):
            raise InputError(
                f"{path}, line {number}: expected a tree such as (3 (2 It) (4 works)), got {line.strip():.40}"
            )
        if root[1] == NEUTRAL:
            neutral += 1
        else:
            label = "1" if root[1] > NEUTRAL else "0"
            words = [word for _, word in leaves]
            tokens = tokenize(" ".join(words))
            marked = on_side(np.array([int(sentiment) for sentiment, _ in leaves]), label)
            marks = on_tokens(words, marked, tokens, tokenize)
            rows.append(Row(f"{split}-{number}", tokens, label, marks))
    return rows, neutral
