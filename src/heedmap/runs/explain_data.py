"""Explain each instance of a file or a folder: texts, pairs, words that are asked about, pictures or bags."""

from collections import Counter
from pathlib import Path

from heedmap.data.bag_folder import unlabelled_bags
from heedmap.data.unlabelled import Unlabelled, read_unlabelled
from heedmap.data.unlabelled_words import read_unlabelled_words
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.report.explanation import Explanations
from heedmap.runs.explain import NO_DATA, given_pairs, opened
from heedmap.runs.explained import explained_each
from heedmap.runs.user_bags import bags_of, reads_bags
from heedmap.runs.user_texts import OfPictures, UserText, reads_pairs
from heedmap.settings.data import DataSettings
from heedmap.settings.models import UNLIMITED_WORDS
from heedmap.settings.run import RunSettings
from heedmap.terminal.output import remark


def explain_data(
    source: str,
    data: DataSettings,
    *,
    output: str | None = None,
    variant: str | None = None,
    device: str | None = None,
) -> tuple[list[str], Explanations]:
    """Explain what is in a file or a folder, as `heedmap.explain` explains each by itself.

    `data` says where it is and how it is read; what is left out is said in a warning.

    Returns:
        The key of each instance, and their explanations.

    Raises:
        InputError: as `heedmap.explain`, or data that are not what the model reads.
    """
    place, settings, model = opened(source, variant, device, output)
    instances = _read(data, settings, model)
    for note in instances.notes:
        remark(f"{data.source}: {note}")
    total = len(instances.texts) + instances.left_out.total()
    for reason, count in instances.left_out.items():
        remark(f"{data.source}: {count} of {total} {reason}: left out")
    if instances.queries is not None and settings.data.source == NO_DATA:
        settings = given_pairs(settings, model)
    texts = [UserText(text) for text in instances.texts]
    if instances.queries is not None:
        texts = [*map(UserText, instances.texts, instances.queries)]
    if instances.splits is not None:
        texts = [
            UserText(text, split=split)
            for text, split in zip(instances.texts, instances.splits, strict=True)
        ]
    return instances.keys, explained_each(place, settings, model, texts)


def _read(data: DataSettings, settings: RunSettings, model: Model) -> Unlabelled:
    """Return what the model is to read, by the kind of it."""
    of_files = isinstance(model, OfPictures) or reads_bags(model, settings.data)
    if of_files and (columns := [n for n in ("text", "query", "label", "id") if getattr(data, n)]):
        raise InputError(
            f"--{columns[0]}-column: expected no names of columns, since the model reads "
            f"{settings.nouns.instances}; leave it out"
        )
    if isinstance(model, OfPictures):
        return _pictures(Path(data.source))
    if isinstance(model, AttentionClassifier):
        if reads_bags(model, settings.data):
            return _bags(Path(data.source), model)
        return _texts(data, settings, model)
    from heedmap.huggingface.tasks import asking
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

    assert isinstance(model, TransformerClassifier)
    settings_of_words = asking(data, model.task)
    if settings_of_words.asks is None:
        return _texts(data, settings, model)
    return read_unlabelled_words(
        settings_of_words.model_copy(
            update={
                "raw": True,
                "max_tokens": UNLIMITED_WORDS,
                "tokenizer": settings.data.tokenizer,
            }
        )
    )


def _texts(data: DataSettings, settings: RunSettings, model: Model) -> Unlabelled:
    pairs = reads_pairs(model, settings.data)
    if data.label is not None:
        raise InputError(
            f"--label-column {data.label}: expected none, since labels of texts are not read; leave it out"
        )
    instances = read_unlabelled(data, pairs=pairs)
    if pairs and instances.queries is None:
        raise InputError(
            f"{data.source}: expected the column of the query too, because the model reads texts given one; "
            "name it with --query-column"
        )
    return instances


def _pictures(folder: Path) -> Unlabelled:
    from heedmap.data.pictures import unlabelled_pictures

    pictures, others = unlabelled_pictures(folder)
    left_out = Counter({"files are no pictures": others} if others else {})
    return Unlabelled([*pictures], [str(file) for file in pictures.values()], None, left_out, [])


def _bags(path: Path, model: AttentionClassifier) -> Unlabelled:
    vectors = unlabelled_bags(path.expanduser())
    names = [*vectors.bags]
    return Unlabelled(names, names, None, Counter(), [], bags_of(model, vectors, str(path)))
