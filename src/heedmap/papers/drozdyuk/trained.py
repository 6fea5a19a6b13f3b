"""A classifier that the user has trained, instead of the small transformer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heedmap.data.corpus import Corpus, Split
from heedmap.data.matching import match
from heedmap.data.readers import SPLITS
from heedmap.errors import InputError
from heedmap.huggingface.attention_hook import NAME
from heedmap.papers.drozdyuk.model import ProbedClassifier, Texts


def load(model: str, classes: Sequence[str]) -> tuple[ProbedClassifier, Any]:
    """Load a trained classifier and its tokenizer."""
    from heedmap.huggingface.loading import load_classifier

    loaded, tokenizer = load_classifier(model)
    return subject_of(loaded, classes), tokenizer


def subject_of(model: Any, classes: Sequence[str]) -> ProbedClassifier:
    """Prepare a trained classifier: attention by the hook, frozen, in eval mode.

    Raises:
        InputError: it has another number of classes.
    """
    if model.config.num_labels != len(classes):
        raise InputError(
            f"expected a classifier of {len(classes)} classes ({', '.join(classes)}), got one of "
            f"{model.config.num_labels}; choose another --model or --data"
        )
    model.eval().requires_grad_(False)
    model.set_attn_implementation(NAME)
    return ProbedClassifier(model, "softmax", len(classes))


def tokenised(
    corpus: Corpus, splits: Mapping[str, Split], model: Any, tokenizer: Any, max_length: int
) -> list[Texts]:
    """Encode train, dev and test in a trained model's own tokens, labels in the order of its classes.

    The corpus is as it was written (`as_written`): its tokens joined are the text.

    Raises:
        InputError: its labels are neither the model's classes nor their numbers.
    """
    from heedmap.huggingface.class_names import class_names
    from heedmap.huggingface.limits import longest

    number = match(
        corpus.settings.source,
        corpus.classes,
        class_names(model.config.id2label, "the model"),
        remedy="change the labels in the data to these names or numbers, or choose another model",
    ).number
    order = np.array([number[name] for name in corpus.classes], dtype=np.int64)
    limit = min(max_length, longest(model, tokenizer))
    texts = []
    for split in (splits[name] for name in SPLITS):
        joined = ["".join(tokens) for tokens in split.tokens]
        encoded = tokenizer(joined, truncation=True, max_length=limit)["input_ids"]
        ids = [np.array(text, dtype=np.int64) for text in encoded]
        texts.append(Texts(ids, order[split.labels], int(tokenizer.pad_token_id or 0)))
    return texts
