"""The options of `heedmap reproduce survey`."""

from pathlib import Path
from typing import Any

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
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """The survey of the debate ends in open questions. Say of which data they are to be asked:
  heedmap reproduce survey --data reviews,reviews-stars,babi_qa1    embedded corpora; resumes, hours on one core
  heedmap reproduce survey --data reviews,snli=SNLI --pairs MULTI30K    inference and translation, too
Texts are classification, pairs of texts question answering, or inference where a class is called entailment;
sequences to copy and a small dictionary to translate by are made. --train-texts says how many are read."""
OPTIONS = {
    "data": Option(
        "Data sets, separated by commas: files, folders, Hub names or embedded corpora; snli=FOLDER reads a "
        "folder as a paper's data set."
    ),
    "pairs": Option(
        "Sentences in two languages, for translation: a folder, a table or a Hub name."
    ),
    "source": Option("Column or file ending of the source language. [de]", flag="--from"),
    "target": Option("Column or file ending of the target language. [en]", flag="--to"),
    "train_texts": Option("Sample this many training texts of each data set.", int, 2500),
    "test_texts": Option("Sample this many test texts, and this many dev texts.", int, 120),
    "encoders": Option("Encoders: lstm, cnn, average, gru.", str, "lstm,cnn,average"),
    "normalisers": Option(
        "Normalisers: softmax, sparsemax, entmax15. All but softmax have the first size.",
        str,
        "softmax,sparsemax",
    ),
    "sizes": Option("Sizes of the encoder's states, separated by commas.", str, "16,64"),
    "seeds": Option("Further trainings with learned and with uniform weights each.", int, 3),
    "epochs": Option("Epochs of each training. [8; pairs of texts 25]", int),
    "adversary_texts": Option(
        "Search this many test texts of each model for an adversary.", int, 30
    ),
    "train_pairs": Option("Sample this many training pairs of sentences.", int, 1500),
    "pair_epochs": Option("Epochs of each training on pairs of sentences.", int, 15),
    "seed": Option("Seed of the models and of all samples.", int, 0),
    **running("[runs/survey]"),
}


@with_options("name", "Name of the folder in runs/. [survey]", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Ask the survey's open questions: who needs attention, how stable and contextual it is, who is fooled."""
    if "data" not in values:
        say_what_is_needed(NEEDS, name)
        return
    sources = opt.names(values.pop("data"))
    for option in ("encoders", "normalisers", "sizes"):
        values[option] = tuple(opt.names(values[option]))
    languages = taken(values, "source", "target")
    pairs = values.pop("pairs", None)
    from heedmap.data.load import load
    from heedmap.data.parallel import load_parallel
    from heedmap.papers.survey.paper import PAPER, reproduce

    with working("survey"):
        sample = taken(values, "train_texts", "test_texts")
        corpora = [load(source, **dataset, **sample) for source, dataset in map(_named, sources)]
        if pairs is not None:
            source, target = languages.get("source", "de"), languages.get("target", "en")
            values["pairs"] = load_parallel(pairs, source, target)
        running_options = how_to_run(values, name or "survey")
        reproduction = reproduce(corpora, **running_options, **values)
    show(PAPER, reproduction, reproduction.folder)


def _named(text: str) -> tuple[str, dict[str, Any]]:
    """Return a source, and the paper's data set that it is read as: `snli=FOLDER`, or no data set."""
    dataset, equals, source = text.partition("=")
    if not equals or Path(text).exists():  # a name may have a = of its own
        return text, {}
    return source, {"dataset": dataset}
