"""One window of an explanation in words, as a table for the terminal, and as shaded words for HTML."""

import math
from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from heedmap.experiments.methods.flip_sets import EXACT, RANKINGS
from heedmap.experiments.questions.adversary import NOT_ASKED
from heedmap.experiments.questions.alternatives import READ_OUTS, signed_map
from heedmap.experiments.registry import HeatMap
from heedmap.experiments.rounding import number
from heedmap.measures import LN2
from heedmap.nouns import TEXTS, Nouns
from heedmap.report.explained_window import Floats, Window
from heedmap.report.heatmaps import Row, shaded
from heedmap.report.wording import plural
from heedmap.terminal.output import Either, cell

LISTED = 40  # rows of the table
NAMED = 8  # words that a sentence names
BAR = 6  # characters
TABLE = (
    80  # columns that the table needs; a narrower terminal gets each number on a line of its own
)
COUNTS = {1: "", 2: "two ", 3: "three "}
LEAVE_ONE_OUT = "leave-one-out"
NO_DECISION = (
    "Other weights with nearly the same number are not asked for, since what counts as that depends on the "
    "outputs of many texts (an audit asks it); and none flip it, since the model decides between no classes."
)


def sentences(window: Window, classes: Sequence[str], unit: str, epsilon: float) -> list[str]:
    """Say what the numbers of a window come to, without a verdict, which one text does not allow.

    Args:
        window: the numbers.
        classes: the names of the model's classes.
        unit: what a token is, "word" or "sentence".
        epsilon: the change of the prediction (TVD) within which an answer counts as the same.
    """
    if len(window.tokens) == 1:
        return [
            f"The text has one {unit}: there is nothing to leave out, and no other weights exist."
        ]
    if window.is_number:
        return [_attended(window, unit), NO_DECISION]
    return [
        _attended(window, unit),
        _other_weights(window, epsilon),
        _flipping(window, classes, unit),
    ]


def _attended(window: Window, unit: str) -> str:
    positions, total = window.most_attended(), window.leave_one_out.sum()
    if not positions:
        return f"No {unit} gets more attention than the others."
    count, size = len(positions), len(window.tokens)
    words = f"{unit} holds" if count == 1 else f"{unit}s hold"
    attention_share = number(window.attention[positions].sum())
    start = f"The {COUNTS[count]}most attended {words} {attention_share} of the attention"
    if not total > 0:
        return (
            f"{start}. Leaving out any {unit} leaves the answer the same, so leave-one-out finds no "
            "importance."
        )
    importance_share = window.leave_one_out[positions].sum() / total
    largest_share = np.sort(window.leave_one_out)[-count:].sum() / total
    as_many = f"one {unit}" if count == 1 else f"as many {unit}s"
    return (
        f"{start} and {number(importance_share)} of the importance by leave-one-out; {as_many} at random "
        f"would hold {number(count / size)}, the most important {number(largest_share)}. The whole map finds "
        f"{number(window.importance_mass)} of the importance; an even map would find {number(1 / size)}, these "
        f"weights in the best order {number(window.largest_mass)}."
    )


def _other_weights(window: Window, epsilon: float) -> str:
    adversary = window.adversary
    if adversary is None:
        return f"Other weights, same answer: {NOT_ASKED}."
    subject = "most different weights" + ("" if adversary.exact else " that were found")
    bound = "" if adversary.exact else f", and none can exceed {number(adversary.jsd_upper)}"
    return (
        f"Other weights, same answer (within {epsilon:g}): the {subject} have a JSD of "
        f"{number(adversary.jsd)} from the model's{bound}; {number(LN2)} would be nothing in common."
    )


def _flipping(window: Window, classes: Sequence[str], unit: str) -> str:
    flip = window.flip
    if flip is None and window.smallest:
        return (
            f"No set of {unit}s flips the answer when its weights are erased, as long as one {unit} is left; "
            "this is proven."
        )
    if flip is None:
        orders = "; ".join(RANKINGS.values())
        return f"Erasing weights never flips the answer in any of these orders: {orders}."
    words = [f"{window.tokens[position]} ({position + 1})" for position in flip.words[:NAMED]]
    rest = len(flip.words) - len(words)
    names = ", ".join(words) + (f" and {rest} more" if rest else "")
    reason = (
        "no smaller set does"
        if flip.ranking == EXACT
        else f"they come first in the order of {RANKINGS[flip.ranking]}, which needs the fewest of the "
        "orders tried"
    )
    along = window.flip_along_map
    along_map = f"it takes {plural(along, unit)}" if along else "it never flips"
    return (
        f"Erasing the weight of {plural(len(flip.words), unit)} flips the answer to "
        f"{classes[flip.predicted]} ({probability_text(flip.probability)}): {names}; {reason}. "
        f"In the map's order {along_map}."
    )


