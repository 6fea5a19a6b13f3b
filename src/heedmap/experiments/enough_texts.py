"""How many texts would be enough, if those to come are like those that were audited."""

import math

from heedmap.experiments.intervals import TAIL, binomial

MOST = 100_000  # texts; more would not be audited


def texts_for_class(fewest: int, texts: int, wanted: int) -> int | None:
    """Return about how many texts have `wanted` of the rarest class, of which `texts` had `fewest`.

    >>> texts_for_class(4, 80, 30)
    600
    """
    if not fewest:
        return None
    return math.ceil(wanted * texts / fewest)


def texts_for_side(share: float, threshold: float) -> int | None:
    """Return the least n whose 95 % interval of this share lies wholly on its own side of the threshold.

    The interval is that of `intervals.of_share`. None if more than MOST texts were needed, as for a share at
    the threshold itself.

    >>> texts_for_side(1.0, 0.85), texts_for_side(0.85, 0.85)
    (23, None)
    """

    def is_apart(n: int) -> bool:
        low, high = binomial(share, float(n), TAIL)
        return low >= threshold if share >= threshold else high < threshold

    if not is_apart(MOST):
        return None
    too_few, enough = 0, MOST  # the interval of a share shrinks with n, towards it
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_apart(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def rounded_up(count: int) -> int:
    """Round up to two significant digits: such a number is a forecast.

    >>> rounded_up(7), rounded_up(1234)
    (7, 1300)
    """
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit
