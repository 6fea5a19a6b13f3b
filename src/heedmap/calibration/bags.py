"""Families of bags of vectors, by which items draw the attention (see `planted_bags`).

Some are on bags that are drawn for the plant, in which every class has deciding items; the others on the
corpora `digit-bags`, `four_bags` and `pos_neg` as they are. No model that reads each item by itself can answer
`adjacent_pairs`, so that nothing is known of its maps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.construction import (
    Check,
    answers,
    is_accurate,
    is_not_above_chance,
    is_not_on,
    is_on,
    mass_on,
    the_rationale,
)
from heedmap.calibration.families import Choices, Family, Maker, PlantedModel, Truth
from heedmap.calibration.planted_bags import (
    BY_HAND,
    ONE_HOT,
    PICTURES,
    Digits,
    digit_of,
    finished,
    is_attended,
    is_deciding,
    make_bags,
    scores_of,
    train_model,
)
from heedmap.calibration.plants import (
    DIGITS,
    FAITHFUL,
    IRRELEVANT,
    REVERSED,
    UNIFORM,
    Design,
    Plant,
)
from heedmap.calibration.trained import LEAST
from heedmap.data.corpus import Corpus, Split
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.load import load
from heedmap.data.vocabulary import SPECIAL
from heedmap.models.trace import Model

# Digits that the label of a corpus depends on.
DECIDING: Mapping[str, Sequence[int]] = {
    "digit-bags": (9,),
    "four_bags": (8, 9),
    "pos_neg": (4, 5, 6, 7, 8, 9),
}
WITH_ABSENCE = ("digit-bags", "four_bags")  # class 0 has no deciding item
CHOICES: Choices = {
    "classes": (2, 2, 3, 4),
    "texts": (60, 120, 200),
    "sharpness": (3.0, 4.0, 5.0, 6.0),
    "score": ("fixed", "gated", "gated", "additive", "dot"),
    "noise": (0.0, 0.001, 0.002),  # of so few digits that there is no mean over many
}
FIXED: Choices = {"score": ("fixed",)}
# Deciding items of hardly any weight are not learned.
SLIGHT: Choices = {"sharpness": (1.5, 2.0, 2.5), "length": (10, 16)}
COUNTED = 0.8  # least accuracy on `pos_neg`
SAYS_NOTHING = (
    "The map is on items that say nothing, and the deciding ones make the answer all the same."
)


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    design: Design,
    *checks: Check,
    times: int = 1,
    encoders: Sequence[str] = (BY_HAND, ONE_HOT, PICTURES),
    choices: Choices | None = None,
    make: Callable[..., PlantedModel] = make_bags,
    instances: str = "bags",
) -> Family:
    maker: Maker = partial(make, design, checks)
    return Family(
        name=f"{instances}, {name}",
        truth=truth,
        recipe=recipe,
        reason=reason,
        makers=dict.fromkeys(encoders, maker),
        choices={**CHOICES, **(choices or {})},
        encoder_choices={BY_HAND: FIXED},
        times=times,
    )


PARTLY: Choices = {"sharpness": (2.5, 3.0, 4.0), "deciding": (1, 2), "opposing": (False,)}


def is_on_in_part(plant: Plant, model: Model, dev: Split) -> str:
    """Check that the weight is on the deciding items that draw attention, and not on the others."""
    mass = mass_on(model, dev, the_rationale(plant, dev))
    attended = np.array(
        [
            any(is_attended(d) for d in map(digit_of, bag) if is_deciding(plant, d))
            for bag in dev.tokens
        ]
    )
    on, off = mass[attended].mean(), mass[~attended].mean()
    return "" if on >= 0.5 and off <= 0.25 else f"mass {on:.2f} and {off:.2f} on the deciding items"


def _partly(share: float) -> Family:
    return _family(
        f"deciding items attended in {share:g} of them",
        "between" if share > 0.5 else "wrong",
        "Each class is decided by two digits. Items of one draw the attention, which this share of the bags "
        "has; those of the other have little weight and large values.",
        "In the other bags the map is on random items, and the deciding ones make the answer all the same.",
        Design("partly", share),
        is_on_in_part,
        encoders=(BY_HAND, ONE_HOT),  # pictures of little weight are not learned
        choices={**FIXED, **PARTLY},
    )


def items_of(corpus: Corpus) -> Digits:
    """Return the items of a corpus of digits."""
    vectors = corpus.splits["train"].vectors
    assert vectors is not None
    digits = np.zeros(vectors.starts[-1], dtype=np.int64)
    vocabulary = ItemVocabulary(vectors)
    for split in corpus.splits.values():
        for bag in split.tokens:
            digits[vocabulary.encode(bag)[1:-1] - len(SPECIAL)] = [digit_of(item) for item in bag]
    return Digits(vectors, digits)


def deciding_marks(name: str, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of the items that the label depends on."""
    return [np.isin([digit_of(item) for item in bag], DECIDING[name]) for bag in split.tokens]


