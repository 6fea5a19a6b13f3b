"""The `heedmap` command. Thin: every command reads its options and calls the library.

Slow imports stand inside the functions, so that `heedmap --help` answers at once.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedmap import __version__
from heedmap.check_cli import check_command, support_command
from heedmap.errors import InputError
from heedmap.figures_cli import figures_command
from heedmap.picture_cli import picture_command
from heedmap.reproduce_cli import app as reproduce_app

if TYPE_CHECKING:
    from heedmap.runs import Run

app = typer.Typer(
    help="Should you heed the heat map? Puts a model's attention weights on trial.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(reproduce_app, name="reproduce")

INTERRUPTED = 130
_DATA, _MODEL, _TRAINING, _AUDIT = "Data", "Model", "Training", "Audit"
_DOOR = "Transformer"


def _option(names: str, text: str, panel: str) -> Any:
    return typer.Option(*names.split(), help=text, rich_help_panel=panel)


Data = Annotated[
    str | None,
    _option(
        "--data",
        "A CSV, JSONL or Parquet file (.gz too), a folder with train/dev/test files, a Hub name, or the "
        "embedded corpus: reviews, reviews-stars.",
        _DATA,
    ),
]
TextColumn = Annotated[str | None, _option("--text-column", "The text's column. [guessed]", _DATA)]
LabelColumn = Annotated[
    str | None, _option("--label-column", "The label's column. [guessed]", _DATA)
]
Tokenizer = Annotated[str, _option("--tokenizer", "words (raw text) or spaces (tokenised).", _DATA)]
MinTokens = Annotated[int, _option("--min-tokens", "Leave out shorter texts.", _DATA)]
MaxTokens = Annotated[
    int | None,
    _option("--max-tokens", "Cut longer texts. [512; a transformer's own limit]", _DATA),
]
Classes = Annotated[
    str | None,
    _option("--classes", "How the data spell a --model's outputs, in their order: no,yes.", _DATA),
]
Encoder = Annotated[str, _option("--encoder", "lstm, cnn or average.", _MODEL)]
Score = Annotated[str, _option("--score", "additive or dot.", _MODEL)]
Normaliser = Annotated[str, _option("--normaliser", "softmax, sparsemax or entmax15.", _MODEL)]
EmbeddingSize = Annotated[int, _option("--embedding-size", "Of words without --vectors.", _MODEL)]
HiddenSize = Annotated[int, _option("--hidden-size", "Of the encoder.", _MODEL)]
Vectors = Annotated[
    Path | None, _option("--vectors", "Word vectors: `word v1 v2 ...` a line, .gz too.", _MODEL)
]
MinDf = Annotated[
    int, _option("--min-df", "Texts that must hold a word for it to be known.", _TRAINING)
]
Epochs = Annotated[int, _option("--epochs", "Times over the training texts.", _TRAINING)]
BatchSize = Annotated[int, _option("--batch-size", "Texts a step.", _TRAINING)]
LearningRate = Annotated[float, _option("--learning-rate", "Of Adam.", _TRAINING)]
Seed = Annotated[
    int, _option("--seed", "Of the split, the weights and the experiments.", _TRAINING)
]
Transformer = Annotated[
    str | None,
    _option("--model", "A Hugging Face classifier: its folder or its name on the Hub.", _DOOR),
]
Layer = Annotated[int, _option("--layer", "Whose weights are on trial; -1 is the last.", _DOOR)]
Head = Annotated[str, _option("--head", "A head's number, or mean.", _DOOR)]
View = Annotated[
    str,
    _option(
        "--view",
        "The heat map: row (that the classifier reads), received, rollout, flow, gradient, effective.",
        _DOOR,
    ),
]
LongTexts = Annotated[
    str, _option("--long-texts", "Longer than the model reads: cut or windows.", _DOOR)
]
Dtype = Annotated[str, _option("--dtype", "float32, bfloat16 or float16.", _DOOR)]
BatchTokens = Annotated[
    int, _option("--batch-tokens", "Positions a batch may hold: bounds the memory.", _DOOR)
]
LeaveOneOut = Annotated[str, _option("--leave-one-out", "remove a word, or mask it.", _AUDIT)]
MaxPositions = Annotated[
    int, _option("--max-positions", "Sub-words of a text that --model is trained on.", _DOOR)
]
Instances = Annotated[int, _option("--instances", "Audit at most this many test texts.", _AUDIT)]
Permutations = Annotated[int, _option("--permutations", "Shuffles of each text's weights.", _AUDIT)]
Epsilon = Annotated[
    float, _option("--epsilon", "Predictions this close (TVD) count as the same.", _AUDIT)
]
Out = Annotated[Path | None, _option("--out", "The run folder. [runs/DATA-ENCODER-...]", "Run")]
RunFolder = Annotated[
    Path | None, _option("--run", "Audit a trained run instead of --data.", "Run")
]
Overwrite = Annotated[bool, _option("--overwrite", "Replace what other settings made.", "Run")]


@app.command("audit")
def audit_command(
    context: typer.Context,
    data: Data = None,
    run: RunFolder = None,
    model: Transformer = None,
    layer: Layer = -1,
    head: Head = "mean",
    view: View = "row",
    long_texts: LongTexts = "cut",
    dtype: Dtype = "float32",
    batch_tokens: BatchTokens = 2048,
    classes: Classes = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    tokenizer: Tokenizer = "words",
    min_tokens: MinTokens = 1,
    max_tokens: MaxTokens = None,
    encoder: Encoder = "lstm",
    score: Score = "additive",
    normaliser: Normaliser = "softmax",
    embedding_size: EmbeddingSize = 300,
    hidden_size: HiddenSize = 128,
    vectors: Vectors = None,
    min_df: MinDf = 2,
    epochs: Epochs = 8,
    batch_size: BatchSize = 32,
    learning_rate: LearningRate = 1e-3,
    seed: Seed = 0,
    instances: Instances = 2000,
    permutations: Permutations = 100,
    epsilon: Epsilon = 0.01,
    leave_one_out: LeaveOneOut = "remove",
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Put attention on trial and write the report: of a --model on --data, of a trained --run, or of a model
    trained on --data here and now.

    A run that was stopped goes on where it stopped when the same command is given again.
    """
    if model is not None and data is None and run is None:
        raise InputError("--model: expected --data too: the texts to audit it on")
    if (data is None) == (run is None):
        raise InputError(
            "expected either --data (with --model: a classifier to audit on it; without: to train on) or "
            "--run (a trained run's folder)"
        )
    from heedmap.settings import AuditSettings

    asked = {
        "seed": seed, "instances": instances, "permutations": permutations, "epsilon": epsilon,
        "leave_one_out": leave_one_out,
    }  # fmt: skip
    AuditSettings.of(**asked)  # a wrong value is found before the training, not after it
    made = _train if model is None else _enter
    options = dict(locals())
    given = [name for name in options if _given(context, name)]
    if run is not None:
        _refuse(
            given, (*_OWN_MODEL, *_TRANSFORMER, *_TRAINED, *_READ), "--run, whose settings stand"
        )
    elif model is not None:
        _refuse(given, (*_OWN_MODEL, *_TRAINED), "--model, which comes trained")
    else:
        _refuse(
            given,
            tuple(n for n in _TRANSFORMER if n != "model"),
            "a model that is trained here; name one with --model",
        )
    trained = _open(run) if run is not None else made(options)
    _audit(trained, overwrite=overwrite and run is not None, **asked)


