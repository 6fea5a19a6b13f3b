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
    "data": Option("A file, a folder, a Hub name, or reviews."),
    "seeds": Option("Trainings of each kind. [8]", int),
    "epochs": Option("Of each training. [8]", int),
    "vectors": Option("Word vectors: a line `word v1 v2 ...` per word, .gz too."),
    "lambdas": Option("Of the adversaries, twice the paper's; with commas."),
    "adversary_epochs": Option("At most. [80]", int),
    "patience": Option("Epochs without a better adversary. [10]", int),
    **SAMPLES,
    **running("[runs/wiegreffe-pinter-NAME]"),
}


@with_options("name", "Which data: sst, imdb, ag-news, 20news, diabetes, anemia.", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Attention is not not explanation: uniform weights, seeds, guided models, trained adversaries."""
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
