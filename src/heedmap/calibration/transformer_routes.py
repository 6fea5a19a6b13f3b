"""Make transformers of a construction, and say by which way words reach their answer.

Of a trained transformer the way is only known where the construction leaves no other, so where a map is to be
right the first layer's attention does nothing, or is taught to leave every word alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.by_hand import Way, scores_by_values, values_for, values_of
from heedmap.calibration.construction import (
    MANY,
    Check,
    Construction,
    as_read,
    checked,
    is_on,
    the_rationale,
)
from heedmap.calibration.cue_families import cue_construction
from heedmap.calibration.families import Maker, PlantedModel
from heedmap.calibration.hand_layers import Gathered
from heedmap.calibration.plants import (
    FAITHFUL,
    PICTURES_BY_HAND,
    PROPORTIONAL,
    VIT,
    VIT_ON_DIGITS,
    Drawing,
    Plant,
    scores_of,
)
from heedmap.calibration.trained import DEV
from heedmap.calibration.trained_transformer import Lesson, Lower, train_transformer
from heedmap.calibration.trained_vision import train_vision
from heedmap.calibration.transformer import set_margin, transformer_by_hand
from heedmap.calibration.vision_by_hand import vision_by_hand
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.models.trace import Model

BY_HAND, BERT = "transformer by hand", "bert"
ABOVE_CHANCE = 0.2  # of an accuracy, at most, where the answer is to be out of reach


Scores = Callable[
    [Plant, Vocabulary], NDArray[np.float64]
]  # of words and the words after them, (V, 2)


@dataclass(frozen=True)
class Route:
    """By which way words reach the answer, apart from the states of the words that are attended to.

    `gathered`: where the first layer takes what is spread, if the model is set by hand. `lower`: what the
    first layer's attention does, if it is trained. `mark`: a mark whose state gathers the evidence, and which
    has half of the last layer's weight. `bypassed`: nothing depends on the last layer's weights. `evidence`:
    scores of the words that states gather in the first layer; those of cues, if not given.
    """

    gathered: Gathered = "everywhere"
    lower: Lower = "free"
    mark: str = ""
    bypassed: bool = False
    evidence: Scores | None = None


FREE = Route()
OFF = Route(lower="off")
ITSELF = Route(lower="itself")
BY_SEP = Route("[SEP]", "gathers", "[SEP]")
BY_CLS = Route("[CLS]", "gathers", "[CLS]")
PAST = Route("read-out", bypassed=True)


def makers(
    construction: Construction, route: Route, encoders: Sequence[str] = (BY_HAND, BERT)
) -> Mapping[str, Maker]:
    """Return the makers of some encoders."""
    ways: Mapping[str, Callable[..., PlantedModel]] = {
        BY_HAND: set_weights,
        BERT: train,
        PICTURES_BY_HAND: partial(set_weights, by_hand=vision_by_hand),
        VIT: partial(train, trained=train_vision),
        VIT_ON_DIGITS: partial(train, trained=train_vision),
    }
    return {encoder: partial(ways[encoder], construction, route) for encoder in encoders}


def set_weights(
    construction: Construction,
    route: Route,
    plant: Plant,
    corpus: Corpus | None = None,
    by_hand: Callable[..., TransformerClassifier] = transformer_by_hand,
) -> PlantedModel:
    """Make a transformer by hand, of texts or of pictures."""
    assert construction.effects is not None
    assert construction.scores is not None
    dev, test = written(construction, plant)
    vocabulary = vocabulary_of(construction, plant, dev, test)
    scores = construction.scores(plant, vocabulary)
    way: Callable[[str], Way] = partial(construction.way, plant)
    effects = construction.effects(plant, vocabulary)
    values = (
        values_for(plant, dev, vocabulary, effects, scores, way)
        if construction.divided
        else np.stack([effects, *[np.zeros_like(effects)] * 2], axis=1)
    )
    marks = {route.mark: _as_much_as_all_words(dev, vocabulary, scores)} if route.mark else {}
    model = by_hand(plant, dev, vocabulary, values, scores, route.gathered, marks)
    return finish(construction.checks, plant, model, dev, test)


def train(
    construction: Construction,
    route: Route,
    plant: Plant,
    corpus: Corpus | None = None,
    trained: Callable[..., TransformerClassifier] = train_transformer,
) -> PlantedModel:
    """Train a transformer of texts or of pictures, and give it the plant's margin."""
    assert construction.scores is not None
    write = construction.write_training or construction.write
    training = write(plant, MANY if plant.classes >= 10 else construction.training, "train")
    dev, test = written(construction, plant)
    vocabulary = vocabulary_of(construction, plant, training, dev, test)
    weights = Drawing(construction.scores(plant, vocabulary))
    evidence = route.evidence or cue_scores
    cues = Drawing(evidence(plant, vocabulary))
    lesson = Lesson(weights, route.lower, route.mark, cues, route.bypassed)
    selection = dev if construction.write_training is None else write(plant, DEV, "selection")
    model = trained(plant, vocabulary, training, selection, lesson)
    return finish(construction.checks, plant, model, dev, test)


