"""Labels: which values are labels, how a class is named by one, and the order of the classes."""

import ast
import json
import math
import reprlib
import warnings
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from heedmap.errors import InputError

ONE_CLASS = "heedmap audits models that give each text one class"
NO_VALUE = frozenset(("nan", "-nan", "null", "<na>", "nat", "#n/a", "#na", "#n/a n/a", "\\n"))
"""How pandas, databases and spreadsheets write that a value is missing, in lower case."""
MAYBE_NO_VALUE = frozenset(("none", "n/a", "na", "-"))
"""What may say so, but is the name of a class too."""


def without_midnight(value: object) -> object:
    """Return the date of a datetime without a time, as files and frames keep dates; else the value.

    >>> str(without_midnight(datetime(2024, 5, 1)))
    '2024-05-01'
    """
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    # Not by its time: a pandas Timestamp has nanoseconds, which that has not.
    return value.date() if value == datetime.combine(value.date(), time()) else value


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or pandas' NA or NaT."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and math.isnan(value)


def plain(value: Any) -> Any:
    """Return a value of a user's table as text, number, truth value or date of Python's own types.

    These alone are written the same way in every process: a set, or an object without a text of its own, is
    named by its hash or its place in memory. Subclasses lose what they add: `StrEnum`, `numpy.str_`.

    Raises:
        InputError: it is of another kind, or a number that is too long.

    >>> plain(np.str_("yes")), plain(np.int64(3)), plain(Decimal("1.10"))
    ('yes', 3, '1.10')
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return _writable(int(value))
    if isinstance(value, float | np.floating):
        (value,) = shortest([float(value)], getattr(value, "dtype", None))
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date | time):  # a datetime is a date
        return without_midnight(value)
    raise InputError(
        f"expected text, a number, a truth value or a date, got {kind_text(value)} "
        f"({reprlib.repr(value)}){'' if _is_several(value) else '; turn it into text first'}"
    )


_NARROW = {
    "float16": np.float16,
    "halffloat": np.float16,
    "float32": np.float32,
    "float": np.float32,
}
"""Floats of less precision than Python's, by the names that numpy, pandas, torch and Arrow have for them."""


def shortest(values: list[Any], kind: object) -> list[Any]:
    """Return the floats of a column as the shortest numbers that mean the same in a float of its kind.

    Python's floats have more digits, which nobody wrote: 0.1 is 0.10000000149011612 of `float32`.

    >>> shortest([np.float32(0.1).item(), None], np.dtype("float32"))
    [0.1, None]
    """
    narrow = _NARROW.get(str(kind).lower().rpartition(".")[2].removesuffix("[pyarrow]"))
    if narrow is None:
        return values
    return [
        value if is_missing(value) or not math.isfinite(value) or value.is_integer()
        else float(str(narrow(value)))
        for value in values
    ]  # fmt: skip


def _writable(number: int) -> int:
    """Return a whole number that Python writes out in digits, which it does up to a limit."""
    try:
        str(number)
    except ValueError as error:
        raise InputError(
            "expected a number of up to 4300 digits, got a longer one; write it as text"
        ) from error
    return number


