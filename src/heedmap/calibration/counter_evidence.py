"""A family of models whose map is on words that speak against the answer."""

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.by_hand import cue_effects
from heedmap.calibration.construction import (
    MANY,
    Construction,
    exchanged,
    is_accurate,
    is_not_on,
    is_on,
    makers,
    marks_of,
)
from heedmap.calibration.families import Family
from heedmap.calibration.plants import (
    LETTERS,
    WITH_CONTEXT,
    WITHOUT_CONTEXT,
    Plant,
    cue,
    cues_of,
    is_cue,
    labels_of,
    other_words,
    place_words,
)
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary

NEUTRAL = "word0"  # takes the place of a cue that is taken out
HINTS = 4  # per class
STRENGTH = 0.4  # of a hint, beside that of the cues
HINTS_ONLY = 0.5  # share of the training texts without cues


def hint(label: int, k: int) -> str:
    """Return the k-th hint at a class: a weak word, which decides where there is no cue."""
    return f"hint{label}{LETTERS[k]}"


def is_hint(word: str) -> bool:
    """Whether a word is a hint."""
    return word.startswith("hint")


def class_of_hint(word: str) -> int:
    """Return the class that a hint is at."""
    return int(word[len("hint") : -1])


def write_opposed(plant: Plant, count: int, part: str) -> Split:
    """Write texts with cues of their class and a hint at another one; the rationale marks the cues.

    The hint is next but one to a cue, so that a window of five words sees both.
    """
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    tokens = []
    for label in labels.tolist():
        text = other_words(plant, rng)
        opposed = (label + 1 + int(rng.integers(plant.classes - 1))) % plant.classes
        cues = [cue(label, int(k)) for k in rng.integers(plant.cues, size=plant.deciding)]
        place_words(text, cues, rng)
        near_cues = {i + step for i, word in enumerate(text) if is_cue(word) for step in (-2, 2)}
        free = [i for i in sorted(near_cues) if 0 <= i < len(text) - 1 and not is_cue(text[i])]
        text[free[int(rng.integers(len(free)))]] = hint(opposed, int(rng.integers(HINTS)))
        tokens.append(text)
    rationale = [np.array([is_cue(word) for word in text]) for text in tokens]
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def hints_only(plant: Plant, split: Split) -> Split:
    """Take the cues out: each text is of the class that its hint is at."""
    hinted = [next(class_of_hint(w) for w in text if is_hint(w)) for text in split.tokens]
    return exchanged(split, lambda w: NEUTRAL if is_cue(w) else w, np.array(hinted))


def write_training(plant: Plant, count: int, part: str) -> Split:
    """Write the texts to learn from, of which some have a hint only."""
    split = write_opposed(plant, count, part)
    bare = hints_only(plant, split)
    is_bare = plant.generator(f"{part} bare").random(count) < HINTS_ONLY
    tokens = [bare.tokens[i] if is_bare[i] else split.tokens[i] for i in range(count)]
    return Split(split.keys, tokens, np.where(is_bare, bare.labels, split.labels))


def with_others(plant: Plant, split: Split) -> Split:
    """Replace cues and hints by those of the next class, and the labels accordingly."""

    def other(word: str) -> str:
        if is_cue(word):
            return cue((int(word[len("cue") : -1]) + 1) % plant.classes, LETTERS.index(word[-1]))
        if is_hint(word):
            return hint((class_of_hint(word) + 1) % plant.classes, LETTERS.index(word[-1]))
        return word

    return exchanged(split, other, (split.labels + 1) % plant.classes)


def _words(plant: Plant) -> list[str]:
    return [
        *cues_of(plant),
        *(hint(c, k) for c in range(plant.classes) for k in range(HINTS)),
        NEUTRAL,
    ]


def _scores(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    scores = np.zeros((len(vocabulary), 2))
    scores[:, 0] = 0.1 * plant.generator("scores").normal(size=len(vocabulary))
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_hint(word):
            scores[i, 0] = plant.sharpness
    return scores


def _effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    effects = cue_effects(plant, vocabulary)
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_hint(word):
            effects[i] = STRENGTH * np.eye(plant.classes)[class_of_hint(word)]
    return effects


OPPOSED = Construction(
    write=write_opposed,
    write_training=write_training,
    scores=_scores,
    checks=[
        is_accurate(),
        is_accurate("cues and hints of other classes", with_others),
        # This is what makes the map wrong: the highlighted words speak for another class.
        is_accurate("hints alone, for their own class", hints_only),
        is_on("the hints", marks_of(is_hint)),
        is_not_on("the cues"),
    ],
    words=_words,
    training=MANY,
    effects=_effects,
)

FAMILIES = (
    Family(
        name="counter-evidence attended",
        truth="wrong",
        recipe="Each text has cues of its class and a hint at another one, which alone would decide. The "
        "weights "
        "are on the hint. By hand the cues have little weight and large values; else an encoder with context "
        "has moved their evidence.",
        reason="The highlighted word speaks against the answer.",
        makers=makers(OPPOSED, WITH_CONTEXT, ("by hand", *WITHOUT_CONTEXT)),
        choices={
            "classes": (2, 2, 3, 5),
            "sharpness": (4.0, 5.0, 6.0),
            "noise": (0.0, 0.01),
            "deciding": (1, 2),
            "opposing": (False,),
        },
    ),
)
