"""Sub-words of words that are separated already: byte pair encoding, one for both languages (`tokenizers`)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

START, END, UNKNOWN = "<s>", "</s>", "<unk>"
FIRST = "▁"  # before the first sub-word of a word


class Pieces:
    """A sub-word vocabulary. Numbers 0, 1 and 2 are the start, the end and what is unknown."""

    start, end = 0, 1

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # A text that has a mark as a word has not ended there.
        tokenizer.encode_special_tokens = True

    @classmethod
    def learned(cls, sentences: Iterable[Sequence[str]], size: int) -> "Pieces":
        """Learn a vocabulary of at most `size` sub-words."""
        tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
        # With marks at the start of words. Those within words or at their ends make the training's ties, and
        # so the vocabulary, differ from call to call (tokenizers 0.23).
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(FIRST)
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=[START, END, UNKNOWN], show_progress=False
        )
        tokenizer.train_from_iterator((" ".join(words) for words in sentences), trainer)
        return cls(tokenizer)

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the sub-words' numbers, with the end, and the index of each one's word; −1 for the end."""
        encoding = self._tokenizer.encode(
            list(words), is_pretokenized=True, add_special_tokens=False
        )
        word_indices = [-1 if word is None else word for word in encoding.word_ids]
        return [*encoding.ids, self.end], [*word_indices, -1]

    def token(self, number: int) -> str:
        """Return a sub-word as it is written; a word's first begins with FIRST."""
        return str(self._tokenizer.id_to_token(number))

    def words(self, numbers: Iterable[int]) -> list[str]:
        """Join sub-words, up to the end if there is one."""
        joined_words: list[str] = []
        for number in numbers:
            if number == self.end:
                break
            piece = self.token(number)
            if piece.startswith(FIRST) or not joined_words:
                joined_words.append("")
            joined_words[-1] += piece.removeprefix(FIRST)
        return joined_words

    def json(self) -> str:
        """Return the vocabulary as text."""
        return str(self._tokenizer.to_str())

    @classmethod
    def read(cls, path: Path) -> "Pieces":
        """Read a vocabulary that was written as text."""
        return cls.of_json(path.read_text(encoding="utf-8"))

    @classmethod
    def of_json(cls, text: str) -> "Pieces":
        """Return the vocabulary whose `json` a text is."""
        return cls(Tokenizer.from_str(text))
