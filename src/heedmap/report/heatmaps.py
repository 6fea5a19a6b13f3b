"""One instance's heat maps, which the page's template draws as shaded words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from heedmap.data.text_names import text_name
from heedmap.experiments.registry import HeatMap, registered
from heedmap.experiments.rounding import number
from heedmap.report.picks import Pick


@dataclass(frozen=True)
class Token:
    """A word, its weight, its weight relative to the row's largest, and whether it is in the rationale.

    `against`: without the word the answer is likelier.
    """

    text: str
    weight: float
    shade: float
    gold: bool
    against: bool = False


@dataclass(frozen=True)
class Row:
    """One heat map. `kind` is attention or importance; without tokens, `note` says why."""

    name: str
    kind: str
    tokens: list[Token]
    note: str


@dataclass(frozen=True)
class Instance:
    """An instance on the page; `expected` is the probability of its label, which may not be known.

    For a pair, attention is over the text's tokens, given the `query`; `candidates` counts its possible
    answers.
    """

    pick: Pick
    name: str
    label: str | None
    predicted: str
    probability: float
    expected: float | None
    right: bool | None
    facts: list[tuple[str, str]]
    rows: list[Row]
    gold: bool
    query: list[str] | None = None
    candidates: int | None = None


def instance(tables: Mapping[str, pa.Table], classes: Sequence[str], pick: Pick) -> Instance:
    """Collect one picked instance from the tables."""
    experiments = [one for name, one in registered().items() if name in tables and one.per_text]
    row = {one.name: tables[one.name].slice(pick.row, 1).to_pylist()[0] for one in experiments}
    own = row["instances"]
    gold, label = own.get("rationale"), own["label"]
    maps = [heat_map for one in experiments for heat_map in one.heat_maps(row)]
    maps.sort(key=lambda heat_map: heat_map.kind != "attention")
    facts = [fact for one in experiments for fact in one.facts(row)]
    return Instance(
        pick=pick,
        name=text_name(str(own["key"])),
        label=None if label is None else classes[label],
        predicted=classes[own["predicted"]],
        probability=own["probabilities"][own["predicted"]],
        expected=None if label is None else own["probabilities"][label],
        right=None if label is None else label == own["predicted"],
        facts=[
            (name, number(x) if isinstance(x, float) else str(x))
            for name, x in facts
            if x is not None and math.isfinite(x)
        ],
        rows=[shaded(heat_map, own["tokens"], gold) for heat_map in maps],
        gold=bool(gold) and any(gold),
        query=own.get("query"),
        candidates=own.get("candidates"),
    )


def shaded(heat_map: HeatMap, tokens: list[str], gold: list[bool] | None) -> Row:
    """Shade each token by its share of the largest weight; no tokens where a weight is undefined."""
    name, kind, weights = heat_map.name, heat_map.kind, heat_map.weights
    if weights is None or any(w is None or not math.isfinite(w) for w in weights):
        why = "not defined" + (" for a text of one word" if len(tokens) == 1 else "")
        return Row(name, kind, [], why)
    top = max([*weights, 0.0])
    shown = heat_map.tokens or tokens
    marks = gold if gold and shown is tokens else [False] * len(shown)
    signs = heat_map.against or [False] * len(shown)
    row = [
        Token(token, weight, max(weight, 0.0) / top if top > 0 else 0.0, mark, sign)
        for token, weight, mark, sign in zip(shown, weights, marks, signs, strict=True)
    ]
    return Row(name, kind, row, f"largest {number(top)}" if top > 0 else "zero for every word")
