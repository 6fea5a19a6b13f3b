"""Plants: what a model with a known answer attends to and rests on, and the texts that it reads.

In a planted text some words decide the label; all others are noise. Every word has scores, which fix how much
attention it draws to itself and to the word after it, and a value, which the model reads.

| kind | the attention is on | the answer rests on the deciding words |
|---|---|---|
| faithful | the deciding words | through their own states |
| proportional | all words, by the size of their value | through their own states |
| irrelevant | random words | through all states |
| deceptive | the words after the deciding ones | through the states after theirs |
| reversed | all words but the deciding ones | through their own states |
| uniform | all words alike | through their own states |
| partly | in a share ρ of the texts the deciding words, else random ones | through their own states, else all |

A faithful map is right (ρ = 1), so is a proportional one; the kinds from irrelevant to uniform are not (ρ = 0).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.errors import InputError
from heedmap.models.scores import Lexical

Kind = Literal[
    "faithful", "proportional", "irrelevant", "deceptive", "reversed", "uniform", "partly"
]
Family = Literal["by hand", "transformer by hand", "lstm", "cnn", "average", "bert"]

TRAINED: tuple[Family, ...] = (
    "lstm",
    "cnn",
    "average",
    "bert",
)  # of the others every weight is set
TRANSFORMERS: tuple[Family, ...] = ("transformer by hand", "bert")
RIGHT: tuple[Kind, ...] = ("faithful", "proportional")
WRONG: tuple[Kind, ...] = ("irrelevant", "deceptive", "reversed", "uniform")
CUES = 8  # deciding words per class
LETTERS = "abcdefgh"
FILLERS = 200
LONGEST_TEXT = 64  # words of a user's text; of a longer one the first are read
LEAST_WORDS = 8  # of a text
LEAST_TEXTS = 100  # of a user


class Drawing(Lexical):
    """A score per word and one for the word after it: s_t = own[w_t] + following[w_(t − 1)]."""

    following: Tensor

    def __init__(self, scores: NDArray[np.float64]) -> None:
        super().__init__(len(scores))
        self.table.copy_(torch.from_numpy(scores[:, 0]))
        self.register_buffer("following", torch.from_numpy(scores[:, 1]).float())

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the scores of words by their numbers."""
        return super().forward(ids) + functional.pad(self.following[ids], (1, 0))[:, :-1]


@dataclass(frozen=True)
class Plant:
    """One planted model and its texts; `str` is its name.

    `share`: ρ. `margin`: the median log-odds of a prediction. `sharpness`: how much higher the score of the
    attended words is. `deciding`: deciding words per text; `opposing`: whether there is one of another class
    beside two or more. `noise`: the effect of another word on the log-odds, in shares of the margin.
    `length`: the mean number of other words. `texts`: how many are audited.
    """

    family: Family
    kind: Kind
    share: float
    seed: int
    classes: int = 2
    margin: float = 4.0
    sharpness: float = 4.0
    deciding: int = 1
    opposing: bool = False
    noise: float = 0.02
    length: int = 15
    texts: int = 60

    def __str__(self) -> str:
        of = f" {self.share:g}" if self.kind == "partly" else ""
        return f"{self.family}, {self.kind}{of}, seed {self.seed}"

    @property
    def is_trained(self) -> bool:
        """Whether it has to learn; else every weight is set."""
        return self.family in TRAINED

    @property
    def is_transformer(self) -> bool:
        """Whether it comes through the door for transformers."""
        return self.family in TRANSFORMERS

    @property
    def file(self) -> str:
        """The name of its file of numbers."""
        return f"{self.family.replace(' ', '-')}-{self.kind}-{self.share:g}-{self.seed}.json"

    def generator(self, what: str) -> np.random.Generator:
        """Return the generator of one part of the plant."""
        return np.random.default_rng([self.seed, *f"{self.family} {self.kind} {what}".encode()])


def cue(label: int, k: int) -> str:
    """Return the k-th deciding word of a class."""
    return f"cue{label}{LETTERS[k]}"


def number_of(word: str) -> int:
    """Return k of the k-th deciding word."""
    return LETTERS.index(word[-1])


def is_attended(plant: Plant, k: int) -> bool:
    """Whether the k-th deciding words are among the share ρ."""
    return k < round(plant.share * CUES)


