"""Read a sweep's TOML file: a grid, or a list of runs.

data = ["reviews.csv", {source = "other.csv", label = "stars"}]
encoders = ["lstm", "average"]
scores = ["additive"]
normalisers = ["softmax", "sparsemax"]
models = ["my-classifier"]      # transformers, each with every view
views = ["row", "rollout"]
seeds = [0, 1, 2]

[train]                         # options of `heedmap train` for all
epochs = 4

[audit]                         # options of `heedmap audit` for all
instances = 500

[[run]]                         # besides the grid: one run each
data = "reviews.csv"
encoder = "gru"
"""

import re
import tomllib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from heedmap.errors import InputError
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import Settings
from heedmap.settings.data import RAW_TEXTS, DataSettings
from heedmap.settings.models import ModelSettings, TransformerSettings
from heedmap.settings.training import TrainSettings

Place = str | dict[str, Any]


class SweepRun(Settings):
    """One run of a sweep: a model that is trained, or a transformer and its view."""

    data: str
    encoder: str = "lstm"
    score: str = "additive"
    normaliser: str = "softmax"
    model: str | None = None
    view: str = "row"
    seed: int = 0

    def __str__(self) -> str:
        words = (
            [self.encoder, self.score, self.normaliser]
            if self.model is None
            else [self.model, self.view]
        )
        parts = [Path(self.data).stem or self.data, *(Path(word).name for word in words)]
        return re.sub(r"[^\w.]+", "-", "-".join([*parts, str(self.seed)])).strip(".-")


class Plan(Settings):
    """What a sweep's file says, with defaults for what it leaves out."""

    data: tuple[Place, ...] = ()
    encoders: tuple[str, ...] = ()
    scores: tuple[str, ...] = ("additive",)
    normalisers: tuple[str, ...] = ("softmax",)
    models: tuple[str, ...] = ()
    views: tuple[str, ...] = ("row",)
    seeds: tuple[int, ...] = (0,)
    train: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    audit: dict[str, Any] = {}  # noqa: RUF012
    run: tuple[SweepRun, ...] = ()

    @property
    def runs(self) -> list[SweepRun]:
        """All runs: of each seed every model once, then the next seed; those of the list at the end."""
        places = [source_of(place) for place in self.data]
        grid = [
            run
            for seed in self.seeds
            for place in places
            for run in (
                *(
                    SweepRun(
                        data=place, encoder=encoder, score=score, normaliser=normaliser, seed=seed
                    )
                    for encoder, score, normaliser in product(
                        self.encoders, self.scores, self.normalisers
                    )
                ),
                *(
                    SweepRun(data=place, model=model, view=view, seed=seed)
                    for model, view in product(self.models, self.views)
                ),
            )
        ]
        return [*grid, *self.run]

    def options_of(self, source: str) -> dict[str, Any]:
        """Return how a data set is read, without its source."""
        place = next((place for place in self.data if source_of(place) == source), source)
        return {} if isinstance(place, str) else {k: v for k, v in place.items() if k != "source"}


def source_of(place: Place) -> str:
    """Return the source of an entry of `data`."""
    return place if isinstance(place, str) else str(place.get("source", ""))


def read_plan(path: Path) -> Plan:
    """Read a sweep's file.

    Raises:
        InputError: it is missing or no TOML; an unknown name or value; no run, or one of them twice.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: expected a sweep as TOML, cannot read it ({reason})") from error
    try:
        plan = Plan.of(**content)
        check(plan)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return plan


def check(plan: Plan) -> None:
    """Check every choice and option before anything is read.

    Raises:
        InputError: as `read_plan`.
    """
    if not plan.runs:
        missing = "encoders or models" if plan.data else "data"
        raise InputError(
            f"expected data and encoders or models, or a list of [[run]]; got no run, for want of {missing}"
        )
    for run in plan.runs:
        if run.model is None:
            ModelSettings.of(encoder=run.encoder, score=run.score, normaliser=run.normaliser)
        else:
            TransformerSettings.of(source=run.model, view=run.view)
        TrainSettings.of(**{"seed": run.seed, **of_group(plan.train, TrainSettings)})
    names = [str(run) for run in plan.runs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"{repeated[0]}: expected each run once, got it {names.count(repeated[0])} times"
        )
    allowed = {*TrainSettings.options(), *ModelSettings.options()} - {
        "seed",
        "encoder",
        "score",
        "normaliser",
    }
    _known("train", plan.train, sorted(allowed))
    _known("audit", plan.audit, sorted({*AuditSettings.options()} - {"seed", "other_seed"}))
    AuditSettings.of(**plan.audit)
    ModelSettings.of(**of_group(plan.train, ModelSettings))
    for place in plan.data:
        if isinstance(place, dict):
            _known("data", place, ["source", *sorted(DataSettings.options())])
            if not source_of(place):
                raise InputError(f"data: expected a source in {place}")


def of_group(options: dict[str, Any], group: type[Settings]) -> dict[str, Any]:
    """Return the options that are fields of these settings."""
    return {name: value for name, value in options.items() if name in group.model_fields}


def raw_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a data set that a transformer's texts have too."""
    return {name: value for name, value in options.items() if name in RAW_TEXTS.options()}


def _known(table: str, options: dict[str, Any], names: Sequence[str]) -> None:
    if unknown := [name for name in options if name not in names]:
        raise InputError(f"{table}.{unknown[0]}: expected one of {', '.join(names)}")
