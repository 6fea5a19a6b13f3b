"""What is trained for one cell, and kept: its model, and the variants that it is compared with."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.folders import relocated
from heedmap.models.classifier import AttentionClassifier
from heedmap.papers.jain_wallace.baselines import COLUMNS, baselines
from heedmap.papers.jain_wallace.frozen import text_by_text
from heedmap.papers.jain_wallace.measures import Cell
from heedmap.run import Run
from heedmap.runs import train
from heedmap.settings import RunSettings
from heedmap.storage import write_atomically

Tell = Callable[[str], None]


def trained(
    cell: Cell, corpus: Corpus, out: Path, tell: Tell, overwrite: bool, options: dict[str, Any]
) -> Run:
    """The cell's model, from its folder where it stands there."""
    return train(
        corpus,
        encoder=cell.encoder,
        score=cell.score,
        seed=cell.seed,
        out=cell.folder(out),
        overwrite=overwrite,
        report=lambda done, total, text: tell(f"training, {text}"),
        **options,
    )


class Variants(NamedTuple):
    """The rows of `baselines` for a model, and its attention beside the log-odds' text by text."""

    rows: list[dict[str, Any]]
    texts: dict[str, Any]


def variants(
    corpus: Corpus, cell: Cell, out: Path, tell: Tell, overwrite: bool, options: dict[str, Any]
) -> Variants:
    """The variants of a cell's model, kept in OUT/DATA/baselines-SEED.json.

    What other settings made is made anew.
    """
    run = trained(cell, corpus, out, tell, overwrite, options)
    path = out / cell.dataset / f"baselines-{cell.seed}.json"
    settings = run.settings.model_copy(update={"audit": None})
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            before = relocated(RunSettings.of(**tomllib.loads(kept["settings"])), settings)
            if not before.difference(settings):
                rows, texts = [dict(row) for row in kept["rows"]], dict(kept["texts"])
                if not rows or not all({"seed", *COLUMNS} <= set(row) for row in rows):
                    raise ValueError("rows without the columns")
                return Variants(rows, texts)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path}: damaged; delete it and run again") from error
    found = baselines(
        corpus,
        encoder=cell.encoder,
        score=cell.score,
        seed=cell.seed,
        attention=run,
        report=lambda done, total, text: tell(text),
    )
    rows = [{"seed": cell.seed, **row} for row in found]
    assert isinstance(run.model, AttentionClassifier)
    texts = {"seed": cell.seed, "classes": corpus.classes, **text_by_text(run.model, corpus)}
    kept = {"settings": settings.to_toml(), "rows": rows, "texts": texts}
    write_atomically(path, json.dumps(kept, ensure_ascii=False))
    return Variants(rows, texts)
