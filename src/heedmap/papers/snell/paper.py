"""Snell et al., "Approximating How Single Head Attention Learns": a folder has one of its parts."""

from pathlib import Path
from typing import Any

from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.result import Result
from heedmap.papers.snell import (
    classification,
    classification_result,
    copying,
    copying_result,
    multihead,
    multihead_result,
    translation,
    translation_result,
)

Found = classification_result.Classification | copying_result.Copying | multihead_result.Multihead
PARTS: dict[str, Any] = {
    "classification": classification,
    "copying": copying,
    "multihead": multihead,
    "translation": translation,
}


def read(folder: Path) -> Found | None:
    """Read the part that is in a folder; return None where there is none of this paper.

    Raises:
        InputError: it is damaged.
    """
    for part in PARTS.values():
        found: Found | None = part.read(folder)
        if found is not None:
            return found
    return None


def result(found: Found) -> Result:
    """Make the result of a part."""
    if isinstance(found, classification_result.Classification):
        return classification_result.result(found)
    if isinstance(found, translation_result.Translation):
        return translation_result.result(found)
    if isinstance(found, copying_result.Copying):
        return copying_result.result(found)
    return multihead_result.result(found)


PAPER: Paper[Found] = Paper(read, result)
