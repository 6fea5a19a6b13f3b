"""The words of a pair's two texts as pages show them: a mark stands where the second text begins."""

from collections.abc import Mapping
from typing import Any

SECOND = "‖"


def shown_tokens(instance: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row of the table of instances, the second text of a pair begun with a mark.

    >>> shown_tokens({"tokens": ["A", "film"], "second": 1})
    ['A', '‖ film']
    """
    tokens, second = list(instance["tokens"]), instance.get("second")
    if second is not None and second < len(tokens):
        tokens[second] = f"{SECOND} {tokens[second]}"
    return tokens
