"""The text cleaning of Jain & Wallace (2019).

Where they tokenise with spaCy we take `heedmap.data.tokens.words`, so that no language model has to be
fetched. It keeps `follow-up` and `don't` whole and parts `7.5` and `3/4` at their marks; spaCy does the
opposite, so our token counts differ from theirs.
"""

import re

from heedmap.data.tokens import words

NUMBER = "qqq"
DE_IDENTIFIED = "<DE>"

_DIGIT = re.compile(r"\d")
# MIMIC-III writes [**Hospital 18**] where a name or date was. No bracket inside: a mark that is never
# closed must not swallow the text up to the end of the next one.
_DE_IDENTIFIED_MARK = re.compile(r"\[\*\*[^\[\]]*\*\*\]")
# An underscore is a mark too: discharge summaries rule lines with it.
_REPEATED_MARK = re.compile(r"([^\w\s]|_)(?:\s*\1)+")
# A tag as HTML has it, so that "<3" and "a < b" stay.
_TAG = re.compile(r"<!--.*?-->|</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.IGNORECASE | re.DOTALL)


def cleaner(text: str) -> list[str]:
    """Lower-case tokens; any that contains a digit becomes `qqq` (for 20 News, AG News and others)."""
    return [NUMBER if _DIGIT.search(token) else token for token in words(text)]


def cleaner_mimic(text: str) -> list[str]:
    """The tokens of a clinical note: `cleaner` with two rules before it.

    What was de-identified, `[** ... **]`, becomes the one token `<DE>`, and a mark repeated, with or
    without white space between, stands once. `<DE>` keeps its capitals: no word can be mistaken for it.
    The released expression also collapses a repeated letter outside a-z (`éé`); ours leaves letters.
    """
    # Cut at the marks and cleaned apart: no rule can then reach into a <DE>.
    tokens: list[str] = []
    for number, part in enumerate(_DE_IDENTIFIED_MARK.split(text.lower())):
        if number:
            tokens.append(DE_IDENTIFIED)
        tokens.extend(cleaner(_REPEATED_MARK.sub(r"\1 ", part)))
    return tokens


def without_markup(text: str) -> str:
    """The text with a space for each HTML tag or comment (IMDB breaks its lines with `<br />`)."""
    return _TAG.sub(" ", text)
