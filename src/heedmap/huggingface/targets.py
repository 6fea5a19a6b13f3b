"""Make a model that answers at each position of a text a classifier of the one that is asked about.

The logits of the classes are those at the first sub-word of the word that is asked about, or at the mask that
hides it; of a masked language model, those of two entries of its vocabulary there. A pass is told the position
by an input of its own, a row that is 1 there and 0 elsewhere, so that it is repeated, cut and padded as all
other inputs are. Inputs without it are asked about the position in their middle, as the verification does.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.texts import HIDDEN, Asked, Text, reworded
from heedmap.errors import InputError
from heedmap.huggingface.sides import Positions

TARGET, FIRST, SECOND = "heedmap_target", "heedmap_first", "heedmap_second"
"""Inputs (B, N): 1 at the position that is asked about, and there the numbers of the two words; else 0."""


class AnswerAtTarget:
    """The hooks of a model that give its logits at the position that is asked about, and none elsewhere.

    `of_masks`: of a masked language model, the logits of two words of its vocabulary.
    """

    def __init__(self, *, of_masks: bool) -> None:
        self.of_masks = of_masks
        self.inputs: dict[str, Tensor] = {}

    def take(
        self, _: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Take out what the model itself does not read: a hook before a forward pass."""
        names = {TARGET, FIRST, SECOND, "attention_mask"} & kwargs.keys()
        self.inputs = {name: kwargs[name] for name in names}
        return args, {
            name: part for name, part in kwargs.items() if not name.startswith("heedmap_")
        }

    def gather(self, _: object, __: object, output: Any) -> Any:
        """Put the logits at the position in place of those at all: a hook after a forward pass."""
        output.logits = self.at_target(output.logits, self.inputs)
        return output

    def at_target(
        self, logits: Float[Tensor, "B N O"], inputs: dict[str, Tensor]
    ) -> Float[Tensor, "B C"]:
        """Return the logits of the classes at the position that the inputs ask about."""
        texts = torch.arange(len(logits), device=logits.device)
        is_asked = TARGET in inputs
        middle = inputs.get("attention_mask")
        places = inputs[TARGET].argmax(1) if is_asked else _middle(middle, logits)
        answers = logits[texts, places]
        if not self.of_masks:
            return answers
        if FIRST in inputs:
            words = [inputs[name][texts, places] for name in (FIRST, SECOND)]
        else:
            # Any two words, of which the verification compares the logits.
            words = [torch.full_like(places, logits.shape[-1] * part // 3) for part in (1, 2)]
        return answers.gather(1, torch.stack(words, 1))


def answer_at_targets(model: PreTrainedModel, *, of_masks: bool) -> None:
    """Make every pass of a model give logits (B, C) at the position that is asked about."""
    answer = AnswerAtTarget(of_masks=of_masks)
    model.register_forward_pre_hook(answer.take, with_kwargs=True)
    model.register_forward_hook(answer.gather)


def _middle(mask: Tensor | None, logits: Float[Tensor, "B N O"]) -> Int[Tensor, " B"]:
    """Return the position in the middle of each text's own."""
    real = torch.ones_like(logits[..., 0], dtype=torch.long) if mask is None else mask.long()
    return real.argmax(1) + real.sum(1) // 2


def as_read(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[Text]:
    """Return texts as they are given to the tokenizer: with its mask token for a hidden word."""
    return [_as_read(tokenizer, text) if isinstance(text, Asked) else text for text in texts]


def _as_read(tokenizer: PreTrainedTokenizerBase, text: Asked) -> Asked:
    if not 0 <= text.target < len(text) or text.tokens[text.target].strip() != HIDDEN:
        return text
    tokens = [*text.tokens]
    tokens[text.target] = reworded(text, text.target, mask_of(tokenizer))
    return replace(text, tokens=tokens)


def mask_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return what stands for a hidden word: the mask token, or else the unknown, padding or end token."""
    mark = tokenizer.mask_token or tokenizer.unk_token or tokenizer.pad_token
    return str(mark or tokenizer.eos_token or "")


def target_inputs(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Text],
    positions_by_text: Sequence[Positions],
) -> dict[str, list[Int[np.ndarray, " N"]]]:
    """Return the inputs that say which position of each text is asked about; none for texts that ask nothing.

    Raises:
        InputError: a word that is asked about has no position.
    """
    asking_texts = [text for text in texts if isinstance(text, Asked)]
    if not asking_texts or len(asking_texts) < len(texts):
        return {}
    rows: dict[str, list[Int[np.ndarray, " N"]]] = {}
    for text, positions in zip(asking_texts, positions_by_text, strict=True):
        is_target = np.arange(len(positions.ids)) == _target_position(tokenizer, text, positions)
        numbers = [1, *(word_number(tokenizer, word) for word in text.choices or ())]
        for name, number in zip((TARGET, FIRST, SECOND), numbers, strict=False):
            rows.setdefault(name, []).append(is_target * number)
    return rows


def _target_position(tokenizer: PreTrainedTokenizerBase, text: Asked, positions: Positions) -> int:
    """Return the position at which a text's answer is read.

    It is the mask's, by its id, where the word is hidden. It is else the word's first with a visible character,
    or, in a list of words, its first, with which transformers' own examples align the labels.
    """
    word, mark = text.tokens[text.target], mask_of(tokenizer)
    of_word = positions.words == text.target
    if not of_word.any() and not is_dropped(tokenizer, word):
        # A change has put a word right behind it, and the sub-word of both counts for the second.
        of_word = positions.words > text.target
    if not of_word.any():
        raise InputError(
            f"expected a word that the tokenizer reads, got {word!r:.60}, which it drops; leave the row out"
        )
    if mark and mark in word:
        preferred = positions.ids == tokenizer.convert_tokens_to_ids(mark)
    else:
        written = "".join(text)
        preferred = np.array([bool(written[a:b].strip()) for a, b in positions.spans.tolist()])
        preferred |= text.pretokenized
    best = of_word & preferred
    return int((best if best.any() else of_word).argmax())


def is_dropped(tokenizer: PreTrainedTokenizerBase, word: str) -> bool:
    """Return whether a tokenizer makes no token of a word."""
    return not _within_a_text(tokenizer, word.removeprefix(" "))


def word_number(tokenizer: PreTrainedTokenizerBase, word: str) -> int:
    """Return the number of a word that is one entry of a tokenizer's vocabulary, as it stands within a text.

    Raises:
        InputError: it is none, or several.
    """
    if (refusal := unlike_an_entry(tokenizer, word)) is not None:
        raise refusal
    return _within_a_text(tokenizer, word)[0]


def unlike_an_entry(tokenizer: PreTrainedTokenizerBase, word: str) -> InputError | None:
    """Return the refusal of a word that is not one entry of a tokenizer's vocabulary; None of one that is."""
    if is_one_entry(tokenizer, word):
        return None
    parts = ", ".join(map(str, tokenizer.convert_ids_to_tokens(_within_a_text(tokenizer, word))))
    return InputError(
        f"expected a hidden word and a foil that are one entry each of the model's vocabulary, got "
        f"{word!r:.60}, which is read as {parts}; choose other words, or leave the row out"
    )


def is_one_entry(tokenizer: PreTrainedTokenizerBase, word: str) -> bool:
    """Return whether a word is one entry of a tokenizer's vocabulary, as it stands within a text."""
    entries = _within_a_text(tokenizer, word)
    return len(entries) == 1 and entries[0] != tokenizer.unk_token_id


def _within_a_text(tokenizer: PreTrainedTokenizerBase, word: str) -> list[int]:
    # A space first: byte-level and sentence-piece vocabularies have other entries for a text's first word.
    ids: list[int] = tokenizer(f" {word}", add_special_tokens=False, verbose=False)["input_ids"]
    return ids
