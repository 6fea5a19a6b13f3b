"""The options of `heedmap reproduce pruthi`."""

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import (
    SAMPLES,
    Option,
    Values,
    how_to_run,
    running,
    show,
    taken,
    with_options,
)
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
SPELLED = {"source": "from", "target": "to"}
OF_SEQUENCES = ("data", "seeds", "epochs", "batch_size", "penalties")
OF_TEXTS = (
    "data", "forbidden", "models", "base", "seeds", "epochs", "batch_size", "bert_epochs", "penalties", "rule",
    "train_texts", "test_texts",
)  # fmt: skip
OPTIONS = {
    "data": Option("The texts: a file, a folder, a Hub name or an embedded corpus."),
    "forbidden": Option("Impermissible words: he,she,..., or a file of them. [the task's]"),
    "models": Option(
        "Models to train, separated by commas: embedding, bilstm, bert. [embedding,bilstm]"
    ),
    "base": Option("Pretrained model that bert starts from: a folder, or a name on the Hub."),
    "seeds": Option("Trainings of each model, with seeds 0, 1, ... [5]", int),
    "epochs": Option("Epochs of each training. [the paper's]", int),
    "batch_size": Option("Texts per step; the paper's is 1. [8]", int),
    "budget": Option("Size of the sequence tasks: quick, or paper for the released size. [quick]"),
    "source": Option("Column or file ending of the source language. [en]", flag="--from"),
    "target": Option("Column or file ending of the target language. [de]", flag="--to"),
    "links": Option("Column of the links between words, such as align_auto:en-de."),
    "dataset": Option("What the sentences are: multi30k stands beside the published numbers."),
    "bert_epochs": Option("Epochs of each fine-tuning of bert. [4]", int),
    "penalties": Option(
        "Strengths λ of the penalty, separated by commas; 0 is always trained. [0.1,1]"
    ),
    "rule": Option(
        "Rule that chooses the epoch to keep: the paper's, or its released code's. [paper]"
    ),
    **SAMPLES,
    **running("[runs/pruthi-TASK]"),
}


@with_options(
    "task",
    "Task: pronoun, occupation or sst-filler (texts); copy, reverse, bigram-flip or translation (sequences).",
    OPTIONS,
)
def command(task: str | None, values: Values) -> None:
    """Train models that use impermissible words and hide it, and measure attention and accuracy."""
    from heedmap.papers.pruthi.published import EPOCHS
    from heedmap.papers.pruthi.settings import SEQUENCE_TASKS, TASKS

    if task in SEQUENCE_TASKS:
        _sequences(task, values)
        return
    _refuse(("budget", "source", "target", "links", "dataset"), values, task or "of your own texts")
    if task is not None and task not in TASKS:
        names = ", ".join((*TASKS, *SEQUENCE_TASKS))
        raise InputError(f"{task}: expected one of {names}, or none with --data")
    task_defaults = TASKS.get(task or "")
    data = values.pop("data", None) or (task_defaults.source if task_defaults else None)
    if data is None:
        typer.echo(NEEDS)
        if task is not None:
            raise InputError(f"{task}: expected --data, the place where its texts are")
        return
    words = values.pop("forbidden", None) or (task_defaults.forbidden if task_defaults else None)
    if words is None:
        raise InputError(
            "--data: expected --forbidden too, the impermissible words: he,she,... or a file"
        )
    if "models" in values:
        values["models"] = tuple(opt.names(values["models"]))
    if "epochs" not in values and task in EPOCHS:
        values["epochs"] = EPOCHS[task]
    from heedmap.data.load import load
    from heedmap.papers.pruthi.paper import PAPER, reproduce

    with working("pruthi"):
        corpus = load(data, **taken(values, "train_texts", "test_texts"))
        running_options = how_to_run(values, f"pruthi-{task or corpus.name}")
        reproduction = reproduce(
            corpus, name=task, task=task or "", forbidden=words, **running_options, **values
        )
    show(PAPER, reproduction, reproduction.folder)


def _refuse(names: tuple[str, ...], values: Values, task: str) -> None:
    """Raise an `InputError` for an option that another kind of task has."""
    for name in names:
        if name in values:
            spelled = SPELLED.get(name, name.replace("_", "-"))
            raise InputError(f"--{spelled}: not of the task {task}")


def _sequences(task: str, values: Values) -> None:
    """Run a task of sequences and show its result."""
    from heedmap.papers.pruthi.paper import PAPER
    from heedmap.papers.pruthi.settings import QUICK

    is_text = task == "translation"
    _refuse(tuple(name for name in OF_TEXTS if name not in OF_SEQUENCES), values, task)
    if not is_text:
        _refuse(("data", "source", "target", "links", "dataset"), values, task)
    budget = values.pop("budget", "quick")
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected {' or '.join(BUDGETS)}, got {budget}")
    if is_text and not {"data", "links"} <= {*values}:
        raise InputError(
            "translation: expected --data with sentences in two languages, and --links with what links their "
            "words, as align_auto:en-de"
        )
    from heedmap.data.parallel import load_parallel
    from heedmap.papers.pruthi.sequences import reproduce

    running_options = how_to_run(values, f"pruthi-{task}-{budget}")
    with working("pruthi"):
        corpus, languages = None, {}
        if is_text:
            languages = {"source": values.pop("source", "en"), "target": values.pop("target", "de")}
            corpus = load_parallel(
                values.pop("data"), *languages.values(), align=values.pop("links")
            )
        options = QUICK["translation" if is_text else "sequences"] if budget == "quick" else {}
        reproduction = reproduce(
            corpus, task=task, **running_options, **{**options, **values, **languages}
        )
    show(PAPER, reproduction, reproduction.folder)
