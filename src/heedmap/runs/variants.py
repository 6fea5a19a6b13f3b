"""Open what `heedmap retrain` trained, an adversary, a uniform twin, another seed, as a run of its own."""

import json
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from heedmap.errors import InputError
from heedmap.experiments.variants import Variant
from heedmap.files.tables import read_table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.retraining.base import Base, base_of
from heedmap.retraining.own import reading_settings, trained_model
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.runs.saving import own_run
from heedmap.training.fit import Trained


def open_variant(run: Run, name: str) -> Run:
    """Open a variant of a run, with the run's texts, as a run without a folder.

    Its weights are those that were kept. A model that was guided holds its guide, the run's model or another
    variant, and reads every text with the weights that its guide gives it.

    Raises:
        InputError: no such variant (those that exist are named), one that an earlier version kept, or one that
            is no run by itself: its words were removed, or it is a restricted transformer; a guide that was
            deleted or is damaged.
    """
    assert run.folder is not None
    folder = RunFolder(run.folder)
    if not isinstance(run.model, AttentionClassifier):
        raise InputError(
            f"--variant {name}: a transformer's variants read with restricted attention, which a run of its "
            "checkpoint does not have; audit the run itself"
        )
    base = base_of(run.model, run.corpus, run.settings, run.corpus.splits["test"], folder.retrained)
    # The part of this model and its texts; the rest of the name is of the audit.
    made_of, *_ = base.folder.name.split("-")
    paths = {path.stem: path for path in _tables(folder) if path.parent.name.startswith(made_of)}
    if name not in paths:
        existing = ", ".join(paths) or "none yet: `heedmap retrain` trains them"
        raise InputError(f"--variant {name}: expected one of those of {run.folder}: {existing}")
    variant, trained = _described(paths[name])
    base = replace(base, folder=paths[name].parent)
    if base.path(variant) != paths[name]:
        raise InputError(f"{paths[name]}: is not the variant that it says; delete it and retrain")
    _check_is_a_run(variant, name)
    return _run_of(run, base, variant, trained, name)


def _run_of(run: Run, base: Base, variant: Variant, trained: Trained, name: str) -> Run:
    model, settings = trained_model(variant, base), reading_settings(variant, base)
    # What its settings do not say, its name does; other variants are what `heedmap train` makes of them.
    plain = variant.adversary is None and variant.penalty is None and variant.guide is None
    settings = settings.model_copy(
        update={"variant": None if plain else name, "parent": str(run.folder)}
    )
    vectors = None if run.training is None else run.training.vectors
    return own_run(settings, run.corpus, model, replace(trained, vectors=vectors), None)


def _tables(folder: RunFolder) -> list[Path]:
    return sorted(folder.retrained.glob("*/*.parquet"))


def _described(path: Path) -> tuple[Variant, Trained]:
    """Read which variant a file is of, and how it was trained."""
    try:
        about = json.loads(read_table(path).schema.metadata[b"about"])
        variant = TypeAdapter(Variant).validate_python(about["variant"])
        return variant, TypeAdapter(Trained).validate_python(about["training"])
    except KeyError as error:
        raise InputError(
            f"{path}: kept by an earlier version, which did not write how it was trained; delete it and run "
            "the same `heedmap retrain` again, which trains it anew"
        ) from error
    except (ValueError, ValidationError) as error:
        raise InputError(f"{path}: not what a training writes; delete it and retrain") from error


def _check_is_a_run(variant: Variant, name: str) -> None:
    """Raise InputError if a variant reads other texts than the run's."""
    if variant.penalty is not None and variant.penalty.removed:
        raise InputError(
            f"--variant {name}: was trained on texts without the impermissible words, which are not the run's; "
            "train a run on such texts"
        )
