"""Bags of vectors that a user gives a run's model to read, by their files, without a corpus."""

from pathlib import Path

import numpy as np

from heedmap.data.bag_folder import unlabelled_bags
from heedmap.data.corpus import Split
from heedmap.data.item_vectors import ItemVectors
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.errors import InputError
from heedmap.files.naming import is_there
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.stored_embedding import StoredEmbedding
from heedmap.models.trace import Model
from heedmap.nouns import BAGS
from heedmap.settings.data import DataSettings


def reads_bags(model: Model, settings: DataSettings) -> bool:
    """Return whether a run's model reads bags of vectors."""
    return settings.nouns == BAGS or isinstance(getattr(model, "embedding", None), StoredEmbedding)


def one_bag(name: str, model: Model, path: str) -> Split:
    """Return a split of one bag by its file, which the model looks up beside those that it knows.

    Raises:
        InputError: no such file, no bag, or vectors of another size than the model reads. `name` is its.
    """
    if not isinstance(model, AttentionClassifier):
        raise InputError(
            f"{name}: expected a run of a model that heedmap trained, got a module that reads bags of vectors; "
            "the report of its audit shows each bag"
        )
    file = Path(path).expanduser()
    if not (is_there(path) and file.is_file()):
        raise InputError(
            f"{path:.200}: expected the file of a bag, since the model reads bags of vectors; it is not there"
        )
    (split,) = bags_of(model, unlabelled_bags(file), path)
    return split


def bags_of(model: AttentionClassifier, vectors: ItemVectors, place: str) -> list[Split]:
    """Return a split of each of some bags, which the model looks up beside those that it knows.

    Raises:
        InputError: vectors of another size than the model reads, or that are no finite numbers.
    """
    width = model.embedding.embedding_dim
    if vectors.width != width:
        raise InputError(
            f"{place}: expected vectors of {width} numbers, as the model reads, got {vectors.width}; give "
            "those of the encoder whose vectors it was trained on"
        )
    known_bags = (
        model.vocabulary.vectors.bags if isinstance(model.vocabulary, ItemVocabulary) else {}
    )
    items = ItemVectors({**known_bags, **vectors.bags}, width, in_memory=vectors.in_memory)
    names = [items.names(bag) for bag in vectors.bags]
    items.check(of_bag[0] for of_bag in names)
    model.look_up(ItemVocabulary(items))
    label = np.zeros(1, dtype=np.int64)
    return [
        Split([bag], [of_bag], label, vectors=items)
        for bag, of_bag in zip(vectors.bags, names, strict=True)
    ]
