"""Explain texts one by one: the audit's questions, asked of single texts of any run or classifier."""

from pathlib import Path
from typing import TYPE_CHECKING, Union, overload

from heedmap.errors import InputError
from heedmap.files.naming import MODEL, holds_model, kind_of, name_of
from heedmap.models.trace import Model
from heedmap.nouns import Nouns
from heedmap.report.explanation import Explanation, Explanations
from heedmap.runs.explained import check_input, explain_input
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import open_run
from heedmap.runs.run import Run
from heedmap.runs.stored_models import Device, device_name, model_in
from heedmap.runs.user_texts import OneText, Texts, is_list_of_pairs
from heedmap.runs.variant_folder import folder_of
from heedmap.settings.data import DataSettings
from heedmap.settings.models import UNLIMITED_WORDS, TransformerSettings
from heedmap.settings.run import RunSettings

if TYPE_CHECKING:
    from heedmap.huggingface.from_memory import Loaded

Source = Union[Run, str, Path, "Loaded"]
IN_MEMORY = "a model in memory"
NO_DATA = "text"  # the source of a model that was opened without any


@overload  # a text is a sequence of texts too, but the first signature that fits counts
def explain(  # type: ignore[overload-overlap]
    source: Source,
    text: OneText,
    *,
    query: str | None = None,
    target: str | None = None,
    foil: str | None = None,
    output: str | None = None,
    variant: str | None = None,
    device: Device | None = None,
) -> Explanation: ...
@overload
def explain(
    source: Source,
    text: Texts,
    *,
    output: str | None = None,
    variant: str | None = None,
    device: Device | None = None,
) -> Explanations: ...
@overload
def explain(
    source: Source,
    text: OneText | Texts,
    *,
    query: str | None = None,
    target: str | None = None,
    foil: str | None = None,
    output: str | None = None,
    variant: str | None = None,
    device: Device | None = None,
) -> Explanation | Explanations: ...
def explain(
    source: Source,
    text: OneText | Texts,
    *,
    query: str | None = None,
    target: str | None = None,
    foil: str | None = None,
    output: str | None = None,
    variant: str | None = None,
    device: Device | None = None,
) -> Explanation | Explanations:
    """Explain the answer to a text, or to each of many, and put its heat map on trial.

    The numbers are those of an audit's tables: with the settings of the audit in the run's folder, if there is
    one, the same for the same text up to rounding. (A run without a folder knows no audit; `audit.run` does.)
    An adversary that is found by search may end elsewhere than in the audit, which searches for many texts at
    once; its bound is the same.

    >>> import heedmap as hm
    >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    >>> explanation = hm.explain(run, "A dull plot, and yet I laughed.")
    >>> explanation.answer, explanation.tokens[:2]
    ('negative', ['a', 'dull'])
    >>> [text.answer for text in hm.explain(run, ["A dull plot.", "A wonderful film."])]
    ['negative', 'positive']

    Args:
        source: a run, a run's folder (whose corpus is not read), or a Hugging Face classifier: its folder, its
            name on the Hub, or (model, tokenizer), (model, image processor) or a pipeline of text or image
            classification.
        text: the text, or the path of a picture or of a bag's file for a model of these, or a picture in
            memory: a PIL image, or an array (height, width, 3) of bytes; or a list of such, or of pairs
            (text, query) for a model of pairs.
        query: the question or hypothesis that a model of pairs reads the one text given.
        target: the word of the one text that a token classifier is asked about, or its number from 1 up; of a
            masked language model, the word that the text's one [MASK] hides.
        foil: the word that a masked language model might take for the hidden one.
        output: the label to explain, of a model that gives several at once.
        variant: the name of a model that `heedmap.retrain` trained in a run's folder, to be asked instead (see
            `heedmap.open_run`).
        device: on which a transformer that is opened here runs: cpu, cuda or cuda:N, as a name, a
            torch.device or the number N [cpu; that of a model in memory].

    Raises:
        InputError: a text without a word, a query that is missing or not read, no finished run and no
            classifier there, or no such variant.
        TypeError: no run and no model, or a text that is no string and no picture.
    """
    check_input(text, query)  # before anything is opened
    pairs = query is not None or is_list_of_pairs(text)
    place, settings, model = _opened(source, variant, device_name(device), output, pairs)
    if settings.data.source == NO_DATA and pairs:
        settings = given_pairs(settings, model)
    return explain_input(place, settings, model, text, query, (target, foil))


