"""Synthetic biographies with gendered words, to deceive with (after the tasks of Pruthi et al. 2020).

Drawn from templates, about nobody. Two labels can be asked of them:

* `gender`: told by every pronoun and title, and otherwise only by habits that are a little commoner with one
  gender (LEANING of the texts).
* `occupation`, physician or surgeon: told by the work in most texts (TELLING of them; in the others the work
  could be either's), and by the gender in as many (`agreeing`): a model that may not look at gendered words has
  other words to go by.
"""

from dataclasses import dataclass
from random import Random

LEANING = 0.65  # share of the habits that are of the text's own gender
TELLING = 0.9  # share of the texts whose work is of one occupation
AGREEING = 0.9  # share of the physicians that are women, and of the surgeons that are men
UNRELATED = 0.5  # the same where the gender is asked for
GENDERED = ("she", "he", "her", "his", "herself", "himself", "ms", "mr")

_WOMAN = {"they": "she", "their": "her", "self": "herself", "title": "ms"}
_MAN = {"they": "he", "their": "his", "self": "himself", "title": "mr"}
_NAMES = (
    "adler", "bauer", "costa", "dietz", "evans", "fischer", "grant", "haas", "ivers", "jansen", "keller",
    "lang", "moreau", "novak", "olsen",
)  # fmt: skip
_TOWNS = ("bremen", "graz", "leeds", "lyon", "malmo", "porto", "tartu", "turin")
_OPENINGS = (
    "{title} {name} was born in {town}",
    "{title} {name} grew up near {town} with {number} siblings",
    "after school in {town} {they} moved to {place}",
    "{they} taught {self} the language of {place}",
)
_LIVES = (
    "{they} lives with {their} family in {place}",
    "in {their} spare time {they} {habit}",
    "{title} {name} also {habit}",
    "{they} {habit} and keeps a garden",
)
_HABITS = (
    ("sings in a choir", "paints landscapes", "writes short stories", "dances on weekends"),
    ("repairs old clocks", "fishes in the lake", "plays chess", "builds model ships"),
)
_WORK = {
    "physician": (
        "{they} sees patients on the ward",
        "{they} diagnoses rare fevers",
        "{their} practice treats asthma and diabetes",
        "{they} prescribes as few drugs as possible",
    ),
    "surgeon": (
        "{they} operates on knees and hips",
        "{their} theatre team replaces heart valves",
        "{they} transplants kidneys",
        "{they} was among the first to stitch by robot",
    ),
}
_EITHER = (
    "{they} works at the hospital of {town}",
    "{their} colleagues trust {their} judgement",
    "{they} lectures on medicine in {place}",
)


@dataclass(frozen=True, slots=True)
class Biography:
    """A text with its two labels; `gendered` marks the tokens that tell the gender."""

    tokens: tuple[str, ...]
    gender: str
    occupation: str

    @property
    def gendered(self) -> tuple[bool, ...]:
        """Return whether each token is a gendered word."""
        return tuple(token in GENDERED for token in self.tokens)


def biographies(size: int = 3000, *, agreeing: float = AGREEING, seed: int = 0) -> list[Biography]:
    """Draw `size` different biographies, as many physicians as surgeons.

    `agreeing`: the share of the physicians that are women, and of the surgeons that are men. The same arguments
    give the same biographies.
    """
    rng = Random(seed)
    by_tokens: dict[tuple[str, ...], Biography] = {}
    while len(by_tokens) < size:
        occupation = ("physician", "surgeon")[len(by_tokens) % 2]
        biography = _biography(rng, occupation, agreeing)
        by_tokens.setdefault(biography.tokens, biography)
    return rng.sample(list(by_tokens.values()), size)


def _biography(rng: Random, occupation: str, agreeing: float) -> Biography:
    woman = (occupation == "physician") == (rng.random() < agreeing)
    told = rng.random() < TELLING
    work = rng.sample(_WORK[occupation], rng.choice((1, 2))) if told else []
    sentences = [
        rng.choice(_OPENINGS),
        *work,
        *rng.sample(_EITHER, 1 if told else 2),
        *rng.sample(_LIVES, rng.choice((1, 2))),
    ]
    usual_habits = _HABITS[0] if woman else _HABITS[1]
    unusual_habits = _HABITS[1] if woman else _HABITS[0]
    words = {
        **(_WOMAN if woman else _MAN),
        "name": rng.choice(_NAMES),
        "town": rng.choice(_TOWNS),
        "place": rng.choice(_TOWNS),
        "number": rng.choice(("two", "three", "four")),
        "habit": rng.choice(usual_habits if rng.random() < LEANING else unusual_habits),
    }
    text = " . ".join([sentences[0], *rng.sample(sentences[1:], len(sentences) - 1)]) + " ."
    gender = "female" if woman else "male"
    return Biography(tuple(text.format(**words).split()), gender, occupation)
