"""Snell et al., "Approximating How Single Head Attention Learns": a folder has one of its parts."""

from pathlib import Path
from typing import Any

from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import CellReproduction, Experiment
from heedmap.papers.kit.result import Result
from heedmap.papers.snell import classification, copying, multihead, translation

PARTS: dict[str, Any] = {
    "classification": classification,
    "copying": copying,
    "multihead": multihead,
    "translation": translation,
}


def read(folder: Path) -> CellReproduction[Any] | None:
    """Read the part that is in a folder; return None where there is none of this paper.

    Raises:
        InputError: it is damaged.
    """
    parts = (part.EXPERIMENT.read(folder) for part in PARTS.values())
    return next((reproduction for reproduction in parts if reproduction is not None), None)


def result(reproduction: CellReproduction[Any]) -> Result:
    """Make the result of a part."""
    experiments: list[Experiment[Any, Any]] = [part.EXPERIMENT for part in PARTS.values()]
    return next(
        experiment.result(reproduction)
        for experiment in experiments
        if isinstance(reproduction, experiment.kind)
    )


PAPER: Paper[CellReproduction[Any]] = Paper(read, result)
