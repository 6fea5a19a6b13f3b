"""Planted pairs: the query asks for one of two cues of the text, or says nothing.

A text has cues of two kinds, each of some class. The query has a word that asks for one kind, and the label is
the class of the asked cues: what decides in one pair is noise in another. Where the query says nothing, the
text has cues of one kind only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.by_hand import median_margin
from heedmap.calibration.construction import (
    Check,
    checked,
    is_taught,
    mass_on,
    the_rationale,
)
from heedmap.calibration.families import PlantedModel
from heedmap.calibration.plants import (
    Plant,
    class_of,
    cue,
    cues_of,
    is_cue,
    labels_of,
    number_of,
    other_words,
    place_words,
    with_other_cues,
)
from heedmap.calibration.trained import DEV, fit_plant, settings_of
from heedmap.data.batches import Batch, PairBatch
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.settings.models import ModelSettings
from heedmap.training.objective import seeded

ENCODER = "lstm"
KINDS = 2  # of cues
QUERY_WORDS = 4
MANY = 4000  # training texts: a model must learn which kind is asked for, beside the cues


def kind_of(plant: Plant, word: str) -> int:
    """Return the kind of a cue: half of a class's cues are of either kind."""
    return number_of(word) * KINDS // plant.cues


def numbers_of(plant: Plant, kind: int) -> range:
    """Return the numbers of the cues of a kind, which each class has."""
    size = plant.cues // KINDS
    return range(kind * size, (kind + 1) * size)


def asking(kind: int) -> str:
    """Return the query's word that asks for a kind of cue."""
    return f"ask{kind}"


def is_of_query(word: str) -> bool:
    """Whether a word is of queries."""
    return word.startswith(("ask", "query"))


def asked_in(query: Sequence[str]) -> int:
    """Return the kind that a query asks for; the first of one that says nothing."""
    return int(asking(1) in query)


def write_pairs(asks: bool, share: float, plant: Plant, count: int, part: str) -> Split:
    """Write pairs; `rationale` marks the cues that are asked for.

    Args:
        asks: whether the query asks for a kind of cue, and there are others too.
        share: in which share of the pairs the asked cues are of those that draw attention (see `is_attended`).
        plant: the settings.
        count: the number of pairs.
        part: names the generator.
    """
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    tokens, queries, rationale = [], [], []
    for label in labels.tolist():
        text = other_words(plant, rng)
        asked_kind = int(rng.integers(KINDS)) if asks else 0
        query = [f"query{w}" for w in rng.integers(20, size=QUERY_WORDS)]
        attended = bool(rng.random() < share)
        words = [_drawn(plant, asked_kind, label, attended, rng) for _ in range(plant.deciding)]
        if asks:
            query[int(rng.integers(QUERY_WORDS))] = asking(asked_kind)
            unasked_label = int(rng.integers(plant.classes))
            for _ in range(plant.deciding):
                words.append(
                    _drawn(plant, 1 - asked_kind, unasked_label, bool(rng.random() < share), rng)
                )
        place_words(text, words, rng)
        tokens.append(text)
        queries.append(query)
        rationale.append(
            np.array([is_cue(word) and kind_of(plant, word) == asked_kind for word in text])
        )
    keys = [f"{part}-{i}" for i in range(count)]
    return Split(keys, tokens, labels, rationale, queries)


def _drawn(plant: Plant, kind: int, label: int, attended: bool, rng: np.random.Generator) -> str:
    numbers = [k for k in numbers_of(plant, kind) if is_attended(plant, k) == attended]
    return cue(label, int(rng.choice(numbers)))


def is_attended(plant: Plant, number: int) -> bool:
    """Whether a cue is of those that draw attention in a partly right plant: half of each kind are."""
    return number % 2 == 0


def with_other_query(plant: Plant, split: Split) -> Split:
    """Let every query ask for the other kind of cue, whose class is the label then."""
    assert split.queries is not None
    exchange = {asking(kind): asking(1 - kind) for kind in range(KINDS)}
    queries = [[exchange.get(word, word) for word in query] for query in split.queries]
    rationale = [
        np.array([is_cue(word) for word in text]) & ~marks
        for text, marks in zip(split.tokens, the_rationale(plant, split), strict=True)
    ]
    labels = [
        class_of(next(word for word, marked in zip(text, marks, strict=True) if marked))
        for text, marks in zip(split.tokens, rationale, strict=True)
    ]
    return replace(split, queries=queries, rationale=rationale, labels=np.array(labels))


def with_other_classes(plant: Plant, split: Split) -> Split:
    """Replace the cues of every class by those of the next one, and the labels accordingly."""
    return replace(with_other_cues(plant, split), queries=split.queries)


class Drawings(nn.Module):
    """Scores of words and of the words after them, given which kind of cue is asked for.

    s_t = direct[q, w_t] + following[q, w_(t − 1)], where q is the kind.
    """

    direct: Tensor
    following: Tensor

    def __init__(self, scores: NDArray[np.float64], vocabulary: Vocabulary) -> None:
        super().__init__()
        self.register_buffer("direct", torch.from_numpy(scores[..., 0]).float())
        self.register_buffer("following", torch.from_numpy(scores[..., 1]).float())
        self.second = vocabulary.encode([asking(1)])[1]

    def forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Return the scores of a batch's words."""
        assert isinstance(batch, PairBatch)
        return self.of_words(batch.ids[:, 1:-1], batch.query_ids)

    def of_words(
        self, ids: Int[Tensor, "B T"], query_ids: Int[Tensor, "B Q"]
    ) -> Float[Tensor, "B T"]:
        """Return the scores of words by their numbers, given those of the query's words."""
        kind: Int[Tensor, "B 1"] = (query_ids == self.second).any(1, keepdim=True).long()
        return self.direct[kind, ids] + functional.pad(self.following[kind, ids], (1, 0))[:, :-1]


