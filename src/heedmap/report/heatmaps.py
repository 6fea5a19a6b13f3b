"""One instance's heat maps, which the page's template draws as shaded words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from heedmap.data.text_names import text_name
from heedmap.experiments.registry import HeatMap, registered
from heedmap.experiments.rounding import number
from heedmap.report.examples import Example
from heedmap.report.pair_tokens import shown_tokens


@dataclass(frozen=True)
class Token:
    """A word, its weight, and its shade, the weight relative to the row's largest.

    `gold`: the word is in the rationale. `against`: the answer is likelier without the word.
    """

    text: str
    weight: float
    shade: float
    gold: bool
    against: bool = False


@dataclass(frozen=True)
class Row:
    """One heat map. `kind` is "attention" or "importance"; if there are no tokens, `note` says why."""

    name: str
    kind: str
    tokens: list[Token]
    note: str


@dataclass(frozen=True)
class Instance:
    """An instance on the page; `expected` is the probability of its label, None if the label is unknown.

    A pair's attention is over the text's tokens, given the `query`; `candidates` counts its possible answers.
    """

    example: Example
    name: str
    label: str | None
    predicted: str
    probability: float | None
    expected: float | None
    right: bool | None
    facts: list[tuple[str, str]]
    rows: list[Row]
    gold: bool
    query: list[str] | None = None
    candidates: int | None = None


def predicted_text(values: Mapping[str, Any], classes: Sequence[str]) -> str:
    """Return the predicted class, or the number with its unit and the label, where the model gives a number."""
    if len(classes) > 1:
        name: str = classes[values["predicted"]]
        return name
    amount = values.get("amount")
    label = "" if amount is None else f" (label {number(amount)})"
    return f"{number(values['probabilities'][0])} {classes[0]}{label}"


def instance(tables: Mapping[str, pa.Table], classes: Sequence[str], example: Example) -> Instance:
    """Collect what the page shows of one example from the tables."""
    experiments = [
        experiment
        for name, experiment in registered().items()
        if name in tables and experiment.per_text
    ]
    row = {
        experiment.name: tables[experiment.name].slice(example.row, 1).to_pylist()[0]
        for experiment in experiments
    }
    values = row["instances"]
    gold, label = values.get("rationale"), values["label"]
    maps = [heat_map for experiment in experiments for heat_map in experiment.heat_maps(row)]
    # Attention first, since the other rows are what it is compared with; the order among them stays.
    maps.sort(key=lambda heat_map: heat_map.kind != "attention")
    facts = [fact for experiment in experiments for fact in experiment.facts(row)]
    return Instance(
        example=example,
        name=text_name(str(values["key"])),
        label=None if label is None else classes[label],
        predicted=predicted_text(values, classes),
        probability=values["probabilities"][values["predicted"]] if len(classes) > 1 else None,
        expected=None if label is None else values["probabilities"][label],
        right=None if label is None else label == values["predicted"],
        facts=[
            (name, number(x) if isinstance(x, float) else str(x))
            for name, x in facts
            if x is not None and math.isfinite(x)
        ],
        rows=[shaded(heat_map, shown_tokens(values), gold) for heat_map in maps],
        gold=bool(gold) and any(gold),
        query=values.get("query"),
        candidates=values.get("candidates"),
    )


def shaded(heat_map: HeatMap, tokens: list[str], gold: list[bool] | None) -> Row:
    """Shade each token by its share of the largest weight; no tokens where a weight is undefined."""
    name, kind, weights = heat_map.name, heat_map.kind, heat_map.weights
    if weights is None or any(w is None or not math.isfinite(w) for w in weights):
        reason = "not defined" + (" for a text of one word" if len(tokens) == 1 else "")
        return Row(name, kind, [], reason)
    top = max([*weights, 0.0])
    labels = heat_map.tokens or tokens
    marks = gold if gold and labels is tokens else [False] * len(labels)
    signs = heat_map.against or [False] * len(labels)
    row = [
        Token(token, weight, max(weight, 0.0) / top if top > 0 else 0.0, mark, sign)
        for token, weight, mark, sign in zip(labels, weights, marks, signs, strict=True)
    ]
    return Row(name, kind, row, f"largest {number(top)}" if top > 0 else "zero for every word")
