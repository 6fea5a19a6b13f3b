"""Guess from its configuration whether a classifier was trained on pairs of texts.

This heuristic only leads to a warning. It knows two signs: a class named for a relation of two texts, and
the entry that sentence-transformers writes into the configuration of a cross-encoder. A model of pairs
with neither (LABEL_0, LABEL_1) is missed. The number of token types says nothing: BERT always has two.
"""

import re

from transformers import PreTrainedConfig

from heedmap.huggingface.one_output import is_cross_encoder

RELATIONS = frozenset(
    {
        "entailment", "contradiction", "duplicate", "paraphrase", "equivalent", "relevant", "irrelevant",
    }
)  # fmt: skip


def sign_of_pairs(config: PreTrainedConfig) -> str | None:
    """Describe the sign that a model is of pairs; None if there is none.

    A class counts if any of its words is a relation ("not_entailment"); "neutral" is not: sentiment has it.
    """
    for name in (config.id2label or {}).values():
        if RELATIONS & set(re.findall("[a-z]+", str(name).lower())):
            return f"its class {name!r:.60}"
    if is_cross_encoder(config):
        return "sentence-transformers marked it as a cross-encoder"
    return None