def prediction_text(value: float, name: str, *, is_number: bool) -> tuple[str, str]:
    """Return a class and its probability, or a number and its unit, as two words in this order.

    >>> prediction_text(0.25, "good", is_number=False), prediction_text(2.5, "stars", is_number=True)
    (('good', '0.250'), ('2.500', 'stars'))
    """
    return (f"{value:z.3f}", name) if is_number else (name, probability_text(value))


def probability_text(probability: float) -> str:
    """Format a probability with three decimals; only 1 and 0 are shown as certain.

    >>> probability_text(0.9512), probability_text(0.99999), probability_text(1.0)
    ('0.951', '>0.999', '1.000')
    """
    if 0.9995 <= probability < 1:
        return ">0.999"
    return "<0.001" if 0 < probability < 0.0005 else f"{probability:z.3f}"


def marked_text(window: Window) -> Text:
    """Return the text with its most attended tokens in brackets, which show without colours too."""
    attended = set(window.most_attended())
    words = [
        cell(f"[{token}]", style="bold yellow") if position in attended else cell(token)
        for position, token in enumerate(window.tokens)
    ]
    return Text(" ").join(words)


def token_table(window: Window, unit: str, nouns: Nouns = TEXTS) -> RenderableType:
    """Return the numbers per token with bars; a narrow terminal gets each number on a line of its own."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column(nouns.reword(unit), no_wrap=True, overflow="ellipsis", max_width=14)
    other_weights = None if window.adversary is None else window.adversary.weights
    largest_weight = max(
        window.attention.max(), 0.0 if other_weights is None else other_weights.max()
    )
    signed = np.where(window.signed < 0, -window.leave_one_out, window.leave_one_out)
    columns: list[tuple[str, Floats, float, str]] = [
        ("attention", window.attention, largest_weight, "yellow"),
        ("gradient", window.gradient, float(window.gradient.max()), "cyan"),
        (LEAVE_ONE_OUT, signed, float(np.abs(signed).max()), "cyan"),
    ]
    if other_weights is not None:
        columns.append(("other weights", other_weights, largest_weight, "yellow"))
    for name, _, _, style in columns:
        table.add_column(name, style=style, no_wrap=True)
    narrow = Table.grid("", Column(overflow="fold"), Column(no_wrap=True), padding=(0, 2))
    positions = _most_telling([values for _, values, _, _ in columns])
    for position in positions:
        token = cell(f"{window.tokens[position]}{'?' if window.unknown[position] else ''}")
        bars = [_bar(float(values[position]), scale) for _, values, scale, _ in columns]
        table.add_row(str(position + 1), token, *bars)
        narrow.add_row(cell(str(position + 1), style="dim"), token)
        for (name, _, _, style), bar in zip(columns, bars, strict=True):
            narrow.add_row("", name, bar, style=style)
    likelier = "output is larger" if window.is_number else "answer is likelier"
    keys = [f"negative: the {likelier} without the {unit}"] if (signed < 0).any() else []
    if window.unknown.any():
        keys.append("?: holds an unknown word" if unit == "sentence" else "?: unknown word")
    if unlisted := len(window.tokens) - len(positions):
        keys.append(f"{unlisted} {unit}s that stand out in no column are not listed")
    return Group(
        Either(table, narrow, TABLE), *(cell(nouns.reword(key), style="dim") for key in keys)
    )


def _most_telling(columns: list[Floats]) -> list[int]:
    """Return the positions of the tokens to list: all, or those that rank first in a column, in order."""
    ranks = [
        np.argsort(np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")) for values in columns
    ]
    best_rank = np.min(ranks, axis=0)
    return sorted(int(position) for position in np.argsort(best_rank, kind="stable")[:LISTED])


def _bar(value: float, scale: float) -> Text:
    if not math.isfinite(value):
        return Text(f"{number(value):>6}")
    length = round(BAR * abs(value) / scale) if scale > 0 else 0
    bar = Text(f"{number(value):>6} {('░' if value < 0 else '█') * length:<{BAR}}")
    if value < 0:
        bar.stylize("red")
    return bar


def shaded_rows(window: Window) -> list[Row]:
    """Return the heat maps as shaded words; in the model's own, the words whose erasure flips are marked."""
    maps = [
        HeatMap("attention, on trial", "attention", window.attention.tolist()),
        HeatMap("gradient", "importance", window.gradient.tolist()),
        HeatMap(
            LEAVE_ONE_OUT,
            "importance",
            window.leave_one_out.tolist(),
            against=(window.signed < 0).tolist(),
        ),
        signed_map(READ_OUTS["read_out"], window.read_out),
        signed_map(READ_OUTS["read_out_attention"], window.read_out_attention),
    ]
    if window.adversary is not None:
        maps.append(
            HeatMap("other weights, same answer", "attention", window.adversary.weights.tolist())
        )
    erased = set(window.flip.words if window.flip else [])
    marks = [position in erased for position in range(len(window.tokens))]
    return [
        shaded(heat_map, window.tokens, None if i else marks) for i, heat_map in enumerate(maps)
    ]
