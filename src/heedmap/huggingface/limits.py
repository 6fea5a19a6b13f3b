"""Find how many tokens a model reads at most."""

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

UNLIMITED = 2**31 - 1
_NO_LIMIT = 10**9  # tokenizers without a limit say 1e30
_POSITIONS = (
    "max_position_embeddings", "max_encoder_position_embeddings", "n_positions", "max_seq_len",
)  # fmt: skip


def longest(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None = None) -> int:
    """Return how many tokens the model reads at most, special ones included; `UNLIMITED` if unknown.

    This is the smallest limit of tokenizer, configuration and embeddings. RoBERTa's family numbers
    positions from the padding token's number on, and so has that many fewer.
    """
    limits = [UNLIMITED]
    if tokenizer is not None and 0 < tokenizer.model_max_length < _NO_LIMIT:
        limits.append(int(tokenizer.model_max_length))
    for config in (model.config, model.config.get_text_config()):
        stated = [getattr(config, name, None) for name in _POSITIONS]
        limits += [limit for limit in stated if isinstance(limit, int) and limit > 0]  # XLNet: -1
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - offset)
    return min(limits)