def cue_scores(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return scores by which the cues draw the attention."""
    return scores_of(plant, FAITHFUL, vocabulary)


def finish(
    checks: Sequence[Check], plant: Plant, model: TransformerClassifier, dev: Split, test: Split
) -> PlantedModel:
    """Give a model the plant's margin, and check it."""
    audited = as_read(model, test)
    set_margin(model, audited, plant.margin)
    return checked(checks, plant, model, dev, audited)


def written(construction: Construction, plant: Plant) -> tuple[Split, Split]:
    """Return the texts to check a model on, and those of the audit."""
    return construction.write(plant, DEV, "dev"), construction.write(plant, plant.texts, "test")


def vocabulary_of(construction: Construction, plant: Plant, *splits: Split) -> Vocabulary:
    """Return the words of some texts, and those of texts that are changed."""
    words = {word for split in splits for text in split.tokens for word in text}
    return Vocabulary(sorted(words | set(construction.words(plant))))


def _as_much_as_all_words(
    split: Split, vocabulary: Vocabulary, scores: NDArray[np.float64]
) -> float:
    """Return the score by which a mark has about as much weight as all words together."""
    drawing = Drawing(scores)
    ids = [torch.from_numpy(vocabulary.encode(text)[1:-1])[None] for text in split.tokens]
    return float(np.mean([float(drawing(text_ids).logsumexp(-1)) for text_ids in ids]))


def spread_way(plant: Plant, word: str) -> Way:
    """Return the way of words whose effects are in all states."""
    return "spread"


# What is checked.


def needs_the_rationale(plant: Plant, model: Model, dev: Split) -> str:
    """Check that the labels cannot be told from the states of other words, nor from that of [CLS]."""
    assert isinstance(model, TransformerClassifier)
    trace = model.trace(model.batch(as_read(model, dev).texts, range(len(dev))))
    assert trace.words is not None
    decides = torch.zeros_like(trace.mask)
    for row, marks in enumerate(the_rationale(plant, dev)):
        decides[row, : len(marks)] = torch.from_numpy(marks)
    is_word = trace.words >= 0
    of_word = decides.gather(1, trace.words.clamp(min=0)) & is_word
    is_cls = torch.zeros_like(is_word)
    is_cls[:, 0] = True
    for name, rows in (("other words", is_word & ~of_word), ("[CLS]", is_cls)):
        share = _accuracy_from(model, dev, rows)
        if share > 1 / plant.classes + ABOVE_CHANCE:
            return f"accuracy {share:.2f} from {name}"
    return ""


def _accuracy_from(model: TransformerClassifier, dev: Split, rows: Tensor) -> float:
    """Return the accuracy if the last layer attends to some positions alone, to all of them alike."""
    trace = model.trace(model.batch(as_read(model, dev).texts, range(len(dev))))
    weights: Float[Tensor, "B P"] = rows.float() / rows.sum(1, keepdim=True)
    imposed = weights[None, :, None].expand(1, *trace.attention.shape)
    predicted = model.predict(trace, imposed)[0].argmax(-1)
    return float((predicted.numpy() == dev.labels).mean())


def is_on_mark(mark: str) -> Check:
    """Check that a mark has at least a quarter of the last layer's weight, in the mean over texts and heads."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        trace = model.trace(model.batch(as_read(model, dev).texts, range(len(dev))))
        assert trace.words is not None
        place = 0 if mark == "[CLS]" else (trace.words >= -1).sum(1) - 1
        rows = trace.attention.mean(1)
        mass = float(rows[torch.arange(len(rows)), place].mean())
        return "" if mass >= 0.25 else f"mass {mass:.2f} on {mark}"

    return check


def weights_by_value(
    plant: Plant,
    corpus: Corpus | None = None,
    by_hand: Callable[..., TransformerClassifier] = transformer_by_hand,
) -> PlantedModel:
    """Make a transformer by hand whose weights are the sizes of its words' values."""
    construction = cue_construction(PROPORTIONAL, [is_on("the cues")])
    dev, test = written(construction, plant)
    vocabulary = vocabulary_of(construction, plant, dev, test)
    values = values_of(plant, PROPORTIONAL, dev, vocabulary)
    model = by_hand(plant, dev, vocabulary, values, scores_by_values(values))
    return finish(construction.checks, plant, model, dev, test)
