"""Tables, claims and figures of the rows so far, trained weights beside random ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from heedmap.papers.brunner.attribution import RANGES
from heedmap.papers.brunner.claims import claims
from heedmap.papers.brunner.figures import figures
from heedmap.papers.brunner.lookup import CANDIDATES, CEILING
from heedmap.papers.brunner.numbers import HEAD_MEASURES, MATRICES, Lookup, Number, Numbers
from heedmap.papers.brunner.recovery import DISTANCES, MAPS
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table

ALL_MAPS = ("naive", *MAPS)
DISTANCE_NAMES = {"cosine": "cos", "l2": "L2"}
CANDIDATE_NAMES = {"text": "the tokens of the text", "vocabulary": "the whole vocabulary"}
HOW_TO_READ = """Per cent of the words' tokens in held-out texts, with 95 % intervals over texts. Layer 0 is \
what enters the first. `naive` has no map; linear and MLP are learned on training texts, for the distance by \
which they are judged. Chance: the linear map's cosine lookups, if the tokens of the text changed places. \
Ceiling: the embeddings themselves are looked up."""
NEW = """`new` are tokens that no training text of the maps has."""
CONTRIBUTIONS = """Per cent, means over words and texts with 95 % intervals. Contribution: ‖∂h_i/∂x_j‖ over \
its sum over j. Rollout multiplies the layers' mean attention, half of it residual. Every token alike: \
1 / positions."""
RANGE_NOTE = """Per cent of the mass on tokens at so many positions from the state; under each model's last \
layer the mass if every token contributed alike."""
HEADS = """Means over heads, words and texts. Rank and null space of T = V W_O over the text's real tokens, \
special ones included; in the null space rows may move, and on the simplex they still sum to 1. Effective \
share: ‖A⊥‖ / ‖A‖ of a row. Special tokens: their mass, in effective attention as a share of Σ|A⊥|; \
beside it with a random null space of the same dimension. τ: Kendall's of a row and the contributions to the \
state, without the token itself."""
COLUMNS = {
    "weights": "trained, or the same architecture with random ones",
    "measure": "what is measured",
    "layer": "0 is what enters the first layer; n is what leaves the n-th",
    "head": "number from 0; empty for the mean over heads",
    "map": "from states to embeddings: naive (none), linear, mlp; ceiling looks up the embeddings themselves",
    "distance": "of the lookup: cosine or l2",
    "candidates": "of the lookup: text or vocabulary; of a mass, positions from the state",
    "texts": "texts in the number",
    "value": "share, mean or median; τ is from −1 to 1",
    "low": "lower end of the 95 % interval over texts",
    "high": "its upper end",
}


@dataclass(frozen=True)
class Brunner(CellReproduction[BrunnerSettings]):
    """The rows of all cells so far."""

    @property
    def missing(self) -> int:
        """The number of models of which a part is still to be run."""
        parts = {(row["weights"], row["part"]) for row in self.rows}
        return sum(
            not {(weights, "tokens"), (weights, "contributions")} <= parts
            for weights in ("trained", "random")
        )

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper."""
        return [
            "another model and other texts; the paper's numbers are not at hand",
            "special tokens are candidates and contribute, but are not judged",
            "a token is recovered wherever it stands in its text",
            f"derivatives are taken in {self.settings.directions} random directions per token",
        ]

    @cached_property
    def models(self) -> dict[str, Numbers]:
        """The numbers of each model, the trained one first."""
        by_weights: dict[str, list[Any]] = {}
        for row in self.rows:
            by_weights.setdefault(row["weights"], []).append(row)
        return {weights: Numbers(rows) for weights, rows in by_weights.items()}

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims that can be judged so far."""
        return claims(self.models) if "trained" in self.models else []


Line = tuple[str, Numbers, int]


def result(brunner: Brunner) -> Result:
    """Make the result that all files of a reproduction show."""
    recovered = [_recovered(brunner, candidates) for candidates in CANDIDATES]
    return brunner.make_result(
        f"Brunner et al. on {brunner.name}",
        [*recovered, *brunner.claims, _contributions(brunner), _ranges(brunner), _heads(brunner)],
        figures=figures(brunner.models, brunner.name),
        rows=pd.DataFrame(_all_numbers(brunner.models), columns=[*COLUMNS]),
        columns=COLUMNS,
    )


def _lines(brunner: Brunner, layers: Callable[[Numbers], list[int]]) -> list[Line]:
    return [
        (weights, model, layer)
        for weights, model in brunner.models.items()
        for layer in layers(model)
    ]


def _model_columns(first: int) -> dict[str, Callable[[Line], str]]:
    """Return the columns that name a line; `first` is the number of the first layer in the rows' count."""
    return {"weights": lambda line: line[0], "layer": lambda line: str(line[2] + first)}


def _recovered(brunner: Brunner, candidates: str) -> Table:
    """Return how many tokens are recovered among some candidates, layer by layer."""

    def cell(name: str, distance: str) -> Callable[[Line], str]:
        lookup = Lookup(name, distance, candidates)
        return lambda line: line[1].recovered(lookup, line[2]).per_cent()

    linear, ceiling = (Lookup(name, "cosine", candidates) for name in ("linear", CEILING))
    columns = {
        **_model_columns(0),
        **{
            f"{'MLP' if name == 'mlp' else name}, {DISTANCE_NAMES[distance]}": cell(name, distance)
            for name in ALL_MAPS
            for distance in DISTANCES
        },
        "chance": lambda line: line[1].chance(linear, line[2]).per_cent(),
        "ceiling": lambda line: line[1].recovered(ceiling, 0).per_cent(),
    }
    if candidates == "vocabulary":
        columns["linear, cos, new"] = lambda line: line[1].recovered_new(linear, line[2]).per_cent()
    note = f"{HOW_TO_READ} {NEW}" if candidates == "vocabulary" else HOW_TO_READ
    return Table.of(
        f"Tokens recovered among {CANDIDATE_NAMES[candidates]}",
        _lines(brunner, lambda model: model.layers),
        columns,
        note,
        labels=2,
    )


