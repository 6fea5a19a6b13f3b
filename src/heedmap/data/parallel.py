"""Sentences and their translations: a pair of text files, a table, a folder of either by split, or a Hub name.

    FOLDER/train.jsonl         columns named as the languages, say de and en
    FOLDER/train.de train.en   or a file per language, a sentence a line

Links between words are pairs of numbers from 0, as "0-0 1-1" or as a list of such pairs.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.columns import Rows
from heedmap.data.file_kinds import kind_of
from heedmap.data.readers import SPLITS, read_hub, read_rows, split_files
from heedmap.data.streams import check_utf8, open_text, reading
from heedmap.errors import InputError
from heedmap.terminal.output import remark

Link = tuple[int, int]
HELD_OUT = 10  # of one split, every tenth pair is for the test, and as many for dev


@dataclass(frozen=True)
class Pairs:
    """Sentences as lists of words. `sure` and `possible` are links of words where somebody drew them."""

    source: list[list[str]]
    target: list[list[str]]
    sure: list[set[Link]] | None = None
    possible: list[set[Link]] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "Pairs":
        """Return some of the pairs, in the order given."""
        return Pairs(
            [self.source[i] for i in rows],
            [self.target[i] for i in rows],
            None if self.sure is None else [self.sure[i] for i in rows],
            None if self.possible is None else [self.possible[i] for i in rows],
        )

    def fingerprint(self) -> str:
        """Hash all words and links: the same pairs give the same."""
        links = [
            None if side is None else [sorted(links) for links in side]
            for side in (self.sure, self.possible)
        ]
        content = repr((self.source, self.target, links))
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Parallel:
    """Pairs by split, and what was left out and why."""

    name: str
    splits: dict[str, Pairs]
    left_out: dict[str, int] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Hash all words and links: the same corpus gives the same."""
        content = "".join(self.splits[name].fingerprint() for name in SPLITS)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def load_parallel(
    place: str | Path, source: str, target: str, *, most_words: int = 60, align: str | None = None
) -> Parallel:
    """Read sentences of a `source` language and their translations.

    Words are what spaces separate. Pairs with a longer sentence are left out, and counted. Without dev and
    test, every tenth pair is for each.

    Args:
        place: a folder, a table, the common path of two text files (`corpus` for corpus.de and corpus.en), or
            a Hub name.
        source, target: the languages' names: those of the columns, or of the files' ends.
        most_words: of a sentence.
        align: a column with links of words and the languages of their two ends, as `align_auto:en-de`. Beside
            a column `sure`, one named `possible` is read too.

    Raises:
        InputError: no such files or columns; one language for both; files of different lengths; an empty
            sentence; a link that is out of range.
    """
    if source == target:
        raise InputError(
            f"{place}: expected two languages, got {source} for both; name them with --from and --to"
        )
    parts = _parts(Path(place), str(place), source, target, align)
    splits, left_out = {}, {}
    for name, pairs in parts.items():
        fits = [
            i
            for i in range(len(pairs))
            if max(len(pairs.source[i]), len(pairs.target[i])) <= most_words
        ]
        splits[name] = pairs.take(fits)
        if len(fits) < len(pairs):
            left_out[f"{name}: more than {most_words} words"] = len(pairs) - len(fits)
    if set(splits) == {"train"}:
        indices, whole = np.arange(len(splits["train"])), splits["train"]
        splits = {
            "train": whole.take(indices[indices % HELD_OUT < HELD_OUT - 2]),
            "dev": whole.take(indices[indices % HELD_OUT == HELD_OUT - 2]),
            "test": whole.take(indices[indices % HELD_OUT == HELD_OUT - 1]),
        }
    elif "dev" not in splits or "test" not in splits:
        held = next(name for name in SPLITS if name not in splits)
        raise InputError(f"{place}: expected train, dev and test, or train alone; got no {held}")
    for name in SPLITS:
        if len(splits[name]) < 2:
            raise InputError(
                f"{place}: expected 2 pairs of sentences or more in {name}, got {len(splits[name])}"
            )
    return Parallel(Path(place).name, splits, left_out)


def load_links(place: str | Path, source: str, target: str, align: str) -> Pairs:
    """Read sentences whose words people linked: a table, or a folder with a table `test`; see `load_parallel`.

    Raises:
        InputError: as `load_parallel`.
    """
    path = Path(place)
    if path.is_dir():
        tables = [
            entry
            for entry in sorted(path.iterdir())
            if entry.name.startswith("test.") and kind_of(entry) is not None
        ]
        if len(tables) != 1:
            raise InputError(f"{path}: expected one table test.jsonl, got {len(tables)}")
        path = tables[0]
    return _of_table(read_rows(path), path, source, target, align)


