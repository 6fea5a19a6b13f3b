"""The options of `heedmap reproduce drozdyuk`."""

from pathlib import Path

from heedmap.papers.kit.command import (
    SAMPLES,
    Option,
    Values,
    how_to_run,
    running,
    say_what_is_needed,
    show,
    taken,
    with_options,
)
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Drozdyuk et al. trained on a data set that they do not name (two classes, IMDB-like). Give one:
  heedmap reproduce drozdyuk sst  --data PATH   a folder with train, dev and test files, such as SST
  heedmap reproduce drozdyuk imdb --data PATH   such as IMDB; --train-texts and --test-texts draw a sample
  heedmap reproduce drozdyuk --data reviews     the embedded corpus, to try it out
It needs a text and a label column, a train split, and time: about 10 minutes per seed and activation on SST."""
OPTIONS = {
    "data": Option("A file, a folder, a Hub name, or reviews."),
    "text_column": Option("The text's column. [guessed]"),
    "label_column": Option("The label's column. [guessed]"),
    "tokenizer": Option("words or spaces.", str, "words"),
    "max_tokens": Option("Cut longer texts.", int, 254),
    "activations": Option(
        "Of softmax, entmax15, sparsemax; with commas between them.",
        str,
        "softmax,entmax15,sparsemax",
    ),
    "seeds": Option("How many: 0, 1, ...", int, 3),
    **SAMPLES,
    "model": Option("A trained classifier in place of the small transformer."),
    "per_layer": Option("Adversaries of single layers too.", bool, False),
    "pooling": Option("mean (over tokens) or first (the mark).", str, "mean"),
    "epochs": Option("At most, of the transformer.", int, 20),
    "learning_rate": Option("Of the transformer.", float, 1e-4),
    "batch_size": Option("Texts a step.", int, 64),
    "adversary_epochs": Option("Of each adversary.", int, 5),
    "alpha": Option("Of the adversarial loss: 1 keeps accuracy only.", float, 0.5),
    **running("[runs/drozdyuk-NAME]"),
}


@with_options("name", "What to call the data: sst, imdb, ...", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Is sparse attention a better explanation? Its Table 1 with seeds, distances and controls."""
    if "data" not in values:
        say_what_is_needed(NEEDS, name)
        return
    values["activations"] = tuple(opt.names(values["activations"]))
    from heedmap.data.load import load
    from heedmap.papers.drozdyuk.paper import PAPER, reproduce

    with working("drozdyuk"):
        reading = taken(values, "tokenizer", "max_tokens")
        corpus = load(
            values.pop("data"),
            text=values.pop("text_column", None),
            label=values.pop("label_column", None),
            **reading,
        )
        parts = ["drozdyuk", name or corpus.name]
        if "model" in values:
            parts.append(Path(values["model"]).name)
        running_options = how_to_run(values, "-".join(parts))
        reproduction = reproduce(corpus, **running_options, **values)
    show(PAPER, reproduction, reproduction.folder)
