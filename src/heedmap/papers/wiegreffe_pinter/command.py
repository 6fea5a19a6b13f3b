"""The options of `heedmap reproduce wiegreffe-pinter`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Wiegreffe & Pinter trained on Jain & Wallace's data sets of two classes. Say which, and where it is:
  heedmap reproduce wiegreffe-pinter sst --data PATH    also imdb, ag-news, 20news, diabetes, anemia
  heedmap reproduce wiegreffe-pinter --data reviews     the embedded corpus, to try it out
It trains some 80 models: an hour and a half of two cores on SST with --seeds 5 --adversary-epochs 30."""


def command(
    name: Annotated[
        str | None, typer.Argument(help="Which data: sst, imdb, ag-news, 20news, diabetes, anemia.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A file, a folder, a Hub name, or reviews.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind. [8]")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of each training. [8]")] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors: a line `word v1 v2 ...` per word, .gz too.")
    ] = None,
    lambdas: Annotated[
        str | None, typer.Option(help="Of the adversaries, twice the paper's; with commas.")
    ] = None,
    adversary_epochs: Annotated[int | None, typer.Option(help="At most. [80]")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without a better adversary. [10]")
    ] = None,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    out: Annotated[
        Path | None, typer.Option(help="[runs/wiegreffe-pinter-NAME]", parser=opt.folder)
    ] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Attention is not not explanation: uniform weights, seeds, guided models, trained adversaries."""
    from heedmap.papers.wiegreffe_pinter.settings import DATA

    if data is None:
        typer.echo(NEEDS)
        if name is not None:
            raise InputError(f"{name}: expected --data, the place where {name} is")
        return
    options: dict[str, Any] = {
        "seeds": seeds, "epochs": epochs, "vectors": vectors, "lambdas": lambdas,
        "adversary_epochs": adversary_epochs, "patience": patience,
    }  # fmt: skip
    from heedmap.data.load import load
    from heedmap.papers.wiegreffe_pinter.paper import PAPER, reproduce

    with working("wiegreffe-pinter"):
        corpus = load(
            data, dataset=DATA.get(name or ""), train_texts=train_texts, test_texts=test_texts
        )
        found = reproduce(
            corpus,
            out=out or DefaultPlace(Path("runs") / f"wiegreffe-pinter-{name or corpus.name}"),
            name=name,
            overwrite=overwrite,
            workers=workers,
            **{key: value for key, value in options.items() if value is not None},
        )
    show(PAPER.result(found), found.folder)
