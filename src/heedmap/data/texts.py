"""What attention is paid to: the tokens of a text, which may be read given a query."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

Text = Sequence[str]


@dataclass(frozen=True, eq=False)
class Pair(Sequence[str]):
    """A text given another one: attention is over `tokens`; a question or hypothesis is the `query`.

    It is the sequence of its tokens, so that code about the text's tokens need not know of the query.
    `allowed` (C,) are the classes that are possible answers, None where all are.
    """

    tokens: Sequence[str]
    query: Sequence[str]
    allowed: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.tokens[index]


@dataclass(frozen=True, eq=False)
class Stored(Sequence[str]):
    """The items of an instance, by their names, of which a model holds arrays under its `number`.

    The first of them are `Stored` too. Any other change makes a list of names, which must be read.
    """

    tokens: Sequence[str]
    number: int

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        part = self.tokens[index]
        if isinstance(index, slice) and not index.start and index.step in (None, 1):
            return replace(self, tokens=part)
        return part


def exchanged(text: Text, place: int, *tokens: str) -> Text:
    """Replace one token by others, or by none; a pair keeps its query.

    White space at the end of the text stays: it belongs to no word.
    """
    changed = [*text[:place], *tokens, *text[place + 1 :]]
    if place == len(text) - 1:
        _keep_end(changed, text)
    return replace(text, tokens=changed) if isinstance(text, Pair) else changed


def shortened(text: Text, is_kept: NDArray[np.bool_]) -> Text:
    """Keep some of the tokens, and the white space at the end of the text; a pair keeps its query."""
    changed = [token for token, stays in zip(text, is_kept, strict=True) if stays]
    if len(is_kept) and not is_kept[-1]:
        _keep_end(changed, text)
    return replace(text, tokens=changed) if isinstance(text, Pair) else changed


def replaced(text: Text, replacing: NDArray[np.bool_], donor: Text) -> Text:
    """Replace some tokens by those at the same places of another text, read again from its start if too short.

    White space around a token stays as it is: the donor's words alone come in. A pair keeps its query.

    >>> replaced(["a", " b", " c"], np.array([True, False, True]), ["x", " y"])
    ['x', ' b', ' x']
    """
    changed = [
        _reworded(token, donor[place % len(donor)]) if out else token
        for place, (token, out) in enumerate(zip(text, replacing, strict=True))
    ]
    return replace(text, tokens=changed) if isinstance(text, Pair) else changed


def _reworded(token: str, donor: str) -> str:
    """Put another token's word between the white space of this one."""
    start = len(token) - len(token.lstrip())
    return token[:start] + donor.strip() + token[start + len(token.strip()) :]


def _keep_end(changed: list[str], text: Text) -> None:
    """Put the white space after a text's last token at the end of the changed text, unless it is empty."""
    end = text[-1][len(text[-1].rstrip()) :]
    if changed and end:
        changed[-1] += end


def text_hashes(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Return a hash of 128 bits per text, which tells many texts apart in less memory than they take."""
    hashes = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    )
    return np.fromiter(hashes, dtype="S16")
