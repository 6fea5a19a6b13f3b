"""Plants: the settings of one planted model, and the texts with deciding words that most of them read.

In a planted text some words, the *cues*, decide the label; all others are noise. A `Design` says where the
attention is and through which states the cues reach the answer:

| kind | the attention is on | the answer rests on the cues |
|---|---|---|
| faithful | the cues | through their own states |
| proportional | all words, by the size of their value | through their own states |
| irrelevant | random words | through all states |
| deceptive | the words after the cues | through the states after theirs |
| reversed | all words but the cues | through their own states |
| uniform | all words alike | through their own states |
| partly | in a share ρ of the texts the cues, else random words | through their own states, else all |

An encoder without context has no states but the words' own: there the cues of a wrong map have little weight
and large values.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedmap.data.batches import Batch
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.errors import InputError
from heedmap.models.scores import Lexical

Kind = Literal[
    "faithful", "proportional", "irrelevant", "deceptive", "reversed", "uniform", "partly"
]

WITHOUT_CONTEXT = ("none", "average")  # encoders whose states are of one word each
WITH_CONTEXT = ("lstm", "gru", "cnn", "small-cnn")
OWN = (*WITHOUT_CONTEXT, *WITH_CONTEXT)  # encoders of `TextClassifier`
NUMBER_BY_HAND = "number by hand"  # a transformer that gives a number, set by hand
# Encoders that read pictures: each word is a patch.
PICTURES_BY_HAND, VIT, VIT_ON_DIGITS = "pictures by hand", "vit", "vit on digits"
OF_PICTURES = (PICTURES_BY_HAND, VIT, VIT_ON_DIGITS)
LETTERS = "abcdefgh"
FILLERS = 200
DIGITS, PER_CLASS = 10, 2  # digits that are shown, and how many of them decide a class
PATTERNS = 60  # in place of FILLERS in pictures: with the cues fewer than a patch has pixels
# Share of the training texts of sentences and of corpora that have no cue, and a label that is drawn.
WITHOUT_CUES = 0.2
LONGEST_TEXT = 64  # words of a user's text; of a longer one the first are read
LEAST_WORDS = 8  # of a text
LEAST_TEXTS = 100  # of a user


@dataclass(frozen=True)
class Plant:
    """One planted model and its texts; `str` is its name.

    `margin`: the median log-odds of a prediction. `sharpness`: how much higher the score of the attended words
    is. `deciding`: cues per text; `opposing`: whether there is one of another class beside two or more.
    `noise`: the effect of another word on the log-odds, in shares of the margin. `length`: the mean number of
    other words; in pictures the number of patches. `texts`: how many are audited. `score`: "fixed" to the
    plant's weights, or learned ("additive", "dot"), where a loss teaches these weights. `host`: "" for drawn
    texts, or the corpus that the texts are of.
    """

    family: str
    encoder: str
    seed: int
    classes: int = 2
    margin: float = 4.0
    sharpness: float = 4.0
    deciding: int = 1
    opposing: bool = False
    noise: float = 0.02
    length: int = 15
    texts: int = 60
    score: str = "fixed"
    normaliser: str = "softmax"
    host: str = ""

    def __str__(self) -> str:
        host = f" in {self.host}" if self.host else ""
        return f"{self.family}, {self.encoder}{host}, seed {self.seed}"

    @property
    def cues(self) -> int:
        """Cues per class: fewer of many classes, so that each occurs often enough to be learned."""
        return len(LETTERS) if self.classes <= 5 else len(LETTERS) // 2

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the generator of one part of the plant."""
        name = f"{self.family} {self.encoder} {self.host} {purpose}"
        return np.random.default_rng([self.seed, *name.encode()])

    def to_json(self) -> dict[str, Any]:
        """Return its fields, for a file."""
        return asdict(self)