def write_texts(plant: Plant, count: int, part: str, own: Split | None = None) -> Split:
    """Write planted texts; `rationale` marks the deciding words.

    `own`: a user's texts of LEAST_WORDS words or more, in which deciding words take the place of others;
    without them the other words are drawn.
    """
    rng = plant.generator(part)
    labels = rng.permutation(np.arange(count) % plant.classes).astype(np.int64)
    hosts = None if own is None else rng.permutation(len(own))
    tokens, rationale = [], []
    for i, label in enumerate(labels.tolist()):
        text = (
            _other_words(plant, rng)
            if own is None or hosts is None
            else own.tokens[hosts[i % len(own)]][:LONGEST_TEXT]
        )
        choices = _choices(plant, rng)
        decides = [(label, int(k)) for k in rng.choice(choices, size=plant.deciding)]
        if plant.opposing and plant.deciding > 1:
            other = (label + 1 + int(rng.integers(plant.classes - 1))) % plant.classes
            decides.append((other, int(rng.choice(choices))))
        # Never the last word, and never two side by side.
        slots = rng.permutation(len(text) // 2)[: len(decides)]
        for slot, each in zip(slots, decides, strict=True):
            text[2 * slot] = cue(*each)
        tokens.append(text)
        rationale.append(np.array([word.startswith("cue") for word in text]))
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def _choices(plant: Plant, rng: np.random.Generator) -> list[int]:
    """Return the deciding words that a text may have: of a partly faithful plant either kind, in its share."""
    if plant.kind != "partly":
        return list(range(CUES))
    attended = bool(rng.random() < plant.share)
    return [k for k in range(CUES) if is_attended(plant, k) == attended]


def _other_words(plant: Plant, rng: np.random.Generator) -> list[str]:
    length = max(LEAST_WORDS, int(rng.poisson(plant.length)))
    return [f"word{w}" for w in rng.integers(FILLERS, size=length)]


def with_other_cues(plant: Plant, split: Split) -> Split:
    """Replace the deciding words of every class by those of the next one, and the labels accordingly."""
    following = {
        cue(c, k): cue((c + 1) % plant.classes, k)
        for c in range(plant.classes)
        for k in range(CUES)
    }
    tokens = [[following.get(word, word) for word in text] for text in split.tokens]
    return Split(split.keys, tokens, (split.labels + 1) % plant.classes, split.rationale)


def vocabulary_of(plant: Plant, *splits: Split) -> Vocabulary:
    """Return the words of some texts, and all deciding ones."""
    words = {word for split in splits for text in split.tokens for word in text}
    words |= {cue(c, k) for c in range(plant.classes) for k in range(CUES)}
    return Vocabulary(sorted(words))


def scores_of(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return how much attention each word draws to itself and to the word after it, shape (V, 2).

    A proportional plant's are set by its values instead.
    """
    rng = plant.generator("scores")
    scores = 0.1 * rng.normal(size=len(vocabulary))
    scattered = rng.uniform(0, plant.sharpness, size=len(vocabulary))
    following = np.zeros(len(vocabulary))
    first = len(SPECIAL)
    cues = first + np.flatnonzero([word.startswith("cue") for word in vocabulary.words])
    if plant.kind == "faithful":
        scores[cues] += plant.sharpness
    elif plant.kind == "deceptive":
        following[cues] = plant.sharpness
    elif plant.kind == "reversed":
        scores += plant.sharpness
        scores[cues] -= plant.sharpness
    elif plant.kind == "uniform":
        scores[:] = 0.0
    elif plant.kind in ("irrelevant", "partly"):
        scores = scattered
        if plant.kind == "partly":
            attended = [is_attended(plant, number_of(vocabulary.words[w - first])) for w in cues]
            scores[cues] = np.where(attended, 2 * plant.sharpness, 0.0)
    return np.stack([scores, following], axis=1)


def check_texts(split: Split, name: str) -> Split:
    """Return the texts that are long enough to plant on.

    Raises:
        InputError: fewer than LEAST_TEXTS of them.
    """
    rows = [i for i, text in enumerate(split.tokens) if len(text) >= LEAST_WORDS]
    if len(rows) < LEAST_TEXTS:
        raise InputError(
            f"{name}: expected at least {LEAST_TEXTS} texts of {LEAST_WORDS} words or more to plant on, got "
            f"{len(rows)} of {len(split)}; give more or longer texts"
        )
    return split.take(rows)
