"""Jain & Wallace's grid of encoders and scores, and their baselines, as a part of the debate."""

from pathlib import Path
from typing import Any

from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.paper import (
    GRID_ENCODERS,
    GRID_SCORES,
    INSTANCES,
    PAPER,
    SEEDS,
    reproduce,
)
from heedmap.papers.kit.debate_part import DebateInput, Options, Part
from heedmap.papers.kit.result import Result
from heedmap.papers.kit.timing import Timer
from heedmap.training.log_odds import has_log_odds

VARIANTS = 3  # that are trained per seed, besides the cell that they are compared with


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    reproduce([subject.corpus], out=out, baselines=has_log_odds(subject.corpus), **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    settings: dict[str, Any] = dict(options)
    seeds, instances = settings.pop("seeds", SEEDS), settings.pop("instances", INSTANCES)
    cells = [
        timer.training(encoder=encoder, score=score, **settings)
        + timer.audit(instances, encoder=encoder, score=score, **settings)
        for encoder in GRID_ENCODERS
        for score in GRID_SCORES
    ]
    seconds = timer.side_by_side(cells * seeds)
    if has_log_odds(subject.corpus):
        variants = VARIANTS * timer.training(encoder="lstm", score="additive", **settings)
        seconds += timer.side_by_side([variants] * seeds)
    return seconds


def _is_finished(numbers: DatasetNumbers) -> bool:
    """Return whether every cell is there, and the variants of each seed where there are any."""
    if numbers.missing:
        return False
    test = next((size for size in numbers.sizes if size.split == "test"), None)
    has_variants = test is not None and len(test.classes) == 2
    seeds = {number.cell.seed for number in numbers.numbers}
    return not has_variants or {row["seed"] for row in numbers.baselines} == seeds


def _read(folder: Path) -> Result | None:
    datasets = PAPER.read(folder) if folder.is_dir() else None
    return PAPER.result(datasets) if datasets and all(map(_is_finished, datasets)) else None


PARTS = [
    Part(
        "jain-wallace",
        "Jain & Wallace (2019): Attention is not Explanation",
        "Do the weights agree with other measures of importance, and do other weights change the prediction?",
        2019,
        {"seeds": 1, "epochs": 6, "instances": 150},
        DebateInput.refuse_pairs,
        _run,
        _seconds,
        _read,
    )
]
