"""Numbers of predicted classes, written by hand, whose answer is plain."""

from dataclasses import replace

from heedmap.experiments.rule import FEWEST, ClassNumbers, MapNumbers, Thresholds

T = Thresholds()
RIGHT = ClassNumbers(
    number=0, n=40, lead=0.45, gone=1.0, random_gone=0.3, best_gone=1.1, alone=0.95, random_alone=0.2,
    among=0.5, random_among=0.1, unseen=0.1, nothing=0.0, losing=40, held=38,
)  # fmt: skip
WRONG = replace(RIGHT, gone=0.2, alone=0.0, among=0.0, held=2)
SUFFICIENT = replace(RIGHT, gone=0.05, best_gone=0.4, losing=10, held=0)
NEEDED = replace(RIGHT, alone=-0.1, among=-0.05, held=0)
DEFAULT = replace(
    RIGHT, gone=0.1, random_gone=0.05, best_gone=0.2, random_alone=0.9, among=0.1, unseen=0.7,
    losing=0, held=0,
)  # fmt: skip
UNCLEAR = replace(RIGHT, gone=0.45, best_gone=1.0, random_alone=0.8)
FLAT_ = replace(RIGHT, lead=0.03)
FEW = replace(RIGHT, n=FEWEST - 1)


def model(*classes, weights=0.3):
    return MapNumbers([replace(one, number=i) for i, one in enumerate(classes)], weights)