def _parts(path: Path, place: str, source: str, target: str, align: str | None) -> dict[str, Pairs]:
    with reading(path):
        is_folder = path.is_dir()
    if is_folder:
        by_split = {
            split: _of_texts(path / split, source, target)
            for split in SPLITS
            if (path / f"{split}.{source}").exists()
        }
        if not by_split:
            by_split = {
                split: _of_table(read_rows(file), file, source, target, align)
                for split, file in split_files(path).items()
            }
        if "train" not in by_split:
            raise InputError(
                f"{path}: expected train.{source} and train.{target}, or a table train.jsonl with these columns"
            )
        return by_split
    if kind_of(path) is not None:
        return {"train": _of_table(read_rows(path), path, source, target, align)}
    if path.with_name(f"{path.name}.{source}").exists():
        return {"train": _of_texts(path, source, target)}
    return {
        split: _of_table(rows, Path(f"{place}, {split}"), source, target, align)
        for split, rows in read_hub(place).items()
        if split in SPLITS
    }


def _of_texts(stem: Path, source: str, target: str) -> Pairs:
    sides = []
    for language in (source, target):
        path = stem.with_name(f"{stem.name}.{language}")
        if not path.exists():
            raise InputError(f"{path}: no such file; expected the other language of {stem.name}")
        check_utf8(path)
        with reading(path), open_text(path) as file:
            sides.append(list(file))
    return _pairs(sides[0], sides[1], [f"{stem}.{language}" for language in (source, target)])


def _of_table(rows: Rows, path: Path, source: str, target: str, align: str | None) -> Pairs:
    for note in rows.notes_on(None):
        remark(f"{path}: {note}")
    if "translation" in rows.columns and source not in rows.columns:
        translations = rows.values("translation")  # as sets on the Hub have it
        sides = [
            [(translation or {}).get(name) for translation in translations]
            for name in (source, target)
        ]
    else:
        missing = [name for name in (source, target) if name not in rows.columns]
        if missing:
            raise InputError(
                f"{path}: no column {missing[0]}; there are {', '.join(rows.columns)}: name the languages with "
                "--from and --to"
            )
        sides = [rows.values(name) for name in (source, target)]
    pairs = _pairs(sides[0], sides[1], [f"{path}, {language}" for language in (source, target)])
    if align is None:
        return pairs
    name, _, order = align.partition(":")
    if order not in (f"{source}-{target}", f"{target}-{source}") or name not in rows.columns:
        raise InputError(
            f"{path}: links {align!r}: expected COLUMN:{source}-{target} or COLUMN:{target}-{source}, and "
            f"one of the columns {', '.join(rows.columns)}"
        )
    ahead = order == f"{source}-{target}"
    sure = _links(rows.values(name), pairs, path, name, ahead)
    if name != "sure" or "possible" not in rows.columns:
        return Pairs(pairs.source, pairs.target, sure, sure)
    possible = _links(rows.values("possible"), pairs, path, "possible", ahead)
    return Pairs(
        pairs.source,
        pairs.target,
        sure,
        [certain | doubtful for certain, doubtful in zip(sure, possible, strict=True)],
    )


def _pairs(source: Sequence[object], target: Sequence[object], names: Sequence[str]) -> Pairs:
    if len(source) != len(target):
        raise InputError(
            f"expected as many lines in both languages; got {len(source)} in {names[0]} and {len(target)} in "
            f"{names[1]}"
        )
    sides: list[list[list[str]]] = []
    for name, lines in zip(names, (source, target), strict=True):
        words = [str(line or "").split() for line in lines]
        empty = next((i for i, words_of in enumerate(words, 1) if not words_of), None)
        if empty is not None:
            raise InputError(f"{name}: line {empty} is empty; remove it in both languages")
        sides.append(words)
    return Pairs(sides[0], sides[1])


def _links(
    values: Iterable[object], pairs: Pairs, path: Path, name: str, ahead: bool
) -> list[set[Link]]:
    """Read links: "0-0 1-2", or lists of two numbers, the source first if `ahead`. Missing ones are none."""
    links_by_pair = []
    for line, (value, source, target) in enumerate(
        zip(values, pairs.source, pairs.target, strict=True), 1
    ):
        items: Any = value.split() if isinstance(value, str) else () if value is None else value
        links = set()
        for item in items if isinstance(items, Sequence | np.ndarray) else (items,):
            ends = item.split("-") if isinstance(item, str) else item
            try:
                start, end = (int(end) for end in ends)
            except (TypeError, ValueError):
                raise InputError(
                    f"{path}, {name}, line {line}: expected links such as 0-0 or [0, 0], got {item!r}"
                ) from None
            i, j = (start, end) if ahead else (end, start)
            if not (0 <= i < len(source) and 0 <= j < len(target)):
                raise InputError(
                    f"{path}, {name}, line {line}: link {start}-{end} is out of range; the source has "
                    f"{len(source)} words and the target {len(target)}, counted from 0"
                )
            links.add((i, j))
        links_by_pair.append(links)
    return links_by_pair
