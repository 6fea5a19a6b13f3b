"""The vectors of the items of bags, read when they are asked for: one bag at a time, not all of them.

An item's name is `BAG:NUMBER`, its number in its bag counted from 0. It may say more after a sign:
`BAG:3=nine`.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.errors import InputError

HELD = 1 << 28  # bytes of the bags that were read last and are held; one bag at least
SIGN = "="  # before what an item's name says more

Read = Callable[[], NDArray[np.floating]]


@dataclass(frozen=True)
class StoredBag:
    """A bag of `count` items that is read by `read`: vectors (count, width), and coordinates (count, 2).

    `content` is a hash of it. `place` names it in errors. `read_picture` gives the colours (height, width, 3)
    of the picture that its items are the patches of, in the same coordinates.
    """

    count: int
    read: Read
    content: bytes
    place: str
    read_coordinates: Callable[[], NDArray[np.float64]] | None = None
    read_picture: Callable[[], NDArray[np.uint8]] | None = None


def held_bag(
    vectors: NDArray[np.float32], place: str, coordinates: NDArray[np.float64] | None = None
) -> StoredBag:
    """Return a bag of vectors that are in memory, and of its coordinates where they are known."""
    content = hashlib.sha256(vectors.tobytes()).digest()
    read, count = partial(np.asarray, vectors), len(vectors)
    if coordinates is None:
        return StoredBag(count, read, content, place)
    content = hashlib.sha256(content + coordinates.tobytes()).digest()
    return StoredBag(count, read, content, place, partial(np.asarray, coordinates))


class ItemVectors:
    """The vectors of all items of some bags. Their rows are numbered from 0, bag after bag.

    `in_memory`: whether no file has them.
    """

    def __init__(self, bags: Mapping[str, StoredBag], width: int, *, in_memory: bool) -> None:
        self.bags, self.width, self.in_memory = dict(bags), width, in_memory
        counts = [bag.count for bag in self.bags.values()]
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._order = {name: i for i, name in enumerate(self.bags)}
        self._names = list(self.bags)
        self._held: OrderedDict[int, NDArray[np.float32]] = OrderedDict()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_held": OrderedDict()}

    def names(self, bag: str, signs: Sequence[str] | None = None) -> list[str]:
        """Name the items of a bag; `signs` are what their names say more."""
        numbers = range(self.bags[bag].count)
        if signs is None:
            return [f"{bag}:{number}" for number in numbers]
        return [f"{bag}:{number}{SIGN}{signs[number]}" for number in numbers]

    def row(self, name: str) -> int | None:
        """Return the row of an item by its name; None where there is no such item."""
        bag, _, rest = name.strip().rpartition(":")
        number = rest.partition(SIGN)[0]
        order = self._order.get(bag)
        if order is None or not number.isdecimal():
            return None
        row = self.starts[order] + int(number)
        return int(row) if row < self.starts[order + 1] else None

    def name(self, row: int) -> str:
        """Return the name of the item in a row."""
        order = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"{self._names[order]}:{row - self.starts[order]}"

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of some rows, (N, width).

        Raises:
            InputError: a bag's file cannot be read, or has changed, or numbers that are not finite.
        """
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        orders = np.searchsorted(self.starts, rows, side="right") - 1
        for order in np.unique(orders).tolist():
            is_here = orders == order
            vectors[is_here] = self._bag(order)[rows[is_here] - self.starts[order]]
        return vectors

    def check(self, names: Iterable[str]) -> None:
        """Read the whole bag of each of these items.

        Raises:
            InputError: as `vectors`.
        """
        for name in names:
            row = self.row(name)
            assert row is not None, "an item of these bags"
            self.vectors(np.array([row]))

    def coordinates(self, tokens: Sequence[str]) -> NDArray[np.float64] | None:
        """Return where the items of one bag lie, (T, 2) by their names; None where it is not known."""
        bag = self._bag_of(tokens)
        if bag is None or bag.read_coordinates is None:
            return None
        rows = [self.row(name) for name in tokens]
        start = self.starts[self._order[tokens[0].rpartition(":")[0]]]
        return bag.read_coordinates()[[row - start for row in rows if row is not None]]

    def picture(self, tokens: Sequence[str]) -> NDArray[np.uint8] | None:
        """Return the picture that the items of one bag are patches of, (height, width, 3); None of others."""
        bag = self._bag_of(tokens)
        return None if bag is None or bag.read_picture is None else bag.read_picture()

    def _bag_of(self, tokens: Sequence[str]) -> StoredBag | None:
        return self.bags.get(tokens[0].rpartition(":")[0]) if len(tokens) else None

    def content(self) -> str:
        """Return a hash of all vectors: the same vectors give the same one."""
        digest = hashlib.sha256()
        for name, bag in self.bags.items():
            digest.update(f"{name}\0".encode("utf-8", "surrogatepass") + bag.content)
        return digest.hexdigest()

    def _bag(self, order: int) -> NDArray[np.float32]:
        cached = self._held.get(order)
        if cached is None:
            bag = self.bags[self._names[order]]
            cached = self._held[order] = checked(bag.read(), bag, self.width)
            size = sum(vectors.nbytes for vectors in self._held.values())
            while size > HELD and len(self._held) > 1:
                size -= self._held.popitem(last=False)[1].nbytes
        self._held.move_to_end(order)
        return cached


def checked(vectors: NDArray[np.floating], bag: StoredBag, width: int) -> NDArray[np.float32]:
    """Return the vectors of a bag as float32.

    Raises:
        InputError: another shape than when the bag was opened, or a number that is not finite.
    """
    if vectors.shape != (bag.count, width):
        raise InputError(
            f"{bag.place}: expected {bag.count} vectors of {width} numbers, as when it was opened, got the "
            f"shape {vectors.shape}"
        )
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(vectors, dtype=np.float32)
    is_finite = np.isfinite(narrow).all(1)
    if not is_finite.all():
        item = int(np.flatnonzero(~is_finite)[0])
        raise InputError(
            f"{bag.place}, item {item}: expected finite numbers of 32 bits, got NaN, infinity or larger ones"
        )
    return narrow


def common_width(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return how many numbers each vector has, from the shapes of the bags by their places.

    Raises:
        InputError: a bag that is no table of vectors, has no items, or vectors of another size.
    """
    width: int | None = None
    reference = ""
    for place, shape in shapes.items():
        if len(shape) != 2 or 0 in shape:
            raise InputError(
                f"{place}: expected a vector for each item, of the shape (items, numbers), got the shape "
                f"{tuple(shape)}"
            )
        if width is None:
            width, reference = shape[1], place
        elif shape[1] != width:
            raise InputError(
                f"{place}: expected vectors of {width} numbers, as in {reference}, got {shape[1]}"
            )
    assert width is not None, "bags are opened if there are some"
    return width
