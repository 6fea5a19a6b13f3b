"""The options of `heedmap reproduce snell`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, reporting, show
from heedmap.runs.places import DefaultPlace
from heedmap.terminal import options as opt

BUDGETS = ("quick", "paper")
OPTIONS = {
    "classification": ("seeds", "steps"),
    "copying": ("seeds", "steps", "variant_seeds"),
    "multihead": (),
}
ON_DATA = ("classification",)
NEEDS = """Snell et al. asked where attention comes from. Say which part:
  heedmap reproduce snell classification --data PATH   relevance first, then attention? Own texts too
  heedmap reproduce snell copying                   who learns to copy? A smaller model, minutes
  heedmap reproduce snell multihead                 do heads that fail alone learn together? 15 minutes
  heedmap reproduce snell copying --budget paper    the published size: 20 seeds; hours"""


def command(
    part: Annotated[
        str | None, typer.Argument(help="Which part: classification, copying, multihead.")
    ] = None,
    budget: Annotated[str, typer.Option(help="quick or paper, the published size.")] = "quick",
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind. [8; 20]")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Where trainings that have not learned end. [400; 1000]")
    ] = None,
    variant_seeds: Annotated[
        int | None, typer.Option(help="Trainings of each variant of the model. [2; 5]")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A file, a folder, a Hub name, or reviews.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Which data set that is, with its rules: sst, imdb, ag_news.")
    ] = None,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    out: Annotated[Path | None, typer.Option(help="[runs/snell-PART]", parser=opt.folder)] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Where does attention come from? From relevance under uniform attention; and learning to copy."""
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if part is None:
        typer.echo(NEEDS)
        return
    from heedmap.data.corpus import load
    from heedmap.papers.snell.paper import PAPER, PARTS
    from heedmap.papers.snell.settings import QUICK

    if part not in PARTS:
        raise InputError(f"{part}: expected one of {', '.join(PARTS)}")
    given = {"seeds": seeds, "steps": steps, "variant_seeds": variant_seeds}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for name in options:
        if name not in OPTIONS[part]:
            raise InputError(f"--{name.replace('_', '-')}: not of the part {part}")
    source = {
        "dataset": dataset, "train_texts": train_texts, "test_texts": test_texts
    }  # fmt: skip
    asked = {key: value for key, value in source.items() if value is not None}
    if part not in ON_DATA and (data is not None or asked):
        raise InputError(f"the part {part} draws its own sequences; expected no --data")
    if part in ON_DATA and data is None:
        raise InputError(f"the part {part} needs texts: --data with their place, or --data reviews")
    with reporting() as report:
        corpora = [load(data, **asked)] if data is not None else []
        name = "-".join([part, *(corpus.name for corpus in corpora), budget])
        found = PARTS[part].reproduce(
            *corpora,
            out=out or DefaultPlace(Path("runs") / f"snell-{name}"),
            overwrite=overwrite,
            workers=workers,
            report=report,
            **{**(QUICK[part] if budget == "quick" else {}), **options},
        )
    show(PAPER.result(found), found.folder)
