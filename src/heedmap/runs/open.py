"""Open runs: finished ones from their folders, and existing transformers with their texts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.data.corpus import Corpus
from heedmap.data.in_memory import InMemory, Source, Values, source_of
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.load import load_corpus
from heedmap.errors import InputError, running_model
from heedmap.files.naming import MODEL, found_from, name_of
from heedmap.keywords import split, takes
from heedmap.models.guided_classifier import GuidedClassifier
from heedmap.runs.folder import RunFolder
from heedmap.runs.model_files import damaged
from heedmap.runs.occupancy import holds_another, relocate
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.saving import fine_tuned_run, own_run
from heedmap.runs.stored_arrays import open_arrays
from heedmap.runs.stored_models import (
    Device,
    another_model,
    attention_model,
    changed,
    check_on_cpu,
    check_trained,
    device_name,
    existing_model,
    fine_tuned_model,
)
from heedmap.settings.data import RAW_TEXTS, DataSettings
from heedmap.settings.models import UNLIMITED_WORDS, ArraysSettings, TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.terminal.progress import working
from heedmap.training.initialisation import kind_for

if TYPE_CHECKING:
    from heedmap.huggingface.from_memory import Loaded


def open_run(
    folder: str | Path, *, variant: str | None = None, device: Device | None = None
) -> Run:
    """Open a finished run from its folder; the corpus is read again from its source.

    Args:
        folder: of the run.
        variant: the name of a model that `heedmap.retrain` trained there (`heedmap list FOLDER` shows the
            names), to be opened instead, without a folder.
        device: on which a transformer runs: cpu, cuda or cuda:N, as a name, a torch.device or the number N
            [cpu].

    Raises:
        InputError: no such device, no run there, not fully trained, damaged, or its corpus or its model has
            changed; no such variant, or one that is no run by itself.
    """
    run_folder, device = RunFolder(folder), device_name(device)
    settings = run_folder.settings(moved=True)
    if isinstance(settings.model, ArraysSettings):
        check_on_cpu(device)
        run = open_arrays(run_folder, settings)
    elif not isinstance(settings.model, TransformerSettings):
        check_on_cpu(device)
        run = open_own(run_folder, settings)
    elif settings.train is not None:
        run = open_fine_tuned(run_folder, settings, device=device)
    else:
        run = _open_existing(run_folder, settings, device)
    run_folder.check_unchanged(settings)
    if variant is None:
        return run
    from heedmap.runs.variants import open_variant  # imports all experiments

    return open_variant(run, variant)


@takes(RAW_TEXTS, TransformerSettings)
def open_model(
    source: "str | Path | Loaded",
    data: Source,
    *,
    labels: Values | None = None,
    queries: Values | None = None,
    out: Out | None = None,
    overwrite: bool = False,
    progress: bool = True,
    device: Device | None = None,
    **settings: Any,
) -> Run:
    """Open a Hugging Face classifier and the texts to put it on trial with: a run to `heedmap.audit`.

    It classifies texts, or pictures, or words (token classification), or is a masked language model, which is
    asked which of two words a mask hides.

    Args:
        source: the model's folder, or its name on the Hub; or what transformers has loaded: (model, tokenizer),
            (model, image processor), or a pipeline of text or image classification. These stay as they are: a
            copy is put on trial, which `out` keeps.
        data: as for `heedmap.load`; of a model of pictures a folder of them, a list of PIL images or arrays
            (height, width, 3) of bytes, or a column `image` of such. Its test split is used; a file without
            splits is used whole. It may do without labels: then it cannot be told whether the model predicts
            well.
        labels: of a list of texts or pictures, one for each, if they are known.
        queries: of a list of texts, one for each: the second text of the pair that a model of pairs reads. In a
            file or a frame, `query` names its column.
        {options}
        out: a run folder to keep the run in.
        overwrite: replace a different run in `out` instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).
        device: on which the model runs: cpu, cuda or cuda:N, as a name, a torch.device or the number N [cpu;
            that of a model in memory].

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model or data of another kind, or an option that there is not.
    """
    from heedmap.huggingface import opening
    from heedmap.huggingface.from_memory import open_loaded
    from heedmap.huggingface.tasks import asking

    if isinstance(data, Corpus):
        raise InputError(
            "expected as data what heedmap.load reads (a file, a folder, a Hub name, a frame ...), got a "
            "Corpus: a transformer reads the raw text"
        )
    name, in_memory = source_of(data, labels, queries, training=False)
    text_options, model_options = split("open_model", settings, RAW_TEXTS, TransformerSettings)
    of_label = model_options.get("output") is not None
    if of_label and (labels is not None or text_options.get("label") is not None):
        raise InputError(
            "--output: expected no labels with it, since which of several labels the texts have is not read; "
            "leave out --label-column (in Python labels=)"
        )
    query = {} if queries is None else {"query": "query"}
    data_settings = DataSettings.of(
        source=name,
        raw=True,
        training=False,
        labels_read=not of_label,
        **{"max_tokens": UNLIMITED_WORDS, **query, **text_options},
    )
    with working("opening the model", progress, share=0.0):
        device, pairs = device_name(device), data_settings.query is not None
        loaded = open_loaded(source, model_options, device, pairs=pairs)
        if loaded is None:
            path_settings = TransformerSettings.of(source=name_of(source, MODEL), **model_options)
            # The texts come first: what is wrong with them is said before any weights are loaded.
            texts = _texts_of(path_settings, data_settings, in_memory)
            pairs = texts is not None and texts.pairs
            loaded = opening.open_classifier(path_settings, device=device, pairs=pairs)
        else:
            data_settings = asking(data_settings, loaded[0].task)
            data_settings, texts = _read_amounts(data_settings, loaded[0].classes), None
        model, model_settings = loaded
        with running_model(model, "reading the texts"):
            if texts is None:
                corpus = opening.corpus_for(model, data_settings, in_memory)
            else:
                corpus = opening.fitted(model, texts)
        run_settings = RunSettings(
            fingerprint=corpus.fingerprint(), data=corpus.settings, model=model_settings
        )
        facts = {**opening.facts(model), **opening.notes(model, pairs=corpus.pairs)}
    corpus.warn()
    run = Run(run_settings, corpus, model, None, None, facts)
    if out is None:
        return run
    with RunFolder.locked(out, run_settings) as folder:
        if holds_another(folder, run_settings, overwrite):
            folder.begin(run_settings, resume=False)
        elif folder.is_begun():
            relocate(folder, run_settings)
        else:
            folder.begin(run_settings, resume=False)
        folder.keep_texts(in_memory)
        if model_settings.in_memory and not folder.model.exists():
            opening.save_classifier(model, folder.model)
        folder.tidy()
        return replace(run, folder=folder.path)


def _texts_of(
    model: TransformerSettings, settings: DataSettings, in_memory: InMemory | None
) -> Corpus | None:
    """Read the texts of a model that is not opened yet; None of pictures, whose patches its own files tell."""
    from heedmap.huggingface.configurations import find_model
    from heedmap.huggingface.picture_loading import reads_pictures
    from heedmap.huggingface.tasks import asking

    if reads_pictures(model.source):
        return None
    found_model = find_model(model.source)
    outputs, _ = found_model.outputs(model.output, model.threshold, model.unit)
    settings = _read_amounts(asking(settings, found_model.task), outputs)
    return load_corpus(settings, outputs, in_memory)


def _read_amounts(settings: DataSettings, outputs: Sequence[str]) -> DataSettings:
    """Let labels be read as numbers, where the model has one output, which is one."""
    if len(outputs) > 1:
        return settings
    if settings.classes is not None:
        raise InputError(
            "--classes: expected none of a model that gives a number (a regression); leave it out"
        )
    return settings.model_copy(update={"amounts": settings.labels_read})


def open_own(folder: RunFolder, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """Open the run of an attention model trained in a folder; `corpus` if it is loaded already.

    Raises:
        InputError: as `open_run`.
    """
    model, trained = attention_model(folder, settings)
    corpus = corpus or _corpus(folder, settings)
    if corpus.vectors is not None:
        model.look_up(ItemVocabulary(corpus.vectors))
    kind = kind_for(corpus, settings.model) if settings.guide is None else GuidedClassifier
    if (model.classes, type(model)) != (corpus.classes, kind):
        raise damaged(
            folder, ValueError(f"expected the classes {corpus.classes}, got {model.classes}")
        )
    return own_run(settings, corpus, model, trained, folder.path)


def open_fine_tuned(
    folder: RunFolder,
    settings: RunSettings,
    corpus: Corpus | None = None,
    device: str | None = None,
) -> Run:
    """Open the run of a transformer fine-tuned in a folder; `corpus` if it is loaded already.

    Raises:
        InputError: as `open_run`.
    """
    check_trained(folder, settings)
    corpus = corpus or _corpus(folder, settings)
    model, trained = fine_tuned_model(folder, settings, device)
    if model.classes != corpus.classes:
        raise another_model(folder, settings)
    return fine_tuned_run(settings, corpus, model, trained, folder.path)


def _open_existing(folder: RunFolder, settings: RunSettings, device: str | None) -> Run:
    from heedmap.huggingface import opening

    model = existing_model(folder, settings, device)
    with running_model(model, "reading the texts"):
        corpus = opening.corpus_for(model, _data(folder, settings), folder.kept_texts())
    if corpus.fingerprint() != settings.fingerprint:
        raise changed(folder, settings.data.source)
    facts = {**opening.facts(model), **opening.notes(model, pairs=corpus.pairs)}
    return Run(settings, corpus, model, None, folder.path, facts)


def _data(folder: RunFolder, settings: RunSettings) -> DataSettings:
    """Return the settings of a run's texts, with their path as it leads there from here."""
    source = settings.data.source
    is_path = "/" in source or Path(source).suffix
    place = found_from(folder.path, source) if is_path else source
    return settings.data.model_copy(update={"source": place})


def _corpus(folder: RunFolder, settings: RunSettings) -> Corpus:
    """Load and check the corpus of a run."""
    try:
        corpus = load_corpus(_data(folder, settings), in_memory=folder.kept_texts())
    except InputError as error:
        raise InputError(
            f"{error} (so say the settings of {folder.path}: if the texts have moved, write where they are "
            f"now as the source in its settings.toml)"
        ) from error
    if corpus.fingerprint() != settings.fingerprint:
        raise changed(folder, settings.data.source)
    return corpus
