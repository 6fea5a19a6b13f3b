"""The options of `heedmap reproduce lu`."""

from typing import TYPE_CHECKING, cast

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import (
    PAIRS,
    Option,
    Values,
    how_to_run,
    read_pairs,
    running,
    show,
    taken,
    with_options,
)
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.papers.kit.made_language import Task

BUDGETS = ("quick", "paper")
NEEDS = """Lu et al. calibrated the cross-attention of Transformer translators. Give sentences in two languages:
  heedmap reproduce lu multi30k --data PATH --from de --to en   translators with and without calibration
  heedmap reproduce lu reverse     sentences of our own, whose right source words are known; copy, dictionary
  heedmap reproduce lu multi30k --data PATH --budget paper      the released code's size and updates; days
--links and --gold name links of words, for the alignment error rate. The quick budget takes 40 minutes."""
OPTIONS = {
    "data": Option(
        "The sentences: a folder, a table, the common path of two texts, or a Hub name."
    ),
    "budget": Option(
        "Size of the trainings: quick, or paper for that of the released code.", str, "quick"
    ),
    **PAIRS,
    "fusions": Option(
        "How calibrated weights are used, separated by commas: none, fixed, annealed, gated.",
        str,
        "none,fixed,annealed,gated",
    ),
    "seeds": Option("Trainings of each kind, with seeds 0, 1, ... [3]", int),
    "train_pairs": Option("Sample this many training pairs. [6000; paper all]", int),
    "updates": Option("Steps of each training. [1200; paper 150000]", int),
    "renormalise": Option(
        "Let the fused weights sum to 1, which the released code does not.", bool, False
    ),
    **running("[runs/lu-NAME-BUDGET]"),
}


@with_options(
    "name", "Name of the data in the result; copy, reverse or dictionary without --data.", OPTIONS
)
def command(name: str | None, values: Values) -> None:
    """Ask whether calibrated cross-attention translates better and shows what a translation rests on."""
    budget, data = values.pop("budget"), values.pop("data", None)
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if data is None and name is None:
        typer.echo(NEEDS)
        return
    values["fusions"] = tuple(opt.names(values["fusions"]))
    of_pairs = taken(values, *PAIRS)
    from heedmap.papers.kit.made_language import TASKS, made_corpus
    from heedmap.papers.lu.paper import PAPER, reproduce
    from heedmap.papers.lu.settings import QUICK

    if data is None and name not in TASKS:
        raise InputError(
            f"{name}: expected --data, the place where the sentences are, or one of {', '.join(TASKS)}"
        )
    if data is None and of_pairs:
        option = PAIRS[next(iter(of_pairs))].flag or f"--{next(iter(of_pairs)).replace('_', '-')}"
        raise InputError(f"{option}: expected with --data alone; {name} draws its own sentences")
    with working("lu"):
        if data is None:
            corpus, arguments = (
                made_corpus(cast("Task", name)),
                {"source": "source", "target": "target"},
            )
        else:
            corpus, arguments = read_pairs(data, of_pairs)
        options = {**(QUICK if budget == "quick" else {}), **arguments}
        run_options = how_to_run(values, f"lu-{name or corpus.name}-{budget}")
        reproduction = reproduce(corpus, **run_options, **{**options, **values})
    show(PAPER, reproduction, reproduction.folder)
