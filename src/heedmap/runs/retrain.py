"""Ask a run the questions for which further models are trained, and put the answers into its audit."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedmap.errors import InputError
from heedmap.experiments.registry import registered, retrainable, retrains
from heedmap.files.naming import kind_of
from heedmap.keywords import split, takes
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.retraining.base import base_of
from heedmap.retraining.estimate import forecast_of
from heedmap.retraining.trainer import Trainer
from heedmap.runs.audit import audit_as
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings
from heedmap.terminal.progress import note, working
from heedmap.training.remote import takes_executor
from heedmap.training.shards import current_shard, end_shard, is_divided


def questions() -> list[str]:
    """Return the names of all experiments that train further models, in the order of the card."""
    return [name for name in registered() if retrains(name)]


@takes_executor
@takes(RetrainSettings, AuditSettings)
def retrain(
    run: Run,
    names: Sequence[str] = (),
    *,
    overwrite: bool = False,
    workers: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Audit:
    """Train further models on a run's texts, compare them with the run's, and audit it if that is not done.

    A run with a folder keeps what is trained there, each model when it is finished: a later call, after a stop
    or with other settings, trains only what is missing.

    Args:
        run: from `heedmap.train` or `heedmap.open_run`.
        names: of the questions (`questions`), or none for all that apply. Deception needs `forbidden`.
        {options}
        overwrite: throw away an audit with other settings instead of refusing.
        workers: processes that train, each of one thread; None for one per core. No number depends on it.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    Raises:
        InputError: a model that heedmap did not train, a question that is unknown or does not apply, a setting
            that does not fit, or another process that writes in the run's folder.
        TypeError: no run, or an option that there is not.
    """
    options, audit_options = split("retrain", settings, RetrainSettings, AuditSettings)
    if not isinstance(run, Run):
        raise TypeError(f"expected a run, got {kind_of(run)}; make one with `heedmap.train`")
    retrain_settings = RetrainSettings.of(**options)
    audit_settings = _audit_settings(run, audit_options)
    model, texts = run.model, audited_split(run.corpus, audit_settings)
    train = run.settings.train
    if train is None or (
        isinstance(train, TrainSettings) and not isinstance(model, AttentionClassifier)
    ):
        raise InputError(
            f"{run.name}: expected a model that heedmap trained or fine-tuned, got one that comes trained; "
            "train one with `heedmap train`"
        )
    asked_questions = _questions(names, retrainable(model, texts), retrain_settings)
    if run.settings.variant is not None:
        raise InputError(
            f"{run.name}: expected a run, got a variant of one ({run.settings.variant}), whose training the "
            "further ones would not repeat; retrain the run itself"
        )
    if isinstance(train, FineTuneSettings):
        from heedmap.retraining.restricted import check

        check(model, run.name)
    with working("retrain", progress), _training_folder(run) as folder:
        base = base_of(model, run.corpus, run.settings, texts, folder)
        trainer = Trainer(base, retrain_settings, workers)
        variants = [
            variant
            for name in asked_questions
            for variant in registered()[name].variants(trainer)  # type: ignore[misc]
        ]
        missing = trainer.plan(variants)
        if current_shard() is not None:
            trainer.outcomes(variants)
            end_shard("all models of the questions are trained")
        text, seconds = ("", 0.0) if is_divided() else forecast_of(missing, base, workers)
        if text:
            note(f"This will take {text}.")
        return audit_as(
            run,
            audit_settings,
            overwrite=overwrite,
            retraining=trainer,
            questions=asked_questions,
            training_seconds=seconds,
        )


def _audit_settings(run: Run, options: dict[str, Any]) -> AuditSettings:
    """Return the settings of the audit that is there, if there are no options."""
    stored = None if run.folder is None else RunFolder(run.folder).settings().audit
    if stored is not None and not options:
        return stored
    settings = AuditSettings.of(**{**audit_defaults(run.model, run.settings.data), **options})
    if settings.is_drawn and settings.drawn is None:
        raise InputError(
            f"minutes = {settings.minutes:g}: further models are asked of the texts that an audit has drawn; "
            "audit the run with --minutes first, then retrain it without"
        )
    return settings


def _questions(
    names: Sequence[str], applicable: Sequence[str], settings: RetrainSettings
) -> list[str]:
    """Return the questions to ask, of those that apply to the run: the named ones, or all."""
    if unknown := [name for name in names if name not in questions()]:
        raise InputError(f"{unknown[0]}: expected one of {', '.join(questions())}")
    if inapplicable := [name for name in names if name not in applicable]:
        raise InputError(
            f"{inapplicable[0]}: is asked of models of single texts of words, and of transformers only "
            f"deception; here there are {', '.join(applicable) or 'none'}"
        )
    if "deception" in names and settings.forbidden is None:
        raise InputError(
            "deception: expected impermissible words, --forbidden he,she,... or a file of them"
        )
    chosen_names = [
        name
        for name in applicable
        if (name in names or not names) and (name != "deception" or settings.forbidden is not None)
    ]
    if not chosen_names:
        raise InputError(
            "expected impermissible words, --forbidden he,she,... or a file of them: a transformer is asked "
            "deception alone"
        )
    return chosen_names


@contextmanager
def _training_folder(run: Run) -> Iterator[Path]:
    """Yield the folder for what is trained: in the run's, or else a temporary one."""
    if run.folder is not None:
        yield RunFolder(run.folder).retrained
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
