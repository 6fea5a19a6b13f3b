"""Items as pages show them: with marks of a pair's second text and of what is asked about, patches by place."""

from collections.abc import Mapping, Sequence
from typing import Any

SECOND = "‖"
ASKED = "→"


def shown_tokens(instance: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row of the table of instances, the second text of a pair begun with a mark.

    A mark stands before the word that the model is asked about, too. Of a picture they are the rows and columns
    of its patches.

    >>> shown_tokens({"tokens": ["1.png:0=r0c0", "1.png:1=r0c1"], "picture": "data:image/png;base64,…"})
    ['r0c0', 'r0c1']
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
    if instance.get("picture") is not None:
        return patch_places(tokens)
    return tokens


def patch_places(tokens: Sequence[str]) -> list[str]:
    """Return the rows and columns of patches, which end their names."""
    return [token.rpartition("=")[2] for token in tokens]
