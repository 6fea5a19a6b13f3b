"""Read dependency trees from CoNLL-U, the format of Universal Dependencies (https://universaldependencies.org).

    # text = It works.
    1   It      it      PRON   _   _   2   nsubj   _   _
    2   works   work    VERB   _   _   0   root    _   SpaceAfter=No
    3   .       .       PUNCT  _   _   2   punct   _   _

Ten columns with tabs between them, and an empty line after each sentence. Of a word, FORM, HEAD, DEPREL and
`SpaceAfter=No` are read; of a token of several words (`1-2`), the form; words that are not in the text (`1.1`)
are left out, since no basic head is one of them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from heedmap.data.streams import check_utf8, open_text, reading
from heedmap.data.trees import ROOT, DependencyTree, fault_of
from heedmap.errors import InputError

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
LONGEST_LINE = 1 << 16
"""Characters; a word of a corpus has far fewer."""
APART = "sentences with a token whose words are read one by one"
EMPTY = "words that are not in the text (left out)"
_NUMBER = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_SPAN = re.compile(r"([1-9][0-9]{0,5})-([1-9][0-9]{0,5})", re.ASCII)
_EMPTY_NODE = re.compile(r"(?:0|[1-9][0-9]{0,5})\.[1-9][0-9]{0,5}", re.ASCII)


@dataclass
class _Sentence:
    """The lines of a sentence that have been read; `line` is the number of the first."""

    line: int = 0
    forms: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    spaced: list[bool] = field(default_factory=list)  # whether white space follows the word
    span: tuple[int, int, str, bool] | None = None  # of several words: first, last, form, spaced
    is_read_apart: bool = False  # whether words of one token are read as several
    empty: int = 0  # nodes that are not in the text

    def add(self, cells: list[str]) -> str | None:
        """Add a line; return what is wrong with it, if anything is."""
        name, form = cells[0], cells[1].strip()
        spaced = "SpaceAfter=No" not in cells[9].split("|")
        if not form:
            return "expected a FORM, got none"
        if _EMPTY_NODE.fullmatch(name):
            self.empty += 1
            return None
        if span := _SPAN.fullmatch(name):
            return self._add_span(int(span[1]), int(span[2]), form, spaced)
        return self._add_word(name, form, cells[6], cells[7].strip(), spaced)

    def _add_span(self, start: int, end: int, form: str, spaced: bool) -> str | None:
        place = len(self.forms) + 1
        if start != place or end <= start or (self.span and self.span[1] >= place):
            return f"expected a span of words from {place} on, got {start}-{end}"
        self.span = (start, end, form, spaced)
        return None

    def _add_word(self, name: str, form: str, head: str, relation: str, spaced: bool) -> str | None:
        place = len(self.forms) + 1
        if not _NUMBER.fullmatch(name) or int(name) != place:
            return f"expected {place} as ID, got {name!r:.40}"
        if head != "0" and not _NUMBER.fullmatch(head):
            return f"expected a word's number or 0 as HEAD, got {head!r:.40}"
        if relation in ("", "_"):
            return f"expected a relation as DEPREL, got {relation!r}"
        self.forms.append(form)
        self.heads.append(int(head) + ROOT)
        self.relations.append(relation)
        self.spaced.append(spaced)
        if self.span and self.span[1] == place:
            start, _, surface, is_spaced = self.span
            self._close_span(start, surface, is_spaced)
        return None

    def _close_span(self, start: int, surface: str, spaced: bool) -> None:
        """Set the white space in and after a token of several words.

        Where the words' forms make the token (`do` and `n't`), nothing stands between them.
        """
        self.spaced[-1] = spaced
        if "".join(self.forms[start - 1 :]) == surface:
            self.spaced[start - 1 : -1] = [False] * (len(self.forms) - start)
        else:
            self.is_read_apart = True

    def fault(self) -> str | None:
        """Return why the lines make no tree."""
        if self.span and self.span[1] > len(self.forms):
            return f"expected the words {self.span[0]} to {self.span[1]}, got {len(self.forms)}"
        return fault_of(self.heads)

    def tree(self) -> DependencyTree:
        """Return the sentence."""
        spaces = ["", *(" " if spaced else "" for spaced in self.spaced[:-1])]
        pieces = tuple(space + form for space, form in zip(spaces, self.forms, strict=True))
        return DependencyTree(pieces, tuple(self.heads), tuple(self.relations))


def read_conllu(path: Path) -> tuple[list[DependencyTree], dict[str, int]]:
    """Read all sentences of a CoNLL-U file, .gz too, and count what is not read as it is written.

    Raises:
        InputError: no such file, not UTF-8, no sentences, or a line that is broken, with its number.
    """
    with reading(path):
        if not path.is_file():
            raise InputError(f"{path}: no such file; expected dependency trees in CoNLL-U")
    check_utf8(path)
    trees = []
    changed = Counter[str]()
    with reading(path), open_text(path, "utf-8-sig", newline="\n") as file:
        for sentence in _sentences(path, file):
            if (fault := sentence.fault()) is not None:
                raise InputError(
                    f"{path}, sentence of line {sentence.line}: expected a tree; {fault}; correct it"
                )
            trees.append(sentence.tree())
            changed[APART] += sentence.is_read_apart
            changed[EMPTY] += sentence.empty
    if not trees:
        raise InputError(f"{path}: expected sentences in CoNLL-U, got none")
    return trees, {name: count for name, count in changed.items() if count}


def _sentences(path: Path, file: IO[str]) -> Iterator[_Sentence]:
    sentence = _Sentence()
    # At most LONGEST_LINE characters at a time: a line without an end would fill the memory.
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), ""), 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}, line {number}: expected ten columns, got an endless line")
        text = line.rstrip("\r\n")
        if not text.strip():
            if sentence.line:
                yield sentence
            sentence = _Sentence()
            continue
        if text.startswith("#"):
            if sentence.forms:
                raise InputError(
                    f"{path}, line {number}: expected an empty line before the next sentence, got a comment"
                )
            continue
        sentence.line = sentence.line or number
        cells = text.split("\t")
        if len(cells) != len(COLUMNS):
            raise InputError(
                f"{path}, line {number}: expected {len(COLUMNS)} columns with tabs between them "
                f"({', '.join(COLUMNS)}), got {len(cells)} in {text!r:.60}"
            )
        if (fault := sentence.add(cells)) is not None:
            raise InputError(f"{path}, line {number}: {fault}")
    if sentence.line:
        yield sentence