@app.command("train")
def train_command(
    context: typer.Context,
    data: Data = None,
    model: Transformer = None,
    max_positions: MaxPositions = 128,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    tokenizer: Tokenizer = "words",
    min_tokens: MinTokens = 1,
    max_tokens: MaxTokens = None,
    encoder: Encoder = "lstm",
    score: Score = "additive",
    normaliser: Normaliser = "softmax",
    embedding_size: EmbeddingSize = 300,
    hidden_size: HiddenSize = 128,
    vectors: Vectors = None,
    min_df: MinDf = 2,
    epochs: Epochs = 8,
    batch_size: BatchSize = 32,
    learning_rate: LearningRate = 1e-3,
    seed: Seed = 0,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Train an attention model, or fine-tune a --model; `heedmap audit --run` puts it on trial.

    A --model is fine-tuned for 3 epochs in batches of 32 at a learning rate of 3e-5 where nothing else is said.
    """
    if data is None:
        raise InputError("expected --data: a file, a folder, a Hub name, or reviews")
    options = dict(locals())
    given = [name for name in options if _given(context, name)]
    if model is None and "max_positions" in given:
        raise InputError("--max-positions: expected --model; an attention model has --max-tokens")
    trained = _train(options) if model is None else _fine_tune(options, given)
    done = trained.training
    assert done is not None
    scores = ", ".join(
        f"{name} {value:.3f}" for name, value in done.scores[done.best_epoch].items()
    )
    typer.echo(f"Trained: epoch {done.best_epoch + 1} is best on dev ({scores}).")
    for reason, count in done.left_out.items():
        typer.echo(f"{reason}: {count}")
    typer.echo(f"Run folder: {trained.folder}")


@app.command("report")
def report_command(folder: Annotated[Path, typer.Argument(help="The run folder.")]) -> None:
    """Write findings and report anew from a run's tables, and print the card."""
    from heedmap.auditing import rewrite

    rewrite(folder).show()
    typer.echo(f"Report: {folder / 'report.html'}")


@app.command("list")
def list_command(
    root: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"),
) -> None:
    """List the run folders."""
    from rich.console import Console
    from rich.table import Table

    from heedmap.runs import describe, list_runs

    folders = list_runs(root)
    if not folders:
        typer.echo(f"No runs under {root}/. `heedmap audit --data reviews` makes one.")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "data", "model", "seed", "state"):
        table.add_column(column, overflow="fold")  # paths are there to be copied
    for folder in folders:
        table.add_row(*describe(folder))
    console = Console()
    console.print(table, width=None if console.is_terminal else 200)


