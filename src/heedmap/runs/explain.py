"""Explain texts one by one: the audit's questions, asked of single texts of any run or classifier."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.errors import InputError, KindError
from heedmap.experiments.adversary import is_exact
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.flip_sets import EXACT, flip_sets
from heedmap.experiments.rankings import read_outs
from heedmap.files.naming import MODEL, kind_of, name_of
from heedmap.files.tables import read_table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.trace import Model
from heedmap.report.explanation import Adversary, Explanation, Explanations, Window
from heedmap.report.phrases import architecture_text
from heedmap.runs.audit import defaults
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import UNLIMITED, model_in
from heedmap.runs.run import Run
from heedmap.runs.user_texts import UserText, is_many, read_each, user_texts
from heedmap.settings import AuditSettings, DataSettings, RunSettings, TransformerSettings
from heedmap.terminal.output import some_of
from heedmap.terminal.progress import in_cell, track

if TYPE_CHECKING:
    from heedmap.huggingface.from_memory import Loaded

Source = Union[Run, str, Path, "Loaded"]
Texts = Sequence[str] | Sequence[tuple[str, str]]
IN_MEMORY = "a model in memory"
TABLES = ("instances", "gradient", "leave_one_out", "found", "adversary", "flips")


@overload  # a text is a sequence of texts too, but the first signature that fits counts
def explain(  # type: ignore[overload-overlap]
    source: Source, text: str, *, query: str | None = None
) -> Explanation: ...
@overload
def explain(source: Source, text: Texts) -> Explanations: ...
@overload
def explain(
    source: Source, text: str | Texts, *, query: str | None = None
) -> Explanation | Explanations: ...
def explain(
    source: Source, text: str | Texts, *, query: str | None = None
) -> Explanation | Explanations:
    """Explain the answer to a text, or to each of many, and put its heat map on trial.

    The numbers are those of an audit's tables: with the settings of the audit in the run's folder, if there is
    one, the same for the same text up to rounding. (A run without a folder knows no audit; `audit.run` does.)
    An adversary that is found by search may end elsewhere than in the audit, which searches for many texts at
    once; its bound is the same.

    >>> import heedmap as hm
    >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    >>> one = hm.explain(run, "A dull plot, and yet I laughed.")
    >>> one.answer, one.tokens[:2]
    ('negative', ['a', 'dull'])
    >>> [each.answer for each in hm.explain(run, ["A dull plot.", "A wonderful film."])]
    ['negative', 'positive']

    Args:
        source: a run, a run's folder (whose corpus is not read), or a Hugging Face classifier: its folder, its
            name on the Hub, or (model, tokenizer) or a text classification pipeline.
        text: the text; or a list of texts, or of pairs (text, query) for a model of pairs.
        query: the question or hypothesis that a model of pairs reads the one text given.

    Raises:
        InputError: a text without a word, a query that is missing or not read, or no finished run and no
            classifier there.
        TypeError: no run and no model, or a text that is no string.
    """
    if not isinstance(text, str) and (text is None or not is_many(text)):
        raise KindError(f"expected a text or a list of texts, got {kind_of(text)}")
    if not isinstance(query, str | None):
        raise KindError(f"expected a text as the query, got {kind_of(query)}")
    if query is not None and not isinstance(text, str):
        raise KindError(
            "expected query with one text alone; of many, give pairs: [(text, query), ...]"
        )
    place, settings, model = _opened(source)
    if isinstance(text, str):
        return explained(place, settings, model, text, query)
    return explained_each(place, settings, model, user_texts(text, model))


def _opened(source: Source) -> tuple[Path, RunSettings, Model]:
    """Return a source's place or name, its settings and its model."""
    if isinstance(source, Run):
        place, settings = source.folder or Path(source.name), source.settings
        if source.folder is not None:  # it may have been audited since it was opened
            settings = settings.model_copy(update={"audit": RunFolder(place).settings().audit})
        return place, settings, source.model
    if not isinstance(source, str | Path):
        from heedmap.huggingface.from_memory import open_loaded

        if (opened_model := open_loaded(source, {})) is not None:
            model, settings_of_model = opened_model
            return Path(IN_MEMORY), _settings_of(settings_of_model), model
    name = name_of(source, MODEL)
    return (Path(name), *opened(name))


def opened(name: str) -> tuple[RunSettings, Model]:
    """Open the model of a run's folder, or a Hugging Face classifier, without texts.

    Raises:
        InputError: no finished run and no classifier there.
    """
    folder = RunFolder(name)
    if folder.is_begun():
        return model_in(folder)
    if folder.path.is_dir() and not (folder.path / "config.json").exists():
        raise InputError(
            f"{name}: expected a run's folder (settings.toml) or a Hugging Face classifier's "
            "(config.json), got neither; `heedmap list` shows the runs"
        )
    from heedmap.huggingface.opening import open_classifier

    model, settings = open_classifier(TransformerSettings.of(source=name))
    return _settings_of(settings), model


def _settings_of(model: TransformerSettings) -> RunSettings:
    data = DataSettings(source="text", raw=True, max_tokens=UNLIMITED)
    return RunSettings(fingerprint="", data=data, model=model)


