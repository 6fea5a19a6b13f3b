"""The rows of the texts that a figure draws, as the page's table of texts counts them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from heedmap.experiments.pooling import TEXT


def shown_rows(instances: pa.Table, shown: Sequence[int]) -> dict[int, list[int]]:
    """Return the places in the page's table of each text that figures know: of its windows, if it was cut.

    `shown` are the rows of `instances` that the page's table has, in its order.
    """
    texts = instances[TEXT].to_pylist() if TEXT in instances.column_names else None
    places: dict[int, list[int]] = {}
    for place, row in enumerate(shown):
        places.setdefault(row if texts is None else texts[row], []).append(place)
    return places


def link(spec: Mapping[str, Any], places: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return a specification whose data count texts as the page's table does.

    Texts that the table leaves out are counted in `unlisted` of the mark that draws them.
    """
    datasets = {
        name: [_linked(datum, places) for datum in data]
        for name, data in spec.get("datasets", {}).items()
    }
    return {**spec, **({"datasets": datasets} if datasets else {})}


def _linked(datum: Any, places: Mapping[int, Sequence[int]]) -> Any:
    if not isinstance(datum, dict) or "rows" not in datum:
        return datum
    rows, xs = datum["rows"], datum.get("xs")
    linked = {**datum, "rows": [place for row in rows for place in places.get(row, ())]}
    if xs is not None:
        linked["xs"] = [x for row, x in zip(rows, xs, strict=True) for _ in places.get(row, ())]
    unlisted = sum(row not in places for row in rows)
    return {**linked, **({"unlisted": unlisted} if unlisted else {})}