@dataclass(frozen=True)
class Design:
    """Where the attention is (see the module), and in which share ρ of the texts it is on the cues."""

    kind: Kind
    share: float = 1.0

    def is_attended(self, plant: Plant, k: int) -> bool:
        """Whether the k-th cues are among the share ρ."""
        return k < round(self.share * plant.cues)


FAITHFUL = Design("faithful")
PROPORTIONAL = Design("proportional")
IRRELEVANT = Design("irrelevant", 0.0)
DECEPTIVE = Design("deceptive", 0.0)
REVERSED = Design("reversed", 0.0)
UNIFORM = Design("uniform", 0.0)


class Drawing(Lexical):
    """A score per word and one for the word after it: s_t = table[w_t] + following[w_(t − 1)]."""

    following: Tensor

    def __init__(self, scores: NDArray[np.float64]) -> None:
        super().__init__(len(scores))
        self.table.copy_(torch.from_numpy(scores[:, 0]))
        self.register_buffer("following", torch.from_numpy(scores[:, 1]).float())

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the scores of words by their numbers."""
        return super().forward(ids) + functional.pad(self.following[ids], (1, 0))[:, :-1]

    def of_batch(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Return the scores of a batch's words."""
        return self.forward(batch.ids[:, 1:-1])


def cue(label: int, k: int) -> str:
    """Return the k-th cue of a class."""
    return f"cue{label}{LETTERS[k]}"


def cues_of(plant: Plant) -> list[str]:
    """Return all cues."""
    return [cue(c, k) for c in range(plant.classes) for k in range(plant.cues)]


def is_cue(word: str) -> bool:
    """Whether a word is a cue."""
    return word.startswith("cue")


def number_of(word: str) -> int:
    """Return k of the k-th cue of a class."""
    return LETTERS.index(word[-1])


def class_of(word: str) -> int:
    """Return the class that a cue is of."""
    return int(word[len("cue") : -1])


def write_texts(
    plant: Plant, count: int, part: str, design: Design = FAITHFUL, host_texts: Split | None = None
) -> Split:
    """Write planted texts; `rationale` marks the cues.

    `host_texts`: a user's texts of LEAST_WORDS words or more, in which cues take the place of others;
    without them the other words are drawn.
    """
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    order = None if host_texts is None else rng.permutation(len(host_texts))
    tokens, rationale = [], []
    for i, label in enumerate(labels.tolist()):
        text = (
            other_words(plant, rng)
            if host_texts is None or order is None
            else host_texts.tokens[order[i % len(host_texts)]][:LONGEST_TEXT]
        )
        place_words(
            text, [cue(of_class, k) for of_class, k in drawn_cues(plant, design, label, rng)], rng
        )
        tokens.append(text)
        rationale.append(np.array([is_cue(word) for word in text]))
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def drawn_cues(
    plant: Plant, design: Design, label: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Draw the cues of a text, each as its class and its number; the last one may be of another class."""
    choices = _choices(plant, design, rng)
    cues = [(label, int(k)) for k in rng.choice(choices, size=plant.deciding)]
    if plant.opposing and plant.deciding > 1:
        opposed = (label + 1 + int(rng.integers(plant.classes - 1))) % plant.classes
        cues.append((opposed, int(rng.choice(choices))))
    return cues


def labels_of(plant: Plant, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return labels in random order, each class as often as the others."""
    return rng.permutation(np.arange(count) % plant.classes).astype(np.int64)


def other_words(plant: Plant, rng: np.random.Generator) -> list[str]:
    """Return the words of a text that say nothing."""
    count = PATTERNS if plant.encoder in OF_PICTURES else FILLERS
    return [f"word{w}" for w in rng.integers(count, size=text_length(plant, rng))]


def text_length(plant: Plant, rng: np.random.Generator) -> int:
    """Return the number of words of a text, or of the patches of a picture: all have as many."""
    if plant.encoder in OF_PICTURES:
        return plant.length
    return max(LEAST_WORDS, int(rng.poisson(plant.length)))


def place_words(text: list[str], words: list[str], rng: np.random.Generator) -> None:
    """Let words take the place of others: never of the last one, and never two side by side."""
    slots = rng.permutation(len(text) // 2)[: len(words)]
    for slot, word in zip(slots, words, strict=True):
        text[2 * slot] = word


def _choices(plant: Plant, design: Design, rng: np.random.Generator) -> list[int]:
    """Return the cues that a text may have: of a partly faithful plant either kind, in its share."""
    if design.kind != "partly":
        return list(range(plant.cues))
    attended = bool(rng.random() < design.share)
    return [k for k in range(plant.cues) if design.is_attended(plant, k) == attended]


def with_other_cues(plant: Plant, split: Split) -> Split:
    """Replace the cues of every class by those of the next one, and the labels accordingly."""
    following = {
        cue(c, k): cue((c + 1) % plant.classes, k)
        for c in range(plant.classes)
        for k in range(plant.cues)
    }
    tokens = [[following.get(word, word) for word in text] for text in split.tokens]
    return Split(split.keys, tokens, (split.labels + 1) % plant.classes, split.rationale)


def vocabulary_of(plant: Plant, *splits: Split) -> Vocabulary:
    """Return the words of some texts, and all cues."""
    words = {word for split in splits for text in split.tokens for word in text}
    return Vocabulary(sorted(words | set(cues_of(plant))))


def scores_of(plant: Plant, design: Design, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return how much attention each word draws to itself and to the word after it, shape (V, 2).

    A proportional plant's are set by its values instead.
    """
    rng = plant.generator("scores")
    scores = 0.1 * rng.normal(size=len(vocabulary))
    scattered = rng.uniform(0, plant.sharpness, size=len(vocabulary))
    following = np.zeros(len(vocabulary))
    specials = len(SPECIAL)
    cues = specials + np.flatnonzero([is_cue(word) for word in vocabulary.words])
    if design.kind == "faithful":
        scores[cues] += plant.sharpness
    elif design.kind == "deceptive":
        following[cues] = plant.sharpness
    elif design.kind == "reversed":
        scores += plant.sharpness
        scores[cues] -= plant.sharpness
    elif design.kind == "uniform":
        scores[:] = 0.0
    elif design.kind in ("irrelevant", "partly"):
        scores = scattered
        if design.kind == "irrelevant" and plant.encoder in WITHOUT_CONTEXT:
            # There a cue with much weight would be attended to, and the map right in some texts.
            scores[cues] = 0.0
        if design.kind == "partly":
            attended = [
                design.is_attended(plant, number_of(vocabulary.words[w - specials])) for w in cues
            ]
            scores[cues] = np.where(attended, 2 * plant.sharpness, 0.0)
    return np.stack([scores, following], axis=1)


def spaced(split: Split) -> Split:
    """Return the texts as a transformer reads them: joined, the tokens are the text."""
    queries = None if split.queries is None else _spaced(split.queries)
    tokens = _spaced(split.tokens)
    return Split(split.keys, tokens, split.labels, split.rationale, queries)


def _spaced(texts: Sequence[list[str]]) -> list[list[str]]:
    return [[word if i == 0 else f" {word}" for i, word in enumerate(text)] for text in texts]


def long_enough(split: Split) -> list[int]:
    """Return the rows of the texts of LEAST_WORDS words or more."""
    return [i for i, text in enumerate(split.tokens) if len(text) >= LEAST_WORDS]


def check_texts(split: Split, name: str) -> Split:
    """Return the texts that are long enough to plant on.

    Raises:
        InputError: fewer than LEAST_TEXTS of them.
    """
    rows = long_enough(split)
    if len(rows) < LEAST_TEXTS:
        raise InputError(
            f"{name}: expected at least {LEAST_TEXTS} texts of {LEAST_WORDS} words or more to plant on, got "
            f"{len(rows)} of {len(split)}; give more or longer texts"
        )
    return split.take(rows)
