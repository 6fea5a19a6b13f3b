"""`heedmap audit`: a run, somebody else's transformer, or a model trained here and now, put on trial."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from heedmap import options as opt
from heedmap.errors import InputError
from heedmap.experiments import summaries
from heedmap.places import DefaultPlace
from heedmap.progress import progress
from heedmap.terminal import say
from heedmap.train_cli import train_own

if TYPE_CHECKING:
    from heedmap.run import Run


class AuditCommand(TyperCommand):
    """Its help ends with what is asked, as the registry of experiments has it."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write a line per experiment."""
        with formatter.section("What is asked"):
            formatter.write_dl(list(summaries().items()))


def audit_command(
    context: typer.Context,
    data: opt.Data = None,
    run: opt.RunFolder = None,
    model: opt.Transformer = None,
    layer: opt.Layer = -1,
    head: opt.Head = "mean",
    view: opt.View = "row",
    long_texts: opt.LongTexts = "cut",
    dtype: opt.Dtype = "float32",
    batch_tokens: opt.BatchTokens = 2048,
    classes: opt.Classes = None,
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
    instances: opt.Instances = 2000,
    permutations: opt.Permutations = 100,
    epsilon: opt.Epsilon = None,
    leave_one_out: opt.LeaveOneOut = "remove",
    gradient_path: opt.GradientPath = None,
    gradient_of: opt.GradientOf = None,
    gradient_form: opt.GradientForm = "times-input",
    out: opt.Out = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Put attention on trial and write the report: of a --model on --data, of a trained --run, or of a model
    trained on --data here and now.

    A run that was stopped goes on where it stopped when the same command is given again.
    """
    options = dict(locals())
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
        "leave_one_out": leave_one_out, "gradient_path": gradient_path, "gradient_of": gradient_of,
        "gradient_form": gradient_form,
    }  # fmt: skip
    known = {name: value for name, value in asked.items() if value is not None}
    AuditSettings.of(**known)  # a wrong value is found before the training, not after it
    given = opt.given(context)
    if run is not None:
        settled = (*opt.OWN_MODEL, *opt.TRANSFORMER, *opt.TRAINED, *opt.READ)
        opt.refuse(given, settled, "--run, whose settings stand")
        from heedmap.runs import open_run

        _audit(open_run(run), overwrite=overwrite, **asked)
    elif model is not None:
        opt.refuse(given, (*opt.OWN_MODEL, *opt.TRAINED), "--model, which comes trained")
        opt.refuse(given, opt.PAPERS, "--model, which reads single texts")
        _audit(_enter(options), overwrite=overwrite, **asked)
    else:
        foreign = tuple(name for name in opt.TRANSFORMER if name != "model")
        opt.refuse(given, foreign, "a model that is trained here; name one with --model")
        _audit(train_own(options), overwrite=overwrite, **asked)


def _enter(options: dict[str, Any]) -> "Run":
    from heedmap.model_runs import UNLIMITED, open_model

    model, data = Path(options["model"]), Path(options["data"])
    shown = "-".join(str(options[name]) for name in ("view", "layer", "head"))
    default = Path("runs") / f"{data.name.split('.')[0]}-{model.name}-{shown}"
    same = (
        "layer", "head", "view", "long_texts", "dtype", "batch_tokens", "tokenizer", "min_tokens", "seed",
        "overwrite",
    )  # fmt: skip
    with progress() as bar:
        bar.add_task("reading the model and the texts", total=None)
        return open_model(
            options["model"],
            options["data"],
            text=options["text_column"],
            label=options["label_column"],
            classes=None if options["classes"] is None else tuple(options["classes"].split(",")),
            max_tokens=UNLIMITED if options["max_tokens"] is None else options["max_tokens"],
            out=options["out"] or DefaultPlace(default),
            **{name: options[name] for name in same},
        )


def _audit(run: "Run", **asked: Any) -> None:
    from heedmap.auditing import audit
    from heedmap.experiments.registry import registered

    with progress() as bar:
        task = bar.add_task("audit", total=len(registered()) + 1)
        done = iter(range(len(registered()) + 1))
        result = audit(
            run,
            **asked,
            forecast=lambda text: say(f"The experiments will take {text}.", error=True),
            announce=lambda name: bar.update(
                task, completed=next(done), description=f"audit, {name.replace('_', ' ')}"
            ),
        )
    assert run.folder is not None
    result.show()
    say(f"Report: {run.folder / 'report.html'}")
