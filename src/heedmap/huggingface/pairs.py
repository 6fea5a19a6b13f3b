"""Whether a classifier looks as if it was trained on pairs of texts: what its configuration gives away.

A heuristic, and it only warns. Two signs are known: a class named for a relation of two texts, and the
mark that sentence-transformers leaves in the configuration of a cross-encoder. A model of pairs with
neither (LABEL_0, LABEL_1) goes unnoticed; the number of token types says nothing, for BERT always has two.
"""

import re

from transformers import PreTrainedConfig

RELATIONS = frozenset(
    {
        "entailment", "contradiction", "duplicate", "paraphrase", "equivalent", "relevant", "irrelevant",
    }
)  # fmt: skip
MARKS = ("sentence_transformers", "sbert_ce_default_activation_function")


def sign_of_pairs(config: PreTrainedConfig) -> str | None:
    """What gives a model of pairs away, in words; None where nothing does.

    A class counts if any of its words is a relation ("not_entailment"); "neutral" is none, sentiment has it.
    """
    for name in (config.id2label or {}).values():
        if RELATIONS & set(re.findall("[a-z]+", str(name).lower())):
            return f"its class {name!r:.60}"
    if any(getattr(config, mark, None) is not None for mark in MARKS):
        return "sentence-transformers marked it as a cross-encoder"
    return None
