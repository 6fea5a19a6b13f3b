"""The options of `heedmap reproduce vashishth`."""

from typing import Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import (
    PAIRS,
    SAMPLES,
    Option,
    Values,
    how_to_run,
    read_pairs,
    running,
    show,
    taken,
    with_options,
)
from heedmap.terminal.progress import working

NEEDS = """Vashishth et al. compared kinds of task. Give data of one or more:
  heedmap reproduce vashishth compare --texts SST --texts-dataset sst --pairs SNLI --pairs-dataset snli
  heedmap reproduce vashishth compare --sentences MULTI30K --from de --to en    translation too
Each model is trained with learned, uniform and permuted attention, and the learned one is tested with all."""
OPTIONS = {
    "texts": Option("Single texts with labels: a file, a folder, a Hub name, or reviews."),
    "texts_dataset": Option("Read --texts as a paper's data set, such as sst."),
    "pairs": Option("Pairs of texts with labels, such as SNLI, or babi_qa1."),
    "pairs_dataset": Option("Read --pairs as a paper's data set, such as snli."),
    "sentences": Option(
        "Sentences in two languages: a folder, a table, the common path of two texts, or a Hub name."
    ),
    "source": PAIRS["source"],
    "target": PAIRS["target"],
    "seeds": Option("Trainings of each kind, with seeds 0, 1, ... [3]", int),
    "train_texts": SAMPLES["train_texts"]._replace(
        help="Sample this many training texts, and as many pairs of sentences. [6000]"
    ),
    "test_texts": SAMPLES["test_texts"]._replace(
        help="Sample this many test texts, and this many dev texts. [1000]"
    ),
    "epochs": Option("Epochs of each training. [6]", int),
    **running("[runs/vashishth-NAME]"),
}


@with_options("name", "Name of the folder: compare, or any other.", OPTIONS)
def command(name: str | None, values: Values) -> None:
    """Ask for which kinds of task attention is needed, and what uniform or permuted attention costs."""
    texts, pairs, sentences = (
        values.pop(option, None) for option in ("texts", "pairs", "sentences")
    )
    datasets = taken(values, "texts_dataset", "pairs_dataset")
    languages = taken(values, "source", "target")
    if name is None:
        typer.echo(NEEDS)
        return
    if texts is None and pairs is None and sentences is None:
        raise InputError("expected --texts, --pairs or --sentences: data of at least one task")
    for option, data in (("texts", texts), ("pairs", pairs)):
        if data is None and f"{option}_dataset" in datasets:
            raise InputError(f"--{option}-dataset: expected with --{option} alone")
    if sentences is None and languages:
        raise InputError("--from, --to: expected with --sentences alone")
    from heedmap.data.load import load
    from heedmap.papers.vashishth.paper import PAPER, reproduce

    with working("vashishth"):
        corpora: dict[str, Any] = {}
        for task, option, data in (("single", "texts", texts), ("pair", "pairs", pairs)):
            if data is not None:
                dataset = datasets.get(f"{option}_dataset")
                corpora[task] = load(data, **({} if dataset is None else {"dataset": dataset}))
        if sentences is not None:
            corpora["generation"], _ = read_pairs(sentences, languages)
        run_options = how_to_run(values, f"vashishth-{name}")
        reproduction = reproduce(**corpora, **run_options, **values)
    show(PAPER, reproduction, reproduction.folder)
