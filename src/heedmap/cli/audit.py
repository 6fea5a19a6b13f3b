"""`heedmap audit`: audit a run, an existing transformer, or a model trained by the same command."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedmap.cli.label_audit import audit_all_labels, gives_labels
from heedmap.cli.report import FAILING, show_audit
from heedmap.cli.retrain import retrain_run
from heedmap.cli.train import train_own
from heedmap.data.file_kinds import refuse_missing
from heedmap.errors import InputError
from heedmap.experiments import summaries
from heedmap.files.naming import is_there
from heedmap.runs.folder import RunFolder
from heedmap.runs.run_paths import DefaultPlace
from heedmap.settings.audit import BUDGET, AuditSettings
from heedmap.settings.data import RAW_TEXTS, TOKENS, DataSettings
from heedmap.settings.models import ModelSettings, TransformerSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Command, Json
from heedmap.terminal.progress import working
from heedmap.training.shards import is_divided

if TYPE_CHECKING:
    from heedmap.runs.run import Run


class AuditCommand(Command):
    """The audit command, whose help ends with the question of each registered experiment."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write a line per experiment."""
        super().format_epilog(ctx, formatter)
        with formatter.section("What is asked"):
            formatter.write_dl(list(summaries().items()))


@opt.with_options(DataSettings, ModelSettings, TrainSettings, TransformerSettings, AuditSettings)
def audit_command(
    *,
    data: opt.Data = None,
    run: opt.RunFolder = None,
    model: opt.Transformer = None,
    arrays: Annotated[
        Path | None,
        typer.Option(
            "--arrays",
            help="Audit the attention of any model: a folder of arrays, npz, safetensors or Parquet.",
        ),
    ] = None,
    given: opt.Given,
    out: opt.Out = None,
    overwrite: opt.Overwrite = False,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain", help="Train further models too, to compare (see `heedmap retrain`)."
        ),
    ] = False,
    variant: opt.Variant = None,
    device: opt.Device = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 if the answer is no, or in-part: in part or no.",
            show_default=False,
            **opt.one_of(*FAILING),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Put attention on trial and write the report: of a --model on --data, of a trained --run, of --arrays, or
    of a model trained on --data here and now.

    A --variant of the run becomes a run of its own. A run that was stopped goes on where it stopped when the
    same command is given again.
    """
    options = given.of(AuditSettings)
    if arrays is not None:
        given.allow(AuditSettings, of="--arrays, which are what a model made")
        AuditSettings.of(**options)
        _check_other_seeds(options)
        model_options: dict[str, object] = {
            "--data": data, "--run": run, "--model": model, "--variant": variant, "--device": device,
            "--retrain": retrain,
        }  # fmt: skip
        opened = _open_arrays(arrays, model_options, out, overwrite)
        _audit(opened, as_json, fail_on, overwrite=overwrite, **options)
        return
    _check_source(data, run, model, variant, out)
    # A wrong value is reported before the training.
    _check_divisible(AuditSettings.of(**options), retrain, variant, out)
    _check_other_seeds(options)
    if run is not None:
        given.allow(AuditSettings, of="--run, whose settings stand")
        if model is not None:
            raise InputError("--model: not an option of --run, whose settings stand; leave it out")
        RunFolder(run).require_begun()  # before the slow import
        with working("opening the run"):
            from heedmap.runs.open import open_run

            opened = open_run(run, variant=variant, device=device)
        if variant is not None:
            from heedmap.runs.variant_folder import folder_of, keep_variant

            opened = keep_variant(opened, out or DefaultPlace(folder_of(run, variant)), overwrite)
        stored = RunFolder(opened.folder or run).settings(moved=True).audit
        if stored is not None and not (overwrite or retrain or is_divided()):
            # What is not given stands. Minutes say how many texts are drawn, and one of the two is given.
            count = {"drawn"} if stored.minutes else set()
            budget = {*BUDGET} if {*BUDGET} & options.keys() else count
            names = AuditSettings.options().keys() - budget
            options = {name: getattr(stored, name) for name in names} | options
        _audit(opened, as_json, fail_on, retrain, overwrite=overwrite, **options)
    elif model is not None:
        given.allow(
            RAW_TEXTS,
            TransformerSettings,
            AuditSettings,
            of="--model, which comes trained and reads no data set of a paper",
        )
        if retrain:
            raise InputError(
                "--retrain: not an option of --model, which comes trained; leave it out"
            )
        # A wrong value is reported before the model is looked for.
        TransformerSettings.of(source=model, **given.of(TransformerSettings))
        if "output" not in given.values and gives_labels(model):
            audit_all_labels(
                model, str(data), out, overwrite, as_json, fail_on,
                {**_opening_options(given), "device": device}, options,
            )  # fmt: skip
            return
        opened = _open(model, Path(str(data)), given, out, overwrite, device)
        _audit(opened, as_json, fail_on, overwrite=overwrite, **options)
    else:
        if device is not None:
            raise InputError(
                "--device: not an option of a model that is trained here, on the CPU; leave it out"
            )
        given.allow(
            TOKENS,
            ModelSettings,
            TrainSettings,
            AuditSettings,
            of="a model that is trained here",
            or_else=", or name a trained transformer with --model",
        )
        trained = train_own(str(data), given, out, overwrite)
        _audit(trained, as_json, fail_on, retrain, overwrite=overwrite, **options)


def _open_arrays(
    arrays: Path, model_options: dict[str, object], out: Path | None, overwrite: bool
) -> "Run":
    """Make the run of a folder of arrays; `model_options` are of texts or a model."""
    for name, value in model_options.items():
        if value not in (None, False):
            raise InputError(
                f"{name}: not an option of --arrays, which are what a model made; leave it out"
            )
    with working("reading the arrays"):
        from heedmap.runs.from_arrays import from_array_files

        place = out or DefaultPlace(Path("runs") / f"{arrays.resolve().name}-arrays")
        return from_array_files(arrays, place, overwrite)


def _check_source(
    data: str | None, run: Path | None, model: str | None, variant: str | None, out: Path | None
) -> None:
    """Raise InputError if these do not name one model and its texts."""
    if model is not None and data is None and run is None:
        raise InputError("--model: expected --data too: the texts to audit it on")
    if (data is None) == (run is None):
        raise InputError(
            "expected either --data (with --model: a classifier to audit on it; without: to train on) or "
            "--run (a trained run's folder)"
        )
    if variant is not None and run is None:
        raise InputError("--variant: expected --run too: the run that it was trained for")
    if run is not None and variant is None and out is not None:
        raise InputError(
            "--out: not an option of --run, whose own folder keeps the audit; leave it out, or copy the folder "
            "and audit the copy"
        )
    # Before the slow imports. A model that is not there is refused first.
    if data is not None and (model is None or is_there(model)):
        refuse_missing(data)


def _check_divisible(
    settings: AuditSettings, retrain: bool, variant: str | None, out: Path | None
) -> None:
    """Raise InputError if this is a shard, and an audit with these options has no parts for it."""
    if not is_divided():
        return
    if retrain:
        raise InputError(
            "--retrain: expected without --shard; give `heedmap retrain --shard` after the merge"
        )
    if variant is not None and out is None:
        raise InputError("--variant: expected --out too, the folder that all shards work for")
    settings.refuse_drawn("--shard")


def _check_other_seeds(options: dict[str, Any]) -> None:
    """Raise InputError if a folder of --other-seed is no run, before anything is trained or written."""
    for seed_folder in options.get("other_seed", ()):
        RunFolder(Path(seed_folder)).settings(moved=True)


def _open(
    model: str,
    data: Path,
    given: opt.Given,
    out: Path | None,
    overwrite: bool,
    device: str | None,
) -> "Run":
    options = _opening_options(given)
    model_settings = TransformerSettings.of(source=model, **given.of(TransformerSettings))
    trial = f"{model_settings.view}-{model_settings.layer}-{model_settings.head}"
    if model_settings.output is not None:
        trial += "-" + "-".join(re.findall("[a-z0-9]+", model_settings.output.lower()))
    name = f"{data.name.split('.')[0]}-{Path(model).name}-{trial}"
    place = out or DefaultPlace(Path("runs") / name)
    with working("opening the model"):
        from heedmap.runs.open import open_model

        return open_model(
            model, str(data), out=place, overwrite=overwrite, device=device, **options
        )


def _opening_options(given: opt.Given) -> dict[str, Any]:
    """Return the options of the texts and of the model."""
    options = given.of(RAW_TEXTS, TransformerSettings)
    if "classes" in options:
        options["classes"] = tuple(options["classes"].split(","))
    return options


def _audit(
    run: "Run", as_json: bool, fail_on: str | None, retrain: bool = False, **options: Any
) -> None:
    if is_divided():
        from heedmap.runs.audit_shards import audit_part

        with working("audit"):
            audit_part(run, {name: options[name] for name in options if name != "overwrite"})
    if retrain:
        retrain_run(run, as_json=as_json, fail_on=fail_on, **options)
        return
    from heedmap.runs.audit import audit

    result = audit(run, **options)
    assert run.folder is not None
    show_audit(result, run.folder, as_json, fail_on)
