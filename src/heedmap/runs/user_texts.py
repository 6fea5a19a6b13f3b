"""Texts that a user gives a run's model to read, one or many, without a corpus."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    NamedTuple,
    Protocol,
    TypeGuard,
    Union,
    cast,
    runtime_checkable,
)

import numpy as np
import torch
from numpy.typing import NDArray

from heedmap.data.asked_words import asked_text
from heedmap.data.batches import scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.encoded_pictures import (
    EXPECTED,
    colours_of,
    described,
    is_single_picture,
    may_be_picture,
)
from heedmap.data.one_text import one_text
from heedmap.errors import InputError, KindError, running_model
from heedmap.files.naming import kind_of
from heedmap.measures import predictions
from heedmap.models.arrays import ArraysModel
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.runs.user_bags import one_bag, reads_bags
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import remark

if TYPE_CHECKING:
    from PIL.Image import Image

Picture = Union["Image", NDArray[np.uint8]]
"""A PIL image, or an array (height, width, 3) of bytes."""
OneText = str | os.PathLike[str] | Picture
Texts = Sequence[str] | Sequence[tuple[str, str]] | Sequence[os.PathLike[str]] | Sequence["Picture"]
A_PICTURE = f"the file of a picture, {EXPECTED}"


@runtime_checkable
class OfPictures(Protocol):
    """A model that reads pictures, which a user gives by their files, or in memory."""

    def one_picture(self, name: str, picture: Picture | None = None) -> tuple[Split, list[str]]:
        """Return a split of one picture in memory or in a file, which the model can look up, and notes."""
        ...


class UserText(NamedTuple):
    """A text, and the query that a model of pairs reads it given.

    Or the word `target` that a model is asked about, of a masked language model with its `foil`. `split` is the
    text as the model reads it, where that is known already. `text` is a name of a `picture` in memory.
    """

    text: str
    query: str | None = None
    target: str | None = None
    foil: str | None = None
    split: Split | None = None
    picture: Picture | None = None


def is_single(texts: object) -> bool:
    """Return whether an argument is one text, or the file or the colours of one picture."""
    return isinstance(texts, str | os.PathLike | UserText) or is_single_picture(texts)


def is_many(texts: object) -> bool:
    """Return whether an argument is several texts or pictures, and not one of them or a pair."""
    not_many = isinstance(texts, bytes | Mapping | set | frozenset) or is_single(texts)
    return not not_many and hasattr(texts, "__len__")


def reads_pairs(model: Model, settings: DataSettings) -> bool:
    """Return whether a run's model reads pairs: a model of our own for them, or a transformer by its data."""
    if isinstance(model, AttentionClassifier):
        return isinstance(model, PairClassifier)
    return settings.query is not None


def user_texts(texts: object, model: Model, settings: DataSettings) -> list[UserText]:
    """Return a user's texts: a string, or a list (or array, or column) of strings, or of pairs.

    `settings` are those of the texts that the model was given.

    Raises:
        KindError: something else, or pairs for a model of single texts, or the reverse.
        InputError: no text.
    """
    if isinstance(model, OfPictures):
        return _user_pictures(texts)
    pairs = reads_pairs(model, settings)
    if isinstance(texts, os.PathLike) and reads_bags(model, settings):
        texts = os.fspath(texts)
    if isinstance(texts, str | UserText) or (pairs and _is_pair(texts)):
        texts = [texts]
    if not is_many(texts):
        raise KindError(f"expected a text or a list of texts, got {_stranger(texts)}")
    values = texts.tolist() if hasattr(texts, "tolist") else texts
    if not isinstance(values, Sequence):
        raise KindError(f"expected a text or a list of texts, got {kind_of(texts)}")
    if not values:
        raise InputError("expected one text at least, got none")
    return [_user_text(value, index, pairs) for index, value in enumerate(values)]


def _user_pictures(pictures: object) -> list[UserText]:
    """Return a user's pictures: the file or the colours of one, or a list or a stack of such."""
    is_one = is_single(pictures)
    if not (is_one or is_many(pictures)):
        raise KindError(f"expected {A_PICTURE}, or a list of such, got {described(pictures)}")
    listed = [pictures] if is_one else list(cast("Iterable[object]", pictures))
    if not listed:
        raise InputError("expected one picture at least, got none")
    return [
        _user_picture(picture, "picture" if is_one else f"picture {index}")
        for index, picture in enumerate(listed)
    ]


def _user_picture(picture: object, name: str) -> UserText:
    if isinstance(picture, UserText):
        return picture
    if isinstance(picture, str | os.PathLike):
        return UserText(str(os.fspath(picture)))
    try:
        colours_of(picture)
    except ValueError as error:
        said = str(error).replace(EXPECTED, A_PICTURE)
        raise KindError(f"{name}: {said}") from error
    return UserText(f"{name} in memory", picture=cast("Picture", picture))


def _stranger(thing: object) -> str:
    """Say what was given in place of a text."""
    if may_be_picture(thing):
        return f"{described(thing)}; the model reads texts, and no pictures"
    return kind_of(thing)


def _is_pair(value: object) -> TypeGuard[tuple[str, str]]:
    return isinstance(value, tuple) and [type(part) for part in value] == [str, str]


def is_list_of_pairs(texts: object) -> bool:
    """Return whether an argument is a list that begins with a pair (text, query)."""
    return isinstance(texts, list) and bool(texts) and _is_pair(texts[0])


def _user_text(value: object, index: int, pairs: bool) -> UserText:
    if isinstance(value, UserText):
        return value
    if pairs:
        value = tuple(value) if isinstance(value, list) else value
        if not _is_pair(value):
            raise KindError(
                f"text {index}: expected a pair (text, query), because the model reads texts given a query; "
                f"got {kind_of(value)}"
            )
        return UserText(*value)
    if not isinstance(value, str):
        hint = "; this model reads single texts" if isinstance(value, tuple | list) else ""
        raise KindError(f"text {index}: expected a text, got {_stranger(value)}{hint}")
    return UserText(value)


def read(
    name: str, settings: DataSettings, model: Model, user_text: UserText
) -> tuple[Split, list[str]]:
    """Return a split of one text as the model reads it, cut or in windows, and notes on what was changed.

    Raises:
        InputError: a text without a word, or a query that is missing or not read. `name` is the model's.
    """
    if isinstance(model, ArraysModel):
        raise InputError(
            f"{name}: expected a run of a model that reads texts, got arrays; call their model itself"
        )
    if isinstance(model, OfPictures):
        for part in ("query", "target", "foil"):
            if getattr(user_text, part) is not None:
                raise InputError(
                    f"{name}: expected no {part}: it reads pictures; leave {part} out (--{part})"
                )
        return model.one_picture(user_text.text, user_text.picture)
    pairs = reads_pairs(model, settings)
    if pairs and user_text.query is None:
        raise InputError(
            f"{name}: expected a query too: a model of pairs reads a text given one (a question, a "
            "hypothesis); give it as query (--query)"
        )
    if user_text.query is not None and not pairs:
        raise InputError(
            f"{name}: expected no query: it reads single texts; leave query out (--query)"
        )
    if reads_bags(model, settings):
        _refuse_target(name, user_text)
        return user_text.split or one_bag(name, model, user_text.text), []
    if user_text.split is not None:
        split, notes = user_text.split, list[str]()
    else:
        split, notes = one_text(settings, model.classes, user_text.text, user_text.query)
    if isinstance(model, AttentionClassifier):
        _refuse_target(name, user_text)
        return split, notes
    from heedmap.huggingface import opening
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

    assert isinstance(model, TransformerClassifier)
    if not model.task.is_asked_of_words:
        _refuse_target(name, user_text)
    elif user_text.target is not None:
        asks = model.task.asks
        split = asked_text(user_text.text, user_text.target, user_text.foil, settings, asks)
    split, fit_notes = opening.fitted_text(model, split, model.settings.long_texts)
    return split, notes + fit_notes


def _refuse_target(name: str, user_text: UserText) -> None:
    if user_text.target is not None or user_text.foil is not None:
        raise InputError(
            f"{name}: expected no word to ask about: it classifies whole texts; leave out --target and --foil"
        )


def read_each(
    name: str, settings: DataSettings, model: Model, texts: Sequence[UserText]
) -> list[tuple[Split, list[str]]]:
    """Read each of the texts (see `read`); an error says which text it is about."""
    splits = []
    for index, user_text in enumerate(texts):
        try:
            splits.append(read(name, settings, model, user_text))
        except InputError as error:
            raise InputError(f"text {index}: {error}" if len(texts) > 1 else str(error)) from error
    return splits


def probabilities(
    name: str, settings: DataSettings, model: Model, texts: Sequence[UserText]
) -> NDArray[np.float64]:
    """Return each text's probabilities (B, C), or the one output: of one that is read in windows their mean.

    Texts that are cut are counted in a warning.
    """
    splits = read_each(name, settings, model, texts)
    inputs = [text for split, _ in splits for text in split.texts]
    text_of = np.repeat(np.arange(len(splits)), [len(split) for split, _ in splits])
    lengths = model.lengths(inputs)
    rows, parts = [], []
    for part in sorted_batches(lengths, model.tokens_at_once):
        batch = model.batch([inputs[i] for i in part], part.tolist())
        rows.append(batch.rows.cpu())
        with torch.no_grad(), running_model(model, "prediction"):
            parts.append(predictions(model.logits(batch)).cpu())
    shares = scatter_rows(rows, parts).numpy()
    _warn_of_cuts([notes for _, notes in splits])
    sums = np.zeros((len(splits), shares.shape[1]))
    np.add.at(sums, text_of, shares)
    return sums / np.bincount(text_of)[:, None]


def _warn_of_cuts(notes: Sequence[Sequence[str]]) -> None:
    cut = [
        f"text {index}: {note}"
        for index, text_notes in enumerate(notes)
        for note in text_notes
        if "cut to" in note
    ]
    if cut:
        remark(f"{len(cut)} of {len(notes)} texts are too long, the first of them {cut[0]}")
