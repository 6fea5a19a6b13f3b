"""A reproduction told: Table 1 beside ours, every row over the seeds, the claims; as Markdown and CSV."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heedmap.papers.drozdyuk_claims import (
    PUBLISHED,
    Claim,
    intervention_of,
    spread,
)
from heedmap.papers.drozdyuk_rows import Row
from heedmap.papers.escapes import markdown_text
from heedmap.terminal import cell, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

# Columns of the published table: 1.5-entmax is its "entmax", sparsemax it never ran.
_PLACE = {"softmax": 1, "entmax15": 2}


def activations_of(rows: Sequence[Row]) -> list[str]:
    """In the order in which they were run."""
    return list(dict.fromkeys(row["activation"] for row in rows))


def beside_published(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: each row of Table 1 [S4] in per cent, ours as mean (smallest–largest)."""
    there = activations_of(rows)
    heads = ["row"]
    for activation in there:
        heads += [f"{activation} [S4]", f"{activation}, ours"]
    lines = []
    for published in PUBLISHED:
        line: list[str] = [published[0]]
        for activation in there:
            place = _PLACE.get(activation)
            name = intervention_of(published[0], activation)
            column = "opposite_accuracy" if name == "opposite" else "accuracy"
            ours = spread(rows, activation, name, column)
            line.append("–" if place is None else f"{published[place]:.2f}")
            line.append("–" if ours is None else ours.per_cent())
        lines.append(line)
    return heads, lines


_COLUMNS = (
    ("accuracy %", "accuracy", 100.0, 1),
    ("drop", "drop", 100.0, 1),
    ("flipped labels %", "opposite_accuracy", 100.0, 1),
    ("kept %", "kept", 100.0, 1),
    ("TVD of prediction", "prediction_tvd", 1.0, 3),
    ("TVD of weights", "weights_tvd", 1.0, 3),
    ("JSD of weights", "weights_jsd", 1.0, 3),
    ("key distance", "key_distance", 1.0, 2),
    ("temperature", "temperature", 1.0, 2),
)


def every_line(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: all interventions, means over the seeds; the accuracy's range beside it."""
    heads = ["activation", "intervention", "layers", *(head for head, *_ in _COLUMNS), "range"]
    lines = []
    for key in dict.fromkeys((r["activation"], r["intervention"], r["layers"]) for r in rows):
        line = [str(part) for part in key]
        for _, column, factor, digits in _COLUMNS:
            found = spread(rows, key[0], key[1], column, key[2])
            line.append("" if found is None else f"{factor * found.mean:.{digits}f}")
        accuracy = spread(rows, key[0], key[1], "accuracy", key[2])
        assert accuracy is not None
        line.append(f"{100 * accuracy.low:.1f}–{100 * accuracy.high:.1f}")
        lines.append(line)
    return heads, lines


def markdown(title: str, notes: Sequence[str], rows: Sequence[Row], claims: Sequence[Claim]) -> str:
    """result.md."""
    parts = [f"# {markdown_text(title)}", *map(markdown_text, notes)]
    parts += ["## Table 1 [S4] beside ours", _grid(*beside_published(rows))]
    parts.append(
        "Accuracy in per cent; ours: mean over the seeds (smallest–largest). `opposite` counts flipped "
        "labels: it is the attack's success. [S4]: Drozdyuk et al., Table 1, one run."
    )
    for claim in claims:
        parts.append(f"## Claim: {claim.text}\n\n**{claim.verdict.capitalize()}.**")
        parts.append("\n".join(f"* {number}" for number in claim.numbers))
    parts += ["## Every intervention", _grid(*every_line(rows))]
    parts.append(
        "Means over seeds and test texts. Distances are those of the layers an intervention touches; the key "
        "distance is ‖K − K'‖ / ‖K‖; `matched` is an activation at a temperature fitted on dev."
    )
    return "\n\n".join(parts) + "\n"


def csv_text(rows: Sequence[Row]) -> str:
    """result.csv: one line a seed, lists left to table.parquet."""
    plain = [name for name, value in rows[0].items() if not isinstance(value, list)]
    plain = [name for name in plain if name not in ("losses", "dev_accuracies")]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, plain, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: printable(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows
    )
    return buffer.getvalue()


def told(rows: Sequence[Row], claims: Sequence[Claim]) -> "Iterator[RenderableType]":
    """Table 1 beside ours and the claims, for the terminal."""
    from rich.table import Table

    heads, lines = beside_published(rows)
    table = Table(title="Drozdyuk et al., Table 1 [S4], and ours (accuracy, %)", box=None)
    for head in heads:
        table.add_column(head, justify="left" if head == "row" else "right", overflow="fold")
    for line in lines:
        table.add_row(*map(cell, line))
    yield table
    for claim in claims:
        yield from map(cell, ("", f"Claim: {claim.text}", f"  {claim.verdict.upper()}"))
        yield from (cell(f"  - {number}") for number in claim.numbers)


def _grid(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] + ["---:"] * (len(heads) - 1), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
