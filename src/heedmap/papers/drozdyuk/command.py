"""The options of `heedmap reproduce drozdyuk`."""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

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
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.data.corpus import Corpus

NEEDS = """Drozdyuk et al. trained on a data set that they do not name (two classes, IMDB-like). Give one:
  heedmap reproduce drozdyuk sst  --data PATH   a folder with train, dev and test files, such as SST
  heedmap reproduce drozdyuk imdb --data PATH   such as IMDB; --train-texts and --test-texts draw a sample
  heedmap reproduce drozdyuk --data reviews     the embedded corpus, to try it out
It needs a text and a label column, a train split, and time: about 10 minutes per seed and activation on SST."""
OPTIONS = {
    "data": Option("The texts: a file, a folder, a Hub name, or reviews."),
    "text_column": Option("Column of the text. [guessed]"),
    "label_column": Option("Column of the label. [guessed]"),
    "tokenizer": Option(
        "Split raw text into words, or tokenised text at its spaces.", str, "words"
    ),
    "max_tokens": Option("Cut texts of more tokens.", int, 254),
    "activations": Option(
        "Functions that turn scores into weights, separated by commas: softmax, entmax15, sparsemax.",
        str,
        "softmax,entmax15,sparsemax",
    ),
    "seeds": Option("Trainings of each model, with seeds 0, 1, ...", int, 3),
    **SAMPLES,
    "model": Option("Audit this trained classifier instead of the paper's small transformer."),
    "transformer": Option(
        "Size of the transformer: small, larger, or small,larger for both in one table. With larger (4 layers "
        "of width 256), texts are cut to 128 words, and 5000 are for training unless --train-texts says "
        "otherwise.",
        str,
        "small",
    ),
    "per_layer": Option("Train adversaries of single layers too.", bool, False),
    "pooling": Option(
        "What the classifier reads: the mean over the tokens, or the first token, which marks the start.",
        str,
        "mean",
    ),
    "epochs": Option("Maximum epochs of the transformer.", int, 20),
    "learning_rate": Option("Adam learning rate of the transformer.", float, 1e-4),
    "batch_size": Option("Texts per step.", int, 64),
    "adversary_epochs": Option("Epochs of each adversary.", int, 5),
    "alpha": Option(
        "Share of the accuracy in the adversary's loss; at 1 its attention does not count.",
        float,
        0.5,
    ),
    **running("[runs/drozdyuk-NAME]"),
}


@with_options("name", "Name of the data; beside sst and imdb stand the published numbers.", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Ask whether sparse attention explains better: the paper's Table 1 with seeds, distances and controls."""
    if "data" not in values:
        say_what_is_needed(NEEDS, name)
        return
    values["activations"] = tuple(opt.names(values["activations"]))
    transformers = values["transformers"] = tuple(opt.names(values.pop("transformer")))
    from heedmap.data.load import load
    from heedmap.papers.drozdyuk.settings import LARGER_DATA, DatasetName

    if name in get_args(DatasetName):
        values["dataset"] = name

    if "larger" in transformers:
        values = {**LARGER_DATA, **values}
        values["max_tokens"] = min(values["max_tokens"], values["max_length"] - 2)
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
        if "larger" in transformers:
            parts += transformers
        if "larger" in transformers and "model" not in values:
            _say_forecast(corpus, values)
        running_options = how_to_run(values, "-".join(parts))
        reproduction = reproduce(corpus, **running_options, **values)
    show(PAPER, reproduction, reproduction.folder)


def _say_forecast(corpus: "Corpus", values: Values) -> None:
    """Say how long the whole reproduction takes, since the larger transformer takes hours."""
    from heedmap.papers.drozdyuk.forecast import cell_seconds
    from heedmap.papers.drozdyuk.settings import DrozdyukSettings
    from heedmap.retraining.estimate import side_by_side

    options = {name: v for name, v in values.items() if name in DrozdyukSettings.model_fields}
    settings = DrozdyukSettings.of(
        **{**options, "fingerprint": corpus.fingerprint(), "data": corpus.settings}
    )
    hours = side_by_side(cell_seconds(corpus, settings), values.get("workers")) / 3600
    say(f"Forecast: {hours:.1f} hours at most. Interrupted, the same command resumes.")
