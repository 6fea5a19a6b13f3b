"""The options of `heedmap reproduce jain-wallace`."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets; without any, they are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="The data set, or a folder with one folder for each. [data/NAME]"
        ),
    ] = None,
    hub: Annotated[
        bool, typer.Option("--hub", help="Read from the Hugging Face Hub what is not there.")
    ] = False,
    encoders: Annotated[str, typer.Option(help="Of lstm, average, cnn.")] = "lstm,average,cnn",
    scores: Annotated[str, typer.Option(help="Of additive, dot.")] = "additive,dot",
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...")] = 3,
    rules: Annotated[
        str, typer.Option(help="The paper's, or those of its released code where they differ.")
    ] = "paper",
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    instances: Annotated[int, typer.Option(help="Test texts to audit of each model.")] = 2000,
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors: `word v1 v2 ...` a line, .gz too.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Other than the paper's.")] = None,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Variants of attention and none at all too, of lstm and additive: 4 trainings a seed.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Where everything goes.", parser=opt.folder)] = Path(
        "runs/jain-wallace"
    ),
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Every task, model and number: trains, audits, and prints ours beside the published numbers."""
    if not names:
        _list(data)
        return
    from heedmap.papers.jain_wallace.paper import PAPER, reproduce

    with working("jain-wallace"):
        found = reproduce(
            names,
            data=data,
            hub=hub,
            encoders=opt.names(encoders),
            scores=opt.names(scores),
            seeds=seeds,
            rules=rules,
            train_texts=train_texts,
            test_texts=test_texts,
            instances=instances,
            vectors=vectors,
            epochs=epochs,
            baselines=baselines,
            out=out,
            overwrite=overwrite,
            workers=workers,
        )
    show(PAPER.result(found), out)


def _list(data: Path | None) -> None:
    from heedmap.papers.jain_wallace.locations import listing

    for name, title, where, needs in listing(data):
        say(f"{name} ({title}): {where}")
        say(f"    needs {needs}")
    say("")
    say("heedmap reproduce jain-wallace NAME ... [--data FOLDER | --hub]")
