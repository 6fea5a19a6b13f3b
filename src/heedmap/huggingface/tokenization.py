"""Load tokenizers as models need them: fast, with a vocabulary, and able to pad."""

import json
import math
import os
from contextlib import suppress

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.streams import MOST_GROWTH
from heedmap.errors import InputError
from heedmap.huggingface.checkpoints import Place, json_object
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.padding import counts_from_no_padding, of_text_model, vocabulary_size

# Read once, so that a tokenizer that stops at short texts stops before a model is loaded.
TRIAL = "A short text, of 2 or 3 words?\n" + " ".join(map(chr, range(33, 256))) + "a" * 99


def tokenizer_at(place: Place) -> PreTrainedTokenizerBase:
    """Load the model's fast tokenizer.

    Raises:
        InputError: There is none, or it has no vocabulary or no character offsets.
    """
    with suppress(OSError):  # of the Hub, of which transformers says more
        _check_normaliser(place)
    with quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                place.source, local_files_only=place.local, trust_remote_code=False
            )
            with open(os.devnull, "wb") as nothing, open(os.dup(2), "wb") as stderr:
                os.dup2(nothing.fileno(), 2)  # where a panic writes its trace
                try:
                    with suppress(Exception):  # as of a word that has no number
                        tokenizer(TRIAL, verbose=False)
                finally:
                    os.dup2(stderr.fileno(), 2)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".: ")
            raise InputError(
                f"expected a tokenizer in {place.what}; {reason}; save it beside the model"
            ) from error
    # Without its files, transformers makes a tokenizer that knows the special tokens only.
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
        raise InputError(
            f"expected a tokenizer in {place.what}; it holds no vocabulary (tokenizer.json); "
            "save the tokenizer beside the model"
        )
    limit, names = tokenizer.model_max_length, tokenizer.model_input_names
    if not isinstance(limit, int | float) or isinstance(limit, bool) or not limit > 0:
        raise InputError(
            f"expected a number of tokens as model_max_length in the tokenizer_config.json of {place.what}, "
            f"got {limit!r:.60}; correct it, or remove it"
        )
    if not isinstance(names, list | tuple) or "input_ids" not in names:
        raise InputError(
            f"expected names with input_ids as model_input_names in the tokenizer_config.json of {place.what}, "
            f"got {names!r:.60}; correct it, or remove it"
        )
    if not tokenizer.is_fast:
        raise InputError(
            f"expected a fast tokenizer in {place.what}; {type(tokenizer).__name__} cannot say which "
            "characters a token stands for; save one with a tokenizer.json"
        )
    return tokenizer


def _check_normaliser(place: Place) -> None:
    """Raise InputError if a tokenizer puts too many characters in the place of one, and of those, in turn."""
    sizes: list[int] = []
    stages = json.dumps(json_object(place, "tokenizer.json").get("normalizer"))
    json.loads(stages, object_hook=lambda part: sizes.append(len(str(part.get("content") or 1))))
    if math.prod(sizes) > MOST_GROWTH:
        raise InputError(
            f"expected a tokenizer that makes up to {MOST_GROWTH} characters of one in {place.what}; the "
            f"normalizer in its tokenizer.json makes {math.prod(sizes):.3g} of it; choose another model"
        )


def check_padding(place: Place, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Check that the model has an embedding for the tokenizer's padding token, if there is one.

    Raises:
        InputError: It has none, or the model counts its positions from a padding token that it has not.
    """
    if counts_from_no_padding(model):
        tokens = (
            ""
            if tokenizer.pad_token_id is None
            else f" (its tokenizer's: {tokenizer.pad_token_id})"
        )
        raise InputError(
            f"expected as pad_token_id in the config.json of {place.what} the number of the padding token"
            f"{tokens}, from which {type(model).__name__} counts its positions, got "
            f"{of_text_model(model.config, 'pad_token_id')}; correct it"
        )
    number, size = tokenizer.pad_token_id, vocabulary_size(model)
    if isinstance(number, int) and size is not None and number >= size:
        raise InputError(
            f"expected the tokenizer's padding token among the model's {size} tokens in {place.what}; it "
            f"is number {number}; save a model resized to its tokenizer"
        )


def agree_on_padding(
    place: Place, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Give tokenizer and model the same padding token, before a training.

    A model that is trained already keeps its own: see `heedmap.huggingface.padding`.

    Raises:
        InputError: There is no token to pad with, or the model has no embedding for it.
    """
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise InputError(
                f"expected a tokenizer that can pad in {place.what}; it has neither a padding nor an "
                "end-of-text token; set tokenizer.pad_token and save it again"
            )
        tokenizer.pad_token = tokenizer.eos_token
    check_padding(place, model, tokenizer)
    for config in (model.config, model.config.get_text_config()):
        config.pad_token_id = tokenizer.pad_token_id
