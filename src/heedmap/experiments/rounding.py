"""How numbers are rounded where people read them."""

import math


def number(x: float) -> str:
    """Format a number with two decimals, three for small values.

    >>> number(0.391), number(-0.0123), number(0.00002), number(float("nan"))
    ('0.39', '−0.012', '<0.001', '–')
    """
    if not math.isfinite(x):
        return "–"
    if x == 0 or abs(x) >= 0.0995:
        text = f"{x:z.2f}"
    elif abs(x) >= 0.0005:
        text = f"{x:z.3f}"
    else:
        return "<0.001" if x > 0 else ">−0.001"
    return text.replace("-", "−")


def signed(x: float) -> str:
    """Format a number that may be below 0 with two decimals.

    >>> signed(-0.213), signed(-0.001)
    ('−0.21', '0.00')
    """
    return f"{x:z.2f}".replace("-", "−")


def told_apart(a: float, b: float) -> tuple[str, str]:
    """Format two numbers, with more digits where they would look alike.

    >>> told_apart(0.00195, 0.00214), told_apart(0.1, 0.5)
    (('0.00195', '0.00214'), ('0.10', '0.50'))
    """
    formatted = number(a), number(b)
    digits = 2
    while formatted[0] == formatted[1] and a != b and digits < 6:
        digits += 1
        formatted = (
            f"{a:z.{digits}g}".replace("-", "−"),
            f"{b:z.{digits}g}".replace("-", "−"),
        )
    return formatted


def significant(x: float | None, digits: int = 4) -> float | None:
    """Round to so many significant digits, more than a page shows; None where undefined.

    >>> significant(0.123456), significant(123456.0, 2), significant(float("nan")), significant(None)
    (0.1235, 120000.0, None, None)
    """
    return None if x is None or not math.isfinite(x) else float(f"{x:.{digits}g}")
