"""Which map may be shown instead? Others are asked as the map on trial was, and how far the best order of words goes.

They are computed only where the map on trial has no yes: then it is worth to know what would have one.
"""

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.cost import Speed
from heedmap.experiments.erased import slopes
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.highlights import AT_ONCE, column_of
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.registry import Experiment
from heedmap.experiments.rereading import (
    PART,
    PREFIXES,
    WHAT,
    Outcome,
    Ranked,
    orders_of,
    outcomes,
    ranked,
)
from heedmap.experiments.rule import answer, map_numbers, texts_of
from heedmap.files.tables import table
from heedmap.terminal.progress import track

CANDIDATES = {
    "read_out_attention": "read-out × attention",
    "read_out": "the read-out",
    "leave_one_out": "leave-one-out",
}
"""In the order in which they are offered: what is cheap and closest to the attention comes first."""

COLUMNS = Columns(
    "One row per text. Null for texts that `highlights` leaves out, and all null where the map on trial has a yes.",
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
    },
    map=CANDIDATES,
)


def where_needed(evidence: Evidence) -> pa.Table:
    """Return `alternatives`, or only nulls where the map on trial has a yes without them."""
    tables = {name: evidence.table(name) for name in ("highlights", "permutation")}
    said = answer(map_numbers(texts_of(tables)), packaged_rates().thresholds)
    if said not in ("yes", "words"):
        return alternatives(evidence)
    total = len(evidence.split)
    return table(
        {
            "row": range(total),
            "predicted": evidence.table("instances")["predicted"],
            "gone_best": column_of({}, "best", "gone", total),
            **{
                f"{what}_{name}": column_of({}, name, what, total)
                for name in CANDIDATES
                for what in ("highlighted", *WHAT)
            },
        }
    )


def alternatives(evidence: Evidence) -> pa.Table:
    """Return the outcomes of every candidate on the texts of `highlights`."""
    asked_of = evidence.table("highlights")["highlighted"].is_valid().to_numpy()
    rows = np.flatnonzero(asked_of)
    signed = evidence.table("leave_one_out")["signed"]
    asked: dict[int, dict[str, Ranked]] = {}
    for batch in evidence.batches_of(rows):
        trace = evidence.model.trace(batch)
        read_out, times_attention = slopes(evidence.model, trace)
        for i, row in enumerate(trace.rows.tolist()):
            rng = np.random.default_rng([evidence.settings.seed, *b"alternatives", row])
            leave_one_out = np.array(signed[row].as_py())
            scores = {
                "read_out_attention": times_attention[i][trace.mask[i]].numpy(force=True),
                "read_out": read_out[i][trace.mask[i]].numpy(force=True),
                "leave_one_out": leave_one_out,
            }
            asked[row] = {name: ranked(each, rng) for name, each in scores.items()}
            asked[row]["best"] = Ranked(orders_of(leave_one_out, rng), 0)
    found: dict[int, dict[str, Outcome]] = {}
    for start in track(range(0, len(rows), AT_ONCE)):
        found |= outcomes(
            evidence, {row: asked[row] for row in rows[start : start + AT_ONCE].tolist()}
        )
    total = len(asked_of)
    return table(
        {
            "row": range(total),
            "predicted": evidence.table("instances")["predicted"],
            "gone_best": column_of(found, "best", "gone", total),
            **{
                f"{what}_{name}": column_of(found, name, what, total)
                for name in CANDIDATES
                for what in ("highlighted", *WHAT)
            },
        }
    )


def _cost(speed: Speed) -> float:
    """Return seconds, as if the map on trial had no yes."""
    lengths = np.array([len(text) for text in speed.evidence.texts])
    steps = np.minimum(lengths // PART, PREFIXES)
    passes = (
        float(np.mean(len(CANDIDATES) * (steps * (1 - 1 / PART / 2) + 4))) if len(steps) else 0.0
    )
    return speed.reading(passes, 300)


EXPERIMENTS = (Experiment("alternatives", where_needed, columns=COLUMNS, place=44, cost=_cost),)
