"""The texts of words by which a classifier is tried when it is opened: of several lengths, asked or not."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from heedmap.data.texts import Asked, Text
from heedmap.errors import InputError
from heedmap.huggingface.targets import is_one_entry
from heedmap.huggingface.tasks import Task

SAMPLE_WORDS: tuple[Text, ...] = (
    ["The", " acting", " is", " wonderful", ",", " but", " the", " unbelievable", " plot", " is", " not."],
    ["It", " bored", " me", "."],
    ["A", " film"],
)  # fmt: skip


def asked_samples(tokenizer: PreTrainedTokenizerBase, task: Task) -> Sequence[Text]:
    """Return the sample texts with a word that is asked about: in the middle, last, and first.

    Raises:
        InputError: a masked language model's vocabulary has no two words to choose from.
    """
    choices = _two_words(tokenizer) if task is Task.MASKS else None
    places = (4, 3, 0)
    return [Asked(text, place, choices) for text, place in zip(SAMPLE_WORDS, places, strict=True)]


def _two_words(tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """Return two words of a vocabulary, for a masked language model to choose from in sample texts."""
    special = {*tokenizer.all_special_tokens}
    words: list[str] = []
    for token in tokenizer.get_vocab():
        word = token.lstrip("▁Ġ")
        if word.isalpha() and token not in special and is_one_entry(tokenizer, word):
            words.append(word)
        if len(words) == 2:
            return words[0], words[1]
    raise InputError(
        "expected a tokenizer with two words as entries of its vocabulary, of which a masked language model is "
        "asked, got none; choose another model"
    )
