"""The options of `heedmap reproduce snell`."""

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

BUDGETS = ("small", "quick", "paper")
TRAINING = {
    "classification": ("seeds", "steps"),
    "copying": ("seeds", "steps", "variant_seeds"),
    "multihead": (),
    "translation": ("seeds",),
}
ON_DATA = {
    "classification": "--data with their place, or --data reviews",
    "translation": "--data with sentences in two languages",
}
SPELLED = {"source": "from", "target": "to"}
NEEDS = """Snell et al. asked where attention comes from. Say which part:
  heedmap reproduce snell classification --data PATH   relevance first, then attention? Own texts too
  heedmap reproduce snell translation --data PATH --from de --to en   the same, for every translated word
  heedmap reproduce snell copying                   who learns to copy? A smaller model, minutes
  heedmap reproduce snell multihead                 do heads that fail alone learn together? 15 minutes
  heedmap reproduce snell translation --data PATH --budget small   the same, short: to try it out
  heedmap reproduce snell copying --budget paper    the released code's size, 20 seeds; hours, resumes"""
OPTIONS = {
    "budget": Option(
        "Size of the trainings: quick, small for a short translation, or paper for that of the "
        "released code.",
        str,
        "quick",
    ),
    "seeds": Option("Trainings of each kind, with seeds 0, 1, ... [8; paper 20]", int),
    "steps": Option(
        "Stop a training that has not learned after this many steps. [400; paper 1000]", int
    ),
    "variant_seeds": Option("Trainings of each variant of the model. [2; paper 5]", int),
    "data": Option("The texts: a file, a folder, a Hub name, or reviews."),
    "dataset": Option(
        "Read the data as a paper's data set: sst, imdb, ag_news, news20_baseball_hockey. A translation "
        "of multi30k stands beside the published numbers."
    ),
    **PAIRS,
    **SAMPLES,
    **running("[runs/snell-PART]"),
}


@with_options(
    "part", "Part of the paper: classification, translation, copying, multihead.", OPTIONS
)
def command(part: str | None, values: Values) -> None:
    """Ask where attention comes from: relevance under uniform attention, and how models learn to copy."""
    budget, data = values.pop("budget"), values.pop("data", None)
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if part is None:
        typer.echo(NEEDS)
        return
    from heedmap.data.load import load
    from heedmap.papers.snell.paper import PAPER, PARTS
    from heedmap.papers.snell.settings import BUDGETS as SIZES
    from heedmap.papers.snell.settings import SMALL

    if part not in PARTS:
        raise InputError(f"{part}: expected one of {', '.join(PARTS)}")
    if budget == "small" and part not in SMALL:
        raise InputError(f"--budget small: expected with {', '.join(SMALL)} alone")
    training = taken(values, "seeds", "steps", "variant_seeds")
    of_texts = taken(values, "train_texts", "test_texts")
    dataset = taken(values, "dataset")
    of_pairs = taken(values, *PAIRS)
    for name in [
        *(name for name in training if name not in TRAINING[part]),
        *(of_texts if part != "classification" else ()),
        *(dataset if part not in ON_DATA else ()),
        *(of_pairs if part != "translation" else ()),
    ]:
        raise InputError(f"--{SPELLED.get(name, name.replace('_', '-'))}: not of the part {part}")
    if part not in ON_DATA and data is not None:
        raise InputError(f"the part {part} draws its own sequences; expected no --data")
    if part in ON_DATA and data is None:
        raise InputError(f"the part {part} needs texts: {ON_DATA[part]}")
    options = {**SIZES[budget].get(part, {}), **training}
    with working("snell"):
        corpora: list[Any] = []
        if data is not None and part == "classification":
            corpora = [load(data, **dataset, **of_texts)]
        elif data is not None:
            corpus, pair_arguments = read_pairs(data, of_pairs)
            corpora, options = [corpus], {**options, **dataset, **pair_arguments}
        name = "-".join([part, *(corpus.name for corpus in corpora), budget])
        reproduction = PARTS[part].reproduce(
            *corpora, **how_to_run(values, f"snell-{name}"), **options
        )
    show(PAPER, reproduction, reproduction.folder)
