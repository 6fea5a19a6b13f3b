"""Are these the words? Each text is read again without the words that the map highlights, and with them alone.

Texts of fewer than three words are left out: none of their words can be highlighted beside others.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.cost import Speed
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.rankings import ranked_heats
from heedmap.experiments.registry import Experiment
from heedmap.experiments.rereading import (
    ORDERS,
    PART,
    PREFIXES,
    WHAT,
    Outcome,
    at_random,
    chance_of_answers,
    guessing,
    outcomes,
    ranked,
)
from heedmap.files.tables import table
from heedmap.terminal.progress import track

TEXTS, PER_CLASS = 300, 30  # of the sample in all, or of each predicted class where that is more
AT_ONCE = 64  # texts whose readings are made together

COLUMNS = Columns(
    f"One row per text. Null for texts of fewer than {PART} words and those not sampled: of each predicted class "
    f"the same number is drawn, {TEXTS} texts in all, or {PER_CLASS} of each class where that is more.",
    {
        **shared("row", "predicted"),
        "probability": ("0 to 1", "that of the answer, the predicted class"),
        "guessing": (
            "0 to 1",
            "that of guessing, 1 / C of C candidates; what is above it is the lead",
        ),
        "unseen": (
            "0 to 1",
            "the answer's probability from a few words of other texts, as many as are highlighted (mean of "
            f"{ORDERS}): what the model says when it sees nothing of the text",
        ),
        "highlighted": (
            "count, from 0",
            "words that are highlighted: those with at least twice the weight of an even map, 0 if they are more "
            "than a third of the words",
        ),
        "gone_{order}": (
            "0 to 1",
            "the largest loss of the answer's probability when the model reads the text without the first k "
            "words by {order}, k up to a third of the words",
        ),
        "alone_{order}": (
            "0 to 1",
            "the answer's probability with the first words by {order} alone, as many as are highlighted",
        ),
        "alone_stays_{order}": ("0 to 1", "whether it is the answer then, too"),
        "among_{order}": (
            "0 to 1",
            "the answer's probability if all other words are replaced by those at the same places of other texts",
        ),
        "among_stays_{order}": ("0 to 1", "whether it is the answer then, too"),
    },
    order={"map": "the map", "random": f"a random order (mean of {ORDERS})"},
)


def sampled(evidence: Evidence) -> NDArray[np.int64]:
    """Return the rows that are asked: of each predicted class the same number, where there are so many."""
    lengths = np.array([len(text) for text in evidence.texts])
    rng = evidence.generator("highlights")
    if evidence.split.text_of is not None:
        rows = evidence.split.drawn(rng, TEXTS)
    else:
        predicted = evidence.table("instances")["predicted"].to_numpy()
        classes = np.unique(predicted)
        share = max(PER_CLASS, -(-TEXTS // max(1, len(classes))))
        drawn = (rng.permutation(np.flatnonzero(predicted == c))[:share] for c in classes)
        rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *drawn]))
    return rows[lengths[rows] >= PART]


def highlights(evidence: Evidence) -> pa.Table:
    """Return what the answers lose without the highlighted words, and how many stay with them alone."""
    heats = ranked_heats(evidence)
    asked = {}
    for row in sampled(evidence).tolist():
        rng = np.random.default_rng([evidence.settings.seed, *b"highlights", row])
        of_map, size = ranked(heats[row], rng), len(heats[row])
        asked[row] = {"map": of_map, "random": at_random(size, of_map.highlighted, rng)}
    found, unseen = {}, {}
    rows = list(asked)
    for start in track(range(0, len(rows), AT_ONCE)):
        part = {row: asked[row] for row in rows[start : start + AT_ONCE]}
        found |= outcomes(evidence, part)
        sizes = {row: each["map"].highlighted or 1 for row, each in part.items()}
        unseen |= chance_of_answers(evidence, sizes, "unseen")
    total = len(heats)
    return table(
        {
            "row": range(total),
            "predicted": evidence.table("instances")["predicted"],
            "probability": [
                max(each) for each in evidence.table("instances")["probabilities"].to_pylist()
            ],
            "guessing": guessing(evidence),
            "unseen": [unseen.get(row) for row in range(total)],
            "highlighted": column_of(found, "map", "highlighted", total),
            **{
                f"{what}_{order}": column_of(found, order, what, total)
                for order in ("map", "random")
                for what in WHAT
            },
        }
    )


def column_of(
    found: Mapping[int, Mapping[str, Outcome]], name: str, what: str, total: int
) -> pa.Array:
    """Return one number per text of the outcomes of a ranking; null where the text was not asked."""
    values = [getattr(found[row][name], what) if row in found else None for row in range(total)]
    return pa.array(values, pa.int64() if what == "highlighted" else pa.float64())


def _cost(speed: Speed) -> float:
    """Return seconds: along the map and random orders, and with words alone or among others'."""
    lengths = np.array([len(text) for text in speed.evidence.texts])
    steps = np.minimum(lengths // PART, PREFIXES)
    passes = (
        float(np.mean((1 + ORDERS) * steps * (1 - 1 / PART / 2) + 5 * ORDERS))
        if len(steps)
        else 0.0
    )
    return speed.reading(passes, TEXTS)


EXPERIMENTS = (Experiment("highlights", highlights, columns=COLUMNS, place=12, cost=_cost),)