class PlantedPairs(PairClassifier):
    """A classifier of pairs whose scores are fixed, if `drawings` are given."""

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        drawings: Drawings | None,
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        self.drawings = drawings

    def scores(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Return the fixed scores, or the model's own."""
        if self.drawings is None:
            return super().scores(states, batch, query)
        scores: Tensor = self.drawings(batch)
        return scores


@dataclass(frozen=True, eq=False)
class Attention:
    """Where the attention is: a word's score is higher by the plant's sharpness where `draws` says so.

    `draws`: given the plant, a cue and the kind asked for, whether the cue draws attention. `to_next`: the word
    after it has it instead. `scattered`: words that are no cues have random scores, else nearly the same.
    """

    draws: Callable[[Plant, str, int], bool]
    to_next: bool = False
    scattered: bool = False

    def scores(self, plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """Return the scores, shape (kinds, V, 2)."""
        rng = plant.generator("scores")
        scores = np.zeros((KINDS, len(vocabulary), 2))
        noise = rng.uniform(0, 1, len(vocabulary))
        scores[..., 0] = noise * (plant.sharpness if self.scattered else 0.1)
        for i, word in enumerate(vocabulary.words, len(SPECIAL)):
            if not is_cue(word):
                continue
            scores[:, i, 0] *= not self.scattered
            for kind in range(KINDS):
                if self.draws(plant, word, kind):
                    # Among random scores a cue draws the attention if its own is far above them.
                    advantage = plant.sharpness * (2 if self.scattered else 1)
                    scores[kind, i, int(self.to_next)] += advantage
        return scores


def _asked(plant: Plant, word: str, kind: int) -> bool:
    return kind_of(plant, word) == kind


def _not_asked(plant: Plant, word: str, kind: int) -> bool:
    return kind_of(plant, word) != kind


def _asked_in_part(plant: Plant, word: str, kind: int) -> bool:
    return _asked(plant, word, kind) and is_attended(plant, number_of(word))


def draws_none(plant: Plant, word: str, kind: int) -> bool:
    """Let no cue draw the attention."""
    return False


ASKED = Attention(_asked)
NOT_ASKED = Attention(_not_asked)
NEXT = Attention(_asked, to_next=True)
SCATTERED = Attention(draws_none, scattered=True)
IN_PART = Attention(_asked_in_part, scattered=True)


def train(
    attention: Attention,
    asks: bool,
    share: float,
    checks: Sequence[Check],
    plant: Plant,
    corpus: Corpus | None = None,
) -> PlantedModel:
    """Train a model of pairs whose weights are fixed, or taught."""
    write = partial(write_pairs, asks, share, plant)
    training, dev, test = write(MANY, "train"), write(DEV, "dev"), write(plant.texts, "test")
    words = {w for s in (training, dev, test) for t in (*s.tokens, *(s.queries or ())) for w in t}
    asking_words = {asking(kind) for kind in range(KINDS)}
    vocabulary = Vocabulary(sorted(words | asking_words | set(cues_of(plant))))
    drawings = Drawings(attention.scores(plant, vocabulary), vocabulary)
    fixed = plant.score == "fixed"
    settings = settings_of(plant, ENCODER, "uniform" if fixed else plant.score)
    with seeded(plant.seed):
        model = PlantedPairs(
            settings,
            vocabulary,
            [str(c) for c in range(plant.classes)],
            drawings if fixed else None,
        )
    fit_plant(model, plant, training, dev, None if fixed else drawings)
    set_margin(model, test, plant.margin)
    all_checks: list[Check] = [*checks, is_taught(drawings)]
    return checked(all_checks, plant, model, dev, test)


def set_margin(model: PairClassifier, split: Split, margin: float) -> None:
    """Scale the logits, so that the median margin on some texts is this; no answer changes."""
    scale = margin / median_margin(model.logits(model.batch(split.texts, range(len(split)))))
    with torch.no_grad():
        model.decoder.outer.weight.mul_(scale)
        model.decoder.outer.bias.mul_(scale)


def the_others(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of the cues that are not asked for."""
    return [
        np.array([is_cue(word) for word in text]) & ~marks
        for text, marks in zip(split.tokens, the_rationale(plant, split), strict=True)
    ]


def is_on_in_part(plant: Plant, model: Model, dev: Split) -> str:
    """Check that the weight is on the asked cues where they draw attention, and not where they do not."""
    marks = the_rationale(plant, dev)
    mass = mass_on(model, dev, marks)
    attended = np.array(
        [
            is_attended(plant, number_of(text[int(m.argmax())]))
            for text, m in zip(dev.tokens, marks, strict=True)
        ]
    )
    on, off = mass[attended].mean(), mass[~attended].mean()
    return "" if on >= 0.5 and off <= 0.25 else f"mass {on:.2f} and {off:.2f} on the cues"