app.command("check")(check_command)
app.command("support")(support_command)
app.command("picture")(picture_command)
app.command("figures")(figures_command)


def _open(folder: Path) -> "Run":
    from heedmap.runs import open_run

    return open_run(folder)


def _enter(options: dict[str, Any]) -> "Run":
    from heedmap.model_runs import UNLIMITED, open_model

    model, data = Path(options["model"]), Path(options["data"])
    shown = "-".join(str(options[name]) for name in ("view", "layer", "head"))
    default = Path("runs") / f"{data.name.split('.')[0]}-{model.name}-{shown}"
    same = (
        "layer", "head", "view", "long_texts", "dtype", "batch_tokens", "tokenizer", "min_tokens", "seed",
        "overwrite",
    )  # fmt: skip
    with _progress() as bar:
        bar.add_task("reading the model and the texts", total=None)
        return open_model(
            options["model"],
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            classes=None if options["classes"] is None else tuple(options["classes"].split(",")),
            max_tokens=options["max_tokens"] or UNLIMITED,
            out=options["out"] or default,
            **{name: options[name] for name in same},
        )


def _train(options: dict[str, Any]) -> "Run":
    from heedmap.data.corpus import load
    from heedmap.runs import train

    with _progress() as bar:
        task = bar.add_task("reading the texts", total=None)
        corpus = load(
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            tokenizer=options["tokenizer"],
            min_tokens=options["min_tokens"],
            max_tokens=options["max_tokens"] or 512,
            seed=options["seed"],
        )
        names = ("encoder", "score", "normaliser", "seed")
        default = Path("runs") / "-".join([corpus.name, *(str(options[n]) for n in names)])
        same = (
            "embedding_size", "hidden_size", "vectors", "min_df", "epochs", "batch_size",
            "learning_rate", "overwrite",
        )  # fmt: skip
        return train(
            corpus,
            out=options["out"] or default,
            report=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"training, {text}"
            ),
            **{name: options[name] for name in (*names, *same)},
        )


