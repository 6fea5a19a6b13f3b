"""The options of `heedmap reproduce serrano-smith`."""

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import (
    SAMPLES,
    Option,
    Values,
    how_to_run,
    running,
    show,
    taken,
    with_options,
)
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Serrano & Smith trained on four large data sets. Say which, and where it is:
  heedmap reproduce serrano-smith yelp --data PATH     NAMES below; another name is your own data
  heedmap reproduce serrano-smith yelp --hub           read from the Hugging Face Hub (network)
  heedmap reproduce serrano-smith --data reviews       the embedded corpus, to try it out
It needs a train split and time: about an hour per seed on 5000 texts of IMDB and two cores."""
OPTIONS = {
    "data": Option("The texts: a file, a folder, a Hub name, or reviews."),
    "hub": Option("Read one of the paper's data sets from the Hugging Face Hub.", bool, False),
    "text_column": Option("Column of the text, or several to join: title,content. [guessed]"),
    "label_column": Option("Column of the label. [guessed]"),
    "models": Option(
        "Models, separated by commas: han-rnn, han-cnn, han-none, flan-rnn, flan-cnn, flan-none. [all six]"
    ),
    "seeds": Option("Trainings of each model, with seeds 0, 1, ...", int, 1),
    **SAMPLES,
    "epochs": Option(
        "Maximum epochs; models without an encoder get four times as many. [the paper's]", int
    ),
    "learning_rate": Option("Adam learning rate. [the paper's]", float),
    "most_sentences": Option("Maximum sentences of a training text. [the paper's]", int),
    "most_words": Option("Maximum words of a sentence of a training text. [the paper's]", int),
    **running("[runs/serrano-smith-NAME]"),
}


@with_options(
    "name",
    "Name of the data: imdb-10, yahoo, amazon, yelp, imdb, imdb-stars, ag-news, 20news, or one of your own.",
    OPTIONS,
)
def command(name: str | None, values: Values) -> None:
    """Ask whether attention is interpretable: erase it in six models, along every ranking."""
    from heedmap.data.catalog import CATALOG
    from heedmap.papers.serrano_smith.settings import RECIPES

    recipe = RECIPES.get(name or "")
    theirs = CATALOG[name] if name and recipe and not recipe.not_theirs else None
    data = values.pop("data", None)
    if values.pop("hub") and data is None and recipe is not None:
        data = theirs.hub if theirs else recipe.hub
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
        for key, known_recipe in RECIPES.items():
            columns = f"columns {known_recipe.text} and {known_recipe.label}"
            needs = columns if known_recipe.not_theirs else CATALOG[key].needs
            typer.echo(f"  {key:<12}{known_recipe.title}; {needs}")
        return
    if "models" in values:
        values["models"] = tuple(opt.names(values["models"]))
    from heedmap.data.load import load
    from heedmap.papers.serrano_smith.paper import PAPER, reproduce

    with working("serrano-smith"):
        text, label = values.pop("text_column", None), values.pop("label_column", None)
        how_to_read = taken(values, "train_texts", "test_texts")
        if theirs:
            how_to_read["dataset"] = name
        corpus = load(
            data,
            text=text or (recipe.text if recipe else None),
            label=label or (recipe.label if recipe else None),
            tokenizer="sentences",
            **how_to_read,
        )
        running_options = how_to_run(values, f"serrano-smith-{name or corpus.name}")
        options = {**(recipe.options if recipe else {}), **values}
        reproduction = reproduce(corpus, name=name, **running_options, **options)
    show(PAPER, reproduction, reproduction.folder)
