"""What is trained for one cell, and kept: its model, and the variants that it is compared with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.papers.jain_wallace.baselines import baselines
from heedmap.papers.jain_wallace.measures import Cell
from heedmap.run import Run
from heedmap.runs import train
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


def variants(
    corpus: Corpus, cell: Cell, out: Path, tell: Tell, overwrite: bool, options: dict[str, Any]
) -> list[dict[str, Any]]:
    """The rows of `baselines` for a cell's model, kept in OUT/DATA/baselines-SEED.json.

    Rows that other settings made are made anew.
    """
    run = trained(cell, corpus, out, tell, overwrite, options)
    path = out / cell.dataset / f"baselines-{cell.seed}.json"
    settings = run.settings.model_copy(update={"audit": None}).to_toml()
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["settings"] == settings:
                return [dict(row) for row in kept["rows"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
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
    write_atomically(path, json.dumps({"settings": settings, "rows": rows}, indent=1))
    return rows
