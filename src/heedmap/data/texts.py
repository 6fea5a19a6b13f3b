"""What attention is paid to: the tokens of a text, which may be read given a query."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

Text = Sequence[str]


@dataclass(frozen=True, eq=False)
class TextWithMore(Sequence[str]):
    """A text that holds more than its tokens. It is their sequence, for code that need not know of the rest."""

    tokens: Sequence[str]

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.tokens[index]


@dataclass(frozen=True, eq=False)
class Pair(TextWithMore):
    """A text given another one: attention is over `tokens`; a question or hypothesis is the `query`.

    `allowed` (C,) are the classes that are possible answers, None where all are. With `query_first` a model
    that reads both one after the other begins with the query.
    """

    query: Sequence[str]
    allowed: NDArray[np.bool_] | None = None
    query_first: bool = False

    @property
    def sides(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the two texts in the order in which they are read."""
        return (self.query, self.tokens) if self.query_first else (self.tokens, self.query)


@dataclass(frozen=True, eq=False)
class TwoTexts(TextWithMore):
    """A pair of texts with attention over the words of both; those from number `second` on are the second's."""

    second: int

    @property
    def sides(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the two texts in the order in which they are read."""
        return self.tokens[: self.second], self.tokens[self.second :]


@dataclass(frozen=True, eq=False)
class Asked(TextWithMore):
    """A text with the word that a model is asked about, at the place `target`.

    This word is never taken away, because the answer is read there: where a change would remove or replace it,
    HIDDEN stands in its place, which a transformer reads as its mask token. With `choices`, the word is hidden
    anyway, and the question is which of the two words it is.

    `pretokenized`: the text came as a list of words, which a tokenizer reads one by one. A space that a token
    begins with separates it from the word before; all other white space is the word's own.
    """

    target: int
    choices: tuple[str, str] | None = None
    pretokenized: bool = False

    def hidden(self) -> "Asked":
        """Return the text with its word hidden."""
        tokens = [*self.tokens]
        tokens[self.target] = reworded(self, self.target, HIDDEN)
        return replace(self, tokens=tokens)


HIDDEN = "[MASK]"


class CutWord(str):
    """The part that is kept of a word at which a text is cut, with the `rest` of the text as far as it matters.

    Alone, the part might get other tokens: those of "unwa" need not be the first of "unwatchable". So a
    tokenizer reads both, and then `dropped` positions are left out: the last ones, or the first `on_left`.
    """

    def __new__(
        cls, part: str, rest: str = "", dropped: int = 0, *, on_left: bool = False
    ) -> "CutWord":
        """Make a part of a word; the defaults are for copies and pickles, which set the rest."""
        word = super().__new__(cls, part)
        word.rest, word.dropped, word.on_left = rest, dropped, on_left
        return word

    rest: str
    dropped: int
    on_left: bool

    def of(self, part: str) -> "CutWord":
        """Return another part that is cut at the same place."""
        return CutWord(part, self.rest, self.dropped, on_left=self.on_left)


def as_one(words: Sequence[str]) -> str:
    """Join neighbouring words into one, which is a `CutWord` if one of them is."""
    word = "".join(words)
    cut = next((part for part in words if isinstance(part, CutWord)), None)
    return word if cut is None else cut.of(word)


def joined(first_words: Sequence[str], second_words: Sequence[str]) -> TwoTexts:
    """Make a pair of two texts, with attention over both."""
    return TwoTexts([*first_words, *second_words], len(first_words))


@dataclass(frozen=True, eq=False)
class Stored(TextWithMore):
    """The items of an instance, by their names, of which a model holds arrays under its `number`.

    Any change but `beginning` makes a list of names, which must be read.
    """

    number: int


def beginning(text: Text, count: int) -> Text:
    """Keep the first tokens; a pair keeps its query, and an instance the number of its arrays.

    Of a text with a word that is asked about, these are as many tokens up to there.
    """
    if isinstance(text, Asked):  # the word that is asked about must be among them
        start = max(0, min(text.target + 1 - count, len(text) - count))
        return replace(text, tokens=text[start : start + count], target=text.target - start)
    kept_tokens = text[:count]
    return replace(text, tokens=kept_tokens) if isinstance(text, TextWithMore) else kept_tokens


def exchanged(text: Text, place: int, *tokens: str) -> Text:
    """Replace one token by others, or by none; a pair keeps its query.

    White space at the end of the text stays: it belongs to no word. A word that is asked about is hidden
    instead.
    """
    if isinstance(text, TwoTexts):
        first_side, second_side = text.sides
        if place < text.second:
            return joined(exchanged(first_side, place, *tokens), second_side)
        return joined(first_side, exchanged(second_side, place - text.second, *tokens))
    if isinstance(text, Asked) and place == text.target:
        return text.hidden()
    changed = [*text[:place], *tokens, *text[place + 1 :]]
    if place == len(text) - 1:
        _keep_end(changed, text)
    if isinstance(text, Asked):
        target = text.target + (len(tokens) - 1) * (place < text.target)
        return replace(text, tokens=changed, target=target)
    return replace(text, tokens=changed) if isinstance(text, Pair) else changed


def shortened(text: Text, is_kept: NDArray[np.bool_]) -> Text:
    """Keep some of the tokens, and the white space at the end of the text; a pair keeps its query.

    A word that is asked about is hidden instead of left out.
    """
    if isinstance(text, TwoTexts):
        first_side, second_side = text.sides
        is_kept_first, is_kept_second = np.split(is_kept, [text.second])
        return joined(shortened(first_side, is_kept_first), shortened(second_side, is_kept_second))
    if isinstance(text, Asked) and not is_kept[text.target]:
        text, is_kept = text.hidden(), is_kept.copy()
        is_kept[text.target] = True
    changed = [token for token, stays in zip(text, is_kept, strict=True) if stays]
    if len(is_kept) and not is_kept[-1]:
        _keep_end(changed, text)
    if isinstance(text, Asked):
        return replace(text, tokens=changed, target=int(is_kept[: text.target].sum()))
    return replace(text, tokens=changed) if isinstance(text, Pair) else changed


def replaced(text: Text, replacing: NDArray[np.bool_], donor: Text) -> Text:
    """Replace some tokens by those at the same places of another text, read again from its start if too short.

    White space around a token stays as it is: the donor's words alone come in. A pair keeps its query, and a
    word that is asked about is hidden instead of replaced.

    >>> replaced(["a", " b", " c"], np.array([True, False, True]), ["x", " y"])
    ['x', ' b', ' x']
    """
    if isinstance(text, Asked) and replacing[text.target]:
        text, replacing = text.hidden(), replacing.copy()
        replacing[text.target] = False
    if isinstance(donor, Asked) and len(donor) > 1:  # the hidden word of another text is no word
        donor = [token for place, token in enumerate(donor) if place != donor.target]
    words = [token.strip() or token.removeprefix(" ") for token in donor]
    changed = [
        reworded(text, place, words[place % len(words)]) if out else token
        for place, (token, out) in enumerate(zip(text, replacing, strict=True))
    ]
    return with_tokens(text, changed)


def with_tokens(text: Text, tokens: Sequence[str]) -> Text:
    """Return a text with other tokens, as many as before; all else that it holds stays.

    A pair keeps its query, two texts their sides, and a text the place of the word that is asked about.
    """
    return replace(text, tokens=tokens) if isinstance(text, Pair | TwoTexts | Asked) else tokens


def read_as(text: Text) -> tuple[str | int, ...]:
    """Return what two changes of one text share that are read the same: their tokens, and a place among them.

    >>> read_as(["a", " b"]), read_as(joined(["a"], [" b"])), read_as(Asked(["a", " b"], 0))
    (('a', ' b'), ('a', ' b', 1), ('a', ' b', 0))
    """
    if isinstance(text, Asked):
        return (*text, text.target)
    return (*text, text.second) if isinstance(text, TwoTexts) else tuple(text)


def reworded(text: Text, place: int, word: str) -> str:
    """Return a token with another word between its white space: in a list of words, after a space at most."""
    token = text[place]
    if isinstance(text, Asked) and text.pretokenized:
        return " " * token.startswith(" ") + word
    leading = token[: len(token) - len(token.lstrip())]
    trailing = token[len(leading) + len(token.strip()) :]
    # Where the text is cut within white space, what follows there is read with it as before.
    if isinstance(token, CutWord) and (leading if token.on_left else trailing):
        return token.of(leading + word + trailing)
    return leading + word + trailing


def _keep_end(changed: list[str], text: Text) -> None:
    """Put the white space after a text's last token at the end of the changed text, unless it is empty."""
    if isinstance(text, Asked) and text.pretokenized:
        return
    token = text[-1]
    end = token[len(token.rstrip()) :]
    if changed and end:
        changed[-1] = as_one([changed[-1], token.of(end) if isinstance(token, CutWord) else end])


def text_hashes(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Return a hash of 128 bits per text, which tells many texts apart in less memory than they take."""
    hashes = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    )
    return np.fromiter(hashes, dtype="S16")
