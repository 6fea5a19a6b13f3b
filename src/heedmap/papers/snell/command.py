"""The options of `heedmap reproduce snell`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

BUDGETS = ("quick", "paper")
OPTIONS = {
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
  heedmap reproduce snell copying --budget paper    the released code's size, 20 seeds; hours"""


def command(
    part: Annotated[
        str | None,
        typer.Argument(help="Which part: classification, translation, copying, multihead."),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="quick or paper, the released code's size.")
    ] = "quick",
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind. [8; 20]")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Where trainings that have not learned end. [400; 1000]")
    ] = None,
    variant_seeds: Annotated[
        int | None, typer.Option(help="Trainings of each variant of the model. [2; 5]")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A file, a folder, a Hub name, or reviews.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Which data set that is, with its rules: sst, imdb, ag_news.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="The source's column, or file ending. [de]")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", help="The target's column, or file ending. [en]")
    ] = None,
    links: Annotated[
        str | None, typer.Option(help="A column with links of words, as align_auto:en-de.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="Other sentences, whose words people linked.")
    ] = None,
    gold_links: Annotated[str | None, typer.Option(help="Their column. [sure:FROM-TO]")] = None,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    out: Annotated[Path | None, typer.Option(help="[runs/snell-PART]", parser=opt.folder)] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Where does attention come from? From relevance under uniform attention; and learning to copy."""
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if part is None:
        typer.echo(NEEDS)
        return
    from heedmap.data.load import load
    from heedmap.papers.snell.paper import PAPER, PARTS
    from heedmap.papers.snell.settings import QUICK

    if part not in PARTS:
        raise InputError(f"{part}: expected one of {', '.join(PARTS)}")
    given = {"seeds": seeds, "steps": steps, "variant_seeds": variant_seeds}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for name in options:
        if name not in OPTIONS[part]:
            raise InputError(f"--{name.replace('_', '-')}: not of the part {part}")
    of_texts = _given(dataset=dataset, train_texts=train_texts, test_texts=test_texts)
    of_pairs = _given(source=source, target=target, links=links, gold=gold, gold_links=gold_links)
    for name in [
        *(of_texts if part != "classification" else ()),
        *(of_pairs if part != "translation" else ()),
    ]:
        raise InputError(f"--{SPELLED.get(name, name.replace('_', '-'))}: not of the part {part}")
    if part not in ON_DATA and data is not None:
        raise InputError(f"the part {part} draws its own sequences; expected no --data")
    if part in ON_DATA and data is None:
        raise InputError(f"the part {part} needs texts: {ON_DATA[part]}")
    with working("snell"):
        read: list[Any] = []
        if data is not None and part == "classification":
            read = [load(data, **of_texts)]
        elif data is not None:
            read, more = _pairs(data, of_pairs)
            options |= more
        name = "-".join([part, *(corpus.name for corpus in read), budget])
        found = PARTS[part].reproduce(
            *read,
            out=out or DefaultPlace(Path("runs") / f"snell-{name}"),
            overwrite=overwrite,
            workers=workers,
            **{**(QUICK[part] if budget == "quick" else {}), **options},
        )
    show(PAPER.result(found), found.folder)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _pairs(data: str, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Read the sentences, and those that people linked; return them and the options of the part."""
    from heedmap.data.parallel import load_links, load_parallel

    ends = given.get("source", "de"), given.get("target", "en")
    options: dict[str, Any] = {"source": ends[0], "target": ends[1]}
    if (gold := given.get("gold")) is not None:
        column = given.get("gold_links", f"sure:{ends[0]}-{ends[1]}")
        options["gold"] = load_links(gold, *ends, column)
    return [load_parallel(data, *ends, align=given.get("links"))], options
