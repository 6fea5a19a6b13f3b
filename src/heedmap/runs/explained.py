"""Explain texts by a model: the audit's questions, asked of single texts."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.data.encoded_pictures import described
from heedmap.errors import KindError, running_model
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.flip_sets import EXACT, flip_sets
from heedmap.experiments.methods.rankings import read_outs
from heedmap.experiments.questions.adversary import is_exact
from heedmap.experiments.registry import registered
from heedmap.files.naming import kind_of
from heedmap.files.tables import read_table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.trace import Model
from heedmap.report.explained_window import Adversary, Picture, Window
from heedmap.report.explanation import Explanation, Explanations
from heedmap.report.pair_tokens import shown_tokens
from heedmap.report.wording import architecture_text
from heedmap.runs.audit_defaults import audit_defaults
from heedmap.runs.folder import RunFolder
from heedmap.runs.user_texts import (
    A_PICTURE,
    OneText,
    Texts,
    UserText,
    is_many,
    is_single,
    read_each,
    user_texts,
)
from heedmap.settings.audit import AuditSettings
from heedmap.settings.run import RunSettings
from heedmap.terminal.output import some_of
from heedmap.terminal.progress import in_job, track, worded

TABLES = (
    "instances",
    "gradient",
    "leave_one_out",
    "importance_mass",
    "adversary",
    "decision_flips",
)


def check_input(text: object, query: object) -> None:
    """Raise KindError unless this is a text or a picture with or without a query, or several without."""
    if not (is_single(text) or is_many(text)):
        raise KindError(
            f"expected a text or a list of texts, or {A_PICTURE}, got {described(text)}"
        )
    if not isinstance(query, str | None):
        raise KindError(f"expected a text as the query, got {kind_of(query)}")
    if query is not None and not is_single(text):
        raise KindError(
            "expected query with one text alone; of many, give pairs: [(text, query), ...]"
        )


def explain_input(
    place: Path,
    settings: RunSettings,
    model: Model,
    text: OneText | Texts,
    query: str | None,
    asked: tuple[str | None, str | None] = (None, None),
) -> Explanation | Explanations:
    """Explain what a user gave to `heedmap.explain`, by an opened model; `place` is its folder or name.

    `asked` are the word that the model is asked about, and its foil.
    """
    check_input(text, query)
    if isinstance(text, str):
        return explained_each(place, settings, model, [UserText(text, query, *asked)])[0]
    texts = user_texts(text, model, settings.data)
    if is_single(text):
        (user_text,) = texts
        target, foil = asked
        one = user_text._replace(query=query, target=target, foil=foil)
        return explained_each(place, settings, model, [one])[0]
    if asked != (None, None):
        raise KindError("expected a word to ask about (target) with one text alone, got many texts")
    return explained_each(place, settings, model, texts)


def explained(
    place: Path, settings: RunSettings, model: Model, text: str, query: str | None
) -> Explanation:
    """Explain a text by an opened model (see `heedmap.explain`); `place` is its folder or name."""
    return explained_each(place, settings, model, [UserText(text, query)])[0]


def explained_each(
    place: Path, settings: RunSettings, model: Model, texts: Sequence[UserText]
) -> Explanations:
    """Explain several texts by an opened model, one after the other; all are read before the first."""
    worded(settings.nouns.reword)
    facts: dict[str, Any] = {}
    explanations = Explanations()
    with running_model(model, "explanation"):
        splits = read_each(place.name, settings.data, model, texts)
        if not isinstance(model, AttentionClassifier):
            from heedmap.huggingface import opening
            from heedmap.huggingface.transformer_classifier import TransformerClassifier

            assert isinstance(model, TransformerClassifier)
            facts = opening.facts(model)
        for user_text, (split, notes) in zip(track(texts), splits, strict=True):
            number = len(explanations) + 1
            with in_job(f"text {number} of {len(texts)}") if len(texts) > 1 else nullcontext():
                explanations.append(
                    _explained(place, settings, model, user_text.text, split, notes, facts)
                )
    return explanations


def _explained(
    place: Path,
    settings: RunSettings,
    model: Model,
    text: str,
    split: Split,
    notes: list[str],
    facts: dict[str, Any],
) -> Explanation:
    if isinstance(model, AttentionClassifier):
        unknown, unknown_notes = _unknown(model, split)
    else:
        from heedmap.huggingface import opening
        from heedmap.huggingface.transformer_classifier import TransformerClassifier

        assert isinstance(model, TransformerClassifier)
        unknown, unknown_notes = opening.unread_words(model, split.texts)
    audit = settings.audit or AuditSettings.of(**audit_defaults(model, settings.data))
    evidence = AuditContext(
        model, split, audit, registered(), first_row=_row_in_audit(place, split)
    )
    tables = {table: evidence.table(table) for table in _asked(evidence)}
    # A hidden word and its foil are each text's own.
    classes = model.classes if split.choices is None else [*split.choices[0]]
    result = AuditResult(settings, classes, tables, [], facts)
    return Explanation(
        name=place.name,
        model=architecture_text(result),
        classes=classes,
        text=text,
        query=[word.strip() for word in split.queries[0]] if split.queries else None,
        unit="sentence" if settings.data.tokenizer == "sentences" else "word",
        epsilon=audit.epsilon,
        notes=[*notes, *unknown_notes],
        windows=_windows(evidence, unknown),
        nouns=settings.nouns,
    )


def _row_in_audit(folder: Path, split: Split) -> int:
    """Return the text's row in the tables of the run's audit; 0 where it is in none."""
    path = RunFolder(folder).tables / "instances.parquet"
    if not path.exists():
        return 0
    table = read_table(path)
    stripped = [token.strip() for token in split.tokens[0]]
    queries = table["query"] if "query" in table.column_names else None
    query = None if split.queries is None else [word.strip() for word in split.queries[0]]
    for row in np.flatnonzero(table["n_tokens"].to_numpy() == len(stripped)).tolist():
        same_query = queries is None or query is None or queries[row].as_py() == query
        if same_query and table["tokens"][row].as_py() == stripped:
            return int(row)
    return 0


def _asked(evidence: AuditContext) -> list[str]:
    """Return the tables of TABLES that the model can be asked for."""
    return [
        name
        for name in TABLES
        if evidence.experiments[name].can_ask(evidence.model, evidence.split)
    ]


def _windows(evidence: AuditContext, unknown: list[NDArray[np.bool_]]) -> list[Window]:
    rows = {name: evidence.table(name).to_pylist() for name in _asked(evidence)}
    maps = {
        row: scores
        for trace in evidence.traces
        for row, scores in read_outs(evidence.model, trace).items()
    }
    exact, windows = False, []
    if "adversary" in rows:
        exact = is_exact(evidence.table("adversary").column_names, len(evidence.model.classes))
    smallest_sets = flip_sets(evidence) if "decision_flips" in rows else [None] * len(maps)
    for i, flip in enumerate(smallest_sets):
        instance, deletion = rows["instances"][i], rows["leave_one_out"][i]
        optimum, flips = (rows[name][i] if name in rows else {} for name in TABLES[-2:])
        adversary = None
        if optimum.get("attention") is not None:
            weights = np.array(optimum["attention"], dtype=np.float64)
            adversary = Adversary(weights, optimum["jsd"], optimum["jsd_upper"], exact)
        windows.append(
            Window(
                tokens=shown_tokens(instance),
                unknown=unknown[i],
                probabilities=np.array(instance["probabilities"]),
                attention=np.array(instance["attention"], dtype=np.float64),
                gradient=np.array(rows["gradient"][i]["importance"]),
                leave_one_out=np.array(deletion["importance"]),
                signed=np.array(deletion["signed"]),
                **maps[i],
                importance_mass=rows["importance_mass"][i]["mass_leave_one_out"],
                largest_mass=rows["importance_mass"][i]["largest_leave_one_out"],
                adversary=adversary,
                flip=flip,
                smallest=flips.get(f"count_{EXACT}") is not None,
                flip_along_map=flips.get("count_attention") or 0,
                picture=_picture(instance),
            )
        )
    return windows


def _picture(instance: Mapping[str, Any]) -> Picture | None:
    if instance.get("picture") is None:
        return None
    columns, rows = ([int(place) for place in instance[axis]] for axis in "xy")
    return Picture(instance["picture"], columns, rows)


def _unknown(model: AttentionClassifier, split: Split) -> tuple[list[NDArray[np.bool_]], list[str]]:
    """Return which tokens hold a word that is not in the vocabulary, and a note that counts these words."""
    of_sentences = isinstance(model, HierarchicalClassifier)
    tokens = [token.split() if of_sentences else [token] for token in split.tokens[0]]
    marks = np.array([any(word not in model.vocabulary for word in token) for token in tokens])
    words = [word for token in tokens for word in token]
    words += split.queries[0] if split.queries else []
    missing = [word for word in words if word not in model.vocabulary]
    if not missing:
        return [marks], []
    return [marks], [
        f"the model does not know {len(missing)} of {len(words)} words, and reads each as the same unknown "
        f"word: {some_of([*dict.fromkeys(missing)])}"
    ]
