"""The options of `heedmap reproduce snell`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, Workers, reporting, show
from heedmap.runs.places import DefaultPlace
from heedmap.terminal import options as opt

BUDGETS = ("quick", "paper")
NEEDS = """Snell et al. asked where attention comes from. Say which part:
  heedmap reproduce snell copying                   who learns to copy? A smaller model, minutes
  heedmap reproduce snell multihead                 do heads that fail alone learn together? 15 minutes
  heedmap reproduce snell copying --budget paper    the published size: 20 seeds; hours"""


def command(
    part: Annotated[str | None, typer.Argument(help="Which part: copying, multihead.")] = None,
    budget: Annotated[str, typer.Option(help="quick or paper, the published size.")] = "quick",
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind. [8; 20]")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Where trainings that have not learned end. [400; 1000]")
    ] = None,
    variant_seeds: Annotated[
        int | None, typer.Option(help="Trainings of each variant of the model. [2; 5]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="[runs/snell-PART]", parser=opt.folder)] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Where does attention come from? Learning to copy, and why half of the trainings do not."""
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if part is None:
        typer.echo(NEEDS)
        return
    from heedmap.papers.snell.paper import PAPER, PARTS
    from heedmap.papers.snell.settings import QUICK

    if part not in PARTS:
        raise InputError(f"{part}: expected one of {', '.join(PARTS)}")
    given = {"seeds": seeds, "steps": steps, "variant_seeds": variant_seeds}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if part != "copying" and options:
        raise InputError(f"--{next(iter(options)).replace('_', '-')}: of the part copying alone")
    with reporting() as report:
        found = PARTS[part].reproduce(
            out=out or DefaultPlace(Path("runs") / f"snell-{part}-{budget}"),
            overwrite=overwrite,
            workers=workers,
            report=report,
            **{**(QUICK[part] if budget == "quick" else {}), **options},
        )
    show(PAPER.result(found), found.folder)
