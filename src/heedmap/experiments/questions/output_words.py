"""Do the highlighted words make the number? The model reads texts again without them, and with them alone.

A number has no lead over a guess, of which `highlights` asks. What counts here is how far the output moves.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.texts import Text, shortened
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.rankings import ranked_heats
from heedmap.experiments.methods.rereading import (
    AT_ONCE,
    ORDERS,
    PART,
    Ranked,
    at_random,
    orders_of,
    prefix_passes,
    prefixes,
    ranked,
)
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import outputs_of_texts, text_table
from heedmap.importance.deletions import read
from heedmap.terminal.progress import track

TEXTS = 300  # of the sample
NAMES = {"map": "the map", "random": f"a random order (mean of {ORDERS})", "best": "leave-one-out"}

COLUMNS = Columns(
    f"One row per text. NaN for texts of fewer than {PART} words and those not sampled ({TEXTS} are), and "
    "`alone_...` where nothing is highlighted. A change is |difference| of two outputs, in their unit.",
    {
        **shared("row"),
        "highlighted": (
            "count, from 0",
            "words that are highlighted: those with at least twice the weight of an even map, 0 if they are "
            "more than a third of the words",
        ),
        "without_{order}": (
            "unit of the output, from 0",
            "the largest change when the model reads the text without the first k words by {order}, k up to a "
            "third of the words",
        ),
        "alone_{order}": (
            "unit of the output, from 0",
            "the change with the first words by {order} alone, as many as are highlighted",
        ),
    },
    order=NAMES,
)


def output_words(context: AuditContext) -> pa.Table:
    """Return how far the outputs move without the first words by the map, and with the highlighted ones alone.

    Random words are asked beside them, and the words of the largest leave-one-out.
    """
    sample = context.sample("output_words", TEXTS)
    rows = sample[[len(context.texts[row]) >= PART for row in sample.tolist()]]
    importance = context.table("leave_one_out")["importance"]
    columns: dict[str, NDArray[np.float64]] = {
        f"{what}_{name}": np.full(len(context.split), np.nan)
        for name in NAMES
        for what in ("without", "alone")
    }
    highlighted = np.full(len(context.split), np.nan)
    rankings: dict[int, dict[str, Ranked]] = {}
    for row, heat in ranked_heats(context, rows).items():
        rng = context.text_generator("output_words", row)
        of_map, scores = ranked(heat, rng), np.array(importance[row].as_py())
        highlighted[row] = of_map.highlighted
        rankings[row] = {
            "map": Ranked(orders_of(heat, rng), of_map.highlighted),
            "random": at_random(len(heat), of_map.highlighted, rng),
            "best": Ranked(orders_of(scores, rng), of_map.highlighted),
        }
    outputs = outputs_of_texts(context.table("instances"))
    for start in track(range(0, len(rows), AT_ONCE)):
        part = {row: rankings[row] for row in rows[start : start + AT_ONCE].tolist()}
        for (row, name), (without, alone) in _changes(context, part, outputs).items():
            columns[f"without_{name}"][row], columns[f"alone_{name}"][row] = without, alone
    return text_table(context, {"highlighted": highlighted, **columns})


def _changes(
    context: AuditContext,
    rankings: Mapping[int, Mapping[str, Ranked]],
    outputs: NDArray[np.float64],
) -> dict[tuple[int, str], tuple[float, float]]:
    """Return the changes without first words and with the highlighted ones alone, by row and ranking."""
    texts: list[Text] = []
    parts: list[tuple[int, str, Sequence[int], int | None]] = []

    def add(text: Text) -> int:
        texts.append(text)
        return len(texts) - 1

    for row, by_name in rankings.items():
        text = context.texts[row]
        for name, ranking in by_name.items():
            for order in ranking.orders:
                place = np.argsort(order, kind="stable")
                without = [add(shortened(text, place >= k)) for k in prefixes(len(text)).tolist()]
                count = ranking.highlighted
                parts.append(
                    (row, name, without, add(shortened(text, place < count)) if count else None)
                )
    again = read(context.model, texts)[:, 0].numpy()
    changes_of: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for row, name, numbers, alone in parts:
        changes = np.abs(again[list(numbers)] - outputs[row])
        left = np.nan if alone is None else float(abs(again[alone] - outputs[row]))
        changes_of.setdefault((row, name), []).append((float(changes.max()), left))
    means = {key: np.array(pairs).mean(0).tolist() for key, pairs in changes_of.items()}
    return {key: (without, alone) for key, (without, alone) in means.items()}


def _findings(results: Results) -> list[Finding]:
    short = results.column("instances", "n_tokens") < PART
    nothing = results.column("output_words", "highlighted") == 0
    without, random_without, best = (
        results.changes("output_words", f"without_{name}") for name in NAMES
    )
    alone, random_alone, _ = (results.changes("output_words", f"alone_{name}") for name in NAMES)
    reasons = {f"fewer than {PART} words": short, "the map highlights nothing": nothing}
    needed = results.finding(
        "number_needed",
        results.scale.kind,
        without,
        {**reasons, "not sampled": np.isnan(without) & ~short},
        topic="the number needs the highlighted words",
        question="Does the number move without the words that the map highlights?",
        measure=f"mean of the largest {results.scale.change} without the map's first words, up to a third of "
        "them",
        meaning=results.scale.meaning,
        summary=f"that is {results.scale.amount(mean(without))} on average",
        chance=random_without,
        ceiling=np.fmax(best, without),
    )
    sufficient = results.finding(
        "number_alone",
        results.scale.kind,
        alone,
        {**reasons, "not sampled": np.isnan(alone) & ~short & ~nothing},
        topic="the number with the highlighted words alone",
        question="Does the number stay with the highlighted words alone?",
        measure=f"mean {results.scale.change} with the highlighted words alone",
        meaning=f"{results.scale.meaning}; less is better",
        summary=f"with as many random words {mean(random_alone):.2f}",
    )
    return [needed, sufficient]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    numbers = row["output_words"]
    return [
        ("change without the map's first words", numbers["without_map"]),
        ("change with the highlighted words alone", numbers["alone_map"]),
    ]


def _cost(probe: CostProbe) -> float:
    return probe.reading((2 + ORDERS) * (prefix_passes(probe.context.texts) + 1), TEXTS)


EXPERIMENT = Experiment(
    "output_words",
    output_words,
    columns=COLUMNS,
    needs=("reading",),
    place=13,
    applies=lambda model, split: "classes" not in model.capabilities,
    findings=_findings,
    facts=_facts,
    cost=_cost,
)