def with_others(plant: Plant, split: Split, *, deciding: bool) -> Split:
    """Replace all deciding items, or all others, by items of the corpus that say nothing."""
    rng = plant.generator("others")
    marks = deciding_marks(plant.encoder, split)
    pairs = list(zip(split.tokens, marks, strict=True))
    fillers = [item for bag, m in pairs for item, marked in zip(bag, m, strict=True) if not marked]
    tokens = [
        [
            fillers[int(rng.integers(len(fillers)))] if marked == deciding else item
            for item, marked in zip(bag, m, strict=True)
        ]
        for bag, m in pairs
    ]
    return replace(split, tokens=tokens)


def without_deciding(plant: Plant, split: Split) -> Split:
    """Replace the deciding items of each bag, which makes its label that of the bags without them."""
    marks = deciding_marks(plant.encoder, split)
    absent = next(i for i, marked in enumerate(marks) if not marked.any())
    changed = with_others(plant, split, deciding=True)
    return replace(changed, labels=np.full_like(split.labels, split.labels[absent]))


def rests_on_deciding(plant: Plant, model: Model, dev: Split) -> str:
    """Check that the answers stay as they are with other items beside the deciding ones."""
    changed = with_others(plant, dev, deciding=False)
    share = float((answers(model, changed) == answers(model, dev)).float().mean())
    return "" if share >= LEAST else f"{share:.2f} of the answers stay with other items"


def _of_corpus(
    design: Design, checks: Sequence[Check], plant: Plant, corpus: Corpus | None = None
) -> PlantedModel:
    """Train a plant on a corpus as it is."""
    source = load(plant.encoder, progress=False)
    plant = replace(plant, classes=len(source.classes))
    items = items_of(source)
    splits = {
        name: replace(split, rationale=deciding_marks(plant.encoder, split))
        for name, split in source.splits.items()
    }
    deciding = np.isin(np.arange(DIGITS), DECIDING[plant.encoder])
    scores = scores_of(plant, design, items.digits, deciding)
    model = train_model(plant, items, scores, splits["train"], splits["dev"])
    rows = plant.generator("test").permutation(len(splits["test"]))[: plant.texts]
    if plant.encoder == "pos_neg":
        # Of a weighted mean it cannot be told how many of its digits are different.
        is_right = [is_accurate("held-out bags", minimum=COUNTED), rests_on_deciding]
    else:
        without = is_accurate("bags without deciding items", without_deciding)
        is_right = [is_accurate("held-out bags"), without]
    test = splits["test"].take(rows.tolist())
    return finished([*is_right, *checks], plant, scores, model, splits["dev"], test)


AS_THEY_ARE: Choices = {"texts": (120, 200), "opposing": (False,)}
_corpus_family = partial(
    _family,
    encoders=tuple(DECIDING),
    choices=AS_THEY_ARE,
    make=_of_corpus,
    instances="corpora of bags",
)

FAMILIES = (
    _family(
        "deciding items attended",
        "right",
        "The digits in the bag decide its class. The deciding items draw the attention.",
        "The deciding items make the answer, and the answer is read from where the weights are.",
        FAITHFUL,
        is_on("the deciding items"),
        times=3,
    ),
    _family(
        "deciding items attended, saturated",
        "right",
        "As *bags, deciding items attended*, with a median margin of 30.",
        "The deciding items make the answer, and the answer is read from where the weights are.",
        FAITHFUL,
        is_on("the deciding items"),
        choices={"margin": (30.0,)},
    ),
    _family(
        "random items attended",
        "wrong",
        "Items that say nothing draw the attention, by random scores. The deciding ones have little weight and "
        "large values.",
        SAYS_NOTHING,
        IRRELEVANT,
        is_not_above_chance("the deciding items"),
        choices={**SLIGHT, "opposing": (False,)},
    ),
    _family(
        "all items but the deciding ones attended",
        "wrong",
        "All items but the deciding ones draw the attention alike.",
        "The map leaves out the items that make the answer.",
        REVERSED,
        is_not_on("the deciding items", maximum=0.15),
        choices={**SLIGHT, "deciding": (1, 2), "opposing": (False,)},
    ),
    _family(
        "uniform weights",
        "wrong",
        "All items have the same weight.",
        "The map highlights nothing, and the deciding items make the answer.",
        UNIFORM,
        choices=FIXED,
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _corpus_family(
        "deciding items attended",
        "part",
        "The eights and nines of the corpus draw the attention.",
        "They make the answer where they are there. Class 0 is that without them, which no item shows.",
        FAITHFUL,
        encoders=WITH_ABSENCE,
    ),
    _corpus_family(
        "random items attended",
        "wrong",
        "Items that say nothing draw the attention, by random scores.",
        SAYS_NOTHING,
        IRRELEVANT,
        is_not_above_chance("the deciding items"),
        choices={**AS_THEY_ARE, **SLIGHT},
    ),
    _corpus_family(
        "all items but the deciding ones attended",
        "wrong",
        "All items but those on which the label depends draw the attention alike.",
        "The map leaves out the items that make the answer.",
        REVERSED,
        is_not_above_chance("the deciding items", maximum=1.0),
        choices={**AS_THEY_ARE, **SLIGHT},
    ),
    _corpus_family(
        "uniform weights",
        "wrong",
        "All items have the same weight.",
        "The map highlights nothing, and the deciding items make the answer.",
        UNIFORM,
        choices={**AS_THEY_ARE, **FIXED},
    ),
)
