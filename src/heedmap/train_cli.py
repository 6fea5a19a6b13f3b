"""`heedmap train`: an attention model from scratch, or a transformer fine-tuned."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedmap import options as opt
from heedmap.errors import InputError
from heedmap.places import DefaultPlace
from heedmap.progress import progress
from heedmap.terminal import say

if TYPE_CHECKING:
    from heedmap.run import Run


def train_command(
    context: typer.Context,
    data: opt.Data = None,
    model: opt.Transformer = None,
    max_positions: opt.MaxPositions = 128,
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    query_column: opt.QueryColumn = None,
    dataset: opt.DataSet = None,
    rules: opt.Rules = "paper",
    tokenizer: opt.Tokenizer = "words",
    min_tokens: opt.MinTokens = 1,
    max_tokens: opt.MaxTokens = None,
    encoder: opt.Encoder = "lstm",
    score: opt.Score = "additive",
    normaliser: opt.Normaliser = "softmax",
    embedding_size: opt.EmbeddingSize = None,
    hidden_size: opt.HiddenSize = None,
    vectors: opt.Vectors = None,
    min_df: opt.MinDf = None,
    epochs: opt.Epochs = None,
    batch_size: opt.BatchSize = None,
    learning_rate: opt.LearningRate = 1e-3,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Train an attention model, or fine-tune a --model; `heedmap audit --run` puts it on trial.

    A --model is fine-tuned for 3 epochs in batches of 32 at a learning rate of 3e-5 where nothing else is said.
    """
    options = dict(locals())
    if data is None:
        raise InputError("expected --data: a file, a folder, a Hub name, or reviews")
    given = opt.given(context)
    if model is None:
        foreign = ("max_positions",)
        opt.refuse(given, foreign, "an attention model, which has --max-tokens; name a --model")
        trained = train_own(options)
    else:
        opt.refuse(given, opt.OWN_MODEL, "--model, which comes with its own")
        opt.refuse(given, opt.PAPERS, "--model, which reads single texts")
        trained = _fine_tune(options, given)
    done = trained.training
    assert done is not None
    scores = ", ".join(
        f"{name} {value:.3f}" for name, value in done.scores[done.best_epoch].items()
    )
    say(f"Trained: epoch {done.best_epoch + 1} is best on dev ({scores}).")
    gone = trained.corpus.left_out | done.left_out
    if gone:
        say("Left out: " + "; ".join(f"{reason}: {count}" for reason, count in gone.items()))
    say(f"Run folder: {trained.folder}")


def train_own(options: dict[str, Any]) -> "Run":
    """An attention model of ours on texts, as the options of `train` and `audit` say."""
    from heedmap.data.corpus import load
    from heedmap.runs import train

    with progress() as bar:
        task = bar.add_task("reading the texts", total=None)
        corpus = load(
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            query=options["query_column"],
            dataset=options["dataset"],
            rules=options["rules"],
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
            out=options["out"] or DefaultPlace(default),
            report=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"training, {text}"
            ),
            **{name: options[name] for name in (*names, *same)},
        )


def _fine_tune(options: dict[str, Any], given: list[str]) -> "Run":
    from heedmap.model_runs import UNLIMITED, fine_tune_model

    names = ["seed", "overwrite", "tokenizer", "min_tokens", "max_positions"]
    # Without a word of the user's fine-tuning has defaults of its own.
    names += [name for name in ("epochs", "batch_size", "learning_rate") if name in given]
    base, data = Path(options["model"]), Path(options["data"])
    default = Path("runs") / f"{data.name.split('.')[0]}-{base.name}-{options['seed']}"
    with progress() as bar:
        task = bar.add_task("reading the model and the texts", total=None)
        return fine_tune_model(
            options["model"],
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            max_tokens=UNLIMITED if options["max_tokens"] is None else options["max_tokens"],
            out=options["out"] or DefaultPlace(default),
            report=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"fine-tuning, {text}"
            ),
            **{name: options[name] for name in names},
        )
