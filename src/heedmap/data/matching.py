"""Which output of a model each label of the data means: by name, by the numbers in names, or by counting."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from heedmap.data.labels import number_of
from heedmap.errors import InputError
from heedmap.terminal.output import some_of

_NUMBER = re.compile(r"(?:(?<=\s)|^)[-+]?\d+(?:\.\d+)?|\d+(?:\.\d+)?")
SAY = "say how the data spell the model's outputs, in their order: --classes NAME,NAME (in Python classes=)"
NAMED = 5  # labels that a note names


@dataclass(frozen=True)
class Matching:
    """The number of the output that each label means; `note` says how that was inferred where it was."""

    number: Mapping[str, int]
    note: str | None = None


def match(
    source: str,
    labels: Sequence[str],
    outputs: Sequence[str],
    classes: Sequence[str] | None = None,
    *,
    further_labels: Collection[str] = (),
    remedy: str = SAY,
) -> Matching:
    """Find which output of a model each label of the data means.

    A label means the output of its name, whatever its case. Where the labels are numbers, the numbers in the
    outputs' names decide if they differ and all labels are among them ("1 star", LABEL_1, 01), and so are those
    of the other splits where all splits together could count from 0 or 1. Else labels with a 0 count from 0 and
    labels with an n count from 1, for n outputs, unless the names have numbers that say otherwise. What is left
    is not certain, and refused.

    Args:
        source: the data's name in error messages.
        labels: of the data, each once.
        outputs: the names of the model's classes, in their order.
        classes: how the data spell them, in their order, if the user said so.
        further_labels: of the data's other splits, which may tell how they count.
        remedy: what a user can do about labels that do not fit.

    Raises:
        InputError: a label that is no class of the model, numbers whose classes are not certain, or another
            number of names than outputs.
    """
    if classes is not None:
        _check_names(classes, outputs)
    names = classes or outputs
    numbers = {label: number_of(label) for label in labels}
    values = [value for value in numbers.values() if value is not None]
    further = {value for label in further_labels if (value := number_of(label)) is not None}
    in_names = numbers_in(names) if classes is None else _whole(names)
    doubted = (
        classes is None
        and len(values) == len(labels)
        and _count_otherwise({*values, *further}, len(outputs), in_names)
    )
    if not doubted and (number := _by_name(labels, names)) is not None:
        return Matching(number)
    if len(values) < len(labels):
        raise _no_match(source, labels, outputs, names, remedy)
    if not doubted and in_names is not None and set(values) <= set(in_names):
        number = {
            label: in_names.index(value) for label, value in numbers.items() if value is not None
        }
        # LABEL_0 and LABEL_1 are 0 and 1 by name and by place.
        plain = in_names == list(range(len(outputs))) and 0 in values
        method = "" if classes or plain else "the numbers in the names of its classes"
        return Matching(number, _note(number, outputs, method))
    if classes is None:
        start = _first(values, further, len(outputs), in_names)
        if start is not None:
            number = {
                label: int(value) - start for label, value in numbers.items() if value is not None
            }
            return Matching(number, _note(number, outputs, f"counting from {start}"))
        if readings := _readings(numbers, len(outputs), in_names):
            raise _uncertain(source, labels, outputs, readings, remedy)
    raise _no_match(source, labels, outputs, names, remedy)


def _check_names(classes: Sequence[str], outputs: Sequence[str]) -> None:
    if len(classes) != len(outputs):
        raise InputError(
            f"--classes: expected {len(outputs)} names for the model's outputs ({', '.join(outputs)}), got "
            f"{len(classes)} ({', '.join(classes)}): the model has {len(outputs)} classes; give a name for "
            "each, in this order"
        )
    if len({name.lower() for name in classes}) < len(classes):
        raise InputError(f"--classes: expected different names, got {', '.join(classes)}")


def _by_name(labels: Sequence[str], names: Sequence[str]) -> dict[str, int] | None:
    fold: Callable[[str], str] = str.lower
    if len({name.lower() for name in names}) < len(names):  # they differ in their case alone
        fold = str
    place = {fold(name): i for i, name in enumerate(names)}
    if any(fold(label) not in place for label in labels):
        return None
    return {label: place[fold(label)] for label in labels}


def numbers_in(names: Sequence[str]) -> list[Decimal] | None:
    """Return the number in each name; None where they do not tell the names apart.

    Of several numbers in each name, it is the one that differs.

    >>> numbers_in(["1 of 2", "2 of 2"]), numbers_in(["LABEL_0", "LABEL_1"]), numbers_in(["yes", "no"])
    ([Decimal('1'), Decimal('2')], [Decimal('0'), Decimal('1')], None)
    """
    numbers_by_name = [[Decimal(number) for number in _NUMBER.findall(name)] for name in names]
    if len({len(numbers) for numbers in numbers_by_name}) != 1:
        return None
    differing = [column for column in zip(*numbers_by_name, strict=True) if len(set(column)) > 1]
    if len(differing) != 1 or len(set(differing[0])) < len(names):
        return None
    return list(differing[0])


def _whole(names: Sequence[str]) -> list[Decimal] | None:
    """Return the numbers that names are; None where they are not all numbers that differ."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    return numbers if len(set(numbers)) == len(names) else None


