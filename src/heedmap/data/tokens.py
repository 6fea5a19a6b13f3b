"""Turn texts into tokens: as Jain & Wallace (2019) clean theirs, plainly, or into sentences.

A sentence is one token: its lower-case words with a space between them. `sentencex` splits texts by its rules
for English, and needs no model. Serrano & Smith (2019) split theirs with a parser of spaCy.

Where they tokenise with spaCy we take `words`, so that no language model has to be fetched. It keeps
`follow-up` and `don't` whole and splits `7.5` and `3/4` at their marks; spaCy does the opposite, so our
token counts differ from theirs.

A character as a reader sees it (a grapheme: an emoji made of several, a flag, a letter and its accents) is
never split.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from itertools import islice, pairwise
from typing import Any

from heedmap.data.compact import MANY
from heedmap.settings.data import DataSettings

NUMBER = "qqq"
DE_IDENTIFIED = "<DE>"

# A word may hold apostrophes and hyphens inside it; every other visible character stands alone.
_WORD_OR_MARK = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_WORD_WITH_SPACE = re.compile(rf"\s*(?:{_WORD_OR_MARK.pattern})")
_SPACES_WITH_SPACE = re.compile(r"\s*\S+")
# Letters and marks of Latin, Greek, Cyrillic, Chinese and Korean writing that stand for one character each
# whatever is beside them. All others may be a part of one, so the slower expression splits a text with any.
_MAY_JOIN = re.compile(
    "[^\0-\u02ff\u0370-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u2bff"
    "\u4e00-\u9fa5\uac00-\ud7a3]"
)
_DIGIT = re.compile(r"\d")
# MIMIC-III writes [**Hospital 18**] where a name or date was. No bracket inside: a mark that is never
# closed must not swallow the text up to the end of the next one.
_DE_IDENTIFIED_MARK = re.compile(r"\[\*\*[^\[\]]*\*\*\]")
# An underscore is a mark too: discharge summaries rule lines with it.
_REPEATED_MARK = re.compile(r"([^\w\s]|_)(?:\s*\1)+")
# A tag as HTML has it, so that "<3" and "a < b" stay.
_TAG = re.compile(r"<!--.*?-->|</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE | re.DOTALL)


def words(text: str) -> list[str]:
    """Split into lower-case words and single punctuation marks."""
    text = text.lower()
    expression = _graphemes()[0] if _may_join(text) else _WORD_OR_MARK
    return [sys.intern(token) for token in expression.findall(text)]


def _may_join(text: str) -> bool:
    return not text.isascii() and _MAY_JOIN.search(text) is not None


def _tokens_in(text: str, tokenizer: str) -> Any:
    """Return the expression of a token of this text with the white space before it."""
    if tokenizer == "spaces":
        return _SPACES_WITH_SPACE
    return _graphemes()[1] if _may_join(text) else _WORD_WITH_SPACE


@cache
def _graphemes() -> tuple[Any, Any]:
    """Compile what a word or mark is made of in texts whose characters may be several code points.

    Without and with the white space before it. `\\s` and `\\w` are what they are to `re`.
    """
    import regex

    space = r"\s\x1c-\x1f"
    # To Unicode a sign that precedes a number makes one character even with a space, which is left out here.
    signs = rf"\p{{GCB=Prepend}}+(?:(?![{space}\p{{GCB=Control}}])\X)?"
    # `\X` would count the letters of flags from the text's first one on, at each of them again.
    flag = r"\p{Regional_Indicator}{1,2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*"
    grapheme = rf"(?:{signs}|{flag}|\X)"
    word = rf"(?:(?=[\p{{L}}\p{{N}}_]){grapheme})+"
    token = rf"{word}(?:['’\-]{word})*|(?![{space}]){grapheme}"
    return regex.compile(token), regex.compile(rf"[{space}]*(?:{token})")


def spaces(text: str) -> list[str]:
    """Split at white space alone: for text that is tokenised already.

    Jain & Wallace split on single spaces; here a run of white space counts as one, so that no empty
    string becomes a token.
    """
    return [sys.intern(token) for token in text.split()]


def sentences(text: str) -> list[str]:
    """Split into sentences, and each of them into `words` with one space between them; HTML tags are dropped.

    >>> sentences("It rained.<br />We stayed, and read!")
    ['it rained .', 'we stayed , and read !']
    """
    return [" ".join(words(piece)) for piece in pieces(without_markup(text), "sentences")]


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "words": words,
    "spaces": spaces,
    "sentences": sentences,
}


def pieces(text: str, tokenizer: str) -> list[str]:
    """Split into the same tokens with their case and the white space before them; joined they are the text.

    White space at its end belongs to the last token. A text of white space alone has no token.
    """
    if tokenizer == "sentences":
        ends = [0, *_sentence_ends(text)]
        split_text = [text[start:end] for start, end in pairwise(ends)]
    else:
        split_text = [sys.intern(piece) for piece in _tokens_in(text, tokenizer).findall(text)]
    if split_text:
        split_text[-1] += text[sum(map(len, split_text)) :]
    return split_text


def spaced(tokens: Iterable[str]) -> list[str]:
    """Return tokens with one space before each but the first: joined they are a text.

    The first has one too if it begins with a space, so that it is found again without the one before it.
    """
    return [
        sys.intern(f" {token}" if i or token.startswith(" ") else token)
        for i, token in enumerate(tokens)
    ]


def cut(text: str, tokenizer: str, count: int) -> str:
    """Return the text up to the end of its token of that number, counted from 1."""
    if tokenizer == "sentences":
        ends = _sentence_ends(text)
    else:
        ends = (piece.end() for piece in _tokens_in(text, tokenizer).finditer(text))
    return text[: next(islice(ends, count - 1, None), None)]


def _sentence_ends(text: str) -> Iterator[int]:
    """Yield where each sentence ends, without the white space after it."""
    from sentencex import segment

    end = 0
    for sentence in map(str.strip, segment("en", text)):
        if sentence:  # white space between paragraphs comes as a sentence of its own, or not at all
            end = text.index(sentence, end) + len(sentence)
            yield end


def words_without_digits(text: str) -> list[str]:
    """Split into `words`; any that contains a digit becomes `qqq` (for 20 News, AG News and others)."""
    return [NUMBER if _DIGIT.search(token) else token for token in words(text)]


def clinical_words(text: str) -> list[str]:
    """Split a clinical note into `words_without_digits`, after two rules.

    What was de-identified, `[** ... **]`, becomes the one token `<DE>`. A repeated mark, with or without
    white space between, is kept once. `<DE>` keeps its capitals: no word can be mistaken for it.
    The released expression also collapses a repeated letter outside a-z (`éé`); ours leaves letters.
    """
    # Split at the marks and clean each part: no rule can then reach into a <DE>.
    tokens: list[str] = []
    for number, part in enumerate(_DE_IDENTIFIED_MARK.split(text.lower())):
        if number:
            tokens.append(DE_IDENTIFIED)
        tokens.extend(words_without_digits(_REPEATED_MARK.sub(r"\1 ", part)))
    return tokens


def without_markup(text: str) -> str:
    """Replace each HTML tag or comment by a space (IMDB breaks its lines with `<br />`)."""
    return _TAG.sub(" ", text)


def words_alone(text: str) -> list[str]:
    """Split into lower-case words and digits, without marks; SST's treebank spells brackets out."""
    bare = text.replace("-LRB-", "").replace("-RRB-", " ")
    return re.sub(r"\W", " ", bare).lower().split()


def tokenizer_of(settings: DataSettings) -> Callable[[str], list[str]]:
    """Return what makes tokens of a text, where no data set has a way of its own.

    Texts that repeat one of the last MANY get the same list, which nobody may change.
    """
    tokenize = partial(pieces, tokenizer=settings.tokenizer) if settings.raw else None
    return lru_cache(MANY)(tokenize or TOKENIZERS[settings.tokenizer])
