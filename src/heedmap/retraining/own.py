"""Variants of a model that heedmap trained from scratch."""

from dataclasses import replace

import numpy as np
from safetensors.torch import load, load_file

from heedmap.data.batches import Guided, Ragged
from heedmap.data.corpus import Split
from heedmap.data.marks import marks_of
from heedmap.experiments.variants import Guide, Variant
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.retraining.adversary import AdversaryObjective, Target
from heedmap.retraining.base import Base, Prepared
from heedmap.retraining.deception import DeceptiveObjective, read_blocked
from heedmap.retraining.guides import GuideModel, guided_model
from heedmap.retraining.reading import read
from heedmap.settings.models import ModelSettings
from heedmap.settings.retraining import GuideSettings, GuideWeights
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.initialisation import build_model, init_model, kind_for, vocabulary_of
from heedmap.training.objective import Objective


def base_model(base: Base) -> AttentionClassifier:
    """Build the run's model."""
    kind = kind_for(base.corpus, base.settings.model)
    model = build_model(
        base.settings, vocabulary_of(base.corpus, base.words), base.corpus.classes, kind
    )
    model.load_state_dict(load(base.weights))
    return model.eval().requires_grad_(False)


def settings_of(variant: Variant, base: Base) -> RunSettings:
    """Return the settings of a variant's training."""
    model, train = base.settings.model, base.settings.train
    assert isinstance(model, ModelSettings)
    assert isinstance(train, TrainSettings)
    changes = {
        name: value
        for name in ("encoder", "score", "normaliser")
        if (value := getattr(variant, name))
    }
    return base.settings.model_copy(
        update={
            "model": model.model_copy(update=changes),
            "train": train.model_copy(update={"seed": variant.seed}),
        }
    )


def prepare(variant: Variant, base: Base) -> Prepared:
    """Return a variant's training, and how the audited texts are read by what it makes."""
    settings, splits = settings_of(variant, base), base.splits_of(variant)
    assert isinstance(settings.train, TrainSettings)
    parts = dict(zip(("train", "dev"), splits, strict=False))
    corpus = replace(base.corpus, splits={**base.corpus.splits, **parts})
    model, settings, _ = init_model(corpus, settings, kind_for(corpus, settings.model))
    assert isinstance(settings.train, TrainSettings)
    train, dev, test = (model.encoded(split.texts, split.labels) for split in splits)
    if variant.guide is not None:
        guides = [_weights_of(variant, split, base) for split in splits]
        train, dev, test = (
            Guided(part, weights) for part, weights in zip((train, dev, test), guides, strict=True)
        )
    if variant.adversary is not None:
        trained_base = base_model(base)
        targets = [
            Target(*read(trained_base, trained_base.encoded(s.texts, s.labels))) for s in splits[:2]
        ]
        objective: Objective = AdversaryObjective(
            model, train, dev, settings.train, variant.adversary, (targets[0], targets[1])
        )
    elif variant.penalty is not None and not variant.penalty.removed:
        marks = [marks_of(split, variant.penalty.words) for split in splits[:2]]
        accuracy = base.accuracy_without_penalty(variant)
        objective = DeceptiveObjective(
            model, train, dev, settings.train, variant.penalty, (marks[0], marks[1]), accuracy
        )
        test_marks = marks_of(splits[2], variant.penalty.words)
        return Prepared(
            objective,
            lambda: read(model.cpu(), test),
            lambda: read_blocked(model.cpu(), test, test_marks),
        )
    else:
        objective = AttentionObjective(model, train, dev, settings.train)
    return Prepared(objective, lambda: read(model.cpu(), test))


def _weights_of(variant: Variant, split: Split, base: Base) -> Ragged:
    """Return the weights that guide a variant."""
    if variant.guide == "uniform":
        return Ragged([np.ones(len(text)) / max(1, len(text)) for text in split.texts])
    return _guide(variant, base).of_split(split)


def _guide(variant: Variant, base: Base) -> GuideModel:
    """Return what guides a variant: the run's model or importances, or the map of another variant."""
    settings = reading_settings(variant, base).guide
    assert settings is not None
    guide = variant.guide
    model = trained_model(guide, base) if isinstance(guide, Variant) else base_model(base)
    assert isinstance(model, TextClassifier)
    return GuideModel(model, settings.weights)


def reading_settings(variant: Variant, base: Base) -> RunSettings:
    """Return the settings by which a trained variant reads: one that was guided has no score of its own.

    Under the score `uniform` every text has the weights of the guide of this name.
    """
    settings, guide = settings_of(variant, base), variant.guide
    if guide is None:
        return settings
    assert isinstance(settings.model, ModelSettings)
    model = settings.model.model_copy(update={"score": "uniform"})
    return settings.model_copy(update={"model": model, "guide": _guide_settings(guide, base)})


def _guide_settings(guide: Guide | Variant, base: Base) -> GuideSettings | None:
    """Return what a guide's weights are, and the settings of the model that gives them."""
    if guide == "uniform":
        return None
    weights: GuideWeights = "attention"
    if isinstance(guide, Variant):
        model = settings_of(guide, base).model
    else:
        model, weights = base.settings.model, "attention" if guide == "base" else guide
    assert isinstance(model, ModelSettings)
    return GuideSettings(weights=weights, model=model)


def trained_model(variant: Variant, base: Base) -> AttentionClassifier:
    """Return a variant that is trained already; one that was guided reads with its guide's weights."""
    settings, splits = reading_settings(variant, base), base.splits_of(variant)
    corpus = replace(base.corpus, splits={**base.corpus.splits, "train": splits[0]})
    model, _, _ = init_model(corpus, settings, kind_for(corpus, settings.model))
    tensors = load_file(base.path(variant).with_suffix(".safetensors"))
    weights = {name.removeprefix("model."): value for name, value in tensors.items()}
    if variant.guide is not None:  # its own score was never trained
        weights = {name: value for name, value in weights.items() if not name.startswith("score.")}
    if settings.guide is not None:
        guide = _guide(variant, base).state_dict()
        weights |= {f"guide.{name}": value for name, value in guide.items()}
        model = guided_model(settings, model.vocabulary, model.classes)
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False)