def _count_otherwise(seen: set[Decimal], count: int, in_names: Sequence[Decimal] | None) -> bool:
    """Tell whether all splits' labels could count from 0 or 1, but are not all among the names' numbers."""
    counted = any(seen <= {*range(start, start + count)} for start in (0, 1))
    return in_names is not None and counted and not seen <= {*in_names}


def _first(
    values: Sequence[Decimal],
    further: set[Decimal],
    count: int,
    in_names: Sequence[Decimal] | None,
) -> int | None:
    """Return the number of the first output, 0 or 1; None where the labels do not say it.

    Numbers in the outputs' names that say otherwise ("1 star" is not 0 + 1) are overruled only by labels from 0
    to n - 1 that are all there.
    """
    seen = set(values)
    if further <= set(range(count + 1)):
        seen |= further
    for start, telling in ((0, 0), (1, count)):
        counted = {Decimal(i) for i in range(start, start + count)}
        if telling in seen and seen <= counted:
            contrary = in_names is not None and any(
                value in in_names and in_names.index(value) != value - start for value in seen
            )
            return start if not contrary or (start == 0 and seen == counted) else None
    return None


def _readings(
    numbers: Mapping[str, Decimal | None], count: int, in_names: Sequence[Decimal] | None
) -> dict[str, tuple[str, int]]:
    """Return what labels of uncertain numbers may mean: a label and its output, by the way of reading it."""
    values = {label: value for label, value in numbers.items() if value is not None}
    named = [label for label, value in values.items() if in_names and value in in_names]
    label = (named or list(values))[0]
    readings = {}
    for start in (0, 1):
        if all(value in range(start, start + count) for value in values.values()):
            readings[f"counted from {start}"] = (label, int(values[label]) - start)
    if readings and named and in_names:
        readings["by the number in its name"] = (label, in_names.index(values[label]))
    return readings


def _uncertain(
    source: str,
    labels: Sequence[str],
    outputs: Sequence[str],
    readings: Mapping[str, tuple[str, int]],
    remedy: str,
) -> InputError:
    said = "; ".join(
        f"{reading}, {label} is {outputs[i]}" for reading, (label, i) in readings.items()
    )
    if remedy == SAY:
        counts = [_counted(start, len(outputs)) for start in (0, 1)]
        remedy = f"say it: --classes {counts[0]} or --classes {counts[1]} (in Python classes=)"
    return InputError(
        f"{source}: expected labels that say which of the model's {len(outputs)} classes they mean "
        f"({some_of(outputs)}), got the numbers {some_of(labels)}: {said}; {remedy}"
    )


def _counted(start: int, count: int) -> str:
    numbers = [str(start + i) for i in range(count)]
    return ",".join(numbers if count <= 20 else [*numbers[:3], "...", numbers[-1]])


def _no_match(
    source: str,
    labels: Sequence[str],
    outputs: Sequence[str],
    names: Sequence[str],
    remedy: str,
) -> InputError:
    lower_names = {name.lower() for name in names}
    missing = [label for label in labels if label.lower() not in lower_names]
    expected = f"the model's {len(outputs)} classes ({some_of(names)})"
    mixed = _mixed(labels)
    got = some_of([f"{label:.40}" for label in labels])
    if len(labels) > len(outputs):
        lacks = f"no class for {some_of([f'{label:.40}' for label in missing])}"
        return InputError(
            f"{source}: expected {expected} as labels, got {len(labels)} different ones ({got}){mixed}: it "
            f"has {lacks if len(missing) < len(labels) else 'fewer classes'}; leave out the rows of the "
            "others, or choose a model of these classes"
        )
    numbered = "" if names is not outputs else " or their numbers"
    return InputError(
        f"{source}: expected {expected}{numbered} as labels, got {got}{mixed}; {remedy}"
    )


def _mixed(labels: Sequence[str]) -> str:
    truth = [label for label in labels if label.lower() in ("true", "false")]
    numbers = [label for label in labels if number_of(label) is not None]
    if not truth or not numbers:
        return ""
    return f" (truth values, {some_of(truth)}, beside numbers, {some_of(numbers)}: write them in one way)"


def _note(number: Mapping[str, int], outputs: Sequence[str], method: str) -> str | None:
    if not method:
        return None
    examples = some_of([f"{label} is {outputs[i]!r}" for label, i in number.items()], NAMED)
    return f"labels are numbers, matched with the model's classes by {method}: {examples}"
