"""The options of `heedmap reproduce clark`."""

from pathlib import Path

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Option, Values, how_to_run, running, show, with_options
from heedmap.terminal.progress import working

NEEDS = """Clark et al. asked what the heads of BERT attend to. Give a text classifier on transformers:
  heedmap reproduce clark --model MODEL                      sentences of a grammar whose trees are known
  heedmap reproduce clark --model MODEL --trees dev.conllu   sentences of a treebank in CoNLL-U
It needs about 20 minutes for 72 heads on one core; --train-sentences 500 --seeds 2 tries it out in five."""
OPTIONS = {
    "model": Option("The text classifier: a folder, or a name on the Hub."),
    "trees": Option("File of dependency trees in CoNLL-U. [sentences of a grammar]", Path),
    "vectors": Option(
        "File of word vectors for the probes: a line `word v1 v2 ...` per word, .gz too. "
        "[the model's embeddings]",
        Path,
    ),
    "train_sentences": Option("Sentences on which heads are chosen and probes trained.", int, 2000),
    "test_sentences": Option("Sentences on which they are judged.", int, 500),
    "segments": Option(
        "Texts of at most 128 sub-words on which heads are described and compared.", int, 200
    ),
    "seeds": Option("Trainings of each probe, with seeds 0, 1, ...", int, 3),
    **running("[runs/clark-MODEL-TREES]"),
}


@with_options("name", "Name of the trees in the folder's default name.", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Ask what the heads of a transformer attend to, which follow syntax, and what probes read in them."""
    if "model" not in values:
        typer.echo(NEEDS)
        if name is not None or "trees" in values:
            raise InputError("expected --model, a text classifier: a folder, or a name on the Hub")
        return
    from heedmap.papers.clark.paper import PAPER, reproduce

    with working("clark"):
        trees = name or (values["trees"].name.split(".")[0] if "trees" in values else "grammar")
        running_options = how_to_run(values, f"clark-{Path(values['model']).name}-{trees}")
        reproduction = reproduce(**running_options, **values)
    show(PAPER, reproduction, reproduction.folder)
