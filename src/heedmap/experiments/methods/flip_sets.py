"""Find the words whose erased weights flip the answer; their numbers are in the table `decision_flips`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.weight_erasure import smallest, split_along
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import (
    imposed,
    is_closed,
    ranked,
    slopes,
    traces_of,
)
from heedmap.experiments.methods.readout import linear
from heedmap.models.trace import Trace

EXACT = "exact"
RANKINGS = {
    "attention": "the map",
    "ascending": "the map upside down",
    "gradient": "the gradient by the weights",
    "product": "gradient × attention",
    "leave_one_out": "leave-one-out",
}


@dataclass(frozen=True)
class FlipSet:
    """Words without whose weight another class is predicted: `words` are their places in the text, ascending.

    `mass` is the attention on them, `predicted` the new class and `probability` its probability. `ranking` is
    the one of RANKINGS whose first words they are, or EXACT: no set is smaller.
    """

    words: list[int]
    mass: float
    predicted: int
    probability: float
    ranking: str


def flip_sets(context: AuditContext) -> list[FlipSet | None]:
    """Return the smallest set of each text, or, without a closed form, that of the ranking that needs fewest.

    None where no set of words flips while one is left, where no ranking does, and of texts of one word.
    """
    table = context.table("decision_flips").to_pylist()
    smallest_sets: list[FlipSet | None] = [None] * len(table)
    for trace in traces_of(context):
        rows = trace.rows.tolist()
        if is_closed(trace, context.settings.renormalise):
            names = [EXACT if table[row]["count_exact"] else None for row in rows]
            erased, logits = _smallest(trace)
        else:
            names = [_quickest(table[row]) for row in rows]
            values = rankings(context, trace)
            erased = first_words(trace, values, [table[row] for row in rows])
            is_kept = (~erased & trace.mask).unsqueeze(0)
            logits = imposed(context.model, trace, is_kept, context.settings.renormalise)[0]
        shares = logits.softmax(-1)
        for i, (row, name) in enumerate(zip(rows, names, strict=True)):
            if name is not None:
                best = int(shares[i].argmax())
                words = erased[i].nonzero().squeeze(-1).tolist()
                mass = table[row][f"mass_{name}"]
                smallest_sets[row] = FlipSet(words, mass, best, float(shares[i, best]), name)
    return smallest_sets


def _smallest(trace: Trace) -> tuple[Bool[Tensor, "B T"], Float[Tensor, "B C"]]:
    """Return the smallest sets, and the logits without them."""
    problem = (*linear(trace), trace.mask)
    _, erased = smallest(*problem, trace.predicted)
    without, _ = split_along(erased.double(), *problem, erased.sum(-1, keepdim=True))
    return erased, without[:, 0]


def _quickest(row: Mapping[str, Any]) -> str | None:
    """Return the ranking that needs the fewest words to flip; None if none does."""
    counts = {name: row[f"count_{name}"] for name in RANKINGS if row[f"count_{name}"]}
    return min(counts, key=counts.__getitem__) if counts else None


def first_words(
    trace: Trace, values: Mapping[str, Float[Tensor, "B T"]], counts: Sequence[Mapping[str, Any]]
) -> Bool[Tensor, "B T"]:
    """Mark the first words of the ranking that needs the fewest of them to flip; none where none does.

    `values` are the tokens' numbers by ranking, and `counts` the columns `count_...` of each text.
    """
    orders = {name: ranked(ranking, trace.mask) for name, ranking in values.items()}
    erased = torch.zeros_like(trace.mask)
    for i, row in enumerate(counts):
        name = _quickest(row)
        if name is not None:
            erased[i, orders[name][i, : row[f"count_{name}"]]] = True
    return erased


def rankings(context: AuditContext, trace: Trace) -> dict[str, Float[Tensor, "B T"]]:
    """Return the tokens' numbers in each of RANKINGS; without leave-one-out if the model cannot read again."""
    heat = trace.ranked_heatmap.double()
    gradient, product = slopes(context.model, trace)
    numbers = {"attention": heat, "ascending": -heat, "gradient": gradient, "product": product}
    if "reading" not in context.model.capabilities:
        return numbers
    importance = context.table("leave_one_out")["importance"]
    without = torch.zeros_like(heat)
    for i, row in enumerate(trace.rows.tolist()):
        values = torch.tensor(importance[row].as_py(), dtype=torch.float64)
        without[i, trace.mask[i]] = values.nan_to_num().to(heat)
    return {**numbers, "leave_one_out": without}
