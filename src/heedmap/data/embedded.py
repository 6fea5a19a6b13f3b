"""Corpora that come with heedmap, by their names: texts that are made by rules, and bags of vectors."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from heedmap.data.babi_rows import generated_babi
from heedmap.data.biographies import AGREEING, UNRELATED, biographies
from heedmap.data.digit_bags import digit_bags
from heedmap.data.readers import dialect_of, refuse_columns, refuse_dialect
from heedmap.data.reviews import reviews
from heedmap.data.rows import LabelledTexts, Parts, Row
from heedmap.data.tokens import spaced
from heedmap.data.toy_bags import RULES, toy_bags
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings

STORIES = ("babi_qa1", "babi_qa2", "babi_qa3")
BIOGRAPHIES = {"biographies-gender": "gender", "biographies-occupation": "occupation"}
EMBEDDED_BAGS = ("digit-bags", *RULES)
EMBEDDED_PICTURES = ("digit-pictures",)
EMBEDDED = (
    "reviews", "reviews-stars", *BIOGRAPHIES, *STORIES, *EMBEDDED_BAGS, *EMBEDDED_PICTURES,
)  # fmt: skip


def embedded_texts(settings: DataSettings) -> LabelledTexts:
    """Return the texts or bags of an embedded corpus.

    Raises:
        InputError: options of files, or for a transformer what is no single text; pictures, which a model cuts
            into patches (see `heedmap.huggingface.picture_classifier`).
    """
    refuse_columns(settings, f"the embedded corpus {settings.source}")
    refuse_dialect(settings.source, **dialect_of(settings))
    if settings.source in EMBEDDED_PICTURES and settings.training:
        raise InputError(
            f"{settings.source}: pictures, on which heedmap audits models and trains none; train with "
            "transformers, then `heedmap audit --model`"
        )
    if settings.source in EMBEDDED_PICTURES:
        raise InputError(
            f"{settings.source}: expected a classifier of pictures with them: give it as --model (ViT, DeiT or "
            "DINOv2)"
        )
    if settings.source not in EMBEDDED_BAGS:
        return LabelledTexts(_embedded(settings))
    if settings.raw:
        raise InputError(f"{settings.source}: bags of vectors; a transformer reads texts")
    return digit_bags() if settings.source == "digit-bags" else toy_bags(settings.source)


def _embedded(settings: DataSettings) -> Parts:
    if settings.dataset not in (None, settings.source):
        raise InputError(
            f"--dataset {settings.dataset}: {settings.source} is an embedded corpus; give the folder or file "
            "of the data set as --data, or leave it out"
        )
    if settings.source.startswith("babi"):
        if settings.raw:
            raise InputError(
                f"{settings.source}: questions about stories; a transformer reads single texts"
            )
        return generated_babi(int(settings.source[-1]), settings.seed)
    # The texts are always the same ones; the seed only draws the split.
    prefix = settings.source.split("-")[0]
    return {
        "all": [
            _embedded_row(f"{prefix}-{i}", *text, settings)
            for i, text in enumerate(_generated(settings.source))
        ]
    }


def _generated(name: str) -> Iterable[tuple[tuple[str, ...], str, tuple[bool, ...] | None]]:
    """Yield of each text of a generated corpus the tokens, the label, and which tokens decide it."""
    if name in BIOGRAPHIES:
        label = BIOGRAPHIES[name]
        agreeing = UNRELATED if label == "gender" else AGREEING
        for person in biographies(agreeing=agreeing):
            # An occupation is decided by no words that could be marked.
            marks = person.gendered if label == "gender" else None
            yield person.tokens, getattr(person, label), marks
        return
    for review in reviews(stars=name == "reviews-stars"):
        yield review.tokens, review.label, review.rationale


def _embedded_row(
    key: str,
    words: Sequence[str],
    label: str,
    marks: Sequence[bool] | None,
    settings: DataSettings,
) -> Row:
    """Make the row of a text; a sentence is in the rationale if a word of it is."""
    tokens = list(words)
    rationale = None if marks is None else np.array(marks, dtype=bool)
    if settings.tokenizer == "sentences":
        starts = [0, *(i + 1 for i, token in enumerate(tokens[:-1]) if token in ".!?")]
        spans = [*pairwise([*starts, len(tokens)])]
        tokens = [" ".join(tokens[start:end]) for start, end in spans]
        if rationale is not None:
            rationale = np.array([rationale[start:end].any() for start, end in spans])
    return Row(key, spaced(tokens) if settings.raw else tokens, label, rationale)
