"""Read sentences of labelled words from CoNLL files: a word in a line, its columns, and its label in the last.

    EU      NNP   I-NP   B-ORG
    rejects VBZ   I-VP   O

An empty line ends a sentence. Columns stand between tabs, or else between white space.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from heedmap.data.columns import Rows
from heedmap.data.streams import check_utf8, open_text, reading
from heedmap.errors import InputError

WORDS, LABELS = "tokens", "ner_tags"
LONGEST_LINE = 1 << 16
"""Characters; a word of a corpus has far fewer."""
_DOCUMENT = "-DOCSTART-"
_COMMENT = "# "
_OF_CONLLU = 10  # columns: a number, the word, ..., and no label in the last


def read_conll(path: Path) -> Rows:
    """Read a CoNLL file, .gz too: a row for each sentence, with its words in `tokens` and labels in `ner_tags`.

    Comments (lines before a sentence that begin with `# `) and -DOCSTART- lines are left out, and a note counts
    them.

    Raises:
        InputError: not UTF-8, or a line with another number of columns than the others, with its number.
    """
    check_utf8(path)
    sentences: list[tuple[int, list[list[str]]]] = []
    left_out = Counter[str]()
    with reading(path), open_text(path, "utf-8-sig", newline="\n") as file:
        sentences.extend(_sentences(path, file, left_out))

    def column(name: str) -> list[list[str]]:
        place = 0 if name == WORDS else -1
        return [[cells[place] for cells in words] for _, words in sentences]

    return Rows(
        [WORDS, LABELS],
        len(sentences),
        column,
        place_of=lambda i: f"{path}, line {sentences[i][0]}",
        hint="; a CoNLL file, of words with labels, is for models of token classification",
        notes=[_note(line, count) for line, count in left_out.items()],
    )


def _sentences(
    path: Path, file: IO[str], left_out: Counter[str]
) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the number of each sentence's first line, and the columns of its words."""
    start, width, widest_line = 0, 0, 0
    words: list[list[str]] = []
    # At most LONGEST_LINE characters at a time: a line without an end would fill the memory.
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), ""), 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}, line {number}: expected a word, got an endless line")
        if not line.strip():
            if words:
                yield start, words
            words = []
            continue
        if not words and line.startswith(_COMMENT):
            left_out[_COMMENT] += 1
            continue
        cells = line.strip("\r\n").split("\t") if "\t" in line else line.split()
        cells = [cell.strip(" ") for cell in cells]
        if cells[0] == _DOCUMENT:
            left_out[_DOCUMENT] += 1
            if words:
                yield start, words
            words = []
            continue
        if not width:
            width, widest_line = len(cells), number
            _check_columns(path, number, cells)
        if len(cells) != width or not cells[0] or not cells[-1]:
            raise InputError(
                f"{path}, line {number}: expected {width} columns, the first a word and the last its label, as "
                f"in line {widest_line}, got {len(cells)} in {line.strip()!r:.60}; correct the line, "
                "or end the sentence with an empty one"
            )
        if not words:
            start = number
        words.append(cells)
    if words:
        yield start, words


def _note(line: str, count: int) -> str:
    """Count lines that are left out; `line` is how they begin."""
    if line == _DOCUMENT:
        return f"{count:,} {line} {'line is' if count == 1 else 'lines are'} left out"
    if count == 1:
        return "1 comment (a line before a sentence that begins with #) is left out"
    return f"{count:,} comments (lines before a sentence that begin with #) are left out"


def _check_columns(path: Path, number: int, cells: list[str]) -> None:
    """Refuse a first word without a label, or of CoNLL-U, whose last column holds none."""
    if len(cells) < 2:
        raise InputError(
            f"{path}, line {number}: expected a word and in the last column its label, got one column; give "
            "each word a label"
        )
    if len(cells) == _OF_CONLLU and cells[0].partition("-")[0] == "1":
        raise InputError(
            f"{path}, line {number}: expected the word in the first column and its label in the last, got the "
            "ten columns of CoNLL-U; keep FORM and the column of the labels"
        )
