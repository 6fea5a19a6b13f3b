"""Run and save one cell: a model and its audit, or the variants that the model is compared with."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.locking import whole_command
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.papers.jain_wallace.baselines import COLUMNS, baselines
from heedmap.papers.jain_wallace.frozen import text_by_text
from heedmap.papers.jain_wallace.measures import Cell, Measured, measured
from heedmap.report.wording import vectors_text
from heedmap.runs.audit import audit
from heedmap.runs.comparison import relocated
from heedmap.runs.run import Run
from heedmap.runs.train import train
from heedmap.settings.run import RunSettings
from heedmap.terminal.progress import portion


@dataclass(frozen=True)
class Shared:
    """What all cells of a data set have in common; `options` are the training's."""

    corpus: Corpus
    options: dict[str, Any]
    out: Path
    instances: int
    overwrite: bool


@dataclass(frozen=True)
class Baselines:
    """The variants of one seed's model with encoder lstm and score additive."""

    dataset: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset} baselines, seed {self.seed}"

    @property
    def cell(self) -> Cell:
        """The cell of that model."""
        return Cell(self.dataset, "lstm", "additive", self.seed)

    def path(self, out: Path) -> Path:
        """Return the path of their file."""
        return out / self.dataset / f"baselines-{self.seed}.json"


class CellNumbers(NamedTuple):
    """The numbers of a cell, and in words how many of its words have a pretrained vector."""

    cell: Cell
    numbers: list[Measured]
    coverage: str | None


class Variants(NamedTuple):
    """The rows of `baselines` for a model, and its attention beside the log-odds' text by text."""

    rows: list[dict[str, Any]]
    texts: dict[str, Any]


def is_finished(job: Cell | Baselines, *, shared: Mapping[str, Shared]) -> bool:
    """Return whether an earlier call has finished the job."""
    data = shared[job.dataset]
    final_file = (
        job.path(data.out) if isinstance(job, Baselines) else job.folder(data.out) / "report.html"
    )
    return final_file.exists() and not data.overwrite


def run(job: Cell | Baselines, *, shared: Mapping[str, Shared]) -> CellNumbers | Variants:
    """Train and audit a cell, or compare its variants; read what an earlier call has finished."""
    data = shared[job.dataset]
    if isinstance(job, Baselines):
        return variants(job, data)
    with whole_command():  # hold a cell's folder only while it is worked on
        with portion(0.5):
            model = trained(job, data)
        with portion(0.5):
            finished_audit = audit(
                model, seed=job.seed, instances=data.instances, overwrite=data.overwrite
            )
    return CellNumbers(job, measured(job, finished_audit), vectors_text(finished_audit))


def trained(cell: Cell, data: Shared) -> Run:
    """Return the cell's model, read from its folder if it is there."""
    return train(
        data.corpus,
        encoder=cell.encoder,
        score=cell.score,
        seed=cell.seed,
        out=cell.folder(data.out),
        overwrite=data.overwrite,
        **data.options,
    )


def variants(job: Baselines, data: Shared) -> Variants:
    """Return the variants of a model, saved in OUT/DATA/baselines-SEED.json.

    Those of other settings are computed again.
    """
    cell, corpus, path = job.cell, data.corpus, job.path(data.out)
    model = trained(cell, data)
    settings = model.settings.model_copy(update={"audit": None})
    if path.exists():
        try:
            content = json.loads(manifest.read(path))
            saved_settings = relocated(
                RunSettings.of(**tomllib.loads(content["settings"])), settings
            )
            if not saved_settings.difference(settings):
                rows, texts = [dict(row) for row in content["rows"]], dict(content["texts"])
                if not rows or not all({"seed", *COLUMNS} <= set(row) for row in rows):
                    raise ValueError("rows without the columns")
                return Variants(rows, texts)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path}: damaged; delete it and run again") from error
    variant_rows = baselines(
        corpus, encoder=cell.encoder, score=cell.score, seed=cell.seed, attention=model
    )
    rows = [{"seed": cell.seed, **row} for row in variant_rows]
    assert isinstance(model.model, AttentionClassifier)
    texts = {"seed": cell.seed, "classes": corpus.classes, **text_by_text(model.model, corpus)}
    content = {"settings": settings.to_toml(), "rows": rows, "texts": texts}
    manifest.write(path, json.dumps(content, ensure_ascii=False))
    return Variants(rows, texts)