def kind_text(value: object) -> str:
    """Name the kind of a value: a list, a set, an object of a class."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_several(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset | dict | np.ndarray)


def label_text(value: object) -> str:
    """Return a label as the name of its class: text as it is written, a number 1.0 as 1.

    Raises:
        InputError: several labels, or a value that is neither text nor a number, a truth value or a date.
    """
    if _is_several(value):
        raise InputError(
            f"expected one label per text, got {kind_text(value)} ({reprlib.repr(value)}): {ONE_CLASS}; keep "
            "one label of each text"
        )
    value = plain(value)
    # A whole column turns into floats where one label is missing: 1.0 is the class 1.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def trimmed(values: Iterable[object], part: str) -> dict[str, int]:
    """Count the labels with white space around them, which `label_text` drops; `part` is their split."""
    count = sum(isinstance(value, str) and value.strip() not in ("", value) for value in values)
    prefix = "" if part == "all" else f"{part}: "
    return {f"{prefix}labels trimmed of white space (kept)": count} if count else {}


def ordered(labels: Iterable[str]) -> list[str]:
    """Sort the classes among some labels: by number where all are finite numbers, else by name.

    Equal numbers (1, 01, +1) are sorted by name: the order of a set changes from process to process.
    """
    unique_labels = sorted(set(labels))
    numbers = numbers_of(unique_labels)
    if numbers is None or not all(
        map(math.isfinite, numbers)
    ):  # nothing is less than nan, nor more
        return unique_labels
    return [label for _, label in sorted(zip(numbers, unique_labels, strict=True))]


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
        examples = ", ".join(f"{label:.30}" for label in labels[:3])
        raise InputError(
            f"{source}: expected classes that many rows share, got {count} different labels in {len(labels)} "
            f"rows ({examples}); this is no label column: name another with --label-column"
        )


def check_single(source: str, column: str, labels: Collection[str]) -> None:
    """Refuse labels that are several in one: "a|b" beside "a" and "b", or a list that is written as text.

    Raises:
        InputError: with the first of them.
    """
    alone = set(labels)
    listed = [label for label in labels if _is_written_list(label)]
    several = [
        label
        for mark in "|;,"
        for label in labels
        if mark in label and {part.strip() for part in label.split(mark)} <= alone
    ]
    for example in [*listed, *several][:1]:
        problem = "a list that is written as text" if listed else "several labels in one"
        raise InputError(
            f"{source}: expected one label per text, got {problem} in column {column} ({example:.40}): "
            f"{ONE_CLASS}; keep one label of each text, or name another column with --label-column"
        )


def _is_written_list(label: str) -> bool:
    if label[:1] + label[-1:] not in ("[]", "()", "{}"):
        return False
    try:
        return _is_several(written_value(label))
    except ValueError:
        return False


def written_value(text: str) -> Any:
    r"""Return the value that a text writes: as JSON has it or, where it is none, as Python has it.

    Raises:
        ValueError: it is neither.

    >>> written_value(r'["a\/b", "\ud83d\ude00"]'), written_value("('a', None)")
    (['a/b', '😀'], ('a', None))
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of backslashes that escape nothing
            return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"neither JSON nor a literal of Python ({error})") from error


def unlabelled(labels: Iterable[str], classes: Collection[str] = ()) -> set[str]:
    """Return which labels say that there is none: a dash (SNLI), -1 (the Hub), `null`, `NaN` and the like.

    None of them does if it is one of the `classes` that are known, or if fewer than two labels would be left. A
    dash is a class beside another sign (`+`). A -1 says it where the others count on from 0 or 1 and are three
    or more, or as many as the classes that are known. `none`, `n/a` and `na` are classes, unless
    others are known.

    >>> sorted(unlabelled(["entailment", "neutral", "-"])), sorted(unlabelled(["+", "-", "0"]))
    (['-'], [])
    """
    names, class_names = set(labels), {name.casefold() for name in classes}
    words = NO_VALUE | (MAYBE_NO_VALUE - {"-"} if class_names else frozenset())
    missing = {label for label in names if label.casefold() in words}
    if "-" in names and not any(_is_sign(label) for label in names - {"-"}):
        missing.add("-")
    missing |= _minus_one(names - missing, len(class_names))
    missing = {label for label in missing if label.casefold() not in class_names}
    return missing if class_names or len(names - missing) > 1 else set()


def _is_sign(label: str) -> bool:
    return not any(character.isalnum() for character in label)


def _minus_one(labels: Collection[str], classes: int) -> set[str]:
    numbers = {label: number_of(label) for label in labels}
    minus = {label for label, number in numbers.items() if number == -1}
    other_numbers = {number for label, number in numbers.items() if label not in minus}
    counted = any(
        other_numbers == set(range(start, start + len(other_numbers))) for start in (0, 1)
    )
    return (
        minus
        if minus and counted and (len(other_numbers) > 2 or len(other_numbers) == classes)
        else set()
    )


def amounts_of(source: str, labels: Sequence[str], names: Sequence[str]) -> list[float]:
    """Return labels as the finite numbers that they are; `names` are those of their texts.

    Raises:
        InputError: a label that is no number, with the name of its text.
    """
    numbers = numbers_of(labels)
    if numbers is not None and all(map(math.isfinite, numbers)):
        return numbers
    wrong = (i for i, label in enumerate(labels) if not _is_amount(label))
    place = next(wrong, 0)  # all are numbers by themselves, but some have commas and others points
    raise InputError(
        f"{source}, {names[place]}: expected a number as the label, since the model gives a number (a "
        f"regression), got {labels[place]!r:.40}; name another column with --label-column, or leave it out"
    )


def _is_amount(label: str) -> bool:
    numbers = numbers_of([label])
    return numbers is not None and math.isfinite(numbers[0])


def number_of(label: str) -> Decimal | None:
    """Return the number that a label is; None if it is none or not finite."""
    try:
        number = Decimal(label)
    except ArithmeticError:
        return None
    return number if number.is_finite() else None
