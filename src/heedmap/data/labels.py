"""Labels: names of classes, their order, and which of a model's outputs means which class."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, time

from heedmap.errors import InputError


def without_midnight(value: object) -> object:
    """Return the date of a datetime without a time, as files and frames keep dates; else the value.

    >>> str(without_midnight(datetime(2024, 5, 1)))
    '2024-05-01'
    """
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    # Not by its time: a pandas Timestamp has nanoseconds, which that has not.
    return value.date() if value == datetime.combine(value.date(), time()) else value


def label_text(value: object) -> str:
    """Return a label as the name of its class."""
    value = without_midnight(value)
    # A whole column turns into floats where one label is missing: 1.0 is the class 1.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def trimmed(values: Iterable[object], part: str) -> dict[str, int]:
    """Count the labels with white space around them, which `label_text` drops; `part` is their split."""
    count = sum(isinstance(value, str) and value.strip() not in ("", value) for value in values)
    at = "" if part == "all" else f"{part}: "
    return {f"{at}labels trimmed of white space (kept)": count} if count else {}


def ordered(labels: Iterable[str]) -> list[str]:
    """Sort the classes among some labels: by number where all are finite numbers, else by name.

    Equal numbers (1, 01, +1) are sorted by name: the order of a set changes from process to process.
    """
    found = sorted(set(labels))
    numbers = numbers_of(found)
    if numbers is None or not all(
        map(math.isfinite, numbers)
    ):  # nothing is less than nan, nor more
        return found
    return [label for _, label in sorted(zip(numbers, found, strict=True))]


def numbers_of(labels: Iterable[str]) -> list[float] | None:
    """Return the numbers that labels are, all with decimal points or all with commas; else None.

    >>> numbers_of(["10", "2.5"]), numbers_of(["10", "2,5"]), numbers_of(["2.5", "2,5"])
    ([10.0, 2.5], [10.0, 2.5], None)
    """
    written = list(labels)
    if not any("." in label for label in written):
        written = [label.replace(",", ".") for label in written]
    try:
        return [float(label) for label in written]
    except ValueError:
        return None


LABELLED = 50
"""Up to this many rows may each have a different label."""


def check_labels(source: str, labels: Sequence[str]) -> None:
    """Refuse a column in which most values are different: a number or a text per row is no class.

    Raises:
        InputError: more than half as many classes as rows, of more than `LABELLED` rows.
    """
    count = len(set(labels))
    if len(labels) > LABELLED and count > len(labels) / 2:
        some = ", ".join(f"{label:.30}" for label in labels[:3])
        raise InputError(
            f"{source}: expected classes that many rows share, got {count} different labels in {len(labels)} "
            f"rows ({some}); this is no label column: name another with --label-column"
        )


def match(
    source: str,
    labels: Sequence[str],
    outputs: Sequence[str],
    given: Sequence[str] | None = None,
    *,
    remedy: str,
) -> dict[str, int]:
    """Find which output of a model each label of the data means: by its name, or by its number from 0 up.

    Args:
        source: the data's name in error messages.
        labels: of the data, each once.
        outputs: the names of the model's classes, in their order.
        given: how the data spell them, in their order, if the user said so.
        remedy: what a user can do about labels that do not fit.

    Raises:
        InputError: a label that is no class of the model, or another number of names than outputs.
    """
    if given is not None and len(given) != len(outputs):
        raise InputError(
            f"--classes: expected {len(outputs)} names for the model's outputs "
            f"({', '.join(outputs)}), got {len(given)} ({', '.join(given)})"
        )
    names = [name.lower() for name in (given or outputs)]
    if given is not None and len(set(names)) < len(names):
        raise InputError(f"--classes: expected different names, got {', '.join(given)}")
    fold: Callable[[str], str] = str.lower
    if len(set(names)) < len(names):  # of a model whose names differ in their case alone
        names, fold = list(outputs), str
    numbers = [str(i) for i in range(len(outputs))]
    for known in (names, *([] if given else [numbers])):
        place = {name: i for i, name in enumerate(known)}
        if all(fold(label) in place for label in labels):
            return {label: place[fold(label)] for label in labels}
    numbered = "" if given else " or their numbers"
    got = ", ".join(f"{label:.40}" for label in labels[:8]) + (" …" if len(labels) > 8 else "")
    raise InputError(
        f"{source}: expected the model's {len(outputs)} classes ({', '.join(given or outputs)}){numbered} "
        f"as labels, got {got}; {remedy}"
    )
