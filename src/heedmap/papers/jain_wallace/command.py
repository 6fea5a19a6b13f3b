"""The options of `heedmap reproduce jain-wallace`."""

from pathlib import Path
from typing import Any

from heedmap.papers.kit.command import SAMPLES, Option, Values, running, show, taken, with_options
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

OPTIONS = {
    "data": Option(
        "Folder of the data set, or a folder with one folder per data set [data/NAME]; without a name, your "
        "own texts: a file, a folder with train and test files, or reviews.",
        Path,
    ),
    "hub": Option("Read data sets that are not in --data from the Hugging Face Hub.", bool, False),
    "encoders": Option("Encoders, separated by commas.", str, "lstm,average,cnn"),
    "scores": Option("Functions that score a word, separated by commas.", str, "additive,dot"),
    "seeds": Option("Trainings of each model, with seeds 0, 1, ...", int, 3),
    "rules": Option(
        "Select the texts as the paper describes it, or as its released code does.", str, "paper"
    ),
    **SAMPLES,
    "instances": Option("Audit at most this many test texts of each model.", int, 2000),
    "vectors": Option("File of word vectors: a line `word v1 v2 ...` per word, .gz too.", Path),
    "epochs": Option("Passes over the training texts. [the paper's]", int),
    "baselines": Option(
        "Also train lstm, additive under variants of attention, and without any: 4 trainings per seed.",
        bool,
        False,
    ),
    **running("Where everything goes.", Path("runs/jain-wallace")),
}


@with_options(
    "names",
    "Data sets to reproduce; without any, your own --data, or a list of them.",
    OPTIONS,
    several=True,
)
def command(names: list[str] | None, values: Values) -> None:
    """Train and audit the paper's models on its data sets, and print the numbers beside the published ones."""
    from heedmap.papers.jain_wallace.locations import is_own

    if not names and not is_own(values.get("data")):
        _list(values.get("data"))
        return
    from heedmap.data.load import load
    from heedmap.papers.jain_wallace.paper import PAPER, reproduce

    lists = {name: opt.names(values[name]) for name in ("encoders", "scores")}
    with working("jain-wallace"):
        subjects: list[Any] = names or []
        if not names:
            sample = taken(values, "train_texts", "test_texts")
            subjects = [load(str(values.pop("data")), **sample)]
        numbers = reproduce(subjects, **{**values, **lists})
    show(PAPER, numbers, values["out"])


def _list(data: Path | None) -> None:
    from heedmap.papers.jain_wallace.locations import listing

    for name, title, place, needs in listing(data):
        say(f"{name} ({title}): {place}")
        say(f"    needs {needs}")
    say("")
    say("heedmap reproduce jain-wallace NAME ... [--data FOLDER | --hub]")
    say("heedmap reproduce jain-wallace --data FILE     your own texts")
