"""`heedmap train`: train an attention model from scratch, or fine-tune a transformer."""

from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.data.file_kinds import refuse_missing
from heedmap.errors import InputError
from heedmap.runs.run_paths import DefaultPlace
from heedmap.settings.data import RAW_TEXTS_TO_LEARN, TOKENS
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.runs.run import Run


@opt.with_options(TOKENS, ModelSettings, TrainSettings, FineTuneSettings)
def train_command(
    *,
    data: opt.Data = None,
    model: opt.Transformer = None,
    given: opt.Given,
    out: opt.Out = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Train an attention model, or fine-tune a --model; `heedmap audit --run` puts it on trial."""
    if data is None:
        raise InputError("expected --data: a file, a folder, a Hub name, or reviews")
    refuse_missing(data)
    if model is None:
        given.allow(
            TOKENS,
            ModelSettings,
            TrainSettings,
            of="an attention model, which has --max-tokens",
            or_else=", or name a transformer with --model",
        )
        run = train_own(data, given, out, overwrite)
    else:
        command = "--model, which comes with its own and reads no data set of a paper"
        given.allow(RAW_TEXTS_TO_LEARN, FineTuneSettings, of=command)
        run = _fine_tune(model, data, given, out, overwrite)
    from heedmap.data.corpus import apart
    from heedmap.report.wording import counts

    training = run.training
    assert training is not None
    scores = ", ".join(
        f"{name} {value:.3f}" for name, value in training.scores[training.best_epoch].items()
    )
    say(f"Trained: epoch {training.best_epoch + 1} is best on dev ({scores}).")
    for heading, reasons in apart(run.corpus.left_out | training.left_out).items():
        say(f"{heading.capitalize()}: {counts(reasons)}")
    say(f"Run folder: {run.folder}")


def train_own(data: str, given: opt.Given, out: Path | None, overwrite: bool) -> "Run":
    """Train an attention model; settings that cannot be are refused before any text is read."""
    ModelSettings.of(**given.of(ModelSettings))
    TrainSettings.of(**given.of(TrainSettings))
    with working("reading the texts"):
        from heedmap.data.load import load
        from heedmap.runs.train import model_settings, train

        corpus = load(data, **given.of(TOKENS))
    model = model_settings(corpus, given.of(ModelSettings))
    options = given.of(ModelSettings, TrainSettings) | {"seed": given.values.get("seed", 0)}
    parts = (corpus.name, model.encoder, model.score, model.normaliser, options["seed"])
    place = out or DefaultPlace(Path("runs") / "-".join(map(str, parts)))
    return train(corpus, out=place, overwrite=overwrite, **options)


def _fine_tune(model: str, data: str, given: opt.Given, out: Path | None, overwrite: bool) -> "Run":
    from heedmap.runs.train import fine_tune

    name = f"{Path(data).name.split('.')[0]}-{Path(model).name}-{given.values.get('seed', 0)}"
    place = out or DefaultPlace(Path("runs") / name)
    options = given.of(RAW_TEXTS_TO_LEARN, FineTuneSettings)
    return fine_tune(model, data, out=place, overwrite=overwrite, **options)
