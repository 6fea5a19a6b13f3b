"""A paper of two files in a folder outside of the package, which squares seeds."""

import pytest

from heedmap.papers import __path__ as papers

COMMAND = '''
from pathlib import Path
from typing import Annotated

import typer

from heedmap.papers.kit.command import show
from heedmap.terminal.progress import working


def command(
    out: Annotated[Path, typer.Option(help="Where it goes.")],
    seeds: Annotated[int, typer.Option(help="How many.")] = 2,
    scale: float = 1.0,
    overwrite: bool = False,
) -> None:
    """Squares are not explanations."""
    from heedmap.papers.toy_paper.paper import PAPER, reproduce

    with working("toy"):
        found = reproduce(seeds, scale, out, overwrite)
    show(PAPER, found, out)
'''
PAPER = """
from functools import partial

import pandas as pd
import pyarrow as pa

from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, CellReproduction, Experiment
from heedmap.papers.kit.result import Claim, Table, changed_settings
from heedmap.report.grid_figures import bars
from heedmap.settings.base import Settings
from heedmap.terminal.progress import doing

SCHEMA = pa.schema([("seed", pa.int64()), ("square", pa.float64())])
PUBLISHED = 4.0


class ToySettings(Settings):
    seeds: int
    scale: float


class Toy(CellReproduction[ToySettings]):
    @property
    def differences(self):
        return changed_settings(self.settings, {"scale": "scaled by {}"}, {"scale": 1})


def reproduce(seeds, scale, out, overwrite):
    settings = ToySettings.of(seeds=seeds, scale=scale)
    with EXPERIMENT.opened(out, settings, overwrite=overwrite) as toy:
        return EXPERIMENT.run(toy, partial(compute, scale=scale), workers=1)


def cells(settings):
    return [Cell(str(seed), {"seed": seed}) for seed in range(settings.seeds)]


def compute(cell, checkpoints, scale):
    doing(f"squaring {cell}")
    return [{"square": scale * cell["seed"] ** 2}], {}


def result(toy):
    lines = [[f"seed {row['seed']}", str(PUBLISHED), str(row["square"])] for row in toy.rows]
    runs = [
        {"dataset": "squares", "series": "n", "seed": row["seed"], "value": row["square"]}
        for row in toy.rows
    ]
    return toy.make_result(
        "A toy",
        [
            Table("Squares", ["row", "published", "ours"], lines),
            Claim("Squares grow", "survives", (f"{len(toy.rows)} seeds",)),
        ],
        figures=[bars(runs, key="squares", title="Squares", measure="square")],
        rows=pd.DataFrame(toy.rows),
        columns={"seed": "its number", "square": "times the scale"},
    )


EXPERIMENT = Experiment(ToySettings, Toy, cells, SCHEMA, result)
PAPER = Paper(EXPERIMENT.read, result)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A paper in a folder outside of the package."""
    folder = tmp_path / "elsewhere" / "toy_paper"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "command.py").write_text(COMMAND)
    (folder / "paper.py").write_text(PAPER)
    monkeypatch.setattr("heedmap.papers.__path__", [*papers, str(folder.parent)])