def _contributions(brunner: Brunner) -> Table:
    """Return what a token contributes to its own state, layer by layer."""

    def mass(matrix: str) -> Callable[[Line], str]:
        return lambda line: line[1].mass(matrix, line[2]).per_cent()

    return Table.of(
        "What a token contributes to its own state",
        _lines(brunner, lambda model: [*model.contributions]),
        {
            **_model_columns(1),
            "mean": mass("contribution"),
            "median": lambda line: line[1].median(line[2]).per_cent(),
            "another contributes more": lambda line: line[1].not_largest(line[2]).per_cent(),
            "attention to itself": mass("attention"),
            "rollout to itself": mass("rollout"),
            "every token alike": mass("uniform"),
        },
        CONTRIBUTIONS,
        labels=2,
    )


def range_name(place: int) -> str:
    """Return a range of distances in words: `0`, `3–5`, `over 10`."""
    low, high = RANGES[place]
    if place == len(RANGES) - 1:
        return f"over {low - 1}"
    return str(low) if low == high else f"{low}–{high}"


def _ranges(brunner: Brunner) -> Table:
    """Return the contributions by distance."""
    lines: list[tuple[str, Numbers, int, str]] = []
    for weights, model in brunner.models.items():
        layers = [*model.contributions]
        lines += [(weights, model, layer, "contribution") for layer in layers]
        lines += [(weights, model, layer, "uniform") for layer in layers[-1:]]

    def cell(place: int) -> Callable[[tuple[str, Numbers, int, str]], str]:
        return lambda line: line[1].mass(line[3], line[2], place).per_cent()

    return Table.of(
        "Contributions by distance",
        lines,
        {
            "weights": lambda line: line[0],
            "layer": lambda line: str(line[2] + 1) if line[3] == "contribution" else "alike",
            **{range_name(place): cell(place) for place in range(len(RANGES))},
        },
        RANGE_NOTE,
        labels=2,
    )


def _heads(brunner: Brunner) -> Table:
    """Return null space and effective attention, the mean over heads layer by layer."""

    def rank(line: Line) -> str:
        frame = line[1].heads[line[2]]
        return f"{frame['rank'].min():.0f}–{frame['rank'].max():.0f}" if "rank" in frame else "–"

    def room(column: str) -> Callable[[Line], str]:
        def cell(line: Line) -> str:
            frame = line[1].heads[line[2]]
            return f"{100 * (frame[column] > 0).mean():.1f}" if column in frame else "–"

        return cell

    def dimension(line: Line) -> str:
        frame = line[1].heads[line[2]]
        return f"{frame['free'].mean():.2f}" if "free" in frame else "–"

    def measure(name: str, factor: float, digits: int) -> Callable[[Line], str]:
        return lambda line: line[1].of_heads(name, line[2]).times(factor, digits)

    return Table.of(
        "The null space of attention, and effective attention",
        _lines(brunner, lambda model: [*model.heads]),
        {
            **_model_columns(1),
            "rank of T": rank,
            "dimension of the null space": dimension,
            "with a null space %": room("free"),
            "on the simplex %": room("free_on_simplex"),
            "effective share %": measure("effective_share", 100, 1),
            "special tokens, raw %": measure("special_raw", 100, 1),
            "special tokens, effective %": measure("special_effective", 100, 1),
            "special tokens, random null space %": measure("special_control", 100, 1),
            "τ raw": measure("tau_raw", 1, 3),
            "τ effective": measure("tau_effective", 1, 3),
        },
        HEADS,
        labels=2,
    )


def _all_numbers(models: dict[str, Numbers]) -> list[dict[str, Any]]:
    """Return all numbers, one per row."""
    rows: list[dict[str, Any]] = []
    for weights, model in models.items():

        def add(
            measure: str, layer: int, number: Number, weights: str = weights, **names: Any
        ) -> None:
            rows.append(
                {
                    "weights": weights, "measure": measure, "layer": layer, "texts": number.texts,
                    "value": number.value, "low": number.low, "high": number.high, **names,
                }
            )  # fmt: skip

        for name, distance, candidates, layer in model.tokens:
            lookup = Lookup(name, distance, candidates)
            add("recovered", layer, model.recovered(lookup, layer), **lookup._asdict())
            add("chance", layer, model.chance(lookup, layer), **lookup._asdict())
            add("recovered, new", layer, model.recovered_new(lookup, layer), **lookup._asdict())
        for layer in model.contributions:
            add("median contribution", layer + 1, model.median(layer))
            add("another contributes more", layer + 1, model.not_largest(layer))
            for matrix in MATRICES:
                for place in range(len(RANGES)):
                    number = model.mass(matrix, layer, place)
                    add(f"mass: {matrix}", layer + 1, number, candidates=range_name(place))
        for layer, frame in model.heads.items():
            for measure in HEAD_MEASURES:
                for head in (None, *sorted(frame["head"].unique())):
                    number = model.of_heads(measure, layer, head)
                    add(measure, layer + 1, number, head=head)
    return rows
