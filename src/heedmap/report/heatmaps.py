"""One instance's heat maps, side by side: what the page's template turns into shaded words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from heedmap.report.adversary_figures import is_exact
from heedmap.report.telling import Pick
from heedmap.report.words import number

PAIRS = {
    "gradient": "gradient",
    "leave_one_out": "leave-one-out",
    "integrated_gradients": "integrated gradients",
}

# The tables with one row a text.
BY_TEXT = ("instances", *PAIRS, "agreement", "permutation", "adversary", "rationale")


@dataclass(frozen=True)
class Token:
    """A word, its weight, the weight as a share of the row's largest, and whether it decides."""

    text: str
    weight: float
    shade: float
    gold: bool


@dataclass(frozen=True)
class Row:
    """One heat map. `kind` is attention or importance; without tokens, `note` says why."""

    name: str
    kind: str
    tokens: list[Token]
    note: str


@dataclass(frozen=True)
class Instance:
    """All that is shown of an instance; `expected` is the probability of its label.

    Of a pair, attention is over the text's tokens, given the `query`; `candidates` are its possible answers.
    """

    pick: Pick
    key: str
    label: str
    predicted: str
    probability: float
    expected: float
    right: bool
    facts: list[tuple[str, str]]
    rows: list[Row]
    gold: bool
    query: list[str] | None = None
    candidates: int | None = None


def instance(tables: Mapping[str, pa.Table], classes: Sequence[str], pick: Pick) -> Instance:
    """One picked instance from the tables."""
    row = pick.row
    one = {n: tables[n].slice(row, 1).to_pylist()[0] for n in BY_TEXT if n in tables}
    own = one["instances"]
    gold = own.get("rationale")
    tokens = own["tokens"]
    maps = [_row("learned attention", "attention", tokens, own["attention"], gold)]
    if "adversary" in one:
        other = one["adversary"]
        name = "adversarial attention" + ("" if is_exact(tables, classes) else " (best found)")
        weights = other["attention"] if len(tokens) > 1 else None
        if other["attention"] is not None:  # else the text was not sampled for the search
            maps.append(_row(name, "attention", tokens, weights, gold))
    maps += [
        _row(words, "importance", tokens, one[name]["importance"], gold)
        for name, words in PAIRS.items()
        if name in one and one[name]["importance"] is not None
    ]
    return Instance(
        pick=pick,
        key=str(own["key"]),
        label=classes[own["label"]],
        predicted=classes[own["predicted"]],
        probability=own["probabilities"][own["predicted"]],
        expected=own["probabilities"][own["label"]],
        right=own["label"] == own["predicted"],
        facts=_facts(one),
        rows=maps,
        gold=bool(gold) and any(gold),
        query=own.get("query"),
        candidates=own.get("candidates"),
    )


def _row(
    name: str,
    kind: str,
    tokens: list[str],
    weights: list[float] | None,
    gold: list[bool] | None,
) -> Row:
    if weights is None or any(w is None or not math.isfinite(w) for w in weights):
        why = "not defined" + (" for a text of one word" if len(tokens) == 1 else "")
        return Row(name, kind, [], why)
    top = max([*weights, 0.0])
    marks = gold or [False] * len(tokens)
    shaded = [
        Token(token, weight, max(weight, 0.0) / top if top > 0 else 0.0, mark)
        for token, weight, mark in zip(tokens, weights, marks, strict=True)
    ]
    return Row(name, kind, shaded, f"largest {number(top)}" if top > 0 else "zero for every word")


def _facts(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and numbers of the instance; those that are not defined are left out."""
    found: list[tuple[str, Any]] = []
    if "adversary" in one:
        jsd, upper = one["adversary"]["jsd"], one["adversary"]["jsd_upper"]
        found.append(("largest JSD" if jsd == upper else "largest JSD, at least", jsd))
        if jsd != upper:
            found.append(("at most", upper))
    if "permutation" in one:
        found.append(("median TVD, shuffled", one["permutation"]["median_tvd"]))
        found.append(("TVD, even weights", one["permutation"].get("uniform_tvd")))
    if "agreement" in one:
        found += [
            (f"τ with {words}", one["agreement"].get(f"tau_attention_{name}"))
            for name, words in PAIRS.items()
        ]
    if "rationale" in one:
        found.append(("ROC AUC of attention", one["rationale"]["auc_attention"]))
    told = [(name, number(x)) for name, x in found if x is not None and math.isfinite(x)]
    free = one.get("adversary", {}).get("dimension")
    return told if free is None else [*told, ("dimensions of freedom, same output", str(free))]