def _opened(
    source: Source, variant: str | None, device: str | None, output: str | None, pairs: bool
) -> tuple[Path, RunSettings, Model]:
    """Return a source's folder or name, its settings and its model."""
    if variant is not None and not isinstance(source, str | Path):
        raise InputError(
            f"variant = {variant!r}: expected a run's folder with it, got {kind_of(source)}; open the variant "
            "with heedmap.open_run(FOLDER, variant=...) and explain that"
        )
    if isinstance(source, Run):
        if output is not None:
            raise InputError(
                f"output = {output!r}: expected none of a run, which is of one label; leave it out"
            )
        if device is not None:
            raise InputError(
                f"device = {device!r}: expected no device for a run that is open; give it to what opens the run"
            )
        return source.folder or Path(source.name), source.current_settings(), source.model
    if not isinstance(source, str | Path):
        from heedmap.huggingface.from_memory import open_loaded

        of_label = {} if output is None else {"output": output}
        if (opened_model := open_loaded(source, of_label, device, pairs=pairs)) is not None:
            model, settings_of_model = opened_model
            return Path(IN_MEMORY), _settings_of(settings_of_model, model.nouns), model
    return opened(name_of(source, MODEL), variant, device, output)


def opened(
    name: str, variant: str | None = None, device: str | None = None, output: str | None = None
) -> tuple[Path, RunSettings, Model]:
    """Open the model of a run's folder, or of its variant, or a Hugging Face classifier, without texts.

    `output`: the label of such a classifier of several that is read.

    Returns:
        The folder or name (of a variant the folder that an audit keeps it in), the settings and the model.

    Raises:
        InputError: no finished run and no classifier there, or no such variant of a run.
    """
    if output is not None and (variant is not None or RunFolder(name).is_begun()):
        raise InputError(
            f"--output {output}: expected none of a run, which is of one label; leave it out"
        )
    if variant is not None:
        run = open_run(name, variant=variant, device=device)
        return folder_of(Path(name), variant), run.settings, run.model
    folder = RunFolder(name)
    if folder.is_begun():
        return (Path(name), *model_in(folder, device))
    if folder.path.is_dir() and not holds_model(folder.path):
        raise InputError(
            f"{name}: expected a run's folder (settings.toml) or a Hugging Face classifier's "
            "(config.json), got neither; `heedmap list` shows the runs"
        )
    from heedmap.huggingface.opening import open_classifier

    model, settings = open_classifier(
        TransformerSettings.of(source=name, output=output), device=device
    )
    return Path(name), _settings_of(settings, model.nouns), model


def _settings_of(model: TransformerSettings, nouns: Nouns | None = None) -> RunSettings:
    data = DataSettings(source=NO_DATA, raw=True, max_tokens=UNLIMITED_WORDS, nouns=nouns)
    return RunSettings(fingerprint="", data=data, model=model)


def given_pairs(settings: RunSettings, model: Model) -> RunSettings:
    """Return settings of pairs: read text first, but by a cross-encoder with one output query first."""
    from heedmap.huggingface.one_output import is_relevance
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

    assert isinstance(model, TransformerClassifier)
    read_first = "query" if is_relevance(model.model.config) else "text"
    data = settings.data.model_copy(update={"query": "query", "first": read_first})
    return settings.model_copy(update={"data": data})
