"""The words of a text as pages show them, with marks: of a pair's second text, and of what is asked about."""

from collections.abc import Mapping
from typing import Any

SECOND = "‖"
ASKED = "→"


def shown_tokens(instance: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row of the table of instances, the second text of a pair begun with a mark.

    A mark stands before the word that the model is asked about, too.

    >>> shown_tokens({"tokens": ["A", "film"], "second": 1})
    ['A', '‖ film']
    >>> shown_tokens({"tokens": ["A", "film"], "target": 1})
    ['A', '→ film']
    """
    tokens, second = list(instance["tokens"]), instance.get("second")
    target = instance.get("target")
    if target is not None and target < len(tokens):
        tokens[target] = f"{ASKED} {tokens[target]}"
    if second is not None and second < len(tokens):
        tokens[second] = f"{SECOND} {tokens[second]}"
    return tokens
