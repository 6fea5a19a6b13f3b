"""The options of `heedmap reproduce brunner`."""

from pathlib import Path

from heedmap.errors import InputError
from heedmap.papers.kit.command import (
    Option,
    Values,
    how_to_run,
    running,
    say_what_is_needed,
    show,
    taken,
    with_options,
)
from heedmap.terminal.progress import working

NEEDS = """Brunner et al. studied BERT, which is not at hand. Give a transformer classifier and texts:
  heedmap reproduce brunner sst --model MODEL --data PATH   MODEL is a folder, or a name on the Hub
  heedmap reproduce brunner --model MODEL --data reviews    the embedded corpus, to try it out
It needs a text and a label column (labels are not used), a train and a test split, and time: about half an
hour for six layers of width 384 on sentences. The same architecture with random weights stands beside it."""
OPTIONS = {
    "model": Option("The transformer classifier: a folder, or a name on the Hub."),
    "data": Option("The texts: a file, a folder, a Hub name, or reviews."),
    "text_column": Option("Column of the text. [guessed]"),
    "label_column": Option("Column of the label. [guessed]"),
    "train_texts": Option("Learn the maps on a sample of this many training texts.", int, 1000),
    "test_texts": Option("Recover the tokens of a sample of this many test texts.", int, 200),
    "attributed_texts": Option("Attribute the hidden states of this many of them.", int, 40),
    "max_length": Option("Cut texts of more positions.", int, 128),
    "directions": Option(
        "Random directions per token in which derivatives are taken; exact at the embeddings' width.",
        int,
        16,
    ),
    "epochs": Option("Epochs of the maps.", int, 10),
    "learning_rate": Option("Adam learning rate of the maps at first; it falls to 0.", float, 1e-3),
    "batch_size": Option("Texts per step.", int, 16),
    "seed": Option("Seed of samples, maps, directions and random weights.", int, 0),
    **running("[runs/brunner-NAME-MODEL]"),
}


@with_options("name", "Name of the data in the result: sst, imdb, ...", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Ask what hidden states keep of their tokens, what is mixed into them, and what attention is effective."""
    if "data" not in values and "model" not in values:
        say_what_is_needed(NEEDS, name)
        return
    if missing := [option for option in ("model", "data") if option not in values]:
        raise InputError(f"expected --model and --data; --{missing[0]} is missing: give both")
    from heedmap.data.load import load
    from heedmap.papers.brunner.paper import PAPER, reproduce

    with working("brunner"):
        columns = taken(values, "text_column", "label_column")
        corpus = load(
            values.pop("data"),
            text=columns.get("text_column"),
            label=columns.get("label_column"),
        )
        parts = ["brunner", name or corpus.name, Path(values["model"]).name]
        running_options = how_to_run(values, "-".join(parts))
        reproduction = reproduce(corpus, **running_options, **values)
    show(PAPER, reproduction, reproduction.folder)
