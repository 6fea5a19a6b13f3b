"""The options of `heedmap reproduce wiegreffe-pinter`."""

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
from heedmap.terminal.progress import working

NEEDS = """Wiegreffe & Pinter trained on Jain & Wallace's data sets of two classes. Say which, and where it is:
  heedmap reproduce wiegreffe-pinter sst --data PATH    also imdb, ag-news, 20news, diabetes, anemia
  heedmap reproduce wiegreffe-pinter --data reviews     the embedded corpus, to try it out
It trains some 80 models: an hour and a half of two cores on SST with --seeds 5 --adversary-epochs 30."""
OPTIONS = {
    "data": Option("The texts: a file, a folder, a Hub name, or reviews."),
    "seeds": Option("Trainings of each kind, with seeds 0, 1, ... [8]", int),
    "epochs": Option("Epochs of each training. [8]", int),
    "vectors": Option("File of word vectors: a line `word v1 v2 ...` per word, .gz too."),
    "lambdas": Option(
        "Strengths of the adversaries' penalty; twice the paper's λ. [0.0001,0.0003,0.001,0.002,0.01]"
    ),
    "adversary_epochs": Option("Maximum epochs of each adversary. [80]", int),
    "patience": Option("Stop an adversary after this many epochs without a better one. [10]", int),
    **SAMPLES,
    **running("[runs/wiegreffe-pinter-NAME]"),
}


@with_options("name", "Name of the data: sst, imdb, ag-news, 20news, diabetes, anemia.", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Compare a model with uniform weights, other seeds, guided models and trained adversaries."""
    from heedmap.papers.wiegreffe_pinter.settings import DATA

    if "data" not in values:
        say_what_is_needed(NEEDS, name)
        return
    from heedmap.data.load import load
    from heedmap.papers.wiegreffe_pinter.paper import PAPER, reproduce

    with working("wiegreffe-pinter"):
        sample = taken(values, "train_texts", "test_texts")
        corpus = load(values.pop("data"), dataset=DATA.get(name or ""), **sample)
        running_options = how_to_run(values, f"wiegreffe-pinter-{name or corpus.name}")
        reproduction = reproduce(corpus, name=name, **running_options, **values)
    show(PAPER, reproduction, reproduction.folder)
