"""Train, save and reopen runs of attention models; reopen any run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from heedmap.data.corpus import Corpus, load_corpus
from heedmap.data.vocabulary import Vocabulary, vectors_hash
from heedmap.errors import InputError
from heedmap.files.identity import identity, weights_hash
from heedmap.files.naming import kind_of
from heedmap.files.storage import write_atomically
from heedmap.keywords import split, takes
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.runs.defaults import defaults_for
from heedmap.runs.folder import CHECKPOINT, SETTINGS, clear, held, settings_of, standing, still
from heedmap.runs.places import Out
from heedmap.runs.run import Run
from heedmap.runs.transformers import open_model_run, save_model_run
from heedmap.settings import (
    ModelSettings,
    RunSettings,
    TrainSettings,
    TransformerSettings,
)
from heedmap.training.attention import AttentionObjective
from heedmap.training.checkpoint import load_checkpoint
from heedmap.training.fit import Report, Trained, fit
from heedmap.training.initialisation import build_model, init_model
from heedmap.training.objective import Diverged
from heedmap.training.record import read_training, write_training

WEIGHTS = "model.safetensors"
VOCABULARY = "vocabulary.json"
PAIRS = {"epochs": 25, "batch_size": 100}  # defaults of pairs of texts


@takes(ModelSettings, TrainSettings)
def train(
    corpus: Corpus,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    report: Report = lambda done, total, text: None,
    **settings: Any,
) -> Run:
    """Train an attention classifier on a corpus (see `AttentionObjective` for the protocol).

    What is not given is as a paper has it that trains on this data set (`heedmap.runs.defaults`), if there is
    one.

    Args:
        corpus: from `heedmap.load`.
        {options}
        out: a run folder to keep the run in; where it holds this very run, it is continued.
        overwrite: replace a different run in `out` instead of refusing.
        report: called with steps done, steps in all and a text.

    Raises:
        InputError: a setting that does not fit, another run in `out`, or another process that writes there.
        TypeError: no corpus, or an option that there is not.
    """
    if not isinstance(corpus, Corpus):
        raise TypeError(
            f"expected a corpus, got {kind_of(corpus)}; read it with `heedmap.load` from a file, a folder or "
            "a name on the Hub"
        )
    of_model, of_training = split("train", settings, ModelSettings, TrainSettings)
    data = corpus.settings
    model_settings = ModelSettings.of(**{**defaults_for(data, ModelSettings), **of_model})
    if model_settings.score == "log_odds":
        from heedmap.training.log_odds import check_suitable

        check_suitable(corpus)
    if (vectors := of_training.get("vectors")) is not None:
        of_training |= {"vectors": str(vectors), "vectors_hash": vectors_hash(Path(vectors))}
    usual = {**(PAIRS if corpus.pairs else {}), **defaults_for(data, TrainSettings)}
    train_settings = TrainSettings.of(**{**usual, **of_training})
    wanted = RunSettings(
        fingerprint=corpus.fingerprint(),
        data=data,
        model=model_settings,
        train=train_settings,
    )
    if out is None:
        return _train(corpus, wanted, None, report, False)
    with held(out, wanted) as folder:
        run, anew = standing(
            folder,
            wanted,
            overwrite,
            WEIGHTS,
            lambda where, found: _load(where, found, corpus),
        )
        return run or _train(corpus, wanted, folder, report, anew)


def _train(
    corpus: Corpus, settings: RunSettings, folder: Path | None, report: Report, anew: bool
) -> Run:
    assert isinstance(settings.train, TrainSettings)
    model, settings, found = init_model(corpus, settings)
    train, dev = corpus.splits["train"], corpus.splits["dev"]
    assert isinstance(settings.train, TrainSettings)
    objective = AttentionObjective(
        model,
        model.encoded(train.texts, train.labels),
        model.encoded(dev.texts, dev.labels),
        settings.train,
    )
    if folder is not None:
        if not anew:
            load_checkpoint(folder / CHECKPOINT, objective)
        # Only now: what does not work so far has left what was there alone.
        clear(folder, (SETTINGS,) if anew else (SETTINGS, CHECKPOINT))
        write_atomically(folder / SETTINGS, settings.to_toml())
    try:
        trained = fit(objective, None if folder is None else folder / CHECKPOINT, report)
    except Diverged:
        if folder is not None:
            clear(folder)  # a smaller learning rate begins from nothing
        raise
    model.cpu()
    trained = replace(trained, vectors=found)
    run = Run(settings, corpus, model, trained, folder, _facts(corpus, model, trained))
    return run if folder is None else save_run(run, folder)


def save_run(run: Run, folder: Path) -> Run:
    """Write settings, vocabulary, weights and training scores; the weights last: they say it is done.

    Raises:
        InputError: the place cannot be written, or an attention model that was not trained here.
    """
    if not isinstance(run.model, AttentionClassifier):
        return save_model_run(run, folder)
    if run.training is None:
        raise InputError(
            f"{folder}: expected a model that heedmap trained, got one from elsewhere, which has no run "
            "folder; save the report alone, as .html"
        )
    words = {"classes": run.model.classes, "words": run.model.vocabulary.words}
    write_atomically(folder / SETTINGS, run.settings.to_toml())
    write_atomically(folder / VOCABULARY, json.dumps(words, ensure_ascii=False))
    write_training(folder, run.training, _identity(run.settings, run.model))
    tensors = {k: v.detach().contiguous() for k, v in run.model.state_dict().items()}
    write_atomically(folder / WEIGHTS, save_tensors(tensors))
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return replace(run, folder=folder)


def open_run(folder: str | Path) -> Run:
    """A finished run from its folder; the corpus is read again from its source.

    Raises:
        InputError: no run there, not trained to the end, damaged, or its corpus is not what it was.
    """
    folder = Path(folder)
    settings = settings_of(folder)
    if isinstance(settings.model, TransformerSettings):
        run = open_model_run(folder, settings)
        still(folder, settings)
        return run
    try:
        corpus = load_corpus(settings.data)
    except InputError as error:
        raise InputError(f"{error} (so say the settings of {folder})") from error
    if corpus.fingerprint() != settings.fingerprint:
        raise InputError(
            f"{folder}: {settings.data.source} is not what it was when the run was made; "
            "bring it back, or make a new run"
        )
    if not (folder / WEIGHTS).exists():
        raise InputError(f"{folder}: not trained to the end; run `heedmap train` again to go on")
    run = _load(folder, settings, corpus)
    still(folder, settings)
    return run


def _load(folder: Path, settings: RunSettings, corpus: Corpus) -> Run:
    trained, known = read_training(folder)
    try:
        words, classes, tensors = _kept(folder)
        model = build_model(settings, Vocabulary(words), classes, corpus.pairs)
        model.load_state_dict(tensors)
        if classes != corpus.classes:
            raise ValueError(f"expected the classes {corpus.classes}, got {classes}")
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise ValueError("weights that are not finite")
        if known not in (None, _identity(settings, model)):
            raise ValueError("not the model that was trained here with these settings")
    except (ValueError, RuntimeError) as error:
        raise _damaged(folder, error) from error
    model.eval().requires_grad_(False)
    return Run(settings, corpus, model, trained, folder, _facts(corpus, model, trained))


def _kept(folder: Path) -> tuple[list[str], list[str], dict[str, Tensor]]:
    """Words, classes and weights of a model that was trained here."""
    try:
        known = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        words, classes = known["words"], known["classes"]
        if not all(isinstance(name, str) for name in (*words, *classes)):
            raise TypeError("expected words and classes")
        return words, classes, load_tensors((folder / WEIGHTS).read_bytes())
    except (OSError, ValueError, LookupError, TypeError, RecursionError, SafetensorError) as error:
        raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> InputError:
    said = (str(error).splitlines() or [""])[0]
    return InputError(
        f"{folder}: the run is damaged ({type(error).__name__}: {said}); make it again with the command that "
        "made it and --overwrite"
    )


def weights_of(run: Run) -> str:
    """A hash of a run's model."""
    if isinstance(run.model, AttentionClassifier):
        return weights_hash(run.model.state_dict(), run.model.vocabulary.words)
    return getattr(run.settings.model, "weights", "")


def weights_in(folder: Path, settings: RunSettings) -> str | None:
    """The same of the model that stands in a folder; None where none does.

    Raises:
        InputError: it is damaged.
    """
    if isinstance(settings.model, TransformerSettings):
        return settings.model.weights
    if not (folder / WEIGHTS).exists():
        return None
    words, _, tensors = _kept(folder)
    return weights_hash(tensors, words)


def _identity(settings: RunSettings, model: AttentionClassifier) -> str:
    weights = weights_hash(model.state_dict(), model.vocabulary.words)
    return identity(settings.model_copy(update={"audit": None}), weights, model.classes)


def _facts(corpus: Corpus, model: AttentionClassifier, trained: Trained) -> dict[str, object]:
    known = model.vocabulary
    test = corpus.splits["test"]
    tokens = [token for text in [*test.tokens, *(test.queries or [])] for token in text]
    return {
        "unknown_share": sum(token not in known for token in tokens) / len(tokens),
        "vectors": trained.vectors,
        "words": len(known.words),
        "training": trained.scores,
        "best_epoch": trained.best_epoch,
    }
