"""A model before its first step: vocabulary, initial weights, pretrained vectors, fixed scores."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import torch

from heedmap.data.corpus import Corpus
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.vocabulary import Vocabulary, read_vectors, vectors_hash
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.classifier import Classifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.models.scores import Lexical
from heedmap.settings.models import AnyModelSettings, ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal.output import remark
from heedmap.training.objective import seeded

# Bytes per weight: itself, its gradient, three numbers of the optimizer, its value in the best epoch.
TRAINED = 6 * 4


M = TypeVar("M", bound=Classifier)


def kind_for(corpus: Corpus, model: AnyModelSettings) -> type[AttentionClassifier]:
    """Return the attention classifier for single texts, for pairs, or for texts of sentences.

    Raises:
        InputError: pairs of sentences, or a map per class of either, or of words' own scores.
    """
    if isinstance(model, ModelSettings) and model.maps == "per-class":
        if corpus.sentences or corpus.pairs or model.score == "log_odds":
            raise InputError(
                "--maps per-class: expected bags or single texts of words, and a score that is learned, got "
                f"{'pairs' if corpus.pairs else 'sentences' if corpus.sentences else 'log_odds'}; leave it out"
            )
        return PerClassClassifier
    if corpus.sentences and corpus.pairs:
        raise InputError(
            f"{corpus.settings.source}: expected single texts for --tokenizer sentences, got pairs of texts; "
            "choose words or spaces"
        )
    if corpus.sentences:
        return HierarchicalClassifier
    return PairClassifier if corpus.pairs else TextClassifier


def init_model(
    corpus: Corpus, settings: RunSettings, kind: type[M]
) -> tuple[M, RunSettings, int | None]:
    """Make a model for a corpus by the settings; log-odds scores need single texts of two classes.

    Returns:
        The model, the settings with the vectors' size, and how many words had a vector (None without a
        file of them).

    Raises:
        InputError: vectors that cannot be read or have changed, or a corpus without log-odds.
    """
    assert isinstance(settings.train, TrainSettings)
    split = corpus.splits["train"]
    answers = corpus.classes if split.allowed is not None else []
    vocabulary = (
        Vocabulary.build(corpus.words("train"), settings.train.min_df, answers)
        if corpus.vectors is None
        else ItemVocabulary(corpus.vectors)
    )
    if corpus.vectors is None and len(vocabulary.words) == len(set(answers)):
        remark(
            f"no word is in {settings.train.min_df} training texts or more (--min-df): all are read as unknown"
        )
    if settings.train.vectors is None:
        model, with_vector = build_model(settings, vocabulary, corpus.classes, kind), None
    else:
        path, expected = Path(settings.train.vectors), settings.train.vectors_hash
        if expected is not None and vectors_hash(path) != expected:
            raise InputError(
                f"{path}: expected the vectors that the run was made with (hash {expected}), found others"
            )
        matrix, with_vector = read_vectors(path, vocabulary)
        size = {"embedding_size": matrix.shape[1]}
        settings = settings.model_copy(update={"model": settings.model.model_copy(update=size)})
        model = build_model(settings, vocabulary, corpus.classes, kind)
        with torch.no_grad():
            for embedding in model.embeddings():
                embedding.weight.copy_(torch.from_numpy(matrix))
    assert isinstance(settings.model, ModelSettings)
    if settings.model.score == "log_odds":
        from heedmap.training.log_odds import fit_log_odds

        assert isinstance(model, AttentionClassifier)
        assert isinstance(model.score, Lexical)
        model.score.set(fit_log_odds(corpus, vocabulary).coefficients)
    return model, settings, with_vector


def vocabulary_of(corpus: Corpus, words: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of a trained model: its words, or the items of a corpus of bags."""
    return Vocabulary(words) if corpus.vectors is None else ItemVocabulary(corpus.vectors)


def build_model(
    settings: RunSettings,
    vocabulary: Vocabulary,
    classes: Sequence[str],
    kind: type[M],
) -> M:
    """Draw random weights by the seed; the global generator is left unchanged.

    Raises:
        InputError: training would need more memory than this machine has.
    """
    assert isinstance(settings.model, ModelSettings)
    assert isinstance(settings.train, TrainSettings)
    with torch.device("meta"):  # shapes only
        shapes = kind(settings.model, vocabulary, classes).parameters()
        needed = TRAINED * sum(parameter.numel() for parameter in shapes)
    if hasattr(os, "sysconf") and needed > (
        memory := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ):
        raise InputError(
            f"--embedding-size {settings.model.embedding_size}, --hidden-size {settings.model.hidden_size}: "
            f"training this model takes {needed / 2**30:.0f} GB, and the machine has {memory / 2**30:.0f}; "
            "choose smaller ones"
        )
    with seeded(settings.train.seed):
        return kind(settings.model, vocabulary, classes)
