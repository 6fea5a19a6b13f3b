"""The options of `heedmap reproduce jain-wallace`."""

from pathlib import Path

from heedmap.papers.kit.command import SAMPLES, Option, Values, running, show, with_options
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

OPTIONS = {
    "data": Option("The data set, or a folder with one folder for each. [data/NAME]", Path),
    "hub": Option("Read from the Hugging Face Hub what is not there.", bool, False),
    "encoders": Option("Of lstm, average, cnn.", str, "lstm,average,cnn"),
    "scores": Option("Of additive, dot.", str, "additive,dot"),
    "seeds": Option("How many: 0, 1, ...", int, 3),
    "rules": Option("The paper's, or those of its released code where they differ.", str, "paper"),
    **SAMPLES,
    "instances": Option("Test texts to audit of each model.", int, 2000),
    "vectors": Option("Word vectors: `word v1 v2 ...` a line, .gz too.", Path),
    "epochs": Option("Other than the paper's.", int),
    "baselines": Option(
        "Variants of attention and none at all too, of lstm and additive: 4 trainings a seed.",
        bool,
        False,
    ),
    **running("Where everything goes.", Path("runs/jain-wallace")),
}


@with_options("names", "Data sets; without any, they are listed.", OPTIONS, several=True)
def command(names: list[str] | None, values: Values) -> None:
    """Every task, model and number: trains, audits, and prints ours beside the published numbers."""
    if not names:
        _list(values.get("data"))
        return
    from heedmap.papers.jain_wallace.paper import PAPER, reproduce

    lists = {name: opt.names(values[name]) for name in ("encoders", "scores")}
    with working("jain-wallace"):
        numbers = reproduce(names, **{**values, **lists})
    show(PAPER, numbers, values["out"])


def _list(data: Path | None) -> None:
    from heedmap.papers.jain_wallace.locations import listing

    for name, title, place, needs in listing(data):
        say(f"{name} ({title}): {place}")
        say(f"    needs {needs}")
    say("")
    say("heedmap reproduce jain-wallace NAME ... [--data FOLDER | --hub]")
