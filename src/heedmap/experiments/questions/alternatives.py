"""How far could any map go, and which one may be shown instead? Others are asked as the map on trial was.

The best order of words is asked of the texts of which the map takes less than half of the lead, to know whether
any words decide there. Other maps are asked only where the one on trial has no yes.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.methods.followed_answers import followed_answers
from heedmap.experiments.methods.rankings import read_outs
from heedmap.experiments.methods.rereading import (
    WHAT,
    Outcomes,
    Ranked,
    Scores,
    orders_of,
    outcomes,
    prefix_passes,
    ranked,
)
from heedmap.experiments.questions.highlights import TEXTS, outcome_column
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.registry import Experiment, HeatMap, Row
from heedmap.experiments.rule import answer, map_numbers, texts_of
from heedmap.experiments.scales import scale_of
from heedmap.experiments.text_tables import SampledColumn, text_table

CANDIDATES = {
    "leave_one_out": "leave-one-out",
    "read_out_attention": "read-out × attention",
    "read_out": "the read-out",
}
"""In the order in which they are offered."""

READ_OUTS = {name: words for name, words in CANDIDATES.items() if name != "leave_one_out"}

COLUMNS = Columns(
    "One row per text. Null for texts that `highlights` leaves out. The best order is asked only of texts of "
    "which the map takes less than half of the lead, the other maps only where that map has no yes.",
    {
        **shared("row", "predicted"),
        "gone_best": (
            "0 to 1",
            "the largest loss of the answer's probability without the first k words by leave-one-out, signed "
            "towards the answer, k up to a third of the words: how far any map may go",
        ),
        "highlighted_{map}": ("count, from 0", "words that {map} highlights"),
        "gone_{map}": ("0 to 1", "the loss without the first words by {map}, as in `highlights`"),
        "alone_{map}": ("0 to 1", "the answer's probability with its highlighted words alone"),
        "alone_stays_{map}": ("0 to 1", "whether it is the answer then, too"),
        "among_{map}": ("0 to 1", "the same if all other words are those of other texts"),
        "among_stays_{map}": ("0 to 1", "whether it is the answer then, too"),
        "{read_out}": (
            "list per token",
            "{read_out} of each word, signed towards the answer",
        ),
    },
    map=CANDIDATES,
    read_out=READ_OUTS,
)


def where_needed(context: AuditContext) -> pa.Table:
    """Return `alternatives`; of a map that has a yes only how far the best order goes."""
    return with_candidates_where_needed(context, best_orders(context))


def with_candidates_where_needed(context: AuditContext, best: pa.Table) -> pa.Table:
    """Return `alternatives` where the table `best_orders` is there already."""
    tables = {name: context.table(name) for name in ("highlights", "permutation")}
    size = scale_of(context.table("instances"), context.model.classes).size
    texts = texts_of({**tables, "alternatives": best}, size)
    said = answer(map_numbers(texts), packaged_rates().thresholds)
    return best if said in ("yes", "words") else _with_candidates(context, best)


def alternatives(context: AuditContext) -> pa.Table:
    """Return how far the best order goes, and the outcomes of every candidate on the texts of `highlights`."""
    return _with_candidates(context, best_orders(context))


def rows_for_best_orders(context: AuditContext) -> NDArray[np.int64]:
    """Return the rows of the texts of which the map takes less than half of the lead."""
    highlighted = context.table("highlights")
    lead = highlighted["probability"].to_numpy() - highlighted["guessing"].to_numpy()
    return np.flatnonzero(highlighted["gone_map"].to_numpy() < lead / 2)


def best_orders(context: AuditContext) -> pa.Table:
    """Return the table without candidates: the outcomes along leave-one-out of `rows_for_best_orders`."""
    signed, towards = context.table("leave_one_out")["signed"], followed_answers(context).towards
    orders = {}
    for row in rows_for_best_orders(context).tolist():
        rng = context.text_generator("alternatives", row)
        scores = towards[row] * np.array(signed[row].as_py())
        orders[row] = {"best": Ranked(orders_of(scores, rng), 0)}
    gone_best = outcome_column(outcomes(context, orders).get("best", {}), "gone")
    return _table(context, gone_best, {}, {})


def _with_candidates(context: AuditContext, best: pa.Table) -> pa.Table:
    """Return the table with the outcomes of every candidate."""
    rows = np.flatnonzero(context.table("highlights")["highlighted"].is_valid().to_numpy())
    signed, towards = context.table("leave_one_out")["signed"], followed_answers(context).towards
    maps: dict[int, dict[str, Scores]] = {}
    for batch in context.batches_of(rows):
        of_batch = read_outs(context.model, context.model.trace(batch))
        maps |= {
            row: {name: towards[row] * scores for name, scores in of_text.items()}
            for row, of_text in of_batch.items()
        }
    rankings: dict[int, dict[str, Ranked]] = {}
    for row, read_out_scores in maps.items():
        rng = context.text_generator("alternatives", row)
        # Ties are drawn in this order, by which the numbers of the planted models were made.
        scores = {name: read_out_scores[name] for name in READ_OUTS}
        scores["leave_one_out"] = towards[row] * np.array(signed[row].as_py())
        rankings[row] = {name: ranked(token_scores, rng) for name, token_scores in scores.items()}
    return _table(context, best["gone_best"], outcomes(context, rankings), maps)


def _table(
    context: AuditContext,
    gone_best: SampledColumn | pa.ChunkedArray,
    outcomes_by_order: Mapping[str, Outcomes],
    maps: Mapping[int, Mapping[str, Scores]],
) -> pa.Table:
    """Return the table; what was not asked is null."""
    return text_table(
        context,
        {
            "gone_best": gone_best,
            **{
                f"{quantity}_{name}": outcome_column(outcomes_by_order.get(name, {}), quantity)
                for name in CANDIDATES
                for quantity in ("highlighted", *WHAT)
            },
            **{
                name: SampledColumn(
                    {row: of_text[name] for row, of_text in maps.items()}, pa.list_(pa.float64())
                )
                for name in READ_OUTS
            },
        },
        copied=["predicted"],
    )


def signed_map(name: str, scores: Scores) -> HeatMap:
    """Return the map of scores that are signed towards the answer."""
    return HeatMap(name, "importance", np.abs(scores).tolist(), against=(scores < 0).tolist())


def _heat_maps(row: Row) -> list[HeatMap]:
    """Return the maps of the read-out where they were asked; leave-one-out has a table of its own."""
    maps = {words: row["alternatives"].get(name) for name, words in READ_OUTS.items()}
    return [
        signed_map(words, np.array(scores)) for words, scores in maps.items() if scores is not None
    ]


def _cost(probe: CostProbe) -> float:
    """Return seconds, as if the map on trial had no yes."""
    passes = len(CANDIDATES) * (prefix_passes(probe.context.texts) + 4)
    return probe.reading(passes, TEXTS)


EXPERIMENT = Experiment(
    "alternatives",
    where_needed,
    columns=COLUMNS,
    needs=("reading",),
    place=44,
    heat_maps=_heat_maps,
    cost=_cost,
)