_OWN_MODEL = (
    "encoder", "score", "normaliser", "embedding_size", "hidden_size", "vectors", "min_df",
)  # fmt: skip
_TRAINED = ("epochs", "batch_size", "learning_rate")
_TRANSFORMER = ("model", "layer", "head", "view", "long_texts", "dtype", "batch_tokens", "classes")
_READ = ("text_column", "label_column", "tokenizer", "min_tokens", "max_tokens")


def _refuse(given: list[str], wrong: tuple[str, ...], of: str) -> None:
    """Raises InputError where options were given that the chosen road has no use for."""
    if found := [f"--{name.replace('_', '-')}" for name in wrong if name in given]:
        one = "not an option" if len(found) == 1 else "not options"
        raise InputError(f"{', '.join(found)}: {one} of {of}; leave out")


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _fine_tune(options: dict[str, Any], given: list[str]) -> "Run":
    from heedmap.model_runs import UNLIMITED, fine_tune_model

    _refuse(given, _OWN_MODEL, "--model, which comes with its own")
    names = ["seed", "overwrite", "tokenizer", "min_tokens", "max_positions"]
    # Without a word of the user's fine-tuning has defaults of its own.
    names += [name for name in ("epochs", "batch_size", "learning_rate") if name in given]
    base, data = Path(options["model"]), Path(options["data"])
    default = Path("runs") / f"{data.name.split('.')[0]}-{base.name}-{options['seed']}"
    with _progress() as bar:
        task = bar.add_task("reading the model and the texts", total=None)
        return fine_tune_model(
            options["model"],
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            max_tokens=options["max_tokens"] or UNLIMITED,
            out=options["out"] or default,
            report=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"fine-tuning, {text}"
            ),
            **{name: options[name] for name in names},
        )


def _audit(run: "Run", **asked: Any) -> None:
    from heedmap.auditing import EXPERIMENTS, audit

    with _progress() as bar:
        task = bar.add_task("audit", total=len(EXPERIMENTS) + 1)
        done = iter(range(len(EXPERIMENTS) + 1))
        result = audit(
            run,
            **asked,
            forecast=lambda text: typer.echo(f"The experiments will take {text}.", err=True),
            announce=lambda name: bar.update(
                task, completed=next(done), description=f"audit, {name.replace('_', ' ')}"
            ),
        )
    assert run.folder is not None
    result.show()
    typer.echo(f"Report: {run.folder / 'report.html'}")


@contextmanager
def _progress() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # A log file gets no bar.
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield bar


def main() -> None:
    """Run a command; bad input is one line and exit code 2, Ctrl-C is 130."""
    warnings.showwarning = lambda message, *_: print(f"heedmap: note: {message}", file=sys.stderr)  # noqa: T201
    try:
        if app(standalone_mode=False) == INTERRUPTED:  # typer turns Ctrl-C into a value
            raise KeyboardInterrupt
    except InputError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        if _was_interrupted(error):
            _interrupted()
        if type(error).__module__.startswith(("click", "typer")):
            _usage(error)
        if os.environ.get("HEEDMAP_TRACEBACK"):
            raise
        first = (str(error).splitlines() or [""])[0]
        _stop(
            f"internal error ({type(error).__name__}: {first}); "
            "HEEDMAP_TRACEBACK=1 shows where; please report it", 1,
        )  # fmt: skip


def _interrupted() -> None:
    _stop("stopped; what is done is kept, and the same command goes on from there", INTERRUPTED)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether a Ctrl-C is behind it: some libraries wrap one that meets them while they are imported."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage(error: Any) -> None:
    _stop(f"{error.format_message()}; see `heedmap --help`", 2)


def _stop(text: str, code: int) -> None:
    print(f"heedmap: {text}", file=sys.stderr)  # noqa: T201
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"heedmap {__version__}")
        raise typer.Exit
