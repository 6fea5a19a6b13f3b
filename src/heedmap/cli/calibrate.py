"""`heedmap calibrate`: how often the bottom line is wrong, measured on planted models."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.data.file_kinds import refuse_missing
from heedmap.settings.data import TOKENS, DataSettings
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import say
from heedmap.terminal.progress import working


@opt.with_options(DataSettings)
def calibrate_command(
    *,
    data: opt.Data = None,
    given: opt.Given,
    seeds: Annotated[
        int, typer.Option(min=1, help="Planted models of each family and kind of model.")
    ] = 6,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes, each of one thread. [one per core]"),
    ] = None,
    out: opt.Out = None,
    as_json: Json = False,
) -> None:
    """Measure how often the bottom line is wrong, on models whose answer is known by construction.

    Without --data the planted texts are drawn; with it, deciding words are written into your texts, and later
    audits of that data whose run folder lies beside this one use these rates. A calibration that was stopped
    goes on where it stopped.
    """
    if data is not None:
        refuse_missing(data)
    with working("reading the texts"):
        from heedmap.calibration.calibrate import PAGE, calibrate
        from heedmap.data.load import load
        from heedmap.experiments.rates import ALL, FILE

        corpus = None if data is None else load(data, **given.of(TOKENS))
    folder = out or Path("runs") / (
        "calibration" if corpus is None else f"calibration-{corpus.name}"
    )
    rates = calibrate(folder, [] if corpus is None else [corpus], seeds=seeds, workers=workers)
    if as_json:
        print_json({"folder": str(folder), **rates.model_dump(mode="json")})
        return
    all_kinds = rates.kinds[ALL]
    wrong, right = all_kinds.of("wrong"), all_kinds.of("right")
    say(f"{rates.plants} planted models, planted on {rates.name}.")
    say(
        f"The bottom line says yes of wrong maps: {wrong.rate('yes')}; of right ones: {right.rate('yes')}."
    )
    say(f"It says no of wrong maps: {wrong.rate('no')}; of right ones: {right.rate('no')}.")
    say(f"Rates: {folder / FILE}; tables: {folder / PAGE}")
