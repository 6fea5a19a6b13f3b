"""Make the texts on which a model is compared with itself as loaded: all kinds at which the two could part."""

import math
import re

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from heedmap.huggingface.checkpoints import counts
from heedmap.huggingface.embedding import layer_parameters
from heedmap.huggingface.limits import UNLIMITED, longest
from heedmap.huggingface.padding import of_text_model, padding_token

SENTENCES = (
    "A quiet film about a family that learns, slowly and at some cost, to listen.",
    "Not bad.",
    "The plot is thin, but the actors carry it to the end.",
    "I would not watch it again.",
)
PAIRS = {
    "a pair of texts": (SENTENCES[2], SENTENCES[1]),
    "a pair that begins with the shorter text": (SENTENCES[1], SENTENCES[0]),
}
WHOLE = 64  # positions of a short text
MOST_WEIGHTS = 2**27  # of one layer: heads × positions²; longer texts are not tried
MOST_WORK = {"cpu": 2 * 10**11}  # parameters × positions; longer texts are not tried
_MORE_WORK = 2 * 10**13  # on an accelerator
_THRESHOLDS = re.compile(
    r".*(window|block_size|chunk|local_attention|original_max_position|max_distance|bucket).*"
)
MOST_THRESHOLDS = 4
_FILLERS = (" a", " film", " the", " is", "a", ".", "!", " A", "A")


def sample_texts(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> tuple[dict[str, str], int | None]:
    """Return texts by what is special about them, the longest first, and the first length that is left out.

    The longest come first because a model may change at a short text: BigBird's attention stays full after it.
    """
    limit, special = longest(model, tokenizer), int(tokenizer.num_special_tokens_to_add())
    sizes = {n + special: f"a text of {n} token{'s' * (n > 1)}" for n in (1, 2)}
    sizes[64] = "a text of 64 positions"
    over = {size: name for name, size in thresholds(model.config).items() if WHOLE < size < limit}
    for size in sorted(over)[:MOST_THRESHOLDS]:
        sizes[size + 1] = (
            f"a text of {size + 1} positions, beyond {over[size]} in the configuration"
        )
    if limit < UNLIMITED:
        sizes[limit - 1] = f"a text of {limit - 1} positions, one less than the limit"
        sizes[limit] = f"a text of {limit} positions, the limit"
        sizes[limit + 1] = f"a text of {limit + 1} positions, cut to the limit of {limit}"
    affordable = _affordable(model)
    texts: dict[str, str] = {}
    for size, name in sorted(sizes.items(), reverse=True):
        text = _of_length(tokenizer, size) if special < size <= min(limit + 1, affordable) else None
        if text is not None:
            texts[name] = text
    mark = tokenizer.pad_token or tokenizer.eos_token
    if mark is None and (padding := padding_token(model)) is not None:
        mark = tokenizer.convert_ids_to_tokens(padding)
    short = {
        **({} if mark is None else {f"a text that ends in {mark}": f"{SENTENCES[1]}{mark}"}),
        "a text with white space at both ends": f" \t{SENTENCES[1]} \n",
        "a text of one character": "A",
        "a sentence": SENTENCES[0],
    }
    end = of_text_model(model.config, "eos_token_id")
    for name, text in short.items():
        ids = tokenizer(text, verbose=False)["input_ids"]
        # BART and T5 read a text by its only end-of-text token; others are left out of an audit, and counted.
        twice = model.config.is_encoder_decoder and isinstance(end, int) and ids.count(end) > 1
        if ids and len(ids) <= limit and not twice:
            texts[name] = text
    return texts, next(
        (size for size in sorted(sizes) if size > affordable and size <= limit), None
    )


def thresholds(config: PreTrainedConfig) -> dict[str, int]:
    """Return the lengths that a configuration names at which attention may change, by name."""
    lengths_by_name = {
        f"{name} = {size}": size
        for name, size in counts(config.to_dict(), _THRESHOLDS)
        if isinstance(size, int) and size > 1
    }
    blocks, random = getattr(config, "block_size", None), getattr(config, "num_random_blocks", None)
    if isinstance(blocks, int) and isinstance(random, int):  # BigBird's rule
        name = f"block_size = {blocks} with num_random_blocks = {random}"
        lengths_by_name[name] = (5 + 2 * random) * blocks
    return lengths_by_name


def _affordable(model: PreTrainedModel) -> int:
    """Return up to how many positions a text is tried."""
    heads = of_text_model(model.config, "num_attention_heads")
    heads = heads if isinstance(heads, int) and heads > 0 else 16
    work = MOST_WORK.get(model.device.type, _MORE_WORK)
    most = work // max(layer_parameters(model), 1)
    return max(WHOLE, min(math.isqrt(MOST_WEIGHTS // heads), most))


def _of_length(tokenizer: PreTrainedTokenizerBase, size: int) -> str | None:
    """Return a text of exactly so many positions, special tokens included; None if none was found."""

    def count(text: str) -> int:
        return len(tokenizer(text, verbose=False)["input_ids"])

    words = " ".join(SENTENCES).split(" ")
    words = (words * (size // len(words) + 1))[:size]
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if count(" ".join(words[:middle])) <= size:
            low = middle
        else:
            high = middle - 1
    for fewer in range(min(low, 4) + 1):
        start = " ".join(words[: low - fewer])
        for filler in _FILLERS:
            text = start
            for _ in range(24):
                if (length := count(text)) >= size:
                    break
                text += filler
            if length == size and text.strip():
                return text.lstrip() if count(text.lstrip()) == size else text
    return None
