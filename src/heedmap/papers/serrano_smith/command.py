"""The options of `heedmap reproduce serrano-smith`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Serrano & Smith trained on four large data sets. Say which, and where it is:
  heedmap reproduce serrano-smith imdb --data PATH     NAMES below; another name is your own data
  heedmap reproduce serrano-smith yelp --hub           read from the Hugging Face Hub (network)
  heedmap reproduce serrano-smith --data reviews       the embedded corpus, to try it out
It needs a train split and time: about an hour per seed on 5000 texts of IMDB and two cores."""


def command(
    name: Annotated[
        str | None, typer.Argument(help="Which data: imdb, imdb-stars, ag-news, 20news, yahoo, ...")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A file, a folder, a Hub name, or reviews.")
    ] = None,
    hub: Annotated[
        bool, typer.Option("--hub", help="Read a known data set from the Hugging Face Hub.")
    ] = False,
    text_column: Annotated[
        str | None, typer.Option(help="The text's column, or several with commas. [guessed]")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="The label's column. [guessed]")] = None,
    models: Annotated[
        str | None, typer.Option(help="Of han-rnn, han-cnn, han-none, flan-rnn, ... [all six]")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...")] = 1,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="At most; four times as many without an encoder. [the paper's]"),
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam. [the paper's]")] = None,
    most_sentences: Annotated[
        int | None, typer.Option(help="Of a text to learn from. [the paper's]")
    ] = None,
    most_words: Annotated[
        int | None, typer.Option(help="Of a sentence to learn from. [the paper's]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="[runs/serrano-smith-NAME]", parser=opt.folder)
    ] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Is attention interpretable? Erase what is attended: six models, every ranking, the smallest sets."""
    from heedmap.papers.serrano_smith.settings import RECIPES

    recipe = RECIPES.get(name or "")
    if data is None and hub and recipe is not None:
        data = recipe.hub
        if data is None:
            raise InputError(
                f"--hub: {name} ({recipe.title}) is not on the Hub under a name that heedmap knows; give the "
                "place, or a name there, with --data"
            )
    if data is None and name is not None:
        raise InputError(
            f"{name}: expected --data, the place where {name} is; without a name, this command lists those "
            "that it knows"
        )
    if data is None:
        typer.echo(NEEDS)
        for key, one in RECIPES.items():
            typer.echo(f"  {key:<12}{one.title}; columns {one.text} and {one.label}")
        return
    given = {
        "models": None if models is None else tuple(opt.names(models)),
        "seeds": seeds, "epochs": epochs, "learning_rate": learning_rate,
        "most_sentences": most_sentences, "most_words": most_words,
    }  # fmt: skip
    options: dict[str, Any] = {
        **(recipe.options if recipe else {}),
        **{key: value for key, value in given.items() if value is not None},
    }
    from heedmap.data.load import load
    from heedmap.papers.serrano_smith.paper import PAPER, reproduce

    with working("serrano-smith"):
        corpus = load(
            data,
            text=text_column or (recipe.text if recipe else None),
            label=label_column or (recipe.label if recipe else None),
            tokenizer="sentences",
            train_texts=train_texts,
            test_texts=test_texts,
        )
        found = reproduce(
            corpus,
            out=out or DefaultPlace(Path("runs") / f"serrano-smith-{name or corpus.name}"),
            name=name,
            overwrite=overwrite,
            workers=workers,
            **options,
        )
    show(PAPER.result(found), found.folder)