def explained(
    place: Path, settings: RunSettings, model: Model, text: str, query: str | None
) -> Explanation:
    """Explain a text by an opened model (see `explain`); `place` is its folder or name."""
    return explained_each(place, settings, model, [UserText(text, query)])[0]


def explained_each(
    place: Path, settings: RunSettings, model: Model, texts: Sequence[UserText]
) -> Explanations:
    """Explain several texts by an opened model, one after the other; all are read before the first."""
    splits = read_each(place.name, settings.data, model, texts)
    about: dict[str, Any] = {}
    if not isinstance(model, AttentionClassifier):
        from heedmap.huggingface import opening
        from heedmap.huggingface.transformer_classifier import TransformerClassifier

        assert isinstance(model, TransformerClassifier)
        about = opening.facts(model)
    explanations = Explanations()
    for given, (split, notes) in zip(track(texts), splits, strict=True):
        number = len(explanations) + 1
        with in_cell(f"text {number} of {len(texts)}") if len(texts) > 1 else nullcontext():
            explanations.append(_explained(place, settings, model, given.text, split, notes, about))
    return explanations


def _explained(
    place: Path,
    settings: RunSettings,
    model: Model,
    text: str,
    split: Split,
    notes: list[str],
    about: dict[str, Any],
) -> Explanation:
    if isinstance(model, AttentionClassifier):
        unknown, more = _unknown(model, split)
    else:
        from heedmap.huggingface import opening
        from heedmap.huggingface.transformer_classifier import TransformerClassifier

        assert isinstance(model, TransformerClassifier)
        unknown, more = opening.unread_words(model, split.tokens)
    audit = settings.audit or AuditSettings.of(**defaults(model, settings.data))
    evidence = Evidence(model, split, audit, first_row=_row_in_audit(place, split))
    tables = {table: evidence.table(table) for table in TABLES}
    result = AuditResult(settings, model.classes, tables, [], about)
    return Explanation(
        name=place.name,
        model=architecture_text(result),
        classes=model.classes,
        text=text,
        query=split.queries[0] if split.queries else None,
        unit="sentence" if settings.data.tokenizer == "sentences" else "word",
        epsilon=audit.epsilon,
        notes=[*notes, *more],
        windows=_windows(evidence, unknown),
    )


def _row_in_audit(folder: Path, split: Split) -> int:
    """Return the text's row in the tables of the run's audit; 0 where it is in none."""
    path = RunFolder(folder).tables / "instances.parquet"
    if not path.exists():
        return 0
    table = read_table(path)
    stripped = [token.strip() for token in split.tokens[0]]
    queries = table["query"] if "query" in table.column_names else None
    for row in np.flatnonzero(table["n_tokens"].to_numpy() == len(stripped)).tolist():
        same_query = (
            queries is None or split.queries is None or queries[row].as_py() == split.queries[0]
        )
        if same_query and table["tokens"][row].as_py() == stripped:
            return int(row)
    return 0


def _windows(evidence: Evidence, unknown: list[NDArray[np.bool_]]) -> list[Window]:
    rows = {name: evidence.table(name).to_pylist() for name in TABLES}
    maps = {
        row: scores
        for trace in evidence.traces
        for row, scores in read_outs(evidence.model, trace).items()
    }
    exact = is_exact(evidence.table("adversary").column_names, len(evidence.model.classes))
    found = []
    for i, flip in enumerate(flip_sets(evidence)):
        own, without, other, along = (
            rows[name][i] for name in ("instances", "leave_one_out", "adversary", "flips")
        )
        adversary = None
        if other["attention"] is not None:
            weights = np.array(other["attention"], dtype=np.float64)
            adversary = Adversary(weights, other["jsd"], other["jsd_upper"], exact)
        found.append(
            Window(
                tokens=own["tokens"],
                unknown=unknown[i],
                probabilities=np.array(own["probabilities"]),
                attention=np.array(own["attention"], dtype=np.float64),
                gradient=np.array(rows["gradient"][i]["importance"]),
                leave_one_out=np.array(without["importance"]),
                signed=np.array(without["signed"]),
                **maps[i],
                found=rows["found"][i]["found_leave_one_out"],
                largest=rows["found"][i]["largest_leave_one_out"],
                adversary=adversary,
                flip=flip,
                smallest=along[f"count_{EXACT}"] is not None,
                flip_along_map=along["count_attention"] or 0,
            )
        )
    return found


def _unknown(model: AttentionClassifier, split: Split) -> tuple[list[NDArray[np.bool_]], list[str]]:
    """Return which tokens hold a word that is not in the vocabulary, and a note that counts these words."""
    of_sentences = isinstance(model, HierarchicalClassifier)
    tokens = [token.split() if of_sentences else [token] for token in split.tokens[0]]
    marks = np.array([any(word not in model.vocabulary for word in some) for some in tokens])
    words = [word for some in tokens for word in some]
    words += split.queries[0] if split.queries else []
    missing = [word for word in words if word not in model.vocabulary]
    if not missing:
        return [marks], []
    return [marks], [
        f"the model does not know {len(missing)} of {len(words)} words, and reads each as the same unknown "
        f"word: {some_of([*dict.fromkeys(missing)])}"
    ]
