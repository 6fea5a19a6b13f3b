"""The options of `heedmap reproduce pruthi`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Pruthi et al. trained models that use impermissible words and hide it. Say of which task:
  heedmap reproduce pruthi pronoun                  gender from generated biographies; gendered words
  heedmap reproduce pruthi occupation               physician or surgeon, from the same; gendered words
  heedmap reproduce pruthi sst-filler --data SST    a sentence of SST and an unrelated one; the former's words
  heedmap reproduce pruthi --data FILE --forbidden he,she    your own texts and words
  heedmap reproduce pruthi pronoun --models bert --base google-bert/bert-base-uncased    a transformer
  heedmap reproduce pruthi copy                     sequences; also reverse, bigram-flip
  heedmap reproduce pruthi translation --data PATH --from en --to de --links COLUMN:en-de
Their own biographies are not public; it takes some minutes each."""
BUDGETS = ("quick", "paper")
OF_SEQUENCES = ("data", "seeds", "epochs", "batch_size", "penalties")


def command(
    task: Annotated[
        str | None,
        typer.Argument(
            help="pronoun, occupation, sst-filler; copy, reverse, bigram-flip, translation."
        ),
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
    budget: Annotated[
        str | None, typer.Option(help="Of sequences: quick, or paper, the released size. [quick]")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="The source's column, or file ending. [en]")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", help="The target's column, or file ending. [de]")
    ] = None,
    links: Annotated[
        str | None, typer.Option(help="The column with links of words, as align_auto:en-de.")
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
    from heedmap.papers.pruthi.settings import SEQUENCE_TASKS, TASKS

    every: dict[str, Any] = {
        "data": data, "forbidden": forbidden, "models": models, "base": base, "seeds": seeds,
        "epochs": epochs, "batch_size": batch_size, "bert_epochs": bert_epochs, "penalties": penalties,
        "rule": rule, "train_texts": train_texts, "test_texts": test_texts,
    }  # fmt: skip
    own = {"budget": budget, "from": source, "to": target, "links": links}
    if task in SEQUENCE_TASKS:
        _refuse({key: value for key, value in every.items() if key not in OF_SEQUENCES}, task)
        if task != "translation":
            _refuse({"data": data, **{key: own[key] for key in ("from", "to", "links")}}, task)
        given = {key: every[key] for key in OF_SEQUENCES if key != "data"}
        ends = source or "en", target or "de"
        _sequences(
            task, budget or "quick", data, *ends, links, given,
            out=out, overwrite=overwrite, workers=workers,
        )  # fmt: skip
        return
    _refuse(own, task or "of your own texts")
    if task is not None and task not in TASKS:
        names = ", ".join((*TASKS, *SEQUENCE_TASKS))
        raise InputError(f"{task}: expected one of {names}, or none with --data")
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
    every["models"] = None if models is None else tuple(opt.names(models))
    every["epochs"] = epochs or EPOCHS.get(task or "")
    elsewhere = ("data", "forbidden", "train_texts", "test_texts")
    options = {
        key: value for key, value in every.items() if value is not None and key not in elsewhere
    }
    from heedmap.data.load import load
    from heedmap.papers.pruthi.paper import PAPER, reproduce

    with working("pruthi"):
        corpus = load(data, train_texts=train_texts, test_texts=test_texts)
        found = reproduce(
            corpus,
            out=out or DefaultPlace(Path("runs") / f"pruthi-{task or corpus.name}"),
            name=task,
            overwrite=overwrite,
            workers=workers,
            task=task or "",
            forbidden=words,
            **options,
        )
    show(PAPER.result(found), found.folder)


def _refuse(options: dict[str, Any], task: str) -> None:
    """Raise an `InputError` for an option that another kind of task has."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}: not of the task {task}")


def _sequences(
    task: str,
    budget: str,
    data: str | None,
    source: str,
    target: str,
    links: str | None,
    given: dict[str, Any],
    *,
    out: Path | None,
    **how: Any,
) -> None:
    """Run a task of sequences and show its result."""
    from heedmap.papers.pruthi.paper import PAPER
    from heedmap.papers.pruthi.settings import QUICK

    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    is_text = task == "translation"
    if is_text and (data is None or links is None):
        raise InputError(
            "translation: expected --data with sentences in two languages, and --links with what links their "
            "words, as align_auto:en-de"
        )
    from heedmap.data.parallel import load_parallel
    from heedmap.papers.pruthi.sequences import reproduce

    options = dict(QUICK["translation" if is_text else "sequences"] if budget == "quick" else {})
    options |= {key: value for key, value in given.items() if value is not None}
    with working("pruthi"):
        corpus = None
        if data is not None:
            corpus = load_parallel(data, source, target, align=links)
            options |= {"source": source, "target": target}
        found = reproduce(
            corpus,
            task=task,
            out=out or DefaultPlace(Path("runs") / f"pruthi-{task}-{budget}"),
            **how,
            **options,
        )
    show(PAPER.result(found), found.folder)
