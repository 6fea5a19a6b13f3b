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
from heedmap.errors import InputError

if TYPE_CHECKING:
    from heedmap.runs import Run

app = typer.Typer(
    help="Should you heed the heat map? Puts a model's attention weights on trial.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

INTERRUPTED = 130
_DATA, _MODEL, _TRAINING, _AUDIT = "Data", "Model", "Training", "Audit"


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
MaxTokens = Annotated[int, _option("--max-tokens", "Cut longer texts.", _DATA)]
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
    data: Data = None,
    run: RunFolder = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    tokenizer: Tokenizer = "words",
    min_tokens: MinTokens = 1,
    max_tokens: MaxTokens = 512,
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
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a model on texts (or take a trained --run), put its attention on trial, write the report.

    A run that was stopped goes on where it stopped when the same command is given again.
    """
    if (data is None) == (run is None):
        raise InputError(
            "expected either --data (to train and audit) or --run (a trained run's folder)"
        )
    from heedmap.settings import AuditSettings

    asked = {
        "seed": seed, "instances": instances, "permutations": permutations, "epsilon": epsilon
    }  # fmt: skip
    AuditSettings.of(**asked)  # a wrong value is found before the training, not after it
    trained = _open(run) if run is not None else _train(locals())
    _audit(trained, overwrite=overwrite and run is not None, **asked)


@app.command("train")
def train_command(
    data: Data = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    tokenizer: Tokenizer = "words",
    min_tokens: MinTokens = 1,
    max_tokens: MaxTokens = 512,
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
    """Train an attention model; `heedmap audit --run` puts it on trial."""
    if data is None:
        raise InputError("expected --data: a file, a folder, a Hub name, or reviews")
    trained = _train(locals())
    best = trained.training.scores[trained.training.best_epoch]
    scores = ", ".join(f"{name} {value:.3f}" for name, value in best.items())
    typer.echo(f"Trained: epoch {trained.training.best_epoch + 1} is best on dev ({scores}).")
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


def _open(folder: Path) -> "Run":
    from heedmap.runs import open_run

    return open_run(folder)


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
            max_tokens=options["max_tokens"],
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


def _audit(run: "Run", **asked: Any) -> None:
    from heedmap.auditing import EXPERIMENTS, audit

    with _progress() as bar:
        task = bar.add_task("audit", total=len(EXPERIMENTS) + 1)
        done = iter(range(len(EXPERIMENTS) + 1))
        result = audit(
            run,
            **asked,
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
