"""The options of `heedmap reproduce pruthi`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, reporting, show
from heedmap.runs.places import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

NEEDS = """Pruthi et al. trained models that use impermissible words and hide it. Say of which task:
  heedmap reproduce pruthi pronoun                  gender from generated biographies; gendered words
  heedmap reproduce pruthi occupation               physician or surgeon, from the same; gendered words
  heedmap reproduce pruthi sst-filler --data SST    a sentence of SST and an unrelated one; the former's words
  heedmap reproduce pruthi --data FILE --forbidden he,she    your own texts and words
  heedmap reproduce pruthi pronoun --models bert --base google-bert/bert-base-uncased    a transformer
Their own biographies are not public; it takes some minutes each."""


def command(
    task: Annotated[
        str | None, typer.Argument(help="Which task: pronoun, occupation, sst-filler.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="A file, a folder, a Hub name or an embedded corpus."),
    ] = None,
    forbidden: Annotated[
        str | None, typer.Option(help="Impermissible words: he,she,... or a file. [the task's]")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Of embedding, bilstm, bert. [the first two]")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="What bert starts from: a folder, or a name on the Hub.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind. [5]")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of each training. [the paper's]")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Texts per step; the paper's is 1. [8]")
    ] = None,
    bert_epochs: Annotated[int | None, typer.Option(help="Of each fine-tuning. [4]")] = None,
    penalties: Annotated[str | None, typer.Option(help="λ, beside 0. [0.1,1]")] = None,
    rule: Annotated[
        str | None, typer.Option(help="Which epoch is kept: paper or code. [paper]")
    ] = None,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    out: Annotated[Path | None, typer.Option(help="[runs/pruthi-TASK]", parser=opt.folder)] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Learning to deceive: the attention to words that may not be used, and the accuracy with and without."""
    from heedmap.papers.pruthi.published import EPOCHS
    from heedmap.papers.pruthi.settings import TASKS

    if task is not None and task not in TASKS:
        raise InputError(f"{task}: expected one of {', '.join(TASKS)}, or none with --data")
    known = TASKS.get(task or "")
    data = data or (known.source if known else None)
    if data is None:
        typer.echo(NEEDS)
        if task is not None:
            raise InputError(f"{task}: expected --data, the place where its texts are")
        return
    words = forbidden or (known.forbidden if known else None)
    if words is None:
        raise InputError(
            "--data: expected --forbidden too, the impermissible words: he,she,... or a file"
        )
    given = {
        "models": None if models is None else tuple(opt.names(models)),
        "base": base, "batch_size": batch_size, "bert_epochs": bert_epochs,
        "seeds": seeds, "epochs": epochs or EPOCHS.get(task or ""), "penalties": penalties, "rule": rule,
    }  # fmt: skip
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    from heedmap.data.corpus import load
    from heedmap.papers.pruthi.paper import PAPER, reproduce

    with reporting() as report:
        corpus = load(data, train_texts=train_texts, test_texts=test_texts)
        found = reproduce(
            corpus,
            out=out or DefaultPlace(Path("runs") / f"pruthi-{task or corpus.name}"),
            name=task,
            overwrite=overwrite,
            workers=workers,
            report=report,
            forecast=lambda text: say(f"This will take {text}.", error=True),
            task=task or "",
            forbidden=words,
            **options,
        )
    show(PAPER.result(found), found.folder)
