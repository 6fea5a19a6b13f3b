"""Families on real texts: a cue is written into them, or their own labels are learned and the weights replaced.

The training texts of a corpus become those to learn from, its test texts those of the check and of the audit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from heedmap.calibration.construction import (
    MANY,
    Check,
    Construction,
    accuracy,
    after_the_rationale,
    answers,
    finish,
    is_not_above_chance,
    is_not_on,
    is_on,
    set_weights,
    train,
    trained_model,
)
from heedmap.calibration.cue_families import cue_construction
from heedmap.calibration.families import Choices, Family, Maker, PlantedModel, Truth
from heedmap.calibration.learned import REPLACEMENTS
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    LEAST_TEXTS,
    LONGEST_TEXT,
    OWN,
    UNIFORM,
    WITH_CONTEXT,
    WITHOUT_CONTEXT,
    WITHOUT_CUES,
    Design,
    Drawing,
    Plant,
    check_texts,
    long_enough,
    write_texts,
)
from heedmap.calibration.transformer_routes import BERT, FREE, OFF, Route, needs_the_rationale
from heedmap.calibration.transformer_routes import train as train_transformer
from heedmap.data.corpus import Corpus, Split

OWN_LABELS = 3000  # training texts, at most, of a corpus' own labels
SKILL = 0.15  # how far above the commonest class a model of these must be
LOST = 0.03  # accuracy that other weights may cost
SAME = 0.9  # least share of answers that other weights must leave


def texts_for(corpus: Corpus, part: str) -> Split:
    """Return the texts of a corpus for a part ("train", "dev", "test"), those that are long enough.

    For a check or an audit they are of the first split that has enough of them; of a small corpus that is the
    training split, into which other cues are written then.
    """
    audited = () if part == "train" else ("test", "dev")
    for name in audited:
        if name in corpus.splits and len(long_enough(corpus.splits[name])) >= LEAST_TEXTS:
            return corpus.splits[name].take(long_enough(corpus.splits[name]))
    return check_texts(corpus.splits["train"], f"{corpus.name}: train")


def write_cues(design: Design, corpus: Corpus, plant: Plant, count: int, part: str) -> Split:
    """Write cues into texts of a corpus, whose own labels then say nothing."""
    return write_texts(plant, count, part, design, texts_for(corpus, part))


def write_training(design: Design, corpus: Corpus, plant: Plant, count: int, part: str) -> Split:
    """Write cues into training texts but for some, whose labels are drawn: no class becomes the default."""
    written = write_cues(design, corpus, plant, count, part)
    if part != "train":
        return written
    rng = plant.generator("without cues")
    texts = texts_for(corpus, part).tokens
    without_cue = np.flatnonzero(rng.random(len(written)) < WITHOUT_CUES)
    tokens, labels = list(written.tokens), written.labels.copy()
    for i in without_cue.tolist():
        tokens[i] = texts[int(rng.integers(len(texts)))][:LONGEST_TEXT]
    labels[without_cue] = rng.integers(plant.classes, size=len(without_cue))
    return replace(written, tokens=tokens, labels=labels, rationale=None)


def write_own(corpus: Corpus, plant: Plant, count: int, part: str) -> Split:
    """Return texts of a corpus with its labels; those of the check and of the audit are of different texts."""
    texts = texts_for(corpus, part)
    order = plant.generator("train" if part == "train" else "test").permutation(len(texts))
    rows = order[-count:] if part == "dev" else order[:count]
    split = texts.take(rows.tolist())
    return replace(split, tokens=[text[:LONGEST_TEXT] for text in split.tokens], rationale=None)


def _with_cues(
    design: Design,
    construction: Construction,
    route: Route,
    plant: Plant,
    corpus: Corpus | None,
) -> PlantedModel:
    """Make a model of texts of the corpus with cues.

    It is trained, but for a wrong map without context: of cues with so little weight among so many words
    nothing is learned in seconds, so that model is set by hand.
    """
    assert corpus is not None
    written = replace(
        construction,
        write=partial(write_cues, design, corpus),
        write_training=partial(write_training, design, corpus),
        training=MANY,
    )
    if plant.encoder == BERT:
        return train_transformer(written, route, plant)
    if plant.encoder in WITHOUT_CONTEXT and design is not FAITHFUL:
        return set_weights(written, plant)
    return train(written, plant)


def _replaced(weights: str, plant: Plant, corpus: Corpus | None) -> PlantedModel:
    """Train a model on the labels of the corpus, then replace its weights."""
    assert corpus is not None
    plant = replace(plant, classes=len(corpus.classes))
    construction = Construction(
        write=partial(write_own, corpus), scores=None, checks=[], training=OWN_LABELS
    )
    model, dev, test = trained_model(construction, plant)
    learned, learned_accuracy = answers(model, dev), accuracy(model, dev)
    model.score = Drawing(REPLACEMENTS[weights](model, plant, dev))
    commonest = float(np.bincount(dev.labels).max() / len(dev))

    def is_as_good(plant: Plant, model: Any, dev: Split) -> str:
        replaced_accuracy = accuracy(model, dev)
        agreement = float((answers(model, dev) == learned).float().mean())
        if learned_accuracy < commonest + SKILL:
            return f"accuracy {learned_accuracy:.2f}, commonest class {commonest:.2f}"
        if replaced_accuracy < learned_accuracy - LOST:
            return f"accuracy {learned_accuracy:.2f}, then {replaced_accuracy:.2f}"
        return "" if agreement >= SAME else f"{agreement:.2f} of the answers stay"

    return finish(replace(construction, checks=[is_as_good]), plant, model, dev, test)


RECURRENT = ("lstm", "gru")
LEARNED_SCORES: Choices = {"score": ("fixed", "additive", "dot")}
FREE_SCORES: Choices = {"score": ("additive", "dot")}
SPARSE: Choices = {"normaliser": ("softmax", "softmax", "sparsemax", "entmax15")}
SHARP: Choices = {"sharpness": (4.0, 5.0, 6.0)}
NO_OPPOSING: Choices = {"opposing": (False,), "deciding": (1, 2)}
SCATTERED: Choices = {**NO_OPPOSING, "classes": (2, 2, 3)}
ON_BERT: Mapping[str, Choices] = {BERT: {"score": ("fixed",), "normaliser": ("softmax",)}}
SAYS_NOTHING = "The map is on words that say nothing of the cue."
WHY_RIGHT = "The cues make the answer, and the answer is read from where the weights are."


def _cue_family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    design: Design,
    checks: Sequence[Check],
    encoders: Sequence[str],
    choices: Choices,
    route: Route = FREE,
) -> Family:
    maker: Maker = partial(_with_cues, design, cue_construction(design, checks), route)
    makers = dict.fromkeys(encoders, maker)
    return Family(name, truth, recipe, reason, makers, choices, ON_BERT, on_corpora=True)


def _replacing(weights: str, replacement: str, **choices: Sequence[object]) -> Family:
    maker: Maker = partial(_replaced, weights)
    return Family(
        name=f"corpus' own labels, then {weights} weights",
        truth="wrong",
        recipe=f"Model and weights are learned on a corpus. Then the weights are replaced by {replacement}; "
        "models whose accuracy or answers that changes are left out.",
        reason="The model answers as it did before, and the map does not know by which words.",
        # Without context, or with that of a few words, other weights do make another answer.
        makers=dict.fromkeys(RECURRENT, maker),
        # The corpus has its own classes, and no cues.
        choices={**FREE_SCORES, **SPARSE, "classes": (2,), "deciding": (1,), **choices},
        on_corpora=True,
    )


FAMILIES = (
    _cue_family(
        "corpus, cue attended",
        "right",
        "Cues are written into texts of a corpus, and draw the attention.",
        WHY_RIGHT,
        FAITHFUL,
        [is_on("the cues")],
        OWN,
        {**LEARNED_SCORES, **SPARSE, **SHARP},
    ),
    _cue_family(
        "corpus, cue attended by a transformer",
        "right",
        "Cues are written into texts of a corpus, and draw the last layer's attention. The first one moves "
        "nothing from word to word.",
        WHY_RIGHT,
        FAITHFUL,
        [is_on("the cues"), needs_the_rationale],
        [BERT],
        SHARP,
        OFF,
    ),
    _cue_family(
        "corpus, random words attended",
        "wrong",
        "Cues are written into texts of a corpus. The weights are random, one score per word; the cues decide "
        "through other states or, without context, have large values, set by hand.",
        SAYS_NOTHING,
        IRRELEVANT,
        [is_not_above_chance("the cues")],
        (*OWN, BERT),
        {**SCATTERED, "sharpness": (1.0, 2.0, 3.0)},
    ),
    _cue_family(
        "corpus, word behind the cue attended",
        "wrong",
        "Cues are written into texts of a corpus. The words behind them draw the attention, and their states "
        "hold the evidence.",
        SAYS_NOTHING,
        DECEPTIVE,
        [is_on("the words behind the cues", after_the_rationale, 0.4), is_not_on("the cues")],
        (*WITH_CONTEXT, BERT),
        {**LEARNED_SCORES, **SPARSE, **SCATTERED, "sharpness": (5.0, 6.0, 7.0)},
    ),
    _cue_family(
        "corpus, uniform weights",
        "wrong",
        "Cues are written into texts of a corpus. All words have the same weight. Without context the words' "
        "values are set by hand.",
        "The map highlights nothing, and the cues make the answer.",
        UNIFORM,
        [],
        (*OWN, BERT),
        SCATTERED,
    ),
    _replacing("uniform", "the same weight for all words"),
    _replacing("random", "random scores of words", sharpness=(1.0, 2.0, 4.0, 8.0)),
    _replacing("shuffled", "the words' mean scores, shuffled among the words"),
)
