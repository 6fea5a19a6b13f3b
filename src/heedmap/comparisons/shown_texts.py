"""The texts that the page draws: each run's tokens, weights and prediction, or a stated sample of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from heedmap.comparisons.map_differences import MapDifferences, Maps, TextMap
from heedmap.comparisons.same_texts import TextIds
from heedmap.comparisons.sources import NamedAudit
from heedmap.data.text_names import text_name
from heedmap.experiments.generators import named_generator
from heedmap.experiments.rounding import significant

MOST_TEXTS = 500  # on the page; of more, the extremes and a random sample of the others
EXTREMES = 25  # texts of each pair of runs on which the maps differ most, which are always there


@dataclass(frozen=True)
class ShownTexts:
    """Texts as values of JSON, and of how many they are."""

    texts: list[dict[str, Any]]
    total: int

    @property
    def note(self) -> str:
        """What was sampled; empty if all texts are shown."""
        if len(self.texts) == self.total:
            return ""
        return (
            f"{len(self.texts)} of {self.total} texts are shown: of every two runs the {EXTREMES} whose maps "
            "differ most, and a random sample of the others."
        )


def shown_texts(
    runs: Sequence[NamedAudit],
    instances: Sequence[pa.Table],
    ids: Sequence[TextIds],
    maps: Sequence[Maps],
    compared: Sequence[MapDifferences],
    most: int = MOST_TEXTS,
) -> ShownTexts:
    """Choose the texts and describe each as every run reads it.

    `instances`: each run's table with one row per text. A text's maps are None in runs that lack it.
    """
    rows = [{int(text): row for row, text in enumerate(run_ids.ids)} for run_ids in ids]
    total = sorted({*chain.from_iterable(rows)})
    chosen = _chosen(total, compared, most)
    columns = [
        {name: table[name].to_pylist() for name in ("key", "label", "predicted", "probabilities")}
        | ({"query": table["query"].to_pylist()} if "query" in table.column_names else {})
        for table in instances
    ]
    texts = []
    for text in chosen:
        readings = [
            _reading(run, run_columns, run_rows[text], run_maps.get(text))
            if text in run_rows
            else None
            for run, run_columns, run_rows, run_maps in zip(runs, columns, rows, maps, strict=True)
        ]
        run = next(i for i, reading in enumerate(readings) if reading is not None)
        first_row = rows[run][text]
        texts.append(
            {
                "id": text,
                "name": text_name(str(columns[run]["key"][first_row])),
                "query": " ".join(columns[run]["query"][first_row])
                if "query" in columns[run]
                else "",
                "runs": readings,
            }
        )
    return ShownTexts(texts, len(total))


def _chosen(total: Sequence[int], compared: Sequence[MapDifferences], most: int) -> list[int]:
    if len(total) <= most:
        return list(total)
    # In turns, so that every two runs have their most different texts among many pairs.
    extremes: dict[int, None] = {}
    for place in range(EXTREMES):
        for differences in compared:
            extremes.update(dict.fromkeys([*differences.distances][place : place + 1]))
    kept = [*extremes][:most]
    others = sorted({*total} - {*kept})
    drawn = named_generator(0, "compare").permutation(len(others))[: most - len(kept)]
    return sorted([*kept, *(others[i] for i in drawn)])


def _reading(
    run: NamedAudit,
    columns: Mapping[str, Sequence[Any]],
    row: int,
    heat_map: TextMap | None,
) -> dict[str, Any]:
    """Return how a run reads a text; without a map where its windows have one each."""
    classes = run.classes
    label, predicted = columns["label"][row], columns["predicted"][row]
    probability = float(columns["probabilities"][row][predicted])
    reading = {
        "label": None if label is None or math.isnan(label) else classes[int(label)],
        "predicted": classes[predicted],
        "probability": round(probability, 4) if math.isfinite(probability) else None,
    }
    if heat_map is not None:
        tokens, weights = heat_map
        reading |= {"tokens": [*tokens], "weights": [significant(weight) for weight in weights]}
    return reading
