"""What a run calls its instances and their items: texts and words, bags and items, pictures and patches."""

import re
from collections.abc import Sequence
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

# Quoted names, code, options, and terms of the field are nobody's instances and items.
_FIXED = r"“[^”]*”|`[^`]*`|--[\w-]+|\bspecial tokens?\b|(?:\b[Aa]n? )?\btoken (?:F1|types?)\b"
_ARTICLE = r"(?:\b(?P<article>[Aa]n?) )?\b(?P<apart>(?:different|distinct) )?"
_NOUN = _ARTICLE + r"(?P<noun>[Tt]exts?|[Ww]ords?|[Tt]okens?)\b"
_VOWELS = "aeiou"


class Nouns(BaseModel):
    """The nouns for an instance and for an item of it, in the singular and in the plural.

    heedmap writes its sentences about texts of words, and `reword` makes them about anything else:

    >>> BAGS.reword("A text of one word has no other weights; of “some text” 3 words are left out.")
    'A bag of one item has no other weights; of “some text” 3 items are left out.'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    instance: str = Field(min_length=1)
    instances: str = Field(min_length=1)
    item: str = Field(min_length=1)
    items: str = Field(min_length=1)

    def reword(self, sentence: str, names: Sequence[str] = ()) -> str:
        """Return a sentence of heedmap's own with these nouns in place of text, word and token.

        Args:
            sentence: as it is written for texts of words, which have it unchanged.
            names: the user's own, such as those of classes, which stay as they are. So does what stands in “”
                or in backticks.
        """
        if self == TEXTS:
            return sentence
        return _pattern(tuple(names)).sub(self._replacement, sentence)

    def _replacement(self, match: re.Match[str]) -> str:
        noun, article = match["noun"], match["article"]
        is_token = noun is not None and noun.lower().startswith("token")
        if noun is None or (is_token and self.item == TEXTS.item):  # a token of a pair is one, too
            return match[0]
        singular, plural = (
            (self.instance, self.instances)
            if noun.lower().startswith("text")
            else (self.item, self.items)
        )
        if match["apart"] and noun.startswith("text") and self == ASKED_WORDS:
            singular, plural = "sentence", "sentences"  # several tokens of one are one observation
        said = (match["apart"] or "") + (plural if noun.endswith("s") else singular)
        if noun[0].isupper():
            said = f"{said[0].upper()}{said[1:]}"
        if article is None:
            return said
        return f"{article[0]}{'n' if said[0].lower() in _VOWELS else ''} {said}"


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the nouns of a sentence, or else what must stay: names that hold such a noun first."""
    fixed = [re.escape(name) for name in names if re.search(_NOUN, name)]
    return re.compile("|".join([*sorted(fixed, key=len, reverse=True), _FIXED, _NOUN]))


TEXTS = Nouns(instance="text", instances="texts", item="word", items="words")
BAGS = Nouns(instance="bag", instances="bags", item="item", items="items")
PICTURES = Nouns(instance="picture", instances="pictures", item="patch", items="patches")
PAIRS = Nouns(instance="pair", instances="pairs", item="word", items="words")
ASKED_WORDS = Nouns(instance="token", instances="tokens", item="word", items="words")
INSTANCES = Nouns(instance="instance", instances="instances", item="item", items="items")


def shared_nouns(nouns: Sequence[Nouns]) -> Nouns:
    """Return the nouns of several runs: those that they share, or else instances of items."""
    return nouns[0] if len({*nouns}) == 1 else INSTANCES
